//! From JSON to the bytes of a value.

use gesmas_abi::{
    Reader, Write as _,
    interface::{NamedOwned, TypeOwned, VariantOwned},
};
use serde_json::{Map, Value};

use super::{
    Mismatch, Shape, base64,
    describe::{expected, type_name},
    integer, may_be_null,
    order::order,
    parse_duration, parse_time, shape,
};

/// The bytes of a value of this type.
///
/// # Errors
/// [`Mismatch`] when the JSON is not one.
pub fn encode(ty: &TypeOwned, value: &Value) -> Result<Vec<u8>, Mismatch> {
    let mut out = Vec::new();
    put(ty, value, &mut out)?;
    Ok(out)
}

/// Appends the bytes of a value.
pub(super) fn put(ty: &TypeOwned, value: &Value, out: &mut Vec<u8>) -> Result<(), Mismatch> {
    let mismatch = || Mismatch::new(expected(ty), value);
    match ty {
        TypeOwned::Unit if value.is_null() => {}
        TypeOwned::Bool => out.push(u8::from(value.as_bool().ok_or_else(mismatch)?)),
        TypeOwned::Text => out.put_led(value.as_str().ok_or_else(mismatch)?.as_bytes()),
        TypeOwned::Bytes => out.put_led(&bytes(value).ok_or_else(mismatch)?),
        TypeOwned::Array(length) => {
            let bytes = bytes(value).ok_or_else(mismatch)?;
            if bytes.len() != *length as usize {
                return Err(Mismatch::with(expected(ty), format!("{} bytes", bytes.len())));
            }
            out.put(&bytes);
        }
        TypeOwned::Duration => {
            out.put_u64(value.as_str().and_then(parse_duration).ok_or_else(mismatch)?);
        }
        TypeOwned::Time => {
            out.put_u64(value.as_str().and_then(parse_time).ok_or_else(mismatch)?);
        }
        TypeOwned::Option(_) if value.is_null() => out.push(0),
        TypeOwned::Option(inner) => {
            out.push(1);
            if may_be_null(inner) {
                let some = value.as_object().filter(|object| object.len() == 1);
                let expected = || Mismatch::new(r#"null or {"some": …}"#, value);
                let some = some.and_then(|object| object.get("some")).ok_or_else(expected)?;
                put(inner, some, out).map_err(|mismatch| mismatch.in_member("some"))?;
            } else {
                put(inner, value, out).map_err(|inner| match inner.place.is_empty() {
                    true => Mismatch { expected: format!("null or {}", inner.expected), ..inner },
                    false => inner,
                })?;
            }
        }
        TypeOwned::List(item) => {
            let items = value.as_array().ok_or_else(mismatch)?;
            out.put_count(items.len());
            put_items(std::iter::repeat(&**item), items, out)?;
        }
        TypeOwned::Tuple(parts) => {
            let items = value.as_array().filter(|items| items.len() == parts.len());
            put_items(parts.iter(), items.ok_or_else(mismatch)?, out)?;
        }
        TypeOwned::Map(key, inner) => put_map(key, inner, value, out)?,
        TypeOwned::Set(key) => put_set(key, value.as_array().ok_or_else(mismatch)?, out)?,
        TypeOwned::Record { fields, .. } => put_fields(fields, value, out, mismatch)?,
        TypeOwned::Choice { variants, .. } => put_choice(variants, value, out, mismatch)?,
        _ => put_integer(ty, value, out, mismatch)?,
    }
    Ok(())
}

fn put_items<'a>(
    types: impl Iterator<Item = &'a TypeOwned>,
    items: &[Value],
    out: &mut Vec<u8>,
) -> Result<(), Mismatch> {
    for (index, (ty, item)) in types.zip(items).enumerate() {
        put(ty, item, out).map_err(|mismatch| mismatch.in_item(index))?;
    }
    Ok(())
}

fn put_integer(
    ty: &TypeOwned,
    value: &Value,
    out: &mut Vec<u8>,
    mismatch: impl Fn() -> Mismatch,
) -> Result<(), Mismatch> {
    let Some((width, signed)) = integer(ty) else {
        return Err(mismatch());
    };
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        _ => return Err(mismatch()),
    };
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.as_str()),
    };
    // The parser of the standard library would take a sign of its own.
    let digits = Some(digits).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let Some(magnitude) = digits.and_then(|digits| digits.parse::<u128>().ok()) else {
        // JSON numbers beyond 64 bits lose digits, and those with a point are no integers.
        let advice = if value.is_f64() { " (greater ones, and exact ones, as texts)" } else { "" };
        return Err(Mismatch::new(format!("{}{advice}", expected(ty)), value));
    };
    let greatest = u128::MAX >> (128 - width * 8 + usize::from(signed));
    let limit = match (negative, signed) {
        (false, _) => greatest,
        (true, true) => greatest + 1,
        (true, false) => 0,
    };
    if magnitude > limit {
        return Err(mismatch());
    }
    let bits = if negative { magnitude.wrapping_neg() } else { magnitude };
    out.put(&bits.to_le_bytes()[..width]);
    Ok(())
}

fn bytes(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.as_bytes().into()),
        Value::Object(members) if members.len() == 1 => {
            let (name, content) = members.iter().next()?;
            match name.as_str() {
                "text" => Some(content.as_str()?.as_bytes().into()),
                "base64" => base64::decode(content.as_str()?),
                _ => None,
            }
        }
        _ => None,
    }
}

fn put_fields(
    fields: &[NamedOwned],
    value: &Value,
    out: &mut Vec<u8>,
    mismatch: impl Fn() -> Mismatch,
) -> Result<(), Mismatch> {
    match shape(fields) {
        Shape::Empty => match value {
            Value::Null => Ok(()),
            Value::Object(members) if members.is_empty() => Ok(()),
            _ => Err(mismatch()),
        },
        Shape::Transparent => put(&fields[0].ty, value, out),
        Shape::Array => {
            let items = value.as_array().filter(|items| items.len() == fields.len());
            let types = fields.iter().map(|field| &field.ty);
            put_items(types, items.ok_or_else(&mismatch)?, out)
        }
        Shape::Object => {
            put_members(fields, value.as_object().ok_or_else(&mismatch)?, out, mismatch)
        }
    }
}

/// Appends the fields of an object. One that may be `null` may be left out.
pub(super) fn put_members(
    fields: &[NamedOwned],
    members: &Map<String, Value>,
    out: &mut Vec<u8>,
    mismatch: impl Fn() -> Mismatch,
) -> Result<(), Mismatch> {
    let known = |name: &str| fields.iter().any(|field| field.name == name);
    if let Some(name) = members.keys().find(|name| !known(name)) {
        return Err(Mismatch { found: format!("with {name:?}"), ..mismatch() });
    }
    for field in fields {
        let value = match members.get(&field.name) {
            Some(value) => value,
            None if matches!(field.ty, TypeOwned::Option(_)) => &Value::Null,
            None => {
                return Err(Mismatch { found: format!("without {:?}", field.name), ..mismatch() });
            }
        };
        put(&field.ty, value, out).map_err(|mismatch| mismatch.in_member(&field.name))?;
    }
    Ok(())
}

fn put_choice(
    variants: &[VariantOwned],
    value: &Value,
    out: &mut Vec<u8>,
    mismatch: impl Fn() -> Mismatch,
) -> Result<(), Mismatch> {
    let (name, content) = match value {
        Value::String(name) => (name, &Value::Null),
        Value::Object(members) if members.len() == 1 => {
            members.iter().next().expect("the object has one member")
        }
        _ => return Err(mismatch()),
    };
    let index = variants.iter().position(|variant| variant.name == *name);
    let index = index.ok_or_else(&mismatch)?;
    out.push(u8::try_from(index).map_err(|_| mismatch())?);
    let inner = || Mismatch::new(format!("the fields of {name}"), content);
    put_fields(&variants[index].fields, content, out, inner)
        .map_err(|mismatch| mismatch.in_member(name))
}

fn put_map(
    key: &TypeOwned,
    inner: &TypeOwned,
    value: &Value,
    out: &mut Vec<u8>,
) -> Result<(), Mismatch> {
    let mut entries = Vec::new();
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let place = |mismatch: Mismatch| mismatch.in_member(name);
                let key = encode(key, &Value::String(name.clone())).map_err(place)?;
                entries.push((key, encode(inner, value).map_err(place)?));
            }
        }
        Value::Array(pairs) => {
            for (index, pair) in pairs.iter().enumerate() {
                let place = |mismatch: Mismatch| mismatch.in_item(index);
                let Some([first, second]) = pair.as_array().map(Vec::as_slice) else {
                    return Err(place(Mismatch::new("a pair of key and value", pair)));
                };
                let key = encode(key, first).map_err(|mismatch| place(mismatch.in_item(0)))?;
                let value = encode(inner, second);
                entries.push((key, value.map_err(|mismatch| place(mismatch.in_item(1)))?));
            }
        }
        _ => {
            let name = format!("map<{}, {}>", type_name(key), type_name(inner));
            return Err(Mismatch::new(format!("{name}, an object or an array of pairs"), value));
        }
    }
    put_sorted(key, entries, out)
}

fn put_set(key: &TypeOwned, items: &[Value], out: &mut Vec<u8>) -> Result<(), Mismatch> {
    let entry = |(index, item)| {
        let bytes = encode(key, item).map_err(|mismatch: Mismatch| mismatch.in_item(index))?;
        Ok((bytes, Vec::new()))
    };
    let entries = items.iter().enumerate().map(entry).collect::<Result<_, _>>()?;
    put_sorted(key, entries, out)
}

/// Appends entries in the order of their keys.
fn put_sorted(
    key: &TypeOwned,
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    out: &mut Vec<u8>,
) -> Result<(), Mismatch> {
    let mut sorted = std::collections::BTreeMap::new();
    let count = entries.len();
    for (bytes, value) in entries {
        let mut place = Vec::new();
        order(key, &mut Reader::new(&bytes), &mut place).expect("the key was encoded just now");
        sorted.insert(place, (bytes, value));
    }
    if sorted.len() < count {
        return Err(Mismatch::with("without a key that comes twice", "with one"));
    }
    out.put_count(count);
    for (bytes, value) in sorted.values() {
        out.put(bytes);
        out.put(value);
    }
    Ok(())
}
