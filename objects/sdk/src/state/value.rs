//! One value.

use std::marker::PhantomData;

use gesmas_abi::{
    call::Request,
    interface::{FieldKind, Type},
    value,
};

use super::Handle;
use crate::host;

/// One value, or nothing yet.
#[derive(Debug)]
pub struct Value<T> {
    name: &'static str,
    value: PhantomData<fn() -> T>,
}

impl<T: value::Value> Value<T> {
    /// The value; the type's default as long as none was set.
    #[must_use]
    pub fn get(&self) -> T
    where
        T: Default,
    {
        self.read().unwrap_or_default()
    }

    /// The value, if one was set.
    #[must_use]
    pub fn read(&self) -> Option<T> {
        host::optional(&Request::Get { key: self.name.as_bytes() })
    }

    /// Sets the value.
    pub fn set(&mut self, value: T) {
        host::tell_with(&Request::Set { key: self.name.as_bytes(), value: &[] }, value);
    }

    /// Removes the value and returns it.
    pub fn take(&mut self) -> Option<T> {
        host::optional(&Request::Remove { key: self.name.as_bytes() })
    }
}

impl<T: value::Value> Handle for Value<T> {
    const KIND: FieldKind = FieldKind::Value;
    const KEY: Option<Type> = None;
    const VALUE: Option<Type> = Some(T::TYPE);

    fn open(name: &'static str) -> Self {
        Self { name, value: PhantomData }
    }
}
