//! Calls without stubs, so that tests can pipeline them and get them wrong.

use gesmas_abi::{
    interface::Interface,
    value::{Value, to_bytes},
};
use gesmas_client::{Call, Read, Session};

/// Encodes arguments: a tuple of them.
pub fn arguments(arguments: impl Value) -> Vec<u8> {
    to_bytes(&arguments)
}

/// A class by its module.
#[derive(Clone, Debug)]
pub struct Class {
    /// Its module.
    pub module: Vec<u8>,
    interface: Interface,
}

impl Class {
    /// The class of a module.
    ///
    /// # Panics
    /// When it has no interface.
    #[must_use]
    pub fn of(module: &[u8]) -> Self {
        let interface = gesmas_build::interface_of(module).expect("the module has an interface");
        Self { module: module.to_vec(), interface }
    }

    /// A standard class.
    ///
    /// # Panics
    /// When there is none of this name.
    #[must_use]
    pub fn standard(name: &str) -> Self {
        Self::of(gesmas_classes::find(name).expect("it is a standard class").module)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.interface.class
    }

    /// The signature of a method.
    ///
    /// # Panics
    /// When there is no such method.
    #[must_use]
    pub fn signature(&self, method: &str) -> u64 {
        self.interface.method(method).expect("the class has the method").signature
    }

    /// A call of a method.
    pub fn call(&self, session: &Session, object: &str, method: &str, arguments: Vec<u8>) -> Call {
        session.call(self.name(), object, method, self.signature(method), arguments)
    }

    /// A read.
    pub fn read(&self, session: &Session, object: &str, method: &str, arguments: Vec<u8>) -> Read {
        session.read(self.name(), object, method, self.signature(method), arguments)
    }
}
