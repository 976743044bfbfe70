//! Words of the command line as JSON of the parameters' types.
//!
//! A word is JSON. Where a text is wanted, a word that is no JSON text stands for itself, so that
//! `produce hello`, `consume_for 30s` and `set 42` need no second pair of quotes.

use gesmas_abi::interface::{Method, TypeOwned};
use serde_json::Value;

use crate::failure::{Failure, exit::Exit};
use crate::json::{arguments, type_name};

/// The bytes of a method's arguments.
pub(super) fn encode(method: &Method, words: &[String]) -> Result<Vec<u8>, Failure> {
    let types = method.parameters.iter().map(|parameter| Some(&parameter.ty));
    let types = types.chain(std::iter::repeat(None));
    let values: Result<Vec<_>, _> = words
        .iter()
        .zip(types)
        .enumerate()
        .map(|(index, (word, ty))| {
            value(ty, word).map_err(|error| {
                let name = method.parameters.get(index).map(|parameter| &parameter.name);
                let name = name.map_or(String::new(), |name| format!(", `{name}`,"));
                Failure::new(
                    Exit::Usage,
                    "argument",
                    format!("argument {}{name} is not JSON: {error}", index + 1),
                )
                .advise(format!(
                    "it came as {word}; quote JSON for the shell, as in '{{\"x\": 1}}'"
                ))
            })
        })
        .collect();
    arguments(method, &values?).map_err(|error| {
        Failure::new(Exit::Usage, "argument", error.to_string()).advise(usage(method))
    })
}

/// How arguments of a method are written.
fn usage(method: &Method) -> String {
    let words = method.parameters.iter().map(|parameter| {
        let name = parameter.name.to_uppercase();
        format!(" {name} ({})", type_name(&parameter.ty))
    });
    match words.collect::<String>() {
        words if words.is_empty() => "give it no arguments".into(),
        words => format!("write its arguments as JSON, in this order:{words}"),
    }
}

/// The JSON that a word stands for, given the type it is for.
fn value(ty: Option<&TypeOwned>, word: &str) -> Result<Value, serde_json::Error> {
    let parsed = serde_json::from_str::<Value>(word);
    let plain = || Ok(Value::String(word.into()));
    match (ty, parsed) {
        (Some(ty), Err(_)) if !has_parts(ty) => plain(),
        (Some(TypeOwned::Text), Ok(value)) if !value.is_string() => plain(),
        (Some(TypeOwned::Bytes | TypeOwned::Array(_)), Ok(value))
            if !value.is_string() && !value.is_object() =>
        {
            plain()
        }
        (_, parsed) => parsed,
    }
}

/// Whether values of this type are written as arrays or objects, so that a word that is no JSON is
/// one with a slip in it. Any other word is judged by its type, which says more than a parser.
fn has_parts(ty: &TypeOwned) -> bool {
    match ty {
        TypeOwned::List(_)
        | TypeOwned::Map(..)
        | TypeOwned::Set(_)
        | TypeOwned::Tuple(_)
        | TypeOwned::Record { .. } => true,
        TypeOwned::Option(inner) => has_parts(inner),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use gesmas_abi::interface::{MethodKind, NamedOwned};

    use super::*;

    fn method(types: &[TypeOwned]) -> Method {
        let parameter = |(index, ty): (usize, &TypeOwned)| NamedOwned {
            name: format!("p{index}"),
            ty: ty.clone(),
        };
        Method {
            name: "m".into(),
            docs: String::new(),
            kind: MethodKind::Update,
            detached: false,
            parameters: types.iter().enumerate().map(parameter).collect(),
            result: TypeOwned::Unit,
            error: None,
            signature: 0,
        }
    }

    fn bytes(ty: TypeOwned, word: &str) -> Vec<u8> {
        encode(&method(&[ty]), &[word.into()]).expect("the word is of the type")
    }

    fn problem(ty: TypeOwned, word: &str) -> Failure {
        encode(&method(&[ty]), &[word.into()]).expect_err("the word is not of the type")
    }

    #[test]
    fn words_stand_for_themselves_where_a_text_is_wanted() {
        for word in ["hi", r#""hi""#, r#"{"text": "hi"}"#, r#"{"base64": "aGk="}"#] {
            assert_eq!(bytes(TypeOwned::Bytes, word), b"\x02\0\0\0hi", "{word}");
        }
        assert_eq!(bytes(TypeOwned::Text, "42"), b"\x02\0\0\x0042");
        assert_eq!(bytes(TypeOwned::Bytes, "[1"), b"\x02\0\0\0[1");
        assert_eq!(bytes(TypeOwned::Array(2), "42"), b"42");
        assert_eq!(bytes(TypeOwned::Duration, "1us"), 1_000_u64.to_le_bytes());
        assert_eq!(bytes(TypeOwned::Option(TypeOwned::Text.into()), "null"), [0]);
        assert_eq!(bytes(TypeOwned::Option(TypeOwned::Text.into()), "a"), b"\x01\x01\0\0\0a");
        assert_eq!(bytes(TypeOwned::I64, "-1"), (-1_i64).to_le_bytes());
    }

    #[test]
    fn problems_name_the_argument_and_what_to_do() {
        let failure = problem(TypeOwned::List(TypeOwned::U8.into()), "[1");
        assert_eq!(failure.exit, Exit::Usage);
        assert!(failure.message.starts_with("argument 1, `p0`, is not JSON"), "{failure:?}");
        let failure = problem(TypeOwned::U8, "x");
        assert!(failure.message.ends_with(r#"from 0 to 255, not "x""#), "{failure:?}");
        let failure = problem(TypeOwned::U8, "300");
        assert_eq!(
            failure.message,
            "argument 1, `p0`, must be u8, a whole number from 0 to 255, not 300"
        );
        assert_eq!(
            failure.advice.as_deref(),
            Some("write its arguments as JSON, in this order: P0 (u8)")
        );
        let failure = encode(&method(&[]), &["1".into()]).expect_err("it takes none");
        assert_eq!(failure.message, "m() takes no arguments, 1 given");
    }
}
