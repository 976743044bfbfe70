//! The classes that the simulation uses: their modules and the signatures of their methods.

use std::collections::BTreeMap;

use gesmas_abi::interface::Interface;
use gesmas_coroutine::native_module;
use gesmas_machine::{
    ClassName, CodeHash, MethodName, ObjectName, OnBehalf, RequestBody, scripted::ScriptedEngine,
};
use gesmas_sdk::host::NativeClass;

use crate::{engine::SimulatedEngine, twins::Twin, vessel};

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

/// What operators ask for is a call of this class, which is none: to set a limit, to remove an
/// object of `Vessel`.
pub(crate) const OPERATOR: &str = "Operator";

/// See the file's head.
#[derive(Debug)]
pub(crate) struct Catalog {
    modules: BTreeMap<ClassName, Vec<u8>>,
    /// Another module that wants a name.
    rival: Vec<u8>,
    /// Whether the standard classes are WebAssembly.
    mixed: bool,
    /// What stands in for a standard class, native in any case.
    twin: Option<NativeClass>,
    signatures: BTreeMap<(ClassName, String), u64>,
}

/// The simulator's own. The last two have one name.
fn own() -> [NativeClass; 3] {
    [crate::yard::Yard::native(), second_rival(), crate::rival::first::Rival::native()]
}

/// A native module is named by its version.
fn second_rival() -> NativeClass {
    NativeClass { version: "second", ..crate::rival::second::Rival::native() }
}

/// The name of an object.
pub(crate) fn object(class: &str, name: &str) -> ObjectName {
    ObjectName::new(class, name).expect("the simulation's names are names")
}

impl Catalog {
    /// All classes; the standard ones as WebAssembly, or all native, and perhaps a wrong twin in place of
    /// one of them.
    pub(crate) fn new(mixed: bool, twin: Option<Twin>) -> Self {
        let rival = native_module(&second_rival());
        let (modules, signatures) = (BTreeMap::new(), BTreeMap::new());
        let twin = twin.map(Twin::native);
        let mut catalog = Self { modules, rival, mixed, twin, signatures };
        for class in catalog.standard().chain(own()) {
            let name = ClassName::new(class.name).expect("standard classes have good names");
            let interface = Interface::decode(class.interface).expect("the macro made it");
            for method in interface.methods {
                let key = (name.clone(), method.name);
                catalog.signatures.insert(key, method.signature);
            }
            let replaced = twin.is_some_and(|twin| twin.name == class.name);
            let wasm = gesmas_classes::find(class.name).filter(|_| mixed && !replaced);
            let module = wasm.map(|standard| standard.module.to_vec());
            let module = module.unwrap_or_else(|| native_module(&class));
            catalog.modules.insert(name, module);
        }
        let vessel = ClassName::new("Vessel").expect("it is a name");
        let script = ScriptedEngine::interface_of(vessel::FIRST).expect("it is a script");
        for (method, found) in script.methods {
            let key = (vessel.clone(), method.to_string());
            catalog.signatures.insert(key, found.signature);
        }
        catalog.modules.insert(vessel, vessel::FIRST.into());
        catalog
    }

    /// An engine that runs them, with so many live activations.
    pub(crate) fn engine(&self, live: usize) -> SimulatedEngine {
        if self.mixed {
            SimulatedEngine::mixed(own().into_iter().chain(self.twin), live)
        } else {
            SimulatedEngine::native(self.standard().chain(own()))
        }
    }

    /// The standard classes, with the twin in its place.
    fn standard(&self) -> impl Iterator<Item = NativeClass> + use<> {
        let twin = self.twin;
        let right =
            move |class: NativeClass| twin.filter(|twin| twin.name == class.name).unwrap_or(class);
        gesmas_classes::native().into_iter().map(right)
    }

    /// The codes that want one name.
    pub(crate) fn rivals(&self) -> [CodeHash; 2] {
        let first = ClassName::new("Rival").expect("it is a name");
        [CodeHash::of(&self.modules[&first]), CodeHash::of(&self.rival)]
    }

    /// The only code that may have the names.
    pub(crate) fn reserved(&self) -> BTreeMap<ClassName, CodeHash> {
        let code = |(name, module): (&ClassName, &Vec<u8>)| (name.clone(), CodeHash::of(module));
        let free = |(name, _): &(&ClassName, &Vec<u8>)| name.as_str() != "Rival";
        self.modules.iter().filter(free).map(code).collect()
    }

    /// The signature of the method that a call is for.
    pub(crate) fn signature(&self, call: &Call) -> u64 {
        let key = (call.object.class.clone(), call.method.into());
        self.signatures.get(&key).copied().unwrap_or_default()
    }

    /// The request that loads the class of a call.
    pub(crate) fn put(&self, class: &str) -> RequestBody {
        let class = ClassName::new(class).expect("standard classes have good names");
        let module = self.modules[&class].clone();
        RequestBody::PutClass { class, module, replace: None }
    }

    /// The request of a call.
    pub(crate) fn request(&self, call: &Call) -> RequestBody {
        if call.object.class.as_str() == OPERATOR {
            return operators_request(call);
        }
        let signature = self.signature(call);
        let (object, arguments) = (call.object.clone(), call.arguments.clone());
        if call.method == "put" && object.class.as_str() == "Rival" {
            // Whoever puts the second names it by an argument.
            let second = !arguments.is_empty();
            let RequestBody::PutClass { class, module, .. } = self.put("Rival") else {
                panic!("a class is put by its request");
            };
            let module = if second { self.rival.clone() } else { module };
            return RequestBody::PutClass { class, module, replace: None };
        }
        if call.method == "init" {
            return RequestBody::CreateObject { object, signature, arguments };
        }
        let method = MethodName::new(call.method).expect("the simulation's names are names");
        RequestBody::Call { object, method, signature, arguments, on_behalf: OnBehalf::Requester }
    }
}

/// What an operator asks for.
fn operators_request(call: &Call) -> RequestBody {
    if call.method == "remove" {
        return RequestBody::RemoveObject { object: object("Vessel", call.object.name.as_str()) };
    }
    let text = std::str::from_utf8(&call.arguments).expect("a limit is asked for in words");
    let (name, value) = text.split_once(' ').expect("a name and a value");
    let value = value.parse().expect("a value is a number");
    RequestBody::SetLimit { name: name.into(), value }
}
