//! Why a JSON value is not a value of a type: the place, what was expected, what came.

use std::fmt;

use serde_json::Value;

/// Longest excerpt of what came, characters.
const EXCERPT: usize = 60;

/// A JSON value that is not of its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The place within the argument, such as `.tags[2]`; empty for the argument itself.
    pub place: String,
    /// What would be right.
    pub expected: String,
    /// What came, as JSON, shortened; or what is wrong with it.
    pub found: String,
}

impl Mismatch {
    /// Something else was expected at a place.
    pub(super) fn new(expected: impl Into<String>, found: &Value) -> Self {
        Self { place: String::new(), expected: expected.into(), found: excerpt(found) }
    }

    /// Like [`Mismatch::new`], with words for what came.
    pub(super) fn with(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { place: String::new(), expected: expected.into(), found: found.into() }
    }

    /// The same, seen from outside of a member.
    pub(super) fn in_member(mut self, name: &str) -> Self {
        self.place.insert_str(0, &format!(".{name}"));
        self
    }

    /// The same, seen from outside of an array.
    pub(super) fn in_item(mut self, index: usize) -> Self {
        self.place.insert_str(0, &format!("[{index}]"));
        self
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{} ", self.place)?;
        }
        write!(f, "must be {}, not {}", self.expected, self.found)
    }
}

impl std::error::Error for Mismatch {}

/// A JSON value in a few characters.
fn excerpt(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= EXCERPT {
        return text;
    }
    text.chars().take(EXCERPT).chain("…".chars()).collect()
}
