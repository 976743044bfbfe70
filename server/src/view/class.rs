//! Classes as operators see them: those that are loaded, and the standard ones that calls would load.

use gesmas_client::protocol::{ClassState, ClassSummary};
use serde_json::{Value, json};

/// A class of either kind.
pub(crate) struct ClassRow {
    pub(crate) name: String,
    /// For tables and programs.
    pub(crate) state: &'static str,
    pub(crate) bytes: u64,
    pub(crate) objects: u64,
    /// Hexadecimal digits of the hash of its code.
    pub(crate) code: String,
}

/// State of a standard class that is not loaded.
pub(crate) const ON_FIRST_USE: &str = "on-first-use";

/// The loaded classes, then the other standard ones.
pub(crate) fn rows(classes: &[ClassSummary]) -> Vec<ClassRow> {
    let loaded = |name: &str| classes.iter().any(|class| class.class == name);
    let of_cluster = classes.iter().map(|class| ClassRow {
        name: class.class.clone(),
        state: match class.state {
            ClassState::Pending => "compiling",
            ClassState::Ready => "ready",
        },
        bytes: class.module_bytes,
        objects: class.objects,
        code: class.code.to_string(),
    });
    let standard = gesmas_classes::ALL.iter().filter(|standard| !loaded(standard.name));
    let of_program = standard.map(|standard| ClassRow {
        name: standard.name.into(),
        state: ON_FIRST_USE,
        bytes: standard.module.len() as u64,
        objects: 0,
        code: gesmas_machine::CodeHash::of(standard.module).to_string(),
    });
    of_cluster.chain(of_program).collect()
}

impl ClassRow {
    /// The class as JSON.
    pub(crate) fn as_json(&self) -> Value {
        json!({
            "class": self.name,
            "state": self.state,
            "bytes": self.bytes,
            "objects": self.objects,
            "code": self.code,
        })
    }
}
