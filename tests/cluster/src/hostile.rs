//! The classes of these tests, and interfaces for modules that are written as text.

use gesmas_abi::{
    ABI_VERSION, INTERFACE_SECTION,
    interface::{Interface, Method, MethodKind, TypeOwned},
};

use crate::class::Class;

mod embedded {
    #![allow(unreachable_pub, reason = "the build helper writes for crates that export it")]
    include!(concat!(env!("OUT_DIR"), "/classes.rs"));
}

pub(crate) const fn hostile_module() -> &'static [u8] {
    embedded::MODULES[0].1
}

/// The codes of `Ledger`, a class that is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ledger {
    /// A sum of 32 bits.
    First = 1,
    /// The same layout.
    Next = 2,
    /// A sum of 64 bits, and a flaw.
    Wide = 3,
    /// Without the flaw.
    Mended = 4,
}

impl Ledger {
    /// The class.
    #[must_use]
    pub fn class(self) -> Class {
        Class::of(embedded::MODULES[self as usize].1)
    }
}

/// The class `Hostile`.
#[must_use]
pub fn hostile_class() -> Class {
    Class::of(hostile_module())
}

/// The section of a class whose one method is `run`, without arguments and result.
#[must_use]
pub fn interface_with(class: &str) -> Vec<u8> {
    let run = Method {
        name: "run".into(),
        docs: String::new(),
        kind: MethodKind::Update,
        detached: false,
        parameters: Vec::new(),
        result: TypeOwned::Unit,
        error: None,
        signature: 0,
    };
    let interface = Interface {
        abi: ABI_VERSION,
        class: class.into(),
        docs: String::new(),
        transient: false,
        layout: 0,
        fields: Vec::new(),
        methods: vec![run],
    };
    interface.sealed().encode()
}

/// A module with an interface section at its end.
#[must_use]
pub fn with_interface(mut module: Vec<u8>, section: &[u8]) -> Vec<u8> {
    let mut custom = Vec::new();
    append_number(&mut custom, INTERFACE_SECTION.len());
    custom.extend(INTERFACE_SECTION.as_bytes());
    custom.extend(section);
    // A custom section has the number 0.
    module.push(0);
    append_number(&mut module, custom.len());
    module.extend(custom);
    module
}

/// In LEB128, as WebAssembly writes lengths.
fn append_number(out: &mut Vec<u8>, mut value: usize) {
    loop {
        let low = u8::try_from(value & 0x7f).expect("seven bits fit a byte");
        value >>= 7;
        if value == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}
