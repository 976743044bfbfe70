//! Changes of a group as the payload of an event: lines of text that any language takes apart.
//!
//! `joined 17 host-3`: what happened, the version, and the name, which may have spaces in it, and has no
//! line breaks. Changes that one step makes are lines of one event.

use std::{error::Error, fmt, str::FromStr};

/// What happened to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is there.
    Joined,
    /// It says something else of itself.
    Updated,
    /// It is not there any more.
    Left,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Joined, Self::Updated, Self::Left];

    const fn word(self) -> &'static str {
        match self {
            Self::Joined => "joined",
            Self::Updated => "updated",
            Self::Left => "left",
        }
    }
}

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its version: greater than that of every change before.
    pub version: u64,
    /// What happened.
    pub kind: Kind,
    /// To which member.
    pub name: String,
}

impl Change {
    /// The changes of an event, in their order.
    ///
    /// # Errors
    /// When a line is none.
    pub fn all(payload: &str) -> Result<Vec<Self>, NotAChange> {
        payload.split('\n').map(str::parse).collect()
    }

    /// Adds the line to those before it. Not by the machinery of formatting, which would be a third of the
    /// module.
    pub(crate) fn push_line(&self, text: &mut String) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(self.kind.word());
        text.push(' ');
        push_decimal(self.version, text);
        text.push(' ');
        text.push_str(&self.name);
    }
}

fn push_decimal(number: u64, text: &mut String) {
    if number >= 10 {
        push_decimal(number / 10, text);
    }
    text.push(char::from(b'0' + (number % 10) as u8));
}

/// A payload that is no change of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAChange;

impl fmt::Display for NotAChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "not a change of a group: it is `joined`, `updated` or `left`, a version, a name",
        )
    }
}

impl Error for NotAChange {}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.push_line(&mut text);
        f.write_str(&text)
    }
}

impl FromStr for Change {
    type Err = NotAChange;

    fn from_str(text: &str) -> Result<Self, NotAChange> {
        let (word, rest) = text.split_once(' ').ok_or(NotAChange)?;
        let (version, name) = rest.split_once(' ').ok_or(NotAChange)?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.word() == word).ok_or(NotAChange)?;
        let version = version.parse().map_err(|_| NotAChange)?;
        if name.contains('\n') {
            return Err(NotAChange);
        }
        Ok(Self { version, kind, name: name.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_as_they_were_written() {
        for kind in Kind::ALL {
            let change = Change { version: u64::MAX, kind, name: "a name with spaces".into() };
            assert_eq!(change.to_string().parse(), Ok(change));
        }
        let joined = Change { version: 17, kind: Kind::Joined, name: "host-3".into() };
        assert_eq!("joined 17 host-3".parse(), Ok(joined));
    }

    #[test]
    fn several_changes_are_lines() {
        let change = |version, kind| Change { version, kind, name: "a b".into() };
        let changes = [change(1, Kind::Joined), change(20, Kind::Left)];
        let mut text = String::new();
        changes.iter().for_each(|change| change.push_line(&mut text));
        assert_eq!(text, "joined 1 a b\nleft 20 a b");
        assert_eq!(Change::all(&text), Ok(changes.into()));
        assert_eq!(Change::all("joined 1 a\n"), Err(NotAChange));
    }

    #[test]
    fn other_texts_are_no_changes() {
        for text in [
            "",
            "joined",
            "joined 17",
            "died 17 host-3",
            "left x host-3",
            "left -1 host-3",
            "left 1 host\n3",
        ] {
            assert_eq!(text.parse::<Change>(), Err(NotAChange), "{text}");
        }
    }
}
