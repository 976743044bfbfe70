//! The classes that the simulation uses: their modules and the signatures of their methods.

use std::collections::BTreeMap;

use gesmas_abi::interface::Interface;
use gesmas_coroutine::{NativeEngine, native_module};
use gesmas_machine::{ClassName, CodeHash, MethodName, ObjectName, RequestBody};
use gesmas_sdk::host::NativeClass;

/// What a workload asks for.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The object.
    pub(crate) object: ObjectName,
    /// The method.
    pub(crate) method: &'static str,
    /// Its encoded arguments.
    pub(crate) arguments: Vec<u8>,
    /// What the workload knows the call by.
    pub(crate) key: u64,
    /// Its deadline.
    pub(crate) time_left: Option<u64>,
}

/// See the file's head.
#[derive(Debug)]
pub(crate) struct Catalog {
    modules: BTreeMap<ClassName, Vec<u8>>,
    signatures: BTreeMap<(ClassName, String), u64>,
}

fn classes() -> [NativeClass; 5] {
    [
        gesmas_barrier::Barrier::native(),
        gesmas_counter::Counter::native(),
        gesmas_lock::Lock::native(),
        gesmas_queue::Queue::native(),
        crate::yard::Yard::native(),
    ]
}

/// An engine that has them.
pub(crate) fn engine() -> NativeEngine {
    NativeEngine::new(classes())
}

/// The name of an object.
pub(crate) fn object(class: &str, name: &str) -> ObjectName {
    ObjectName::new(class, name).expect("the simulation's names are names")
}

impl Catalog {
    /// The standard classes.
    pub(crate) fn new() -> Self {
        let mut catalog = Self { modules: BTreeMap::new(), signatures: BTreeMap::new() };
        for class in classes() {
            let name = ClassName::new(class.name).expect("standard classes have good names");
            let interface = Interface::decode(class.interface).expect("the macro made it");
            for method in interface.methods {
                let key = (name.clone(), method.name);
                catalog.signatures.insert(key, method.signature);
            }
            catalog.modules.insert(name, native_module(&class));
        }
        catalog
    }

    /// The only code that may have the names.
    pub(crate) fn reserved(&self) -> BTreeMap<ClassName, CodeHash> {
        let code = |(name, module): (&ClassName, &Vec<u8>)| (name.clone(), CodeHash::of(module));
        self.modules.iter().map(code).collect()
    }

    /// The signature of the method that a call is for.
    pub(crate) fn signature(&self, call: &Call) -> u64 {
        self.signatures[&(call.object.class.clone(), call.method.into())]
    }

    /// The request that loads the class of a call.
    pub(crate) fn put(&self, class: &str) -> RequestBody {
        let class = ClassName::new(class).expect("standard classes have good names");
        let module = self.modules[&class].clone();
        RequestBody::PutClass { class, module }
    }

    /// The request of a call.
    pub(crate) fn request(&self, call: &Call) -> RequestBody {
        let signature = self.signature(call);
        let (object, arguments) = (call.object.clone(), call.arguments.clone());
        if call.method == "init" {
            return RequestBody::CreateObject { object, signature, arguments };
        }
        let method = MethodName::new(call.method).expect("the simulation's names are names");
        RequestBody::Call { object, method, signature, arguments }
    }
}
