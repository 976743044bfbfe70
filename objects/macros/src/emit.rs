//! What `#[methods]` adds: the description of the class, the entry of each method, the native class.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{Ident, spanned::Spanned};

use crate::{
    check::Passing,
    method::{Kind, Method},
};

/// Constants of the class: its description, and one to name each handler and ordered method.
pub(crate) fn constants(class: &Ident, methods: &[Method]) -> TokenStream {
    let described = methods.iter().map(describe);
    let targets = methods.iter().filter_map(target);
    let init_takes_something =
        methods.iter().any(|method| method.kind == Kind::Init && !method.parameters.is_empty());
    quote! {
        #[allow(dead_code, reason = "a class need not use all of its handlers and methods by name")]
        impl #class {
            #[doc(hidden)]
            pub const GESMAS_CLASS: ::gesmas_sdk::abi::interface::Class = {
                assert!(
                    !(<#class as ::gesmas_sdk::class::State>::TRANSIENT && #init_takes_something),
                    "a transient class comes and goes by itself: its `#[init]` takes no arguments"
                );
                ::gesmas_sdk::abi::interface::Class {
                    name: <#class as ::gesmas_sdk::class::State>::NAME,
                    docs: <#class as ::gesmas_sdk::class::State>::DOCS,
                    transient: <#class as ::gesmas_sdk::class::State>::TRANSIENT,
                    fields: <#class as ::gesmas_sdk::class::State>::FIELDS,
                    methods: &[#(#described),*],
                }
            };
            #(#targets)*
        }
    }
}

fn describe(method: &Method) -> TokenStream {
    let Method { name, docs, detached, returns, .. } = method;
    let kind = match method.kind {
        Kind::Update => quote!(Update),
        Kind::Read => quote!(Read),
        Kind::Handler => quote!(Handler),
        Kind::Init => quote!(Init),
        Kind::Migrate => quote!(Migrate),
    };
    let parameters = method.parameters.iter().map(|parameter| {
        let (name, ty) = (parameter.ident.to_string(), &parameter.owned);
        let ty = quote_spanned! { parameter.written.span() =>
            <#ty as ::gesmas_sdk::abi::value::Value>::TYPE
        };
        quote! { ::gesmas_sdk::abi::interface::Named { name: #name, ty: #ty } }
    });
    let result =
        quote_spanned! { returns.span() => ::gesmas_sdk::class::result_type::<#returns>() };
    let error = quote_spanned! { returns.span() => ::gesmas_sdk::class::error_type::<#returns>() };
    quote! {
        ::gesmas_sdk::abi::interface::ClassMethod {
            name: #name,
            docs: #docs,
            kind: ::gesmas_sdk::abi::interface::MethodKind::#kind,
            detached: #detached,
            parameters: &[#(#parameters),*],
            result: #result,
            error: #error,
        }
    }
}

/// The constant by which `ctx` names a handler or method.
fn target(method: &Method) -> Option<TokenStream> {
    let ty = match method.kind {
        Kind::Handler => quote!(Handler),
        Kind::Update => quote!(Method),
        Kind::Read | Kind::Init | Kind::Migrate => return None,
    };
    let name = &method.name;
    let constant = format_ident!("{}", name.to_uppercase(), span = method.ident.span());
    let types = method.parameters.iter().map(|parameter| &parameter.owned);
    Some(quote! {
        const #constant: ::gesmas_sdk::ctx::#ty<(#(#types,)*)> = ::gesmas_sdk::ctx::#ty::new(#name);
    })
}

/// The entries: exports and the interface section in a module, the native class elsewhere.
pub(crate) fn entries(class: &Ident, methods: &[Method]) -> TokenStream {
    let runs = methods.iter().map(|method| run(class, method));
    let exports = methods.iter().map(export);
    let arms = methods.iter().map(|method| {
        let (name, run) = (&method.name, run_name(method));
        quote! { #name => #run }
    });
    quote! {
        const _: () = {
            #(#runs)*
            #(#exports)*

            #[cfg(target_arch = "wasm32")]
            #[allow(unsafe_code, reason = "a custom section can only be named this way")]
            #[unsafe(link_section = "gesmas.interface")]
            static SECTION: [u8; #class::GESMAS_CLASS.length()] = #class::GESMAS_CLASS.encode();

            #[cfg(not(target_arch = "wasm32"))]
            impl #class {
                /// This class for a native engine.
                #[must_use]
                pub fn native() -> ::gesmas_sdk::host::NativeClass {
                    static INTERFACE: [u8; #class::GESMAS_CLASS.length()] =
                        #class::GESMAS_CLASS.encode();
                    ::gesmas_sdk::host::NativeClass {
                        name: <#class as ::gesmas_sdk::class::State>::NAME,
                        version: ::core::env!("CARGO_PKG_VERSION"),
                        interface: &INTERFACE,
                        run: |method, arguments| {
                            let run: fn(::std::vec::Vec<u8>) -> ::gesmas_sdk::class::Finish = match method {
                                #(#arms,)*
                                other => ::core::panic!("the class has no method {other}"),
                            };
                            ::gesmas_sdk::host::catch(|| run(arguments.to_vec()))
                        },
                    }
                }
            }
        };
    }
}

fn run_name(method: &Method) -> Ident {
    format_ident!("run_{}", method.name)
}

/// The function that runs a method on encoded arguments.
fn run(class: &Ident, method: &Method) -> TokenStream {
    let (run, ident) = (run_name(method), &method.ident);
    let decoded = method.parameters.iter().map(|parameter| {
        let ty = &parameter.owned;
        quote_spanned! { parameter.written.span() =>
            <#ty as ::gesmas_sdk::abi::value::Value>::decode(reader)?
        }
    });
    let names: Vec<_> = method.parameters.iter().map(|parameter| &parameter.ident).collect();
    let passed = method.parameters.iter().map(|parameter| {
        let ident = &parameter.ident;
        match parameter.passing {
            Passing::Owned => quote!(#ident),
            Passing::Text | Passing::Bytes => quote!(&#ident),
        }
    });
    let reader = if names.is_empty() { quote!(_) } else { quote!(reader) };
    quote! {
        fn #run(arguments: ::std::vec::Vec<u8>) -> ::gesmas_sdk::class::Finish {
            ::gesmas_sdk::class::run(
                arguments,
                |#reader| ::core::result::Result::Ok((#(#decoded,)*)),
                |object: &mut #class, (#(#names,)*)| #class::#ident(object, #(#passed),*),
            )
        }
    }
}

/// The export of a method.
fn export(method: &Method) -> TokenStream {
    let (run, symbol) = (run_name(method), format!("m_{}", method.name));
    let export = format_ident!("export_{}", method.name);
    quote! {
        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, reason = "an export can only be named this way")]
        #[unsafe(export_name = #symbol)]
        extern "C" fn #export(arguments: u32) {
            ::gesmas_sdk::host::enter(arguments, #run);
        }
    }
}
