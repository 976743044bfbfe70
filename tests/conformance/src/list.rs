//! The list of cases.

use serde::Deserialize;

/// Something that every client must do.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its name, which every runner knows it by.
    pub name: String,
    /// What must be seen.
    pub says: String,
}

/// All cases.
///
/// # Panics
/// When the list is malformed or names a case twice.
#[must_use]
pub fn cases() -> Vec<Case> {
    let cases: Vec<Case> =
        serde_json::from_str(include_str!("../cases.json")).expect("the list of cases is JSON");
    let names: std::collections::BTreeSet<_> = cases.iter().map(|case| &case.name).collect();
    assert_eq!(names.len(), cases.len(), "a case is listed twice");
    cases
}
