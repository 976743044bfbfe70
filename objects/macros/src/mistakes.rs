//! Gathers mistakes, so that an author sees all of them at once.

use proc_macro2::TokenStream;
use quote::ToTokens;

/// The mistakes found so far.
#[derive(Default)]
pub(crate) struct Mistakes(Option<syn::Error>);

impl Mistakes {
    /// Notes a mistake at the place of `tokens`.
    pub(crate) fn add(&mut self, tokens: impl ToTokens, message: &str) {
        self.add_error(syn::Error::new_spanned(tokens, message));
    }

    /// Notes a mistake that a parser has found.
    pub(crate) fn add_error(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            none => *none = Some(error),
        }
    }

    /// The tokens that make the compiler report all mistakes, if there is one.
    pub(crate) fn into_tokens(self) -> Option<TokenStream> {
        self.0.map(|errors| errors.into_compile_error())
    }
}
