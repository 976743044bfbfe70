//! Names and numbers that identify things in the machine.
//!
//! Invariant: a value of a name type satisfies the grammar of that type; the only way to make one
//! is through its checked constructor, also when it is decoded. A short name, as most are, is no
//! allocation, since each call brings three.
//! Not here: hashes of content (`code.rs`) and the paths shown to users, which the server builds.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Visitor},
};
use smol_str::SmolStr;

/// Why a text is not a name.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, thiserror::Error,
)]
pub enum NameError {
    /// The text is empty.
    #[error("a {kind} name must not be empty")]
    Empty {
        /// What was to be named.
        kind: NameKind,
    },
    /// The text is longer than the kind allows.
    #[error("a {kind} name has at most {limit} bytes, this one has {length}")]
    TooLong {
        /// What was to be named.
        kind: NameKind,
        /// Its length in bytes.
        length: u64,
        /// The greatest length in bytes.
        limit: u64,
    },
    /// The text has a byte that the grammar does not allow where it stands.
    #[error("byte {position} is not allowed in a {kind} name")]
    Byte {
        /// What was to be named.
        kind: NameKind,
        /// Index of the first byte that is not allowed.
        position: u64,
    },
}

/// The kinds of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum NameKind {
    /// Of a class.
    Class,
    /// Of a method or handler.
    Method,
    /// Of an object, without its class.
    Object,
}

impl fmt::Display for NameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Class => "class",
            Self::Method => "method",
            Self::Object => "object",
        })
    }
}

/// Greatest length of a class name, bytes.
pub const CLASS_NAME_MAX: usize = 64;
/// Greatest length of a method name, bytes.
pub const METHOD_NAME_MAX: usize = 64;
/// Greatest length of an object name, bytes.
pub const OBJECT_NAME_MAX: usize = 255;

/// What a grammar allows, by byte: as the first one, and after it.
struct Grammar {
    kind: NameKind,
    limit: usize,
    first: [bool; 256],
    rest: [bool; 256],
}

const LOWER: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
const UPPER: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS: &[u8] = b"0123456789";

static CLASS: Grammar = Grammar {
    kind: NameKind::Class,
    limit: CLASS_NAME_MAX,
    first: table([LOWER, UPPER]),
    rest: table([LOWER, UPPER, DIGITS, b"_"]),
};
static METHOD: Grammar = Grammar {
    kind: NameKind::Method,
    limit: METHOD_NAME_MAX,
    first: table([LOWER, b"_"]),
    rest: table([LOWER, b"_", DIGITS]),
};
static OBJECT: Grammar = Grammar {
    kind: NameKind::Object,
    limit: OBJECT_NAME_MAX,
    first: table([LOWER, UPPER, DIGITS, b"-_.~:@+=,"]),
    rest: table([LOWER, UPPER, DIGITS, b"-_.~:@+=,"]),
};

/// A name is checked at each call on each replica: by tables it takes a load for each byte.
const fn table<const SETS: usize>(sets: [&[u8]; SETS]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut set = 0;
    while set < SETS {
        let mut at = 0;
        while at < sets[set].len() {
            table[sets[set][at] as usize] = true;
            at += 1;
        }
        set += 1;
    }
    table
}

impl Grammar {
    fn check(&self, text: &str) -> Result<(), NameError> {
        let &Self { kind, limit, .. } = self;
        let Some((first, rest)) = text.as_bytes().split_first() else {
            return Err(NameError::Empty { kind });
        };
        if text.len() > limit {
            return Err(NameError::TooLong {
                kind,
                length: text.len() as u64,
                limit: limit as u64,
            });
        }
        if !self.first[usize::from(*first)] {
            return Err(NameError::Byte { kind, position: 0 });
        }
        match rest.iter().position(|byte| !self.rest[usize::from(*byte)]) {
            Some(position) => Err(NameError::Byte { kind, position: position as u64 + 1 }),
            None => Ok(()),
        }
    }
}

/// Makes a name of a text without a copy in between.
struct Checked<T>(fn(&str) -> Result<T, NameError>);

impl<T> Visitor<'_> for Checked<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.0)(text).map_err(E::custom)
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $grammar:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(SmolStr);

        impl $name {
            /// Checks the grammar.
            ///
            /// # Errors
            /// [`NameError`] when the text does not satisfy it.
            pub fn new(text: &str) -> Result<Self, NameError> {
                $grammar.check(text)?;
                Ok(Self(SmolStr::new(text)))
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0.into()
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Checked(Self::new))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(
    /// Name of a class: a letter, then letters, digits and `_`.
    ClassName,
    CLASS
);
name!(
    /// Name of a method or handler: a lower-case letter or `_`, then also digits.
    MethodName,
    METHOD
);
name!(
    /// Name of an object within its class: letters, digits and `-_.~:@+=,`.
    LocalName,
    OBJECT
);

impl MethodName {
    /// Whether it is too long to be kept in place.
    pub(crate) fn is_allocated(&self) -> bool {
        self.0.is_heap_allocated()
    }
}

/// The whole name of an object: `Class/name`.
///
/// Ordered by class, then by name, so that the objects of a class lie together.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectName {
    /// Class of the object.
    pub class: ClassName,
    /// Name within the class.
    pub name: LocalName,
}

impl ObjectName {
    /// Checks both parts.
    ///
    /// # Errors
    /// [`NameError`] of the first part that does not satisfy its grammar.
    pub fn new(class: &str, name: &str) -> Result<Self, NameError> {
        Ok(Self { class: ClassName::new(class)?, name: LocalName::new(name)? })
    }

    /// What lies before all objects of a class: for ranges, since no object has an empty name.
    pub(crate) fn before_all(class: &ClassName) -> Self {
        Self { class: class.clone(), name: LocalName(SmolStr::default()) }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.class, self.name)
    }
}

impl fmt::Debug for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// A client's session. Never reused.
    SessionId
);
number!(
    /// An invocation. Never reused.
    InvocationId
);
number!(
    /// A permit of a semaphore that has an owner. Never reused.
    PermitId
);
number!(
    /// A timer, a watch or a deadline; one sequence for all three. Never reused.
    AlarmId
);
number!(
    /// One life of an object. Never reused, also not by another object.
    Incarnation
);
number!(
    /// The count of steps since the group began, across configurations.
    Step
);
number!(
    /// Ordered time: nanoseconds since the Unix epoch, as the leaders stamped it.
    Time
);

impl Time {
    /// This time and `nanoseconds` more, at most the end of time.
    #[must_use]
    pub const fn after(self, nanoseconds: u64) -> Self {
        Self(self.0.saturating_add(nanoseconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_to_their_grammar() {
        assert!(ClassName::new("Queue").is_ok());
        assert!(ClassName::new("Work_Queue2").is_ok());
        assert_eq!(
            ClassName::new("2Queue"),
            Err(NameError::Byte { kind: NameKind::Class, position: 0 })
        );
        assert_eq!(
            ClassName::new("Queue\u{e9}"),
            Err(NameError::Byte { kind: NameKind::Class, position: 5 })
        );
        assert_eq!(MethodName::new(""), Err(NameError::Empty { kind: NameKind::Method }));
        assert!(MethodName::new("p_for2").is_ok());
        assert!(MethodName::new("Produce").is_err());
        assert!(LocalName::new("epoch-7").is_ok());
        assert_eq!(
            LocalName::new("a/b"),
            Err(NameError::Byte { kind: NameKind::Object, position: 1 })
        );
        let long = "x".repeat(OBJECT_NAME_MAX + 1);
        assert_eq!(
            LocalName::new(&long),
            Err(NameError::TooLong { kind: NameKind::Object, length: 256, limit: 255 })
        );
    }
}
