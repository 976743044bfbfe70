//! From the bytes of a key in state to JSON: the order-preserving encoding of `gesmas_abi::key`.

use gesmas_abi::{Malformed, Reader, interface::TypeOwned};
use serde_json::Value;

use super::{
    decode::{Integers, bytes, whole},
    format_duration, format_time, integer,
};

/// The JSON of a key of this type.
///
/// # Errors
/// [`Malformed`] when the bytes are not exactly those of one, or the type cannot be a key.
pub fn decode_key(ty: &TypeOwned, key: &[u8]) -> Result<Value, Malformed> {
    let mut reader = Reader::new(key);
    let value = take(ty, &mut reader)?;
    reader.end()?;
    Ok(value)
}

fn take(ty: &TypeOwned, reader: &mut Reader<'_>) -> Result<Value, Malformed> {
    Ok(match ty {
        TypeOwned::Unit => Value::Null,
        TypeOwned::Bool => reader.flag()?.into(),
        TypeOwned::Text => {
            let text = String::from_utf8(unescape(reader)?);
            text.map_err(|_| Malformed("a text is not UTF-8"))?.into()
        }
        TypeOwned::Bytes => bytes(&unescape(reader)?),
        TypeOwned::Array(length) => bytes(reader.take(*length as usize)?),
        TypeOwned::Duration => format_duration(u64::from_be_bytes(reader.array()?)).into(),
        TypeOwned::Time => format_time(u64::from_be_bytes(reader.array()?)).into(),
        TypeOwned::Option(inner) => {
            if reader.flag()? {
                take(inner, reader)?
            } else {
                Value::Null
            }
        }
        TypeOwned::Tuple(parts) => {
            parts.iter().map(|part| take(part, reader)).collect::<Result<Vec<_>, _>>()?.into()
        }
        _ => {
            let (width, signed) = integer(ty).ok_or(Malformed("the type cannot be a key"))?;
            let mut number = reader.take(width)?.to_vec();
            if signed {
                number[0] ^= 0x80;
            }
            number.reverse();
            whole(&number, signed, Integers::Numbers)
        }
    })
}

fn unescape(reader: &mut Reader<'_>) -> Result<Vec<u8>, Malformed> {
    let mut bytes = Vec::new();
    loop {
        match reader.u8()? {
            0 => match reader.u8()? {
                0 => return Ok(bytes),
                0xff => bytes.push(0),
                _ => return Err(Malformed("a zero byte in a key is not escaped")),
            },
            byte => bytes.push(byte),
        }
    }
}
