//! The attribute macros of the gesmas class SDK.
//!
//! Thin: each macro parses, gathers all mistakes with their places, and emits names and calls into
//! `gesmas-sdk`, where the work is written down. The functions behind the macros take and give
//! `proc_macro2` tokens, so that tests expand without a compiler.
//! Not here: documentation for users, which stands at the re-exports of the SDK.

mod check;
mod class;
mod docs;
mod emit;
mod error;
mod method;
mod methods;
mod mistakes;
mod stub;
#[cfg(test)]
mod tests;
mod value;

use proc_macro::TokenStream;

/// See `gesmas_sdk::class`.
#[proc_macro_attribute]
pub fn class(arguments: TokenStream, item: TokenStream) -> TokenStream {
    class::expand(arguments.into(), item.into()).into()
}

/// See `gesmas_sdk::methods`.
#[proc_macro_attribute]
pub fn methods(arguments: TokenStream, item: TokenStream) -> TokenStream {
    methods::expand(arguments.into(), item.into()).into()
}

/// See `gesmas_sdk::error`.
#[proc_macro_attribute]
pub fn error(arguments: TokenStream, item: TokenStream) -> TokenStream {
    error::expand(arguments.into(), item.into()).into()
}

/// See `gesmas_sdk::prelude::Value`.
#[proc_macro_derive(Value, attributes(value))]
pub fn value(item: TokenStream) -> TokenStream {
    value::expand(item.into()).into()
}
