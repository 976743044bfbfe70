//! JSON of values: what people and programs without a stub write and read.
//!
//! | type | JSON |
//! |---|---|
//! | unit | `null` |
//! | bool | `true`, `false` |
//! | integers | a number, or a text of digits; printed as said by [`Integers`] |
//! | text | a text |
//! | bytes, arrays of bytes | `{"text": …}`, `{"base64": …}`, or a text; printed as text if UTF-8 |
//! | duration | `"30s"`, `"1h30m"`, `"250ms"` |
//! | time | `"2026-11-27T10:00:00Z"` |
//! | option | `null` or the value; `{"some": …}` where the value itself may be `null` |
//! | list, set, tuple | an array |
//! | map | an object if its keys are texts, numbers, durations or times; else an array of pairs |
//! | record | an object; an array if its fields have no names; the field itself if it is the only one |
//! | choice | `"Variant"`, or `{"Variant": fields}` with the fields as of a record |
//!
//! Invariants: what is printed is read back as the same bytes; what is read has the one encoding
//! that its type allows (maps and sets sorted, nothing twice); a mismatch names the place, what was
//! expected, and what came. Depth is that of the type, which is bounded.
//! Not here: where the types come from, and how words of a command line become JSON.

mod arguments;
mod base64;
mod decode;
mod describe;
mod encode;
mod key;
mod mismatch;
mod order;
#[cfg(test)]
mod tests;
mod time;

pub(crate) use self::decode::bytes;
pub use self::{
    arguments::{ArgumentError, arguments, named_arguments},
    decode::{Integers, decode},
    describe::{signature, type_name},
    encode::encode,
    key::decode_key,
    mismatch::Mismatch,
    time::{format_duration, format_time, parse_duration, parse_time},
};

use gesmas_abi::interface::{NamedOwned, TypeOwned};

/// How the fields of a record or a variant are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// There are none.
    Empty,
    /// One without a name: as itself.
    Transparent,
    /// Several without names: an array.
    Array,
    /// With names: an object.
    Object,
}

fn shape(fields: &[NamedOwned]) -> Shape {
    match fields {
        [] => Shape::Empty,
        [only] if only.name == "0" => Shape::Transparent,
        [first, ..] if first.name == "0" => Shape::Array,
        _ => Shape::Object,
    }
}

/// Whether a value of this type may be written as `null`.
fn may_be_null(ty: &TypeOwned) -> bool {
    match ty {
        TypeOwned::Unit | TypeOwned::Option(_) => true,
        TypeOwned::Record { fields, .. } => {
            shape(fields) == Shape::Transparent && may_be_null(&fields[0].ty)
        }
        _ => false,
    }
}

/// Whether keys of this type are written as names of an object's members.
fn is_name(ty: &TypeOwned) -> bool {
    match ty {
        TypeOwned::Text | TypeOwned::Duration | TypeOwned::Time => true,
        TypeOwned::Choice { variants, .. } => {
            variants.iter().all(|variant| variant.fields.is_empty())
        }
        _ => integer(ty).is_some(),
    }
}

/// Width in bytes and signedness of an integer type.
fn integer(ty: &TypeOwned) -> Option<(usize, bool)> {
    Some(match ty {
        TypeOwned::U8 => (1, false),
        TypeOwned::U16 => (2, false),
        TypeOwned::U32 => (4, false),
        TypeOwned::U64 => (8, false),
        TypeOwned::U128 => (16, false),
        TypeOwned::I8 => (1, true),
        TypeOwned::I16 => (2, true),
        TypeOwned::I32 => (4, true),
        TypeOwned::I64 => (8, true),
        TypeOwned::I128 => (16, true),
        _ => return None,
    })
}
