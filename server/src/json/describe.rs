//! Types in words: as documentation writes them, and as an error asks for them.

use gesmas_abi::interface::{Method, TypeOwned};

use super::{Shape, integer, shape};

/// Name of a type, such as `map<text, list<u32>>`.
#[must_use]
pub fn type_name(ty: &TypeOwned) -> String {
    let part = |name: &str, parts: &[&TypeOwned]| {
        let parts: Vec<_> = parts.iter().map(|part| type_name(part)).collect();
        format!("{name}<{}>", parts.join(", "))
    };
    match ty {
        TypeOwned::Unit => "unit".into(),
        TypeOwned::Bool => "bool".into(),
        TypeOwned::Text => "text".into(),
        TypeOwned::Bytes => "bytes".into(),
        TypeOwned::Duration => "duration".into(),
        TypeOwned::Time => "time".into(),
        TypeOwned::Array(length) => format!("bytes<{length}>"),
        TypeOwned::Option(inner) => part("option", &[inner]),
        TypeOwned::List(item) => part("list", &[item]),
        TypeOwned::Map(key, value) => part("map", &[key, value]),
        TypeOwned::Set(key) => part("set", &[key]),
        TypeOwned::Tuple(parts) => {
            let parts: Vec<_> = parts.iter().map(type_name).collect();
            format!("({})", parts.join(", "))
        }
        TypeOwned::Record { name, .. } | TypeOwned::Choice { name, .. } => name.clone(),
        _ => {
            let (width, signed) = integer(ty).expect("all other types are integers");
            format!("{}{}", if signed { 'i' } else { 'u' }, width * 8)
        }
    }
}

/// A method with its parameters and result, such as `add(number: i64) -> i64`.
#[must_use]
pub fn signature(method: &Method) -> String {
    let parameters: Vec<_> = method
        .parameters
        .iter()
        .map(|parameter| format!("{}: {}", parameter.name, type_name(&parameter.ty)))
        .collect();
    let mut text = format!("{}({})", method.name, parameters.join(", "));
    if method.result != TypeOwned::Unit {
        text += &format!(" -> {}", type_name(&method.result));
    }
    text
}

/// What JSON a type wants, for an error.
pub(super) fn expected(ty: &TypeOwned) -> String {
    let name = type_name(ty);
    match ty {
        TypeOwned::Unit => "null".into(),
        TypeOwned::Bool => "true or false".into(),
        TypeOwned::Text => "a text".into(),
        TypeOwned::Bytes => r#"bytes: a text, {"text": …} or {"base64": …}"#.into(),
        TypeOwned::Array(length) => {
            format!(r#"{length} bytes: a text, {{"text": …}} or {{"base64": …}}"#)
        }
        TypeOwned::Duration => r#"a duration such as "30s", "1h30m" or "250ms""#.into(),
        TypeOwned::Time => r#"a time such as "2026-11-27T10:00:00Z""#.into(),
        TypeOwned::Option(inner) => format!("null or {}", expected(inner)),
        TypeOwned::List(_) | TypeOwned::Set(_) => format!("{name}, an array"),
        TypeOwned::Map(..) => format!("{name}, an object or an array of pairs"),
        TypeOwned::Tuple(parts) => format!("{name}, an array of {}", parts.len()),
        TypeOwned::Record { fields, .. } => match shape(fields) {
            Shape::Empty => format!("{name}, an empty object"),
            Shape::Transparent => expected(&fields[0].ty),
            Shape::Array => format!("{name}, an array of {}", fields.len()),
            Shape::Object => {
                let names: Vec<_> = fields.iter().map(|field| field.name.as_str()).collect();
                format!("{name}, an object with {}", names.join(", "))
            }
        },
        TypeOwned::Choice { variants, .. } => {
            let write = |variant: &gesmas_abi::interface::VariantOwned| {
                if variant.fields.is_empty() {
                    format!("{:?}", variant.name)
                } else {
                    format!("{{{:?}: …}}", variant.name)
                }
            };
            let variants: Vec<_> = variants.iter().map(write).collect();
            format!("{name}, one of {}", variants.join(", "))
        }
        _ => {
            let (width, signed) = integer(ty).expect("all other types are integers");
            let greatest = u128::MAX >> (128 - width * 8 + usize::from(signed));
            let least = if signed { format!("-{}", greatest + 1) } else { "0".into() };
            format!("{name}, a whole number from {least} to {greatest}")
        }
    }
}
