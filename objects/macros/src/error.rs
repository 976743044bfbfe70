//! `#[error]`: the error enum of a class's methods.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Fields, ItemEnum, parse2};

use crate::{docs::docs_of, mistakes::Mistakes, value};

/// Expands `#[error]`.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut mistakes = Mistakes::default();
    if !arguments.is_empty() {
        mistakes.add(
            arguments,
            "`#[error]` takes no arguments: the text of an error is its documentation",
        );
    }
    let parsed = (parse2::<ItemEnum>(item.clone()), parse2::<DeriveInput>(item.clone()));
    let (Ok(error), Ok(input)) = parsed else {
        mistakes.add(&item, "`#[error]` belongs on an enum: one variant for each way to fail");
        return mistakes.into_tokens().unwrap_or_default();
    };
    for variant in &error.variants {
        let made_of = match variant.ident.to_string().as_str() {
            "Cancelled" => "a cancellation",
            "NoSession" => "a permit that no session could own",
            _ => continue,
        };
        if variant.fields != Fields::Unit {
            let name = &variant.ident;
            mistakes.add(
                variant,
                &format!("the variant `{name}` has no fields: `?` makes it of {made_of}"),
            );
        }
    }
    match mistakes.into_tokens() {
        Some(errors) => quote! { #error #errors },
        None => emit(&error, &value::derive(&input)),
    }
}

fn emit(error: &ItemEnum, value: &TokenStream) -> TokenStream {
    let ident = &error.ident;
    let texts = error.variants.iter().map(|variant| {
        let (name, docs) = (&variant.ident, docs_of(&variant.attrs));
        let text = if docs.is_empty() { name.to_string() } else { docs };
        quote! { Self::#name { .. } => #text }
    });
    let has = |name| error.variants.iter().any(|variant| variant.ident == name);
    let no_session = if has("NoSession") { quote!(NoSession) } else { quote!(Cancelled) };
    let conversions = has("Cancelled").then(|| {
        quote! {
            impl ::core::convert::From<::gesmas_sdk::Cancelled> for #ident {
                fn from(_: ::gesmas_sdk::Cancelled) -> Self {
                    Self::Cancelled
                }
            }

            impl ::core::convert::From<::gesmas_sdk::NotAcquired> for #ident {
                fn from(reason: ::gesmas_sdk::NotAcquired) -> Self {
                    match reason {
                        ::gesmas_sdk::NotAcquired::Cancelled => Self::Cancelled,
                        ::gesmas_sdk::NotAcquired::SessionOver
                        | ::gesmas_sdk::NotAcquired::NoSession => Self::#no_session,
                    }
                }
            }
        }
    });
    quote! {
        #[derive(Clone, Debug, PartialEq, Eq)]
        #error

        #value

        impl ::gesmas_sdk::class::ErrorEnum for #ident {}

        impl ::core::fmt::Display for #ident {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(match self { #(#texts,)* })
            }
        }

        impl ::core::error::Error for #ident {}

        #conversions
    }
}
