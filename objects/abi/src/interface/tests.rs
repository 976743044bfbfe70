//! The section of a small class as literal bytes, and what the decoder refuses.

use alloc::{boxed::Box, vec, vec::Vec};

use proptest::prelude::*;

use super::*;
use crate::Malformed;

const COUNTER: Class = Class {
    name: "Counter",
    docs: "Counts.",
    transient: true,
    fields: &[ClassField {
        name: "count",
        kind: FieldKind::Value,
        key: None,
        value: Some(Type::I64),
    }],
    methods: &[ClassMethod {
        name: "add",
        docs: "Adds.",
        kind: MethodKind::Update,
        detached: false,
        parameters: &[Named { name: "number", ty: Type::I64 }],
        result: Type::I64,
        error: Some(Type::Choice {
            name: "Error",
            variants: &[Variant { name: "Full", fields: &[] }],
        }),
    }],
};

static SECTION: [u8; COUNTER.length()] = COUNTER.encode();

/// The same by hand.
fn by_hand() -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(b"\x01\0\0\0");
    bytes.extend_from_slice(b"\x07\0\0\0Counter");
    bytes.extend_from_slice(b"\x07\0\0\0Counts.");
    bytes.push(1);
    let fields = b"\x01\0\0\0\x05\0\0\0count\x00\x00\x01\x0a";
    bytes.extend_from_slice(&crate::fnv1a64(fields).to_le_bytes());
    bytes.extend_from_slice(fields);
    bytes.extend_from_slice(b"\x01\0\0\0");
    bytes.extend_from_slice(b"\x03\0\0\0add\x05\0\0\0Adds.\x00\x00");
    bytes.extend_from_slice(b"\x01\0\0\0\x06\0\0\0number\x0a");
    let rest = b"\x0a\x01\x17\x05\0\0\0Error\x01\0\0\0\x04\0\0\0Full\0\0\0\0";
    bytes.extend_from_slice(rest);
    let hashed = [&b"\x00\x01\0\0\0\x0a"[..], rest].concat();
    bytes.extend_from_slice(&crate::fnv1a64(&hashed).to_le_bytes());
    bytes
}

/// A class with every kind of field, method and type.
const EVERYTHING: Class = Class {
    name: "Everything",
    docs: "",
    transient: false,
    fields: &[
        ClassField { name: "a", kind: FieldKind::Value, key: None, value: Some(Type::Unit) },
        ClassField {
            name: "b",
            kind: FieldKind::Map,
            key: Some(Type::Text),
            value: Some(Type::Bytes),
        },
        ClassField { name: "c", kind: FieldKind::Deque, key: None, value: Some(Type::Array(32)) },
        ClassField { name: "d", kind: FieldKind::Set, key: Some(Type::Time), value: None },
        ClassField { name: "e", kind: FieldKind::Semaphore, key: None, value: None },
        ClassField { name: "f", kind: FieldKind::SemaphoreMap, key: Some(Type::U8), value: None },
    ],
    methods: &[
        method("init", MethodKind::Init, Type::Unit),
        method("handle", MethodKind::Handler, Type::Bool),
        method("read", MethodKind::Read, Type::Map(&Type::U16, &Type::Option(&Type::U32))),
        ClassMethod { detached: true, ..method("write", MethodKind::Update, Type::Tuple(PARTS)) },
    ],
};

const PARTS: &[Type] = &[
    Type::U64,
    Type::U128,
    Type::I8,
    Type::I16,
    Type::I32,
    Type::I128,
    Type::Duration,
    Type::List(&Type::Record { name: "Pair", fields: &[Named { name: "0", ty: Type::Text }] }),
    Type::Set(&Type::U8),
];

const fn method(name: &'static str, kind: MethodKind, result: Type) -> ClassMethod {
    ClassMethod { name, docs: "", kind, detached: false, parameters: &[], result, error: None }
}

#[test]
fn section_has_these_bytes() {
    assert_eq!(SECTION.as_slice(), by_hand());
}

#[test]
fn section_decodes_to_what_was_described() {
    let interface = Interface::decode(&SECTION).unwrap();
    let add = interface.method("add").unwrap();
    assert_eq!(interface.layout, COUNTER.layout());
    assert_eq!(add.signature, COUNTER.methods[0].signature());
    assert_eq!(add.parameters[0].name, "number");
    assert_eq!(interface.init(), None);
}

#[test]
fn constants_and_owned_values_have_the_same_bytes() {
    const LENGTH: usize = EVERYTHING.length();
    let section: [u8; LENGTH] = EVERYTHING.encode();
    let interface = Interface::decode(&section).unwrap();
    assert_eq!(interface.encode(), section);
    assert_eq!(interface.clone().sealed(), interface);
    assert_eq!(interface.method("write").unwrap().result, TypeOwned::from(&Type::Tuple(PARTS)));
    assert_eq!(TypeOwned::from(&Type::Tuple(PARTS)).least(), Type::Tuple(PARTS).least());
}

#[test]
fn signature_depends_on_types_and_kind_only() {
    let add = COUNTER.methods[0];
    let renamed = ClassMethod {
        name: "plus",
        docs: "",
        parameters: &[Named { name: "other", ty: Type::I64 }],
        ..add
    };
    assert_eq!(renamed.signature(), add.signature());
    assert_ne!(ClassMethod { result: Type::U64, ..add }.signature(), add.signature());
    assert_ne!(ClassMethod { error: None, ..add }.signature(), add.signature());
    assert_ne!(ClassMethod { parameters: &[], ..add }.signature(), add.signature());
    assert_ne!(ClassMethod { kind: MethodKind::Read, ..add }.signature(), add.signature());
}

#[track_caller]
fn refused(change: impl FnOnce(&mut Interface), reason: &str) {
    let mut interface = Interface::decode(&SECTION).unwrap();
    change(&mut interface);
    let refused = Interface::decode(&interface.sealed().encode());
    assert_eq!(refused.map_err(|Malformed(reason)| reason), Err(reason));
}

#[test]
fn contradictions_are_refused() {
    refused(|interface| interface.abi = 2, "it is of a version of the ABI that is not known here");
    refused(
        |interface| interface.methods.push(interface.methods[0].clone()),
        "it has a method twice",
    );
    refused(|interface| interface.fields.push(interface.fields[0].clone()), "it has a field twice");
    let init = |interface: &mut Interface, name: &str| {
        let mut init = interface.methods[0].clone();
        init.name = name.into();
        init.kind = MethodKind::Init;
        interface.methods.push(init);
    };
    refused(
        |interface| {
            init(interface, "init");
            init(interface, "init_again");
        },
        "it has more than one init",
    );
    refused(|interface| init(interface, "init"), "it is transient, but its init takes arguments");
    refused(
        |interface| interface.fields[0].key = Some(TypeOwned::U8),
        "a field lacks a type or has one too many",
    );
    refused(
        |interface| interface.methods[0].result = TypeOwned::List(Box::new(TypeOwned::Unit)),
        "it has a collection whose items take no bytes",
    );
}

#[test]
fn wrong_hashes_are_refused() {
    let mut interface = Interface::decode(&SECTION).unwrap();
    interface.methods[0].signature ^= 1;
    let refused = Interface::decode(&interface.encode());
    assert_eq!(refused, Err(Malformed("a signature is not the hash of the method's types")));
    let mut interface = Interface::decode(&SECTION).unwrap();
    interface.layout ^= 1;
    let refused = Interface::decode(&interface.encode());
    assert_eq!(refused, Err(Malformed("its layout is not the hash of its fields")));
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth| {
        let inner = (1..depth).fold(TypeOwned::U8, |ty, _| TypeOwned::Option(Box::new(ty)));
        let mut interface = Interface::decode(&SECTION).unwrap();
        interface.methods[0].result = inner;
        Interface::decode(&interface.sealed().encode())
    };
    assert!(nested(TYPE_DEPTH_MAX).is_ok());
    assert_eq!(nested(TYPE_DEPTH_MAX + 1), Err(Malformed("its types are nested too deep")));
    let mut deep = SECTION[..30].to_vec();
    deep.extend(vec![17; 1 << 20]);
    assert!(Interface::decode(&deep).is_err());
}

proptest! {
    #[test]
    fn sections_with_a_changed_byte_decode_to_themselves_or_are_refused(
        place in 0..SECTION.len(),
        byte: u8,
    ) {
        let mut section = SECTION;
        section[place] = byte;
        if let Ok(interface) = Interface::decode(&section) {
            prop_assert_eq!(interface.encode(), section);
        }
    }

    #[test]
    fn sections_that_are_cut_short_are_refused(length in 0..SECTION.len()) {
        prop_assert!(Interface::decode(&SECTION[..length]).is_err());
    }
}
