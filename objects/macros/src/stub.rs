//! The typed client stub of a class.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::Ident;

use crate::{
    check::Passing,
    method::{Kind, Method},
};

/// The stub: a function for each method that clients can call, and `create` if there is an `init`.
pub(crate) fn emit(class: &Ident, methods: &[Method]) -> TokenStream {
    let stub = format_ident!("{class}Stub");
    let calls = methods.iter().enumerate().filter_map(|(index, method)| call(class, index, method));
    let about = format!("Calls methods of [`{class}`] on an object of a cluster.");
    let new = format!("Calls the object `{class}/object` through this client.");
    quote! {
        #[cfg(not(target_arch = "wasm32"))]
        #[doc = #about]
        #[derive(Clone, Debug)]
        pub struct #stub<I> {
            invoker: I,
            object: ::std::string::String,
        }

        #[cfg(not(target_arch = "wasm32"))]
        impl<I: ::gesmas_sdk::stub::Invoke> #stub<I> {
            #[doc = #new]
            pub fn new(invoker: I, object: impl ::core::convert::Into<::std::string::String>) -> Self {
                Self { invoker, object: object.into() }
            }

            #(#calls)*
        }
    }
}

fn call(class: &Ident, index: usize, method: &Method) -> Option<TokenStream> {
    let (ident, mode) = match method.kind {
        Kind::Update => (method.ident.clone(), quote!(Update)),
        Kind::Read => (method.ident.clone(), quote!(Read)),
        Kind::Init => (format_ident!("create"), quote!(Create)),
        Kind::Handler | Kind::Migrate => return None,
    };
    let Method { name, returns, .. } = method;
    let docs = match method.kind {
        Kind::Init => "Creates the object. Again with the same arguments: nothing happens.",
        _ => method.docs.as_str(),
    };
    let parameters = method.parameters.iter().map(|parameter| {
        let (ident, ty) = (&parameter.ident, &parameter.written);
        quote!(#ident: #ty)
    });
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
    let returned = quote!(<#returns as ::gesmas_sdk::class::Returned>);
    let error = quote!(::gesmas_sdk::stub::StubError<#returned::Error, I::Error>);
    Some(quote! {
        #[doc = #docs]
        pub fn #ident(&self, #(#parameters),*) -> impl ::core::future::Future<
            Output = ::core::result::Result<#returned::Output, #error>,
        > + Send + use<'_, I> {
            let #mutable arguments = ::std::vec::Vec::new();
            #(#encoded)*
            let call = ::gesmas_sdk::stub::StubCall {
                class: <#class as ::gesmas_sdk::class::State>::NAME,
                object: self.object.clone(),
                method: #name,
                signature: const { #class::GESMAS_CLASS.methods[#index].signature() },
                arguments,
                mode: ::gesmas_sdk::stub::CallMode::#mode,
            };
            ::gesmas_sdk::stub::call::<I, #returned::Output, #returned::Error>(&self.invoker, call)
        }
    })
}
