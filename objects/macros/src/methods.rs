//! `#[methods]`: the functions of a class.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Ident, ImplItem, ItemImpl, Type, parse2};

use crate::{
    emit,
    method::{self, Kind, Method},
    mistakes::Mistakes,
    stub,
};

/// Expands `#[methods]`.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut mistakes = Mistakes::default();
    if !arguments.is_empty() {
        mistakes.add(arguments, "`#[methods]` takes no arguments");
    }
    let mut block: ItemImpl = match parse2(item.clone()) {
        Ok(block) => block,
        Err(_) => {
            mistakes.add(&item, "`#[methods]` belongs on the `impl` block of a class");
            return mistakes.into_tokens().unwrap_or_default();
        }
    };
    let class = class_of(&block, &mut mistakes);
    let methods = parse_methods(&mut block, &mut mistakes);
    match (mistakes.into_tokens(), class) {
        (None, Some(class)) => {
            let constants = emit::constants(&class, &methods);
            let entries = emit::entries(&class, &methods);
            let stub = stub::emit(&class, &methods);
            quote! { #block #constants #entries #stub }
        }
        (errors, _) => quote! { #block #errors },
    }
}

fn class_of(block: &ItemImpl, mistakes: &mut Mistakes) -> Option<Ident> {
    if !block.generics.params.is_empty() {
        mistakes
            .add(&block.generics, "a class cannot be generic: its code and state have one type");
    }
    if let Some((_, path, _)) = &block.trait_ {
        mistakes.add(
            path,
            "the methods of a class stand in an `impl` block of its own, not of a trait",
        );
    }
    match block.self_ty.as_ref() {
        Type::Path(path) => path.path.get_ident().cloned().or_else(|| {
            mistakes.add(path, "name the class as it is: the macro is used beside its struct");
            None
        }),
        other => {
            mistakes.add(other, "`#[methods]` belongs on the `impl` block of a class");
            None
        }
    }
}

fn parse_methods(block: &mut ItemImpl, mistakes: &mut Mistakes) -> Vec<Method> {
    let mut methods: Vec<Method> = Vec::new();
    for item in &mut block.items {
        let ImplItem::Fn(function) = item else { continue };
        let Some(method) = method::parse(function, mistakes) else { continue };
        if method.kind == Kind::Init && methods.iter().any(|other| other.kind == Kind::Init) {
            mistakes
                .add(&method.ident, "a class has one `#[init]`: an object is created in one way");
        }
        if method.kind == Kind::Migrate {
            check_migrate(&method, &methods, mistakes);
        }
        methods.push(method);
    }
    methods
}

fn check_migrate(method: &Method, others: &[Method], mistakes: &mut Mistakes) {
    if others.iter().any(|other| other.kind == Kind::Migrate) {
        mistakes.add(
            &method.ident,
            "a class has one `#[migrate]`: it brings objects from the layout before to this one",
        );
    }
    if !method.parameters.is_empty() {
        mistakes.add(
            &method.ident,
            "`#[migrate]` takes no arguments: fields of the layout before are opened with \
             `ctx::former`",
        );
    }
}
