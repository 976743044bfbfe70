//! Writes an interface in constants.
//!
//! A macro describes a class as a [`Class`], asks for [`Class::length`], and places
//! `class.encode::<LENGTH>()` into the section: two passes over one writer, of which the first
//! only counts. The same writer hashes signatures and layouts.

use super::{FieldKind, MethodKind, Named, Type};
use crate::{
    ABI_VERSION,
    hash::{FNV_START, fnv_step},
};

/// A class as constants.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub docs: &'static str,
    /// Objects vanish when they are as `init` left them and nobody needs them.
    pub transient: bool,
    /// Its fields.
    pub fields: &'static [ClassField],
    /// Its methods, handlers and `init`.
    pub methods: &'static [ClassMethod],
}

/// A field of a class as a constant.
#[derive(Clone, Copy, Debug)]
pub struct ClassField {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub kind: FieldKind,
    /// Type of its keys.
    pub key: Option<Type>,
    /// Type of its values.
    pub value: Option<Type>,
}

/// A method of a class as a constant.
#[derive(Clone, Copy, Debug)]
pub struct ClassMethod {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub docs: &'static str,
    /// Its kind.
    pub kind: MethodKind,
    /// Ignores its caller's fate.
    pub detached: bool,
    /// Its parameters.
    pub parameters: &'static [Named],
    /// Type of its result.
    pub result: Type,
    /// Type of its errors.
    pub error: Option<Type>,
}

impl Class {
    /// Length of the encoded interface.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.write(Sink::<0>::new()).length
    }

    /// The encoded interface.
    ///
    /// # Panics
    /// When `N` is not [`Class::length`].
    #[must_use]
    pub const fn encode<const N: usize>(&self) -> [u8; N] {
        let sink = self.write(Sink::<N>::new());
        assert!(sink.length == N, "N is the length of the interface");
        sink.bytes
    }

    /// Hash of the names, kinds and types of the fields.
    #[must_use]
    pub const fn layout(&self) -> u64 {
        self.write_fields(Sink::<0>::new()).hash
    }

    const fn write<const N: usize>(&self, sink: Sink<N>) -> Sink<N> {
        let mut sink = sink
            .u32(ABI_VERSION)
            .text(self.name)
            .text(self.docs)
            .byte(self.transient as u8)
            .u64(self.layout());
        sink = self.write_fields(sink).count(self.methods.len());
        let mut index = 0;
        while index < self.methods.len() {
            sink = self.methods[index].write(sink);
            index += 1;
        }
        sink
    }

    const fn write_fields<const N: usize>(&self, sink: Sink<N>) -> Sink<N> {
        let mut sink = sink.count(self.fields.len());
        let mut index = 0;
        while index < self.fields.len() {
            let field = &self.fields[index];
            sink = sink.text(field.name).byte(field.kind as u8);
            sink = sink.optional(&field.key).optional(&field.value);
            index += 1;
        }
        sink
    }
}

impl ClassMethod {
    /// Hash of kind, types of parameters, result and error.
    #[must_use]
    pub const fn signature(&self) -> u64 {
        let mut sink = Sink::<0>::new().byte(self.kind as u8).count(self.parameters.len());
        let mut index = 0;
        while index < self.parameters.len() {
            sink = sink.ty(&self.parameters[index].ty);
            index += 1;
        }
        sink.ty(&self.result).optional(&self.error).hash
    }

    const fn write<const N: usize>(&self, sink: Sink<N>) -> Sink<N> {
        sink.text(self.name)
            .text(self.docs)
            .byte(self.kind as u8)
            .byte(self.detached as u8)
            .named(self.parameters)
            .ty(&self.result)
            .optional(&self.error)
            .u64(self.signature())
    }
}

/// Counts and hashes what is written, and keeps as much of it as fits.
struct Sink<const N: usize> {
    bytes: [u8; N],
    length: usize,
    hash: u64,
}

impl<const N: usize> Sink<N> {
    const fn new() -> Self {
        Self { bytes: [0; N], length: 0, hash: FNV_START }
    }

    const fn byte(mut self, byte: u8) -> Self {
        if self.length < N {
            self.bytes[self.length] = byte;
        }
        self.length += 1;
        self.hash = fnv_step(self.hash, byte);
        self
    }

    const fn raw(mut self, bytes: &[u8]) -> Self {
        let mut index = 0;
        while index < bytes.len() {
            self = self.byte(bytes[index]);
            index += 1;
        }
        self
    }

    const fn u32(self, number: u32) -> Self {
        self.raw(&number.to_le_bytes())
    }

    const fn u64(self, number: u64) -> Self {
        self.raw(&number.to_le_bytes())
    }

    const fn count(self, count: usize) -> Self {
        assert!(count <= u32::MAX as usize, "a count fits into 32 bits");
        self.u32(count as u32)
    }

    const fn text(self, text: &str) -> Self {
        self.count(text.len()).raw(text.as_bytes())
    }

    const fn optional(self, ty: &Option<Type>) -> Self {
        match ty {
            Some(ty) => self.byte(1).ty(ty),
            None => self.byte(0),
        }
    }

    const fn named(self, fields: &[Named]) -> Self {
        let mut sink = self.count(fields.len());
        let mut index = 0;
        while index < fields.len() {
            sink = sink.text(fields[index].name).ty(&fields[index].ty);
            index += 1;
        }
        sink
    }

    const fn ty(self, ty: &Type) -> Self {
        match ty {
            Type::Unit => self.byte(0),
            Type::Bool => self.byte(1),
            Type::U8 => self.byte(2),
            Type::U16 => self.byte(3),
            Type::U32 => self.byte(4),
            Type::U64 => self.byte(5),
            Type::U128 => self.byte(6),
            Type::I8 => self.byte(7),
            Type::I16 => self.byte(8),
            Type::I32 => self.byte(9),
            Type::I64 => self.byte(10),
            Type::I128 => self.byte(11),
            Type::Text => self.byte(12),
            Type::Bytes => self.byte(13),
            Type::Array(length) => self.byte(14).u32(*length),
            Type::Duration => self.byte(15),
            Type::Time => self.byte(16),
            Type::Option(part) => self.byte(17).ty(part),
            Type::List(item) => self.byte(18).ty(item),
            Type::Map(key, value) => self.byte(19).ty(key).ty(value),
            Type::Set(key) => self.byte(20).ty(key),
            Type::Tuple(parts) => {
                let mut sink = self.byte(21).count(parts.len());
                let mut index = 0;
                while index < parts.len() {
                    sink = sink.ty(&parts[index]);
                    index += 1;
                }
                sink
            }
            Type::Record { name, fields } => self.byte(22).text(name).named(fields),
            Type::Choice { name, variants } => {
                let mut sink = self.byte(23).text(name).count(variants.len());
                let mut index = 0;
                while index < variants.len() {
                    sink = sink.text(variants[index].name).named(variants[index].fields);
                    index += 1;
                }
                sink
            }
        }
    }
}
