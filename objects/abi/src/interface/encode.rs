//! Writes owned interfaces, for tools that attach one to a module whose compiler cannot.

use alloc::vec::Vec;

use super::{Field, Interface, Method, NamedOwned, TypeOwned};
use crate::{Write, fnv1a64};

impl Interface {
    /// The bytes of the section.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_u32(self.abi);
        out.put_led(self.class.as_bytes());
        out.put_led(self.docs.as_bytes());
        out.put_u8(u8::from(self.transient));
        out.put_u64(self.layout);
        write_fields(&self.fields, &mut out);
        out.put_count(self.methods.len());
        self.methods.iter().for_each(|method| method.write(&mut out));
        out
    }

    /// Hash of the names, kinds and types of the fields.
    #[must_use]
    pub fn compute_layout(&self) -> u64 {
        let mut out = Vec::new();
        write_fields(&self.fields, &mut out);
        fnv1a64(&out)
    }
}

impl Method {
    /// Hash of kind, types of parameters, result and error.
    #[must_use]
    pub fn compute_signature(&self) -> u64 {
        let mut out = Vec::new();
        out.put_u8(self.kind as u8);
        out.put_count(self.parameters.len());
        self.parameters.iter().for_each(|parameter| parameter.ty.write(&mut out));
        self.result.write(&mut out);
        write_optional(self.error.as_ref(), &mut out);
        fnv1a64(&out)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.put_led(self.name.as_bytes());
        out.put_led(self.docs.as_bytes());
        out.put_u8(self.kind as u8);
        out.put_u8(u8::from(self.detached));
        write_named(&self.parameters, out);
        self.result.write(out);
        write_optional(self.error.as_ref(), out);
        out.put_u64(self.signature);
    }
}

fn write_fields(fields: &[Field], out: &mut Vec<u8>) {
    out.put_count(fields.len());
    for field in fields {
        out.put_led(field.name.as_bytes());
        out.put_u8(field.kind as u8);
        write_optional(field.key.as_ref(), out);
        write_optional(field.value.as_ref(), out);
    }
}

fn write_optional(ty: Option<&TypeOwned>, out: &mut Vec<u8>) {
    out.put_u8(u8::from(ty.is_some()));
    ty.into_iter().for_each(|ty| ty.write(out));
}

fn write_named(fields: &[NamedOwned], out: &mut Vec<u8>) {
    out.put_count(fields.len());
    for field in fields {
        out.put_led(field.name.as_bytes());
        field.ty.write(out);
    }
}

impl TypeOwned {
    /// The byte that tells this kind of type from the others.
    const fn tag(&self) -> u8 {
        match self {
            Self::Unit => 0,
            Self::Bool => 1,
            Self::U8 => 2,
            Self::U16 => 3,
            Self::U32 => 4,
            Self::U64 => 5,
            Self::U128 => 6,
            Self::I8 => 7,
            Self::I16 => 8,
            Self::I32 => 9,
            Self::I64 => 10,
            Self::I128 => 11,
            Self::Text => 12,
            Self::Bytes => 13,
            Self::Array(_) => 14,
            Self::Duration => 15,
            Self::Time => 16,
            Self::Option(_) => 17,
            Self::List(_) => 18,
            Self::Map(..) => 19,
            Self::Set(_) => 20,
            Self::Tuple(_) => 21,
            Self::Record { .. } => 22,
            Self::Choice { .. } => 23,
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.put_u8(self.tag());
        match self {
            Self::Array(length) => out.put_u32(*length),
            Self::Option(part) | Self::List(part) | Self::Set(part) => part.write(out),
            Self::Map(key, value) => {
                key.write(out);
                value.write(out);
            }
            Self::Tuple(parts) => {
                out.put_count(parts.len());
                parts.iter().for_each(|part| part.write(out));
            }
            Self::Record { name, fields } => {
                out.put_led(name.as_bytes());
                write_named(fields, out);
            }
            Self::Choice { name, variants } => {
                out.put_led(name.as_bytes());
                out.put_count(variants.len());
                for variant in variants {
                    out.put_led(variant.name.as_bytes());
                    write_named(&variant.fields, out);
                }
            }
            _ => {}
        }
    }
}
