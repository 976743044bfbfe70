//! The typed client stub of a class, and the descriptions of its calls.
//!
//! Invariant: the stub makes exactly the calls that the descriptions describe.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::Ident;

use crate::{
    check::Passing,
    method::{Kind, Method},
};

/// A function for each method that clients can call, and `create` if there is an `init`: once to
/// describe the call, once to make it.
pub(crate) fn emit(class: &Ident, methods: &[Method]) -> TokenStream {
    let (stub, calls) = (format_ident!("{class}Stub"), format_ident!("{class}Calls"));
    let callable: Vec<Callable<'_>> =
        methods.iter().enumerate().filter_map(|(index, method)| callable(index, method)).collect();
    let described = callable.iter().map(|callable| describe(class, callable));
    let made = callable.iter().map(make);
    let about = format!("Calls methods of [`{class}`] on an object of a cluster.");
    let about_calls =
        format!("Describes calls of methods of [`{class}`] on an object, and makes none.");
    let new = format!("Calls the object `{class}/object` through this client.");
    let new_calls = format!("Describes calls on the object `{class}/object`.");
    quote! {
        #[cfg(not(target_arch = "wasm32"))]
        #[doc = #about_calls]
        #[derive(Clone, Debug)]
        pub struct #calls {
            object: ::std::string::String,
        }

        #[cfg(not(target_arch = "wasm32"))]
        impl #calls {
            #[doc = #new_calls]
            pub fn new(object: impl ::core::convert::Into<::std::string::String>) -> Self {
                Self { object: object.into() }
            }

            #(#described)*
        }

        #[cfg(not(target_arch = "wasm32"))]
        #[doc = #about]
        #[derive(Clone, Debug)]
        pub struct #stub<I> {
            invoker: I,
            calls: #calls,
        }

        #[cfg(not(target_arch = "wasm32"))]
        impl<I: ::gesmas_sdk::stub::Invoke> #stub<I> {
            #[doc = #new]
            pub fn new(invoker: I, object: impl ::core::convert::Into<::std::string::String>) -> Self {
                Self { invoker, calls: #calls::new(object) }
            }

            #(#made)*
        }
    }
}

/// A method that clients can call.
struct Callable<'a> {
    index: usize,
    method: &'a Method,
    ident: Ident,
    mode: TokenStream,
    docs: &'a str,
}

impl Callable<'_> {
    fn parameters(&self) -> impl Iterator<Item = TokenStream> {
        self.method.parameters.iter().map(|parameter| {
            let (ident, ty) = (&parameter.ident, &parameter.written);
            quote!(#ident: #ty)
        })
    }

    fn returned(&self) -> TokenStream {
        let returns = &self.method.returns;
        quote!(<#returns as ::gesmas_sdk::class::Returned>)
    }
}

fn callable(index: usize, method: &Method) -> Option<Callable<'_>> {
    let (ident, mode) = match method.kind {
        Kind::Update => (method.ident.clone(), quote!(Update)),
        Kind::Read => (method.ident.clone(), quote!(Read)),
        Kind::Init => (format_ident!("create"), quote!(Create)),
        Kind::Handler | Kind::Migrate => return None,
    };
    let docs = match method.kind {
        Kind::Init => "Creates the object. Again with the same arguments: nothing happens.",
        _ => method.docs.as_str(),
    };
    Some(Callable { index, method, ident, mode, docs })
}

fn describe(class: &Ident, callable: &Callable<'_>) -> TokenStream {
    let Callable { index, method, ident, mode, docs } = callable;
    let name = &method.name;
    let encoded = method.parameters.iter().map(|parameter| {
        let (ident, ty) = (&parameter.ident, &parameter.owned);
        let value = match parameter.passing {
            Passing::Owned => quote!(&#ident),
            Passing::Text | Passing::Bytes => {
                quote!(&<#ty as ::core::convert::From<_>>::from(#ident))
            }
        };
        quote! { <#ty as ::gesmas_sdk::abi::value::Value>::encode(#value, &mut arguments); }
    });
    let mutable = (!method.parameters.is_empty()).then(|| quote!(mut));
    let (parameters, returned) = (callable.parameters(), callable.returned());
    quote! {
        #[doc = #docs]
        pub fn #ident(&self, #(#parameters),*)
            -> ::gesmas_sdk::stub::TypedCall<#returned::Output, #returned::Error>
        {
            let #mutable arguments = ::std::vec::Vec::new();
            #(#encoded)*
            ::gesmas_sdk::stub::TypedCall::new(::gesmas_sdk::stub::StubCall {
                class: <#class as ::gesmas_sdk::class::State>::NAME,
                object: self.object.clone(),
                method: #name,
                signature: const { #class::GESMAS_CLASS.methods[#index].signature() },
                arguments,
                mode: ::gesmas_sdk::stub::CallMode::#mode,
            })
        }
    }
}

fn make(callable: &Callable<'_>) -> TokenStream {
    let Callable { method, ident, docs, .. } = callable;
    let (parameters, returned) = (callable.parameters(), callable.returned());
    let arguments = method.parameters.iter().map(|parameter| &parameter.ident);
    let error = quote!(::gesmas_sdk::stub::StubError<#returned::Error, I::Error>);
    quote! {
        #[doc = #docs]
        pub fn #ident(&self, #(#parameters),*) -> impl ::core::future::Future<
            Output = ::core::result::Result<#returned::Output, #error>,
        > + Send + use<'_, I> {
            self.calls.#ident(#(#arguments),*).invoke(&self.invoker)
        }
    }
}
