//! `#[derive(Value)]`: structs and enums as values.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{
    Data, DeriveInput, Fields, Ident, Index, LitInt, Member, ext::IdentExt, parse2,
    spanned::Spanned,
};

use crate::{check::check_type, mistakes::Mistakes};

/// Variants that one byte tells apart.
const VARIANTS_MAX: usize = 256;

/// Expands `#[derive(Value)]`.
pub(crate) fn expand(item: TokenStream) -> TokenStream {
    match parse2(item) {
        Ok(input) => derive(&input),
        Err(error) => error.into_compile_error(),
    }
}

/// The implementation, or the mistakes.
pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    let mut mistakes = Mistakes::default();
    check(input, &mut mistakes);
    let decode_items = kept_items(input, &mut mistakes);
    if let Some(errors) = mistakes.into_tokens() {
        return errors;
    }
    let (ty, encode, length, decode, skip) = match &input.data {
        Data::Struct(data) => record(&input.ident, &data.fields),
        Data::Enum(data) => {
            let variants: Vec<_> =
                data.variants.iter().map(|variant| (&variant.ident, &variant.fields)).collect();
            choice(&input.ident, &variants)
        }
        Data::Union(_) => return TokenStream::new(),
    };
    let ident = &input.ident;
    quote! {
        impl ::gesmas_sdk::abi::value::Value for #ident {
            const TYPE: ::gesmas_sdk::abi::interface::Type = #ty;

            #[allow(unused_variables, reason = "a type without fields encodes nothing")]
            fn encode(&self, out: &mut ::std::vec::Vec<u8>) {
                #encode
            }

            fn encoded_len(&self) -> usize {
                #length
            }

            #[allow(unused_variables, reason = "a type without fields decodes nothing")]
            fn decode(
                reader: &mut ::gesmas_sdk::abi::Reader<'_>,
            ) -> ::core::result::Result<Self, ::gesmas_sdk::abi::Malformed> {
                #decode
            }

            #[allow(unused_variables, reason = "a type without fields skips nothing")]
            fn skip(
                reader: &mut ::gesmas_sdk::abi::Reader<'_>,
            ) -> ::core::result::Result<(), ::gesmas_sdk::abi::Malformed> {
                #skip
            }

            #decode_items
        }
    }
}

/// How a list of these values decodes of which only the first are kept, if that is asked for.
fn kept_items(input: &DeriveInput, mistakes: &mut Mistakes) -> Option<TokenStream> {
    let mut most = None;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("value")) {
        let parsed = attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("keep") {
                return Err(meta.error("a value takes `keep = N`"));
            }
            let number: LitInt = meta.value()?.parse()?;
            most = Some(number.base10_parse::<usize>()?);
            Ok(())
        });
        if let Err(error) = parsed {
            mistakes.add_error(error);
        }
    }
    most.map(|most| {
        quote! {
            fn decode_items(
                count: usize,
                reader: &mut ::gesmas_sdk::abi::Reader<'_>,
            ) -> ::core::result::Result<::std::vec::Vec<Self>, ::gesmas_sdk::abi::Malformed> {
                ::gesmas_sdk::abi::value::first_items(#most, count, reader)
            }
        }
    })
}

fn check(input: &DeriveInput, mistakes: &mut Mistakes) {
    if !input.generics.params.is_empty() {
        mistakes
            .add(&input.generics, "a value has one type in the interface: it cannot be generic");
    }
    let mut check_fields =
        |fields: &Fields| fields.iter().for_each(|field| check_type(&field.ty, mistakes));
    match &input.data {
        Data::Struct(data) => check_fields(&data.fields),
        Data::Enum(data) => {
            data.variants.iter().for_each(|variant| check_fields(&variant.fields));
            if data.variants.is_empty() || data.variants.len() > VARIANTS_MAX {
                mistakes.add(&input.ident, "an enum that is a value has 1 to 256 variants");
            }
        }
        Data::Union(_) => mistakes.add(&input.ident, "a union cannot be a value: use an enum"),
    }
}

/// The descriptions of fields.
fn named(fields: &Fields) -> TokenStream {
    let fields = fields.iter().enumerate().map(|(index, field)| {
        let name = match &field.ident {
            Some(ident) => ident.unraw().to_string(),
            None => index.to_string(),
        };
        let ty = &field.ty;
        let ty = quote_spanned! { ty.span() => <#ty as ::gesmas_sdk::abi::value::Value>::TYPE };
        quote! { ::gesmas_sdk::abi::interface::Named { name: #name, ty: #ty } }
    });
    quote! { &[#(#fields),*] }
}

/// Field expressions that decode, for a struct literal.
fn decoded(fields: &Fields) -> TokenStream {
    let fields = fields.iter().enumerate().map(|(index, field)| {
        let (member, ty) = (member(index, field.ident.as_ref()), &field.ty);
        quote! { #member: <#ty as ::gesmas_sdk::abi::value::Value>::decode(reader)? }
    });
    quote! { #(#fields),* }
}

/// Statements that skip fields.
fn skipped(fields: &Fields) -> TokenStream {
    let skipped = fields.iter().map(|field| {
        let ty = &field.ty;
        quote! { <#ty as ::gesmas_sdk::abi::value::Value>::skip(reader)?; }
    });
    quote! { #(#skipped)* }
}

fn member(index: usize, ident: Option<&Ident>) -> Member {
    ident.map_or_else(|| Member::Unnamed(Index::from(index)), |ident| Member::Named(ident.clone()))
}

/// Its type, how it is encoded, how long that is, how it is decoded, and how it is skipped.
type Parts = (TokenStream, TokenStream, TokenStream, TokenStream, TokenStream);

fn record(ident: &Ident, fields: &Fields) -> Parts {
    let (name, named, decoded) = (ident.to_string(), named(fields), decoded(fields));
    let skipped = skipped(fields);
    let encoded = fields.iter().enumerate().map(|(index, field)| {
        let member = member(index, field.ident.as_ref());
        quote! { ::gesmas_sdk::abi::value::Value::encode(&self.#member, out); }
    });
    let lengths = fields.iter().enumerate().map(|(index, field)| {
        let member = member(index, field.ident.as_ref());
        quote! { + ::gesmas_sdk::abi::value::Value::encoded_len(&self.#member) }
    });
    (
        quote! { ::gesmas_sdk::abi::interface::Type::Record { name: #name, fields: #named } },
        quote! { #(#encoded)* },
        quote! { 0 #(#lengths)* },
        quote! { ::core::result::Result::Ok(Self { #decoded }) },
        quote! { #skipped ::core::result::Result::Ok(()) },
    )
}

fn choice(ident: &Ident, variants: &[(&Ident, &Fields)]) -> Parts {
    let name = ident.to_string();
    let described = variants.iter().map(|(variant, fields)| {
        let (name, fields) = (variant.to_string(), named(fields));
        quote! { ::gesmas_sdk::abi::interface::Variant { name: #name, fields: #fields } }
    });
    let arm = |variant: &Ident, fields: &Fields, body: &dyn Fn(&[Ident]) -> TokenStream| {
        let members = fields.iter().enumerate();
        let bound: Vec<_> = (0..fields.len()).map(|index| format_ident!("field_{index}")).collect();
        let pattern = members.zip(&bound).map(|((index, field), bound)| {
            let member = member(index, field.ident.as_ref());
            quote!(#member: #bound)
        });
        let body = body(&bound);
        quote! { Self::#variant { #(#pattern),* } => { #body } }
    };
    let encoded = variants.iter().enumerate().map(|(tag, (variant, fields))| {
        let tag = tag as u8;
        arm(variant, fields, &|bound| {
            quote! {
                out.push(#tag);
                #(::gesmas_sdk::abi::value::Value::encode(#bound, out);)*
            }
        })
    });
    let lengths = variants.iter().map(|(variant, fields)| {
        arm(variant, fields, &|bound| {
            quote! { 1 #(+ ::gesmas_sdk::abi::value::Value::encoded_len(#bound))* }
        })
    });
    let decoded = variants.iter().enumerate().map(|(tag, (variant, fields))| {
        let (tag, fields) = (tag as u8, decoded(fields));
        quote! { #tag => ::core::result::Result::Ok(Self::#variant { #fields }) }
    });
    let skipped = variants.iter().enumerate().map(|(tag, (_, fields))| {
        let (tag, fields) = (tag as u8, skipped(fields));
        quote! { #tag => { #fields ::core::result::Result::Ok(()) } }
    });
    let no_such = quote! {
        _ => ::core::result::Result::Err(::gesmas_sdk::abi::Malformed(
            "there is no variant of this number",
        ))
    };
    (
        quote! {
            ::gesmas_sdk::abi::interface::Type::Choice { name: #name, variants: &[#(#described),*] }
        },
        quote! { match self { #(#encoded)* } },
        quote! { match self { #(#lengths)* } },
        quote! { match reader.u8()? { #(#decoded,)* #no_such } },
        quote! { match reader.u8()? { #(#skipped,)* #no_such } },
    )
}
