//! Types that cannot be part of a class, with what to use instead.
//!
//! The compiler would refuse them too, since they have no encoding, but not with the reason.

use quote::ToTokens;
use syn::{GenericArgument, PathArguments, Type};

use crate::mistakes::Mistakes;

/// Notes every part of a type that cannot be part of a class.
pub(crate) fn check_type(ty: &Type, mistakes: &mut Mistakes) {
    match ty {
        Type::Path(path) => {
            for segment in &path.path.segments {
                check_name(&segment.ident, mistakes);
                if let PathArguments::AngleBracketed(arguments) = &segment.arguments {
                    for argument in &arguments.args {
                        if let GenericArgument::Type(ty) = argument {
                            check_type(ty, mistakes);
                        }
                    }
                }
            }
        }
        Type::Tuple(tuple) => tuple.elems.iter().for_each(|ty| check_type(ty, mistakes)),
        Type::Array(array) => check_type(&array.elem, mistakes),
        Type::Paren(paren) => check_type(&paren.elem, mistakes),
        Type::Group(group) => check_type(&group.elem, mistakes),
        Type::Reference(_) => mistakes.add(
            ty,
            "a class borrows nothing here: use an owned type (only a parameter itself may be \
             `&str` or `&[u8]`)",
        ),
        Type::ImplTrait(_) => {
            mistakes.add(ty, "`impl Trait` is a generic: name a type, callers cannot choose one");
        }
        _ => mistakes.add(
            ty,
            "this type cannot cross the boundary of a class: use integers, bool, String, Bytes, \
             Vec, Option, tuples, BTreeMap, BTreeSet, or a type with `#[derive(Value)]`",
        ),
    }
}

fn check_name(name: &syn::Ident, mistakes: &mut Mistakes) {
    let message = match name.to_string().as_str() {
        "f32" | "f64" => {
            "floats are not allowed in a class: replicas must compute equal bytes. Use an integer \
             of a fixed scale, such as thousandths in an i64"
        }
        "HashMap" => {
            "a HashMap has no fixed order: use BTreeMap in a value, or the handle Map<K, V> in state"
        }
        "HashSet" => {
            "a HashSet has no fixed order: use BTreeSet in a value, or the handle Set<K> in state"
        }
        "usize" | "isize" => {
            "the width of usize differs between a client and a class: use u32 or u64 (i32 or i64)"
        }
        _ => return,
    };
    mistakes.add(name, message);
}

/// How a parameter is passed on to the method.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passing {
    /// As it is.
    Owned,
    /// `&str`, from a `String`.
    Text,
    /// `&[u8]`, from `Bytes`.
    Bytes,
}

/// How a parameter of this type is passed, and a note of what cannot be.
pub(crate) fn check_parameter(ty: &Type, mistakes: &mut Mistakes) -> Passing {
    if let Type::Reference(reference) = ty
        && reference.mutability.is_none()
        && reference.lifetime.is_none()
    {
        match reference.elem.to_token_stream().to_string().replace(' ', "").as_str() {
            "str" => return Passing::Text,
            "[u8]" => return Passing::Bytes,
            _ => {}
        }
    }
    check_type(ty, mistakes);
    Passing::Owned
}
