//! The interface of a class: from the cluster, or of a standard class from this program.

pub(crate) mod file;

use gesmas_abi::interface::{Interface, Method, MethodKind};
use gesmas_client::{
    AdminFailure, Client,
    protocol::{AdminError, ClassState, Refusal},
};

use crate::failure::{Failure, exit::Exit};

/// The interface of a class. A standard class that is not loaded is handed to the client, which
/// ships it when a call needs it.
pub(crate) async fn of_class(client: &Client, class: &str) -> Result<Interface, Failure> {
    match client.show_class(class).await {
        // A call would wait for it, and all calls of its session behind it.
        Ok(detail) if detail.summary.state == ClassState::Pending => {
            Err(Refusal::ClassPending { class: class.into() }.into())
        }
        Ok(detail) => decode(class, &detail.interface),
        Err(AdminFailure::Answered(error @ AdminError::ClassUnknown { .. })) => {
            let Some(standard) = gesmas_classes::find(class) else {
                return Err(AdminFailure::Answered(error).into());
            };
            client.add_class(class, standard.module);
            of_module(standard.module)
        }
        Err(failure) => Err(failure.into()),
    }
}

/// The interface that a module tells.
pub(crate) fn of_module(module: &[u8]) -> Result<Interface, Failure> {
    gesmas_build::interface_of(module).map_err(|error| {
        Failure::new(Exit::Usage, "module-invalid", format!("this is no class: {error}"))
            .advise("`gesmas class build --interface FILE` attaches an interface to a module")
    })
}

/// The interface that these bytes are.
pub(crate) fn decode(class: &str, section: &[u8]) -> Result<Interface, Failure> {
    Interface::decode(section).map_err(|error| {
        let message = format!("the interface of {class} cannot be read: {error}");
        Failure::new(Exit::Failed, "interface", message)
            .advise("client and server are of different versions: see `gesmas --version`")
    })
}

/// A method that clients can call.
pub(crate) fn method<'a>(interface: &'a Interface, name: &str) -> Result<&'a Method, Failure> {
    let callable = |kind| matches!(kind, MethodKind::Update | MethodKind::Read);
    let class = &interface.class;
    match interface.method(name) {
        Some(method) if callable(method.kind) => Ok(method),
        found => {
            let (code, message) = match found {
                Some(_) => ("not-callable", format!("{name} of {class} is not for clients")),
                None => ("method-unknown", format!("class {class} has no method {name}")),
            };
            let methods = interface.methods.iter().filter(|method| callable(method.kind));
            let names: Vec<_> = methods.map(|method| method.name.as_str()).collect();
            Err(Failure::new(Exit::NotFound, code, message)
                .advise(format!("its methods are {}", names.join(", "))))
        }
    }
}
