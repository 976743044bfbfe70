//! Names on the command line, checked before anything is sent.

use std::str::FromStr;

use gesmas_machine::{ClassName, ObjectName};

/// The name of an object: `Class/name`, also with a slash in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ObjectPath {
    pub(super) class: String,
    pub(super) object: String,
}

impl std::fmt::Display for ObjectPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.class, self.object)
    }
}

impl FromStr for ObjectPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = text.strip_prefix('/').unwrap_or(text);
        let Some((class, object)) = path.split_once('/') else {
            return Err("an object is named Class/name, such as Queue/jobs".into());
        };
        class_name(class)?;
        ObjectName::new(class, object).map_err(|error| {
            format!("{error}: names of objects have letters, digits and -_.~:@+=,")
        })?;
        Ok(Self { class: class.into(), object: object.into() })
    }
}

/// A class, or one object of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selection {
    pub(super) class: String,
    pub(super) object: Option<String>,
}

impl FromStr for Selection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim_start_matches('/').contains('/') {
            let ObjectPath { class, object } = text.parse()?;
            return Ok(Self { class, object: Some(object) });
        }
        class_name(text).map(|name| Self { class: name.to_string(), object: None })
    }
}

/// Checks the name of a class.
pub(super) fn class_name(text: &str) -> Result<ClassName, String> {
    ClassName::new(text).map_err(|error| {
        format!("{error}: a class is named by a letter, then letters, digits and _")
    })
}

/// Checks the name of a class, for the command line.
pub(super) fn class(text: &str) -> Result<String, String> {
    class_name(text).map(|name| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_named_by_class_and_name() {
        let path: ObjectPath = "/Queue/jobs".parse().expect("the name is good");
        assert_eq!(path.to_string(), "Queue/jobs");
        for (text, part) in [
            ("Queue", "Class/name"),
            ("9/x", "a class is named"),
            ("Queue/", "must not be empty"),
            ("Queue/a b", "byte 1"),
            ("Queue/a/b", "byte 1"),
        ] {
            let error = text.parse::<ObjectPath>().expect_err("the name is bad");
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn selections_are_a_class_or_an_object() {
        let selection = |text: &str| text.parse::<Selection>().expect("the name is good");
        assert_eq!(selection("Queue"), Selection { class: "Queue".into(), object: None });
        assert_eq!(selection("Queue/a").object.as_deref(), Some("a"));
    }
}
