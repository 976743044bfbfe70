//! One function of a class, taken apart.

use quote::ToTokens;
use syn::{
    Attribute, FnArg, Ident, ImplItemFn, Pat, PathArguments, ReturnType, Type, Visibility,
    ext::IdentExt, parse_quote,
};

use crate::{
    check::{Passing, check_parameter, check_type},
    docs::docs_of,
    mistakes::Mistakes,
};

/// Parameters that a method has at most: as many as the longest tuple that is a value.
const PARAMETERS_MAX: usize = 12;
/// Functions that every stub has.
const STUB_NAMES: [&str; 2] = ["new", "create"];

/// What a function is to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Update,
    Read,
    Handler,
    Init,
    Migrate,
}

/// A method, handler or `init`.
pub(crate) struct Method {
    pub(crate) ident: Ident,
    pub(crate) name: String,
    pub(crate) docs: String,
    pub(crate) kind: Kind,
    pub(crate) detached: bool,
    pub(crate) parameters: Vec<Parameter>,
    /// The type it returns, `()` where it says none.
    pub(crate) returns: Type,
}

/// A parameter of a method.
pub(crate) struct Parameter {
    pub(crate) ident: Ident,
    /// The type it is written with.
    pub(crate) written: Type,
    /// The type that is decoded.
    pub(crate) owned: Type,
    pub(crate) passing: Passing,
}

/// Takes a function apart and takes our attributes off it. None for a private helper.
pub(crate) fn parse(function: &mut ImplItemFn, mistakes: &mut Mistakes) -> Option<Method> {
    let marks = take_marks(&mut function.attrs);
    let public = matches!(function.vis, Visibility::Public(_));
    if marks.is_empty() && !public {
        return None;
    }
    let kind = kind_of(&marks, public, mistakes);
    let signature = &function.sig;
    check_form(function, mistakes);
    check_receiver(function, kind, mistakes);
    let name = signature.ident.unraw().to_string();
    check_name(&signature.ident, &name, public, mistakes);
    let parameters: Vec<_> =
        signature.inputs.iter().filter_map(|input| parse_parameter(input, mistakes)).collect();
    if parameters.len() > PARAMETERS_MAX {
        mistakes.add(
            &signature.inputs,
            "a method has at most 12 parameters: group them in a struct with `#[derive(Value)]`",
        );
    }
    Some(Method {
        ident: signature.ident.clone(),
        name,
        docs: docs_of(&function.attrs),
        kind,
        detached: marks.iter().any(|mark| mark.path().is_ident("detached")),
        parameters,
        returns: parse_return(function, kind, mistakes),
    })
}

/// Takes the attributes that are ours.
fn take_marks(attributes: &mut Vec<Attribute>) -> Vec<Attribute> {
    let ours = ["init", "read", "handler", "migrate", "detached"];
    let is_ours = |attribute: &Attribute| ours.iter().any(|name| attribute.path().is_ident(name));
    let marks = attributes.iter().filter(|attribute| is_ours(attribute)).cloned().collect();
    attributes.retain(|attribute| !is_ours(attribute));
    marks
}

fn kind_of(marks: &[Attribute], public: bool, mistakes: &mut Mistakes) -> Kind {
    let mut kinds = Vec::new();
    for mark in marks {
        if !matches!(mark.meta, syn::Meta::Path(_)) {
            mistakes.add(mark, "this attribute takes no arguments");
        }
        if mark.path().is_ident("init") {
            kinds.push((Kind::Init, mark));
        } else if mark.path().is_ident("read") {
            kinds.push((Kind::Read, mark));
        } else if mark.path().is_ident("handler") {
            kinds.push((Kind::Handler, mark));
        } else if mark.path().is_ident("migrate") {
            kinds.push((Kind::Migrate, mark));
        }
    }
    if let [_, (_, second), ..] = kinds.as_slice() {
        mistakes.add(
            second,
            "a function is one of `#[init]`, `#[read]`, `#[handler]` and `#[migrate]`",
        );
    }
    let kind = kinds.first().map_or(Kind::Update, |(kind, _)| *kind);
    if let Some(mark) = marks.iter().find(|mark| mark.path().is_ident("detached"))
        && kind != Kind::Update
    {
        mistakes.add(mark, "only a method that is ordered and has a caller can be `#[detached]`");
    }
    if let Some(mark) = marks.first() {
        check_visibility(mark, kind, public, mistakes);
    }
    kind
}

fn check_visibility(mark: &Attribute, kind: Kind, public: bool, mistakes: &mut Mistakes) {
    match (kind, public) {
        (Kind::Init | Kind::Handler | Kind::Migrate, true) => mistakes.add(
            mark,
            "clients cannot call this function, so it is not `pub`: the kernel calls `#[init]` when \
             it creates the object, `#[handler]` for timers and watches, and `#[migrate]` when the \
             class was replaced",
        ),
        (Kind::Read | Kind::Update, false) => {
            mistakes.add(mark, "this is for methods, which clients call: make it `pub fn`");
        }
        _ => {}
    }
}

fn check_form(function: &ImplItemFn, mistakes: &mut Mistakes) {
    let signature = &function.sig;
    if !signature.generics.params.is_empty() {
        mistakes.add(
            &signature.generics,
            "a method cannot be generic: callers send values, not types. Write one method for each \
             type, or take an enum with `#[derive(Value)]`",
        );
    }
    if let Some(token) = &signature.asyncness {
        mistakes.add(
            token,
            "a method cannot be async: it blocks by calling `p()` on a Semaphore, and the kernel \
             runs others meanwhile",
        );
    }
    if let Some(token) = &signature.unsafety {
        mistakes.add(token, "a method cannot be unsafe: its callers are elsewhere");
    }
    if let Some(token) = &signature.constness {
        mistakes.add(token, "a method cannot be const: it works on an object");
    }
    if let Some(token) = &signature.abi {
        mistakes.add(token, "a method has the Rust ABI: the macro makes its export");
    }
}

fn check_receiver(function: &ImplItemFn, kind: Kind, mistakes: &mut Mistakes) {
    let Some(receiver) = function.sig.receiver() else {
        mistakes.add(
            &function.sig.ident,
            "a method works on an object: give it `&mut self`, or `&self` if it only reads (a \
             helper without self is not `pub`)",
        );
        return;
    };
    if receiver.reference.is_none() || receiver.colon_token.is_some() {
        mistakes
            .add(receiver, "a method takes `&mut self` or `&self`: the object outlives the call");
    } else if kind == Kind::Read && receiver.mutability.is_some() {
        mistakes.add(receiver, "a read changes nothing: give it `&self`, or take `#[read]` away");
    }
}

fn check_name(ident: &Ident, name: &str, public: bool, mistakes: &mut Mistakes) {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit();
    if name.len() > 64 || !name.bytes().all(allowed) {
        mistakes.add(
            ident,
            "the name of a method has at most 64 lower-case ASCII letters, digits and `_`",
        );
    }
    if public && STUB_NAMES.contains(&name) {
        mistakes.add(
            ident,
            "`new` and `create` are functions of the class's client stub: choose another name",
        );
    }
}

fn parse_parameter(input: &FnArg, mistakes: &mut Mistakes) -> Option<Parameter> {
    let FnArg::Typed(input) = input else { return None };
    let passing = check_parameter(&input.ty, mistakes);
    let ident = match input.pat.as_ref() {
        Pat::Ident(pattern) if pattern.by_ref.is_none() && pattern.subpat.is_none() => {
            pattern.ident.clone()
        }
        other => {
            mistakes.add(other, "give the parameter a name: the interface lists it for callers");
            return None;
        }
    };
    let owned = match passing {
        Passing::Owned => (*input.ty).clone(),
        Passing::Text => parse_quote!(::std::string::String),
        Passing::Bytes => parse_quote!(::gesmas_sdk::abi::value::Bytes),
    };
    Some(Parameter { ident, written: (*input.ty).clone(), owned, passing })
}

fn parse_return(function: &ImplItemFn, kind: Kind, mistakes: &mut Mistakes) -> Type {
    let callable = matches!(kind, Kind::Update | Kind::Read);
    match &function.sig.output {
        ReturnType::Type(_, ty) => {
            check_return(ty, mistakes);
            (**ty).clone()
        }
        ReturnType::Default => {
            if callable {
                mistakes.add(
                    &function.sig.ident,
                    "a method returns `Result<T>`, so that it can tell its caller that it was \
                     cancelled: write `-> Result<()>` and end with `Ok(())`",
                );
            }
            parse_quote!(())
        }
    }
}

fn check_return(ty: &Type, mistakes: &mut Mistakes) {
    let last = match ty {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    };
    match last {
        Some(segment) if segment.ident == "Result" => {
            if let PathArguments::AngleBracketed(arguments) = &segment.arguments {
                for argument in &arguments.args {
                    if let syn::GenericArgument::Type(ty) = argument {
                        check_type(ty, mistakes);
                    }
                }
            }
        }
        _ => {
            let message = format!(
                "a method returns `Result<T>` (or `Result<T, E>` with an enum marked `#[error]`): \
                 write `-> Result<{}>`",
                ty.to_token_stream()
            );
            mistakes.add(ty, &message);
        }
    }
}
