//! Arguments of a method: checked against its parameters, by place or by name.

use gesmas_abi::interface::{Method, NamedOwned, TypeOwned};
use serde_json::{Map, Value};

use super::{Mismatch, encode::put, signature};

/// Why arguments are not those of a method.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// Too few or too many.
    #[error("{signature} takes {}, {given} given", counted(*least, *wanted))]
    Count {
        /// The method.
        signature: String,
        /// How many it takes at least: options at the end may be left out.
        least: usize,
        /// How many it takes at most.
        wanted: usize,
        /// How many came.
        given: usize,
    },
    /// One is not of its type.
    #[error("argument {position}, `{name}{}`, must be {}, not {}", mismatch.place, mismatch.expected, mismatch.found)]
    Type {
        /// Its place, from 1.
        position: usize,
        /// Its name.
        name: String,
        /// What is wrong.
        mismatch: Mismatch,
    },
    /// One of the method's is missing.
    #[error("{signature} lacks the argument {name:?}")]
    Missing {
        /// The method.
        signature: String,
        /// The parameter.
        name: String,
    },
    /// One is not of the method.
    #[error("{signature} has no parameter {name:?}")]
    Unknown {
        /// The method.
        signature: String,
        /// What was given.
        name: String,
    },
}

fn counted(least: usize, most: usize) -> String {
    match (least, most) {
        (_, 0) => "no arguments".into(),
        (1, 1) => "1 argument".into(),
        (least, most) if least == most => format!("{most} arguments"),
        (least, most) => format!("{least} to {most} arguments"),
    }
}

fn is_option(parameter: &NamedOwned) -> bool {
    matches!(parameter.ty, TypeOwned::Option(_))
}

/// The bytes of arguments that are given by their place. Options at the end may be left out.
///
/// # Errors
/// [`ArgumentError`] names the first that is wrong.
pub fn arguments(method: &Method, values: &[Value]) -> Result<Vec<u8>, ArgumentError> {
    let wanted = method.parameters.len();
    let left_out = method.parameters.iter().rev().take_while(|parameter| is_option(parameter));
    let least = wanted - left_out.count();
    if !(least..=wanted).contains(&values.len()) {
        let (signature, given) = (signature(method), values.len());
        return Err(ArgumentError::Count { signature, least, wanted, given });
    }
    let mut out = Vec::new();
    let values = values.iter().chain(std::iter::repeat(&Value::Null));
    for (index, (parameter, value)) in method.parameters.iter().zip(values).enumerate() {
        put_argument(index, parameter, value, &mut out)?;
    }
    Ok(out)
}

/// The bytes of arguments that are given by their names. Options may be left out.
///
/// # Errors
/// [`ArgumentError`] names the first that is wrong.
pub fn named_arguments(
    method: &Method,
    values: &Map<String, Value>,
) -> Result<Vec<u8>, ArgumentError> {
    let known = |name: &str| method.parameters.iter().any(|parameter| parameter.name == name);
    if let Some(name) = values.keys().find(|name| !known(name)) {
        return Err(ArgumentError::Unknown { signature: signature(method), name: name.clone() });
    }
    let mut out = Vec::new();
    for (index, parameter) in method.parameters.iter().enumerate() {
        let value = match values.get(&parameter.name) {
            Some(value) => value,
            None if is_option(parameter) => &Value::Null,
            None => {
                return Err(ArgumentError::Missing {
                    signature: signature(method),
                    name: parameter.name.clone(),
                });
            }
        };
        put_argument(index, parameter, value, &mut out)?;
    }
    Ok(out)
}

fn put_argument(
    index: usize,
    parameter: &NamedOwned,
    value: &Value,
    out: &mut Vec<u8>,
) -> Result<(), ArgumentError> {
    put(&parameter.ty, value, out).map_err(|mismatch| ArgumentError::Type {
        position: index + 1,
        name: parameter.name.clone(),
        mismatch,
    })
}
