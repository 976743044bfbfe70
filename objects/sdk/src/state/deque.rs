//! A sequence with two ends.

use std::marker::PhantomData;

use gesmas_abi::{
    call::Request,
    interface::{FieldKind, Type},
    value::Value,
};

use super::Handle;
use crate::host;

/// A sequence that grows and shrinks at both ends.
#[derive(Debug)]
pub struct Deque<T> {
    name: &'static str,
    item: PhantomData<fn() -> T>,
}

impl<T: Value> Deque<T> {
    /// Appends an item.
    pub fn push_back(&mut self, item: T) {
        host::tell_with(&Request::PushBack { deque: self.name.as_bytes(), value: &[] }, item);
    }

    /// Prepends an item.
    pub fn push_front(&mut self, item: T) {
        host::tell_with(&Request::PushFront { deque: self.name.as_bytes(), value: &[] }, item);
    }

    /// Takes the last item.
    pub fn pop_back(&mut self) -> Option<T> {
        host::optional(&Request::PopBack { deque: self.name.as_bytes() })
    }

    /// Takes the first item.
    pub fn pop_front(&mut self) -> Option<T> {
        host::optional(&Request::PopFront { deque: self.name.as_bytes() })
    }

    /// The item at a place, counted from 0 at the front.
    #[must_use]
    pub fn get(&self, index: u64) -> Option<T> {
        host::optional(&Request::DequeGet { index, deque: self.name.as_bytes() })
    }

    /// The first item.
    #[must_use]
    pub fn front(&self) -> Option<T> {
        self.get(0)
    }

    /// The last item.
    #[must_use]
    pub fn back(&self) -> Option<T> {
        self.len().checked_sub(1).and_then(|last| self.get(last))
    }

    /// How many items there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        host::number(&Request::Length { collection: self.name.as_bytes() })
    }

    /// Whether there is no item.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Value> Handle for Deque<T> {
    const KIND: FieldKind = FieldKind::Deque;
    const KEY: Option<Type> = None;
    const VALUE: Option<Type> = Some(T::TYPE);

    fn open(name: &'static str) -> Self {
        Self { name, item: PhantomData }
    }
}
