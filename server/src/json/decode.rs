//! From the bytes of a value to JSON.

use gesmas_abi::{
    Malformed, Reader,
    interface::{NamedOwned, TypeOwned},
};
use serde_json::{Map, Value, json};

use super::{
    Shape, base64, format_duration, format_time, integer, is_name, may_be_null, order::order, shape,
};

/// Greatest whole number up to which every reader of JSON counts exactly.
const EXACT: u128 = 1 << 53;

/// How integers of 64 and 128 bits are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integers {
    /// As numbers as long as every reader of JSON can hold them, else as texts.
    Numbers,
    /// Always as texts, so that a field does not change its type as it grows.
    Texts,
}

/// The JSON of a value of this type.
///
/// # Errors
/// [`Malformed`] when the bytes are not exactly those of one.
pub fn decode(ty: &TypeOwned, bytes: &[u8], integers: Integers) -> Result<Value, Malformed> {
    let mut reader = Reader::new(bytes);
    let value = take(ty, &mut reader, integers)?;
    reader.end()?;
    Ok(value)
}

fn take(ty: &TypeOwned, reader: &mut Reader<'_>, integers: Integers) -> Result<Value, Malformed> {
    Ok(match ty {
        TypeOwned::Unit => Value::Null,
        TypeOwned::Bool => reader.flag()?.into(),
        TypeOwned::Text => reader.text()?.into(),
        TypeOwned::Bytes => bytes(reader.led()?),
        TypeOwned::Array(length) => bytes(reader.take(*length as usize)?),
        TypeOwned::Duration => format_duration(reader.u64()?).into(),
        TypeOwned::Time => format_time(reader.u64()?).into(),
        TypeOwned::Option(inner) => {
            if !reader.flag()? {
                Value::Null
            } else if may_be_null(inner) {
                json!({ "some": take(inner, reader, integers)? })
            } else {
                take(inner, reader, integers)?
            }
        }
        TypeOwned::List(item) => {
            let count = reader.count(item.least())?;
            take_all(std::iter::repeat_n(&**item, count), reader, integers)?
        }
        TypeOwned::Set(key) => {
            let mut items = Vec::new();
            let mut last = None;
            for _ in 0..reader.count(key.least())? {
                check_order(key, reader, &mut last)?;
                items.push(take(key, reader, integers)?);
            }
            items.into()
        }
        TypeOwned::Map(key, value) => take_map(key, value, reader, integers)?,
        TypeOwned::Tuple(parts) => take_all(parts.iter(), reader, integers)?,
        TypeOwned::Record { fields, .. } => take_fields(fields, reader, integers)?,
        TypeOwned::Choice { variants, .. } => {
            let variant = variants.get(usize::from(reader.u8()?));
            let variant = variant.ok_or(Malformed("a choice has no such variant"))?;
            match shape(&variant.fields) {
                Shape::Empty => variant.name.clone().into(),
                _ => {
                    let fields = take_fields(&variant.fields, reader, integers)?;
                    Map::from_iter([(variant.name.clone(), fields)]).into()
                }
            }
        }
        _ => {
            let (width, signed) = integer(ty).expect("all other types are integers");
            whole(reader.take(width)?, signed, integers)
        }
    })
}

fn take_all<'a>(
    types: impl Iterator<Item = &'a TypeOwned>,
    reader: &mut Reader<'_>,
    integers: Integers,
) -> Result<Value, Malformed> {
    let items: Result<Vec<_>, _> = types.map(|ty| take(ty, reader, integers)).collect();
    items.map(Value::Array)
}

fn take_fields(
    fields: &[NamedOwned],
    reader: &mut Reader<'_>,
    integers: Integers,
) -> Result<Value, Malformed> {
    match shape(fields) {
        Shape::Transparent => take(&fields[0].ty, reader, integers),
        Shape::Array => take_all(fields.iter().map(|field| &field.ty), reader, integers),
        Shape::Empty | Shape::Object => {
            let mut members = Map::new();
            for field in fields {
                members.insert(field.name.clone(), take(&field.ty, reader, integers)?);
            }
            Ok(members.into())
        }
    }
}

fn take_map(
    key: &TypeOwned,
    value: &TypeOwned,
    reader: &mut Reader<'_>,
    integers: Integers,
) -> Result<Value, Malformed> {
    let count = reader.count(key.least())?;
    let mut pairs = Vec::new();
    let mut last = None;
    for _ in 0..count {
        check_order(key, reader, &mut last)?;
        pairs.push((take(key, reader, integers)?, take(value, reader, integers)?));
    }
    if !is_name(key) {
        return Ok(pairs.into_iter().map(|(key, value)| json!([key, value])).collect());
    }
    let name = |key: Value| match key {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let members: Map<_, _> = pairs.into_iter().map(|(key, value)| (name(key), value)).collect();
    Ok(members.into())
}

/// Refuses keys that are out of order or come twice: the type allows neither.
fn check_order(
    key: &TypeOwned,
    reader: &Reader<'_>,
    last: &mut Option<Vec<u8>>,
) -> Result<(), Malformed> {
    let mut place = Vec::new();
    let mut ahead = *reader;
    order(key, &mut ahead, &mut place)?;
    if last.as_ref().is_some_and(|last| *last >= place) {
        return Err(Malformed("keys are not in order"));
    }
    *last = Some(place);
    Ok(())
}

/// Bytes for people if they are text, else in base64.
pub(crate) fn bytes(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!({ "text": text }),
        Err(_) => json!({ "base64": base64::encode(bytes) }),
    }
}

/// A little-endian integer.
pub(super) fn whole(bytes: &[u8], signed: bool, integers: Integers) -> Value {
    let negative = signed && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut wide = [if negative { 0xff } else { 0 }; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    let bits = u128::from_le_bytes(wide);
    let magnitude = if negative { bits.wrapping_neg() } else { bits };
    let narrow = bytes.len() <= 4 || integers == Integers::Numbers;
    match i64::try_from(magnitude) {
        Ok(number) if narrow && magnitude <= EXACT => {
            if negative { -number } else { number }.into()
        }
        _ => format!("{}{magnitude}", if negative { "-" } else { "" }).into(),
    }
}
