//! The expansion of the standard queue, as a reader would see it. `UPDATE_EXPECT=1` writes it anew.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Attribute, Item};

use crate::{class, error, methods, value};

/// Takes the attribute of this name off.
fn take(attributes: &mut Vec<Attribute>, name: &str) -> Option<Attribute> {
    let place = attributes.iter().position(|attribute| attribute.path().is_ident(name))?;
    Some(attributes.remove(place))
}

fn arguments(attribute: &Attribute) -> TokenStream {
    attribute.meta.require_list().map(|list| list.tokens.clone()).unwrap_or_default()
}

/// Expands every macro in a file.
fn expand(source: &str) -> String {
    let file = syn::parse_file(source).expect("the source parses");
    let expanded: TokenStream = file.items.into_iter().map(expand_item).collect();
    prettyplease::unparse(&syn::parse2(expanded).expect("the expansion parses"))
}

fn expand_item(mut item: Item) -> TokenStream {
    let attribute = match &mut item {
        Item::Struct(item) => take(&mut item.attrs, "class"),
        Item::Impl(item) => take(&mut item.attrs, "methods"),
        Item::Enum(item) => take(&mut item.attrs, "error"),
        _ => None,
    };
    let Some(attribute) = attribute else { return item.into_token_stream() };
    let (arguments, tokens) = (arguments(&attribute), item.to_token_stream());
    match item {
        Item::Struct(_) => class::expand(arguments, tokens),
        Item::Impl(_) => methods::expand(arguments, tokens),
        _ => error::expand(arguments, tokens),
    }
}

#[test]
fn queue_expands_to_this() {
    let expanded = expand(include_str!("../../classes/queue/src/lib.rs"));
    expect_test::expect_file!["../tests/queue.expanded"].assert_eq(&expanded);
}

#[test]
fn counter_with_its_error_expands_to_this() {
    let expanded = expand(include_str!("../../classes/counter/src/lib.rs"));
    expect_test::expect_file!["../tests/counter.expanded"].assert_eq(&expanded);
}

#[test]
fn all_mistakes_are_told_at_once() {
    let block = "impl Store { pub async fn a(&self) -> Result<f32> {} pub fn b<T>() {} }";
    let tokens = block.parse().expect("tokens");
    let expanded = methods::expand(TokenStream::new(), tokens).to_string();
    assert_eq!(expanded.matches("compile_error").count(), 5, "{expanded}");
}

#[test]
fn a_value_takes_no_other_word_than_keep() {
    for (words, mistakes) in [("keep = 256", 0), ("kept = 256", 1), ("keep = many", 1), ("keep", 1)]
    {
        let item = format!("#[value({words})] enum Step {{ Forward, Back }}");
        let expanded = value::expand(item.parse().expect("tokens")).to_string();
        assert_eq!(expanded.matches("compile_error").count(), mistakes, "{words}: {expanded}");
        assert_eq!(expanded.matches("first_items").count(), 1 - mistakes, "{words}");
    }
}
