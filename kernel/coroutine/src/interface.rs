//! From a class's whole interface to the extract that the machine keeps.
//!
//! Invariant: the extract is a function of the interface's bytes; names in it satisfy the machine's
//! grammar, and no method stands in it twice.

use std::collections::BTreeMap;

use gesmas_abi::interface::{self as abi, Interface};
use gesmas_machine::{
    ClassInterface, ClassName, LimitExceeded, Method, MethodKind, MethodName, ModuleError,
    ModuleLimits,
};

/// The extract of an encoded interface, which must be of the class `put`.
pub(crate) fn extract(
    put: &str,
    section: &[u8],
    limits: &ModuleLimits,
) -> Result<ClassInterface, ModuleError> {
    let malformed = |what: String| ModuleError::InterfaceMalformed(what);
    let interface = Interface::decode(section).map_err(|error| malformed(error.to_string()))?;
    if interface.methods.len() as u64 > limits.methods {
        let limit = LimitExceeded::new("module.methods", limits.methods);
        return Err(ModuleError::Limit(limit));
    }
    ClassName::new(&interface.class).map_err(ModuleError::Name)?;
    if interface.class != put {
        return Err(ModuleError::OtherClass(interface.class));
    }
    let mut methods = BTreeMap::new();
    for method in &interface.methods {
        let name = MethodName::new(&method.name).map_err(ModuleError::Name)?;
        if methods.insert(name, of_method(method)).is_some() {
            return Err(malformed(format!("method {} stands in it twice", method.name)));
        }
    }
    Ok(ClassInterface { methods, transient: interface.transient, layout: interface.layout })
}

fn of_method(method: &abi::Method) -> Method {
    Method {
        kind: match method.kind {
            abi::MethodKind::Update => MethodKind::Update,
            abi::MethodKind::Read => MethodKind::Read,
            abi::MethodKind::Handler => MethodKind::Handler,
            abi::MethodKind::Init => MethodKind::Init,
            abi::MethodKind::Migrate => MethodKind::Migrate,
        },
        detached: method.detached,
        signature: method.signature,
        parameters: u32::try_from(method.parameters.len()).expect("the decoder bounds parameters"),
    }
}
