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
        if variant.ident == "Cancelled" && variant.fields != Fields::Unit {
            mistakes.add(
                variant,
                "the variant `Cancelled` has no fields: `?` makes it of a cancellation",
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
    let cancellable = error.variants.iter().any(|variant| variant.ident == "Cancelled");
    let conversions = cancellable.then(|| {
        quote! {
            impl ::core::convert::From<::gesmas_sdk::Cancelled> for #ident {
                fn from(_: ::gesmas_sdk::Cancelled) -> Self {
                    Self::Cancelled
                }
            }

            impl ::core::convert::From<::gesmas_sdk::NotAcquired> for #ident {
                fn from(_: ::gesmas_sdk::NotAcquired) -> Self {
                    Self::Cancelled
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
