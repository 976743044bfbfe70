//! The text of a scripted class: its interface and its lines.

use std::collections::BTreeMap;

use crate::{
    class::{ClassInterface, Method, MethodKind},
    names::MethodName,
    outcome::ModuleError,
    scripted::instruction::Instruction,
};

/// A class that was read.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) class: String,
    pub(super) interface: ClassInterface,
    /// Where each method begins.
    pub(super) starts: BTreeMap<MethodName, usize>,
    /// The lines of all methods; one that runs past its end returns.
    pub(super) lines: Vec<Instruction>,
    /// Places to go to, by method and label.
    pub(super) labels: BTreeMap<String, usize>,
}

impl Source {
    /// Reads the text of a class.
    pub(super) fn parse(module: &[u8]) -> Result<Self, ModuleError> {
        let text = std::str::from_utf8(module).map_err(|error| invalid(&error.to_string()))?;
        let mut source = Self {
            class: String::new(),
            interface: ClassInterface::default(),
            starts: BTreeMap::new(),
            lines: Vec::new(),
            labels: BTreeMap::new(),
        };
        for line in text.lines() {
            let line = line.split(" #").next().unwrap_or_default().trim();
            if !line.is_empty() {
                source.take_line(line).map_err(|what| invalid(&format!("{what}: {line}")))?;
            }
        }
        source.lines.push(Instruction::end());
        if source.class.is_empty() { Err(invalid("it names no class")) } else { Ok(source) }
    }

    fn take_line(&mut self, line: &str) -> Result<(), &'static str> {
        let words: Vec<_> = line.split_whitespace().collect();
        match (words[0], words.as_slice()) {
            ("class", [_, class, rest @ ..]) => {
                self.class = (*class).into();
                self.interface.transient = rest.contains(&"transient");
                let layout = rest.iter().position(|word| *word == "layout");
                if let Some(number) = layout.and_then(|place| rest.get(place + 1)) {
                    self.interface.layout = number.parse().map_err(|_| "not a layout")?;
                }
            }
            (
                "init" | "update" | "detached" | "read" | "handler" | "migrate",
                [kind, name, parameters],
            ) => {
                self.begin_method(kind, name, parameters)?;
            }
            _ => match line.strip_suffix(':') {
                Some(label) => {
                    self.labels.insert(label.into(), self.lines.len());
                }
                None => self.lines.push(Instruction::parse(line)?),
            },
        }
        Ok(())
    }

    fn begin_method(
        &mut self,
        kind: &str,
        name: &str,
        parameters: &str,
    ) -> Result<(), &'static str> {
        let name = MethodName::new(name).map_err(|_| "not a method's name")?;
        let parameters = parameters.parse().map_err(|_| "not a number of parameters")?;
        let method = Method {
            kind: match kind {
                "init" => MethodKind::Init,
                "read" => MethodKind::Read,
                "handler" => MethodKind::Handler,
                "migrate" => MethodKind::Migrate,
                _ => MethodKind::Update,
            },
            detached: kind == "detached",
            signature: u64::from(parameters),
            parameters,
        };
        self.interface.methods.insert(name.clone(), method);
        self.lines.push(Instruction::end());
        self.starts.insert(name, self.lines.len());
        Ok(())
    }
}

fn invalid(what: &str) -> ModuleError {
    ModuleError::Invalid(what.into())
}
