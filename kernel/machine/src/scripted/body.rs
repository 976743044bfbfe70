//! The body of a scripted method: a place in its lines and its variables.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    engine::{End, Turn},
    host_call::{Answer, Holder, PAnswer},
    outcome::Trap,
    scripted::{
        instruction::{Instruction, call_of, end_of, number, text},
        source::Source,
    },
};

/// A body that runs or is suspended.
#[derive(Debug)]
pub(super) struct Body {
    source: Arc<Source>,
    line: usize,
    variables: BTreeMap<String, String>,
    /// Bytes that it may still grow by, and its limit.
    memory: (u64, u64),
}

impl Body {
    pub(super) fn new(source: Arc<Source>, line: usize, arguments: &[u8], memory: u64) -> Self {
        let arguments = String::from_utf8_lossy(arguments).into_owned();
        let mut variables = BTreeMap::new();
        for (place, word) in arguments.split(' ').enumerate() {
            variables.insert(place.to_string(), word.to_owned());
        }
        variables.insert(String::new(), arguments);
        Self { source, line, variables, memory: (memory, memory) }
    }

    /// Runs up to the next host call or the end.
    pub(super) fn run(&mut self, fuel: u64) -> Turn {
        let mut left = fuel;
        loop {
            let Instruction { words, .. } = &self.source.lines[self.line];
            let words: Vec<_> = words.iter().map(|word| self.resolve(word)).collect();
            let cost = match words[0].as_str() {
                "burn" => number(&words[1]).unwrap_or(1),
                _ => 1,
            };
            match left.checked_sub(cost) {
                Some(rest) => left = rest,
                None => return Turn::End(End::Trapped(Trap::OutOfFuel(fuel)), 0),
            }
            if let Some(end) = end_of(&words) {
                return Turn::End(end, left);
            }
            match self.act(&words) {
                Ok(true) => self.line += 1,
                Ok(false) => match call_of(&words) {
                    Ok(call) => return Turn::Call(call, left),
                    Err(what) => return trapped(Trap::HostCallMalformed(what), left),
                },
                Err(trap) => return trapped(trap, left),
            }
        }
    }

    /// Takes the answer to the call it waits in. Some when that ends the method.
    pub(super) fn take(&mut self, answer: &Answer) -> Option<End> {
        let instruction = &self.source.lines[self.line];
        if instruction.ends_when_cancelled() && *answer == Answer::P(PAnswer::Cancelled) {
            return Some(End::Cancelled);
        }
        if let Some(name) = &instruction.into {
            self.variables.insert(name.clone(), show(answer));
        }
        self.line += 1;
        None
    }

    /// Does what concerns the body alone. False when the line is a host call.
    fn act(&mut self, words: &[String]) -> Result<bool, Trap> {
        match (words[0].as_str(), words) {
            ("let", [_, name, ..]) => {
                self.variables.insert(name.clone(), text(words, 2));
            }
            ("add", [_, name, amount]) => {
                let parsed = |word: &str| number(word).unwrap_or(0);
                let sum = parsed(self.variables.get(name).map_or("0", String::as_str))
                    .wrapping_add(parsed(amount));
                self.variables.insert(name.clone(), sum.to_string());
            }
            ("goto", [_, label]) => self.go_to(label)?,
            ("if", [_, left, relation, right, label]) => {
                if (left == right) == (relation == "=") {
                    self.go_to(label)?;
                }
            }
            ("burn", _) => {}
            ("grow", [_, bytes]) => {
                let (left, limit) = self.memory;
                let left = left.checked_sub(number(bytes).unwrap_or(0));
                self.memory.0 = left.ok_or(Trap::OutOfMemory(limit))?;
            }
            ("panic", _) => return Err(Trap::Panicked(text(words, 1))),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn go_to(&mut self, label: &str) -> Result<(), Trap> {
        let Some(&line) = self.source.labels.get(label) else {
            return Err(Trap::Fault(format!("there is no label {label}")));
        };
        // The caller steps to the line after this one.
        self.line = line.saturating_sub(1);
        Ok(())
    }

    fn resolve(&self, word: &str) -> String {
        let word = match word.split_once('$') {
            Some((before, name)) => {
                let value = self.variables.get(name).map_or("none", String::as_str);
                format!("{before}{value}")
            }
            None => word.to_owned(),
        };
        if word.contains(['\\', '"']) {
            return word.replace("\\0", "\0").replace("\"\"", "");
        }
        word
    }
}

const fn trapped(trap: Trap, left: u64) -> Turn {
    Turn::End(End::Trapped(trap), left)
}

/// An answer as text.
fn show(answer: &Answer) -> String {
    let bytes = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match answer {
        Answer::Unit => "done".into(),
        Answer::Flag(flag) => flag.to_string(),
        Answer::Number(number) => number.to_string(),
        Answer::OptionalNumber(number) => number.map_or_else(|| "none".into(), |n| n.to_string()),
        Answer::Optional(value) => value.as_deref().map_or_else(|| "none".into(), bytes),
        Answer::Text(text) => text.clone(),
        Answer::Entries(entries) => {
            let entry =
                |(key, value): &(Vec<u8>, Vec<u8>)| format!("{}={}", bytes(key), bytes(value));
            entries.iter().map(entry).collect::<Vec<_>>().join(",")
        }
        Answer::P(answer) => match answer {
            PAnswer::Granted => "granted".into(),
            PAnswer::Owned(permit) => permit.to_string(),
            PAnswer::WouldBlock => "would-block".into(),
            PAnswer::TimedOut => "timed-out".into(),
            PAnswer::Cancelled => "cancelled".into(),
            PAnswer::SessionOver => "session-over".into(),
            PAnswer::NoSession => "no-session".into(),
        },
        Answer::Owners(owners) => {
            let owner = |owner: &crate::Owner| match owner.holder {
                Holder::Invocation(id) => format!("invocation {id}"),
                Holder::Session(id) => format!("session {id}"),
            };
            owners.iter().map(owner).collect::<Vec<_>>().join(",")
        }
    }
}
