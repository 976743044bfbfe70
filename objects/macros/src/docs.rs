//! Documentation of items, for the interface.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// The text of the documentation comments, without the blank after each `///`.
pub(crate) fn docs_of(attributes: &[Attribute]) -> String {
    let lines: Vec<String> = attributes.iter().filter_map(line_of).collect();
    lines.join("\n").trim().to_owned()
}

fn line_of(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    match &pair.value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if pair.path.is_ident("doc") => {
            let text = text.value();
            Some(text.strip_prefix(' ').unwrap_or(&text).to_owned())
        }
        _ => None,
    }
}
