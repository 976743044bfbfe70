//! `#[class]`: a struct of handles.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Fields, Ident, ItemStruct, ext::IdentExt, parse2, spanned::Spanned};

use crate::{check::check_type, docs::docs_of, mistakes::Mistakes};

/// Expands `#[class]`.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let class: ItemStruct = match parse2(item.clone()) {
        Ok(class) => class,
        Err(_) => {
            let mut mistakes = Mistakes::default();
            mistakes.add(&item, "`#[class]` belongs on a struct whose fields are handles to state");
            return mistakes.into_tokens().unwrap_or_default();
        }
    };
    let mut mistakes = Mistakes::default();
    let transient = parse_arguments(arguments, &mut mistakes);
    check(&class, &mut mistakes);
    match mistakes.into_tokens() {
        Some(errors) => quote! { #class #errors },
        None => emit(&class, transient),
    }
}

fn parse_arguments(arguments: TokenStream, mistakes: &mut Mistakes) -> bool {
    if arguments.is_empty() {
        return false;
    }
    match parse2::<Ident>(arguments.clone()) {
        Ok(ident) if ident == "transient" => true,
        _ => {
            mistakes.add(arguments, "the one argument of `#[class]` is `transient`");
            false
        }
    }
}

fn check(class: &ItemStruct, mistakes: &mut Mistakes) {
    if !class.generics.params.is_empty() {
        mistakes
            .add(&class.generics, "a class cannot be generic: its code and state have one type");
    }
    if matches!(class.fields, Fields::Unnamed(_)) {
        mistakes.add(
            &class.fields,
            "the fields of a class need names: the names are where its state lies",
        );
    }
    class.fields.iter().for_each(|field| check_type(&field.ty, mistakes));
    if class.ident.to_string().len() > 64 || !class.ident.to_string().is_ascii() {
        mistakes
            .add(&class.ident, "the name of a class has at most 64 ASCII letters, digits and `_`");
    }
}

fn emit(class: &ItemStruct, transient: bool) -> TokenStream {
    let (ident, name, docs) = (&class.ident, class.ident.to_string(), docs_of(&class.attrs));
    let fields = class.fields.iter().filter_map(|field| Some((field.ident.as_ref()?, &field.ty)));
    let listed = fields.clone().map(|(field, ty)| {
        let name = field.unraw().to_string();
        quote_spanned! { ty.span() => ::gesmas_sdk::state::field::<#ty>(#name) }
    });
    let opened = fields.map(|(field, ty)| {
        let name = field.unraw().to_string();
        quote_spanned! { ty.span() => #field: <#ty as ::gesmas_sdk::state::Handle>::open(#name) }
    });
    quote! {
        #class

        impl ::gesmas_sdk::class::State for #ident {
            const NAME: &'static str = #name;
            const DOCS: &'static str = #docs;
            const TRANSIENT: bool = #transient;
            const FIELDS: &'static [::gesmas_sdk::abi::interface::ClassField] = &[#(#listed),*];

            fn open() -> Self {
                Self { #(#opened),* }
            }
        }
    }
}
