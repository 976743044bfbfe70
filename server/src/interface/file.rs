//! An interface as a JSON file: written for modules whose compiler cannot, printed by `class show`.
//!
//! Types are written as documentation writes them (`map<text, list<u32>>`); records and choices are
//! named there and described under `types`.

use std::{collections::BTreeMap, fs, path::Path};

use gesmas_abi::{
    ABI_VERSION,
    interface::{
        Field, FieldKind, Interface, Method, MethodKind, NamedOwned, TYPE_DEPTH_MAX, TypeOwned,
        VariantOwned,
    },
};
use serde::{Deserialize, Serialize};

use crate::{failure::Failure, json::type_name};

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct File {
    class: String,
    #[serde(default)]
    docs: String,
    #[serde(default)]
    transient: bool,
    #[serde(default)]
    types: BTreeMap<String, Definition>,
    #[serde(default)]
    fields: Vec<FileField>,
    methods: Vec<FileMethod>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Definition {
    Record(Vec<FileNamed>),
    Choice(Vec<FileVariant>),
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
struct FileNamed {
    name: String,
    #[serde(rename = "type")]
    ty: String,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
struct FileVariant {
    name: String,
    #[serde(default)]
    fields: Vec<FileNamed>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct FileField {
    name: String,
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<String>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct FileMethod {
    name: String,
    #[serde(default)]
    docs: String,
    #[serde(default = "update")]
    kind: String,
    #[serde(default)]
    detached: bool,
    #[serde(default)]
    parameters: Vec<FileNamed>,
    #[serde(default = "unit")]
    result: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

fn update() -> String {
    "update".into()
}

fn unit() -> String {
    "unit".into()
}

const METHOD_KINDS: [(&str, MethodKind); 5] = [
    ("update", MethodKind::Update),
    ("read", MethodKind::Read),
    ("handler", MethodKind::Handler),
    ("init", MethodKind::Init),
    ("migrate", MethodKind::Migrate),
];

const FIELD_KINDS: [(&str, FieldKind); 6] = [
    ("value", FieldKind::Value),
    ("map", FieldKind::Map),
    ("deque", FieldKind::Deque),
    ("set", FieldKind::Set),
    ("semaphore", FieldKind::Semaphore),
    ("semaphores", FieldKind::SemaphoreMap),
];

/// Reads the interface in a file.
pub(crate) fn read(path: &Path) -> Result<Interface, Failure> {
    let text = fs::read_to_string(path).map_err(|error| Failure::file(path, &error))?;
    parse(&text).map_err(|error| {
        Failure::usage(format!("{}: {error}", path.display()))
            .advise("`gesmas class show Queue --json` prints one to start from")
    })
}

fn parse(text: &str) -> Result<Interface, String> {
    let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let types = &file.types;
    let field = |field: &FileField| {
        let optional = |ty: &Option<String>| ty.as_deref().map(|ty| whole(ty, types)).transpose();
        Ok(Field {
            name: field.name.clone(),
            kind: kind(&FIELD_KINDS, &field.kind)?,
            key: optional(&field.key)?,
            value: optional(&field.value)?,
        })
    };
    let method = |method: &FileMethod| {
        Ok(Method {
            name: method.name.clone(),
            docs: method.docs.clone(),
            kind: kind(&METHOD_KINDS, &method.kind)?,
            detached: method.detached,
            parameters: named(&method.parameters, types, 0)?,
            result: whole(&method.result, types)?,
            error: method.error.as_deref().map(|ty| whole(ty, types)).transpose()?,
            signature: 0,
        })
    };
    let interface = Interface {
        abi: ABI_VERSION,
        class: file.class.clone(),
        docs: file.docs.clone(),
        transient: file.transient,
        layout: 0,
        fields: file.fields.iter().map(field).collect::<Result<_, String>>()?,
        methods: file.methods.iter().map(method).collect::<Result<_, String>>()?,
    }
    .sealed();
    // The decoder holds the rules on interfaces; they are not said twice.
    Interface::decode(&interface.encode()).map_err(|error| error.to_string())
}

fn kind<T: Copy>(known: &[(&str, T)], text: &str) -> Result<T, String> {
    known.iter().find(|(name, _)| *name == text).map(|(_, kind)| *kind).ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
        format!("{text:?} is none of {}", names.join(", "))
    })
}

fn named(
    fields: &[FileNamed],
    types: &BTreeMap<String, Definition>,
    depth: usize,
) -> Result<Vec<NamedOwned>, String> {
    let named = |field: &FileNamed| {
        let mut parser = Parser { rest: &field.ty, types };
        Ok(NamedOwned { name: field.name.clone(), ty: parser.only(depth)? })
    };
    fields.iter().map(named).collect()
}

fn whole(text: &str, types: &BTreeMap<String, Definition>) -> Result<TypeOwned, String> {
    Parser { rest: text, types }.only(0)
}

/// Reads the name of a type.
struct Parser<'a> {
    rest: &'a str,
    types: &'a BTreeMap<String, Definition>,
}

impl<'a> Parser<'a> {
    /// A type and nothing behind it.
    fn only(&mut self, depth: usize) -> Result<TypeOwned, String> {
        let whole = self.rest;
        let ty = self.ty(depth)?;
        if self.rest.trim().is_empty() { Ok(ty) } else { Err(format!("{whole:?} is no type")) }
    }

    fn ty(&mut self, depth: usize) -> Result<TypeOwned, String> {
        if depth > TYPE_DEPTH_MAX {
            return Err(format!("types nest at most {TYPE_DEPTH_MAX} deep"));
        }
        if self.take('(') {
            return Ok(TypeOwned::Tuple(self.parts(')', depth)?));
        }
        let word = self.word();
        let parts = |count: usize, this: &mut Self| {
            let parts = if this.take('<') { this.parts('>', depth)? } else { Vec::new() };
            if parts.len() == count {
                Ok(parts.into_iter().map(Box::new))
            } else {
                Err(format!("{word} takes {count} types in <>"))
            }
        };
        let one =
            |this: &mut Self| parts(1, this).map(|mut parts| parts.next().expect("there is one"));
        Ok(match word {
            "option" => TypeOwned::Option(one(self)?),
            "list" => TypeOwned::List(one(self)?),
            "set" => TypeOwned::Set(one(self)?),
            "map" => {
                let mut both = parts(2, self)?;
                let mut next = || both.next().expect("there are two");
                TypeOwned::Map(next(), next())
            }
            "bytes" if self.take('<') => {
                let length = self.word();
                let length = length.parse().map_err(|_| format!("{length:?} is no length"))?;
                if !self.take('>') {
                    return Err("bytes<LENGTH> ends with >".into());
                }
                TypeOwned::Array(length)
            }
            _ => self.named(word, depth)?,
        })
    }

    /// A type that is a word alone.
    fn named(&self, word: &str, depth: usize) -> Result<TypeOwned, String> {
        use TypeOwned::{
            Bool, Bytes, Duration, I8, I16, I32, I64, I128, Text, Time, U8, U16, U32, U64, U128,
            Unit,
        };
        let words = [
            Unit, Bool, U8, U16, U32, U64, U128, I8, I16, I32, I64, I128, Text, Bytes, Duration,
            Time,
        ];
        if let Some(ty) = words.into_iter().find(|ty| type_name(ty) == word) {
            return Ok(ty);
        }
        let name = word.to_owned();
        match self.types.get(word) {
            None => Err(format!("there is no type {word:?}, neither built in nor under `types`")),
            Some(Definition::Record(fields)) => {
                Ok(TypeOwned::Record { name, fields: named(fields, self.types, depth + 1)? })
            }
            Some(Definition::Choice(variants)) => {
                let variant = |variant: &FileVariant| {
                    let fields = named(&variant.fields, self.types, depth + 1)?;
                    Ok(VariantOwned { name: variant.name.clone(), fields })
                };
                let variants = variants.iter().map(variant).collect::<Result<_, String>>()?;
                Ok(TypeOwned::Choice { name, variants })
            }
        }
    }

    /// Types with commas between them, up to an end.
    fn parts(&mut self, end: char, depth: usize) -> Result<Vec<TypeOwned>, String> {
        let mut parts = Vec::new();
        while !self.take(end) {
            if !parts.is_empty() && !self.take(',') {
                return Err(format!("a comma or {end} is missing before {:?}", self.rest));
            }
            parts.push(self.ty(depth + 1)?);
        }
        Ok(parts)
    }

    fn take(&mut self, char: char) -> bool {
        let rest = self.rest.trim_start().strip_prefix(char);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest.trim_start();
        let end = rest.find(|char: char| !char.is_alphanumeric() && char != '_');
        let (word, rest) = rest.split_at(end.unwrap_or(rest.len()));
        self.rest = rest;
        word
    }
}

/// An interface in the form that [`read`] reads.
pub(crate) fn write(interface: &Interface) -> serde_json::Value {
    let mut types = BTreeMap::new();
    let mut name = |ty: &TypeOwned| {
        define(ty, &mut types);
        type_name(ty)
    };
    let word = |known: Option<&str>| known.expect("every kind has a word").to_owned();
    let fields = interface.fields.iter().map(|field| FileField {
        name: field.name.clone(),
        kind: word(FIELD_KINDS.iter().find(|(_, kind)| *kind == field.kind).map(|(word, _)| *word)),
        key: field.key.as_ref().map(&mut name),
        value: field.value.as_ref().map(&mut name),
    });
    let fields = fields.collect();
    let methods = interface.methods.iter().map(|method| FileMethod {
        name: method.name.clone(),
        docs: method.docs.clone(),
        kind: word(
            METHOD_KINDS.iter().find(|(_, kind)| *kind == method.kind).map(|(word, _)| *word),
        ),
        detached: method.detached,
        parameters: method
            .parameters
            .iter()
            .map(|parameter| FileNamed { name: parameter.name.clone(), ty: name(&parameter.ty) })
            .collect(),
        result: name(&method.result),
        error: method.error.as_ref().map(&mut name),
    });
    let methods = methods.collect();
    let file = File {
        class: interface.class.clone(),
        docs: interface.docs.clone(),
        transient: interface.transient,
        types,
        fields,
        methods,
    };
    serde_json::to_value(file).expect("it is made of texts and lists")
}

/// Collects the records and choices in a type.
fn define(ty: &TypeOwned, types: &mut BTreeMap<String, Definition>) {
    let mut file_named = |fields: &[NamedOwned]| -> Vec<FileNamed> {
        let named = |field: &NamedOwned| {
            define(&field.ty, types);
            FileNamed { name: field.name.clone(), ty: type_name(&field.ty) }
        };
        fields.iter().map(named).collect()
    };
    match ty {
        TypeOwned::Option(inner) | TypeOwned::List(inner) | TypeOwned::Set(inner) => {
            define(inner, types);
        }
        TypeOwned::Map(key, value) => {
            define(key, types);
            define(value, types);
        }
        TypeOwned::Tuple(parts) => parts.iter().for_each(|part| define(part, types)),
        TypeOwned::Record { name, fields } => {
            let record = Definition::Record(file_named(fields));
            types.insert(name.clone(), record);
        }
        TypeOwned::Choice { name, variants } => {
            let variants = variants.iter().map(|variant| FileVariant {
                name: variant.name.clone(),
                fields: file_named(&variant.fields),
            });
            let choice = Definition::Choice(variants.collect());
            types.insert(name.clone(), choice);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_interfaces_survive_the_way_there_and_back() {
        for standard in gesmas_classes::ALL {
            let interface = gesmas_build::interface_of(standard.module).expect("it has one");
            assert_eq!(parse(&write(&interface).to_string()), Ok(interface), "{}", standard.name);
        }
    }

    #[test]
    fn every_type_can_be_written() {
        let types = BTreeMap::from([(
            "Shape".to_owned(),
            Definition::Choice(vec![FileVariant { name: "Dot".into(), fields: vec![] }]),
        )]);
        for text in [
            "unit",
            "bool",
            "u8",
            "i128",
            "text",
            "bytes",
            "bytes<16>",
            "duration",
            "time",
            "option<list<u8>>",
            "map<text, set<(u8, bool)>>",
            "()",
            "Shape",
        ] {
            let ty = whole(text, &types).expect("it is a type");
            assert_eq!(type_name(&ty), text);
        }
    }

    #[test]
    fn mistakes_are_named() {
        let nothing = BTreeMap::new();
        let problem = |text: &str| whole(text, &nothing).expect_err("it is no type");
        assert!(problem("u7").contains("\"u7\""));
        assert!(problem("list").contains("1 types"));
        assert!(problem("map<u8>").contains("2 types"));
        assert!(problem("u8 u8").contains("is no type"));
        assert!(problem("(u8 u8").contains("comma"));
        assert!(problem("(u8").contains("comma"));
        assert!(problem("bytes<x>").contains("length"));
        let field = FileNamed { name: "again".into(), ty: "Loop".into() };
        let types = BTreeMap::from([("Loop".to_owned(), Definition::Record(vec![field]))]);
        assert!(whole("Loop", &types).expect_err("it is endless").contains("16"));
        assert!(parse(r#"{"class": "A", "methods": [{"name": "m", "kind": "x"}]}"#).is_err());
        assert!(parse(r#"{"class": "A", "methods": [], "more": 1}"#).is_err());
    }
}
