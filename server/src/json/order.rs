//! The order of values: bytes that sort as values of a type do.
//!
//! For the types that can be keys in state, these are the very bytes of the key.

use gesmas_abi::{Malformed, Reader, interface::TypeOwned};

use super::integer;

/// Takes a value and appends bytes that sort as it does among the values of its type.
pub(super) fn order(
    ty: &TypeOwned,
    reader: &mut Reader<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Malformed> {
    match ty {
        TypeOwned::Unit => {}
        TypeOwned::Bool => out.push(u8::from(reader.flag()?)),
        TypeOwned::Text | TypeOwned::Bytes => escape(reader.led()?, out),
        TypeOwned::Array(length) => out.extend_from_slice(reader.take(*length as usize)?),
        TypeOwned::Duration | TypeOwned::Time => {
            out.extend_from_slice(&reader.u64()?.to_be_bytes());
        }
        TypeOwned::Option(inner) => {
            let some = reader.flag()?;
            out.push(u8::from(some));
            if some {
                order(inner, reader, out)?;
            }
        }
        TypeOwned::List(item) | TypeOwned::Set(item) => {
            for _ in 0..reader.count(item.least())? {
                out.push(1);
                order(item, reader, out)?;
            }
            out.push(0);
        }
        TypeOwned::Map(key, value) => {
            for _ in 0..reader.count(key.least())? {
                out.push(1);
                order(key, reader, out)?;
                order(value, reader, out)?;
            }
            out.push(0);
        }
        TypeOwned::Tuple(parts) => {
            for part in parts {
                order(part, reader, out)?;
            }
        }
        TypeOwned::Record { fields, .. } => {
            for field in fields {
                order(&field.ty, reader, out)?;
            }
        }
        TypeOwned::Choice { variants, .. } => {
            let index = reader.u8()?;
            out.push(index);
            let variant = variants.get(usize::from(index));
            for field in &variant.ok_or(Malformed("a choice has no such variant"))?.fields {
                order(&field.ty, reader, out)?;
            }
        }
        _ => {
            let (width, signed) = integer(ty).expect("all other types are integers");
            let start = out.len();
            out.extend(reader.take(width)?.iter().rev());
            if signed {
                out[start] ^= 0x80;
            }
        }
    }
    Ok(())
}

/// Bytes of any length, so that a prefix sorts first.
fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        out.push(*byte);
        if *byte == 0 {
            out.push(0xff);
        }
    }
    out.extend_from_slice(&[0, 0]);
}
