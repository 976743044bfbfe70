//! Reads interfaces from sections that anybody may have written.

use alloc::{boxed::Box, string::String, vec::Vec};

use super::{
    FIELDS_MAX, Field, FieldKind, Interface, METHODS_MAX, Method, MethodKind, NamedOwned,
    TYPE_DEPTH_MAX, TypeOwned, VARIANTS_MAX, VariantOwned,
};
use crate::{ABI_VERSION, Malformed, Reader};

impl Interface {
    /// Reads a section.
    ///
    /// # Errors
    /// [`Malformed`] when it is of another version, cut short, too long, too deep, or contradicts
    /// itself: a hash that its types do not give, a name twice, a second `init`.
    pub fn decode(section: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(section);
        let abi = reader.u32()?;
        if abi != ABI_VERSION {
            return Err(Malformed("it is of a version of the ABI that is not known here"));
        }
        let interface = Self {
            abi,
            class: reader.text()?.into(),
            docs: reader.text()?.into(),
            transient: reader.flag()?,
            layout: reader.u64()?,
            fields: read_fields(&mut reader)?,
            methods: read_methods(&mut reader)?,
        };
        reader.end()?;
        interface.check()?;
        Ok(interface)
    }

    fn check(&self) -> Result<(), Malformed> {
        if self.layout != self.compute_layout() {
            return Err(Malformed("its layout is not the hash of its fields"));
        }
        if self.methods.iter().any(|method| method.signature != method.compute_signature()) {
            return Err(Malformed("a signature is not the hash of the method's types"));
        }
        if has_twice(self.methods.iter().map(|method| &method.name)) {
            return Err(Malformed("it has a method twice"));
        }
        if has_twice(self.fields.iter().map(|field| &field.name)) {
            return Err(Malformed("it has a field twice"));
        }
        let inits = self.methods.iter().filter(|method| method.kind == MethodKind::Init);
        if inits.clone().count() > 1 {
            return Err(Malformed("it has more than one init"));
        }
        let migrations = self.methods.iter().filter(|method| method.kind == MethodKind::Migrate);
        if migrations.clone().count() > 1 {
            return Err(Malformed("it has more than one migrate"));
        }
        if migrations.into_iter().any(|migrate| !migrate.parameters.is_empty()) {
            return Err(Malformed("its migrate takes arguments"));
        }
        if self.transient && inits.into_iter().any(|init| !init.parameters.is_empty()) {
            return Err(Malformed("it is transient, but its init takes arguments"));
        }
        Ok(())
    }
}

fn has_twice<'a>(names: impl Iterator<Item = &'a String>) -> bool {
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names.windows(2).any(|pair| pair[0] == pair[1])
}

fn count(reader: &mut Reader<'_>, least: usize, limit: usize) -> Result<usize, Malformed> {
    let count = reader.count(least)?;
    if count > limit { Err(Malformed("it has too many parts")) } else { Ok(count) }
}

fn read_fields(reader: &mut Reader<'_>) -> Result<Vec<Field>, Malformed> {
    let count = count(reader, 7, FIELDS_MAX)?;
    (0..count).map(|_| read_field(reader)).collect()
}

fn read_field(reader: &mut Reader<'_>) -> Result<Field, Malformed> {
    let name = reader.text()?.into();
    let kind = match reader.u8()? {
        0 => FieldKind::Value,
        1 => FieldKind::Map,
        2 => FieldKind::Deque,
        3 => FieldKind::Set,
        4 => FieldKind::Semaphore,
        5 => FieldKind::SemaphoreMap,
        _ => return Err(Malformed("there is no such kind of field")),
    };
    let field =
        Field { name, kind, key: read_optional_type(reader)?, value: read_optional_type(reader)? };
    let wants = match kind {
        FieldKind::Value | FieldKind::Deque => (false, true),
        FieldKind::Map => (true, true),
        FieldKind::Set | FieldKind::SemaphoreMap => (true, false),
        FieldKind::Semaphore => (false, false),
    };
    if (field.key.is_some(), field.value.is_some()) == wants {
        Ok(field)
    } else {
        Err(Malformed("a field lacks a type or has one too many"))
    }
}

fn read_methods(reader: &mut Reader<'_>) -> Result<Vec<Method>, Malformed> {
    let count = count(reader, 24, METHODS_MAX)?;
    (0..count).map(|_| read_method(reader)).collect()
}

fn read_method(reader: &mut Reader<'_>) -> Result<Method, Malformed> {
    Ok(Method {
        name: reader.text()?.into(),
        docs: reader.text()?.into(),
        kind: match reader.u8()? {
            0 => MethodKind::Update,
            1 => MethodKind::Read,
            2 => MethodKind::Handler,
            3 => MethodKind::Init,
            4 => MethodKind::Migrate,
            _ => return Err(Malformed("there is no such kind of method")),
        },
        detached: reader.flag()?,
        parameters: read_named(reader, 0)?,
        result: read_type(reader, 0)?,
        error: read_optional_type(reader)?,
        signature: reader.u64()?,
    })
}

fn read_optional_type(reader: &mut Reader<'_>) -> Result<Option<TypeOwned>, Malformed> {
    if reader.flag()? { read_type(reader, 0).map(Some) } else { Ok(None) }
}

fn read_named(reader: &mut Reader<'_>, depth: usize) -> Result<Vec<NamedOwned>, Malformed> {
    let count = count(reader, 5, FIELDS_MAX)?;
    let fields = (0..count)
        .map(|_| Ok(NamedOwned { name: reader.text()?.into(), ty: read_type(reader, depth)? }));
    fields.collect()
}

fn read_variants(reader: &mut Reader<'_>, depth: usize) -> Result<Vec<VariantOwned>, Malformed> {
    let count = count(reader, 8, VARIANTS_MAX)?;
    let variants = (0..count).map(|_| {
        Ok(VariantOwned { name: reader.text()?.into(), fields: read_named(reader, depth)? })
    });
    variants.collect()
}

/// Reads a type that lies within `depth` others.
fn read_type(reader: &mut Reader<'_>, depth: usize) -> Result<TypeOwned, Malformed> {
    if depth >= TYPE_DEPTH_MAX {
        return Err(Malformed("its types are nested too deep"));
    }
    let depth = depth + 1;
    Ok(match reader.u8()? {
        0 => TypeOwned::Unit,
        1 => TypeOwned::Bool,
        2 => TypeOwned::U8,
        3 => TypeOwned::U16,
        4 => TypeOwned::U32,
        5 => TypeOwned::U64,
        6 => TypeOwned::U128,
        7 => TypeOwned::I8,
        8 => TypeOwned::I16,
        9 => TypeOwned::I32,
        10 => TypeOwned::I64,
        11 => TypeOwned::I128,
        12 => TypeOwned::Text,
        13 => TypeOwned::Bytes,
        14 => TypeOwned::Array(reader.u32()?),
        15 => TypeOwned::Duration,
        16 => TypeOwned::Time,
        17 => TypeOwned::Option(Box::new(read_type(reader, depth)?)),
        18 => TypeOwned::List(read_item(reader, depth)?),
        19 => TypeOwned::Map(read_item(reader, depth)?, Box::new(read_type(reader, depth)?)),
        20 => TypeOwned::Set(read_item(reader, depth)?),
        21 => {
            let count = count(reader, 1, FIELDS_MAX)?;
            let parts = (0..count).map(|_| read_type(reader, depth));
            TypeOwned::Tuple(parts.collect::<Result<_, _>>()?)
        }
        22 => TypeOwned::Record { name: reader.text()?.into(), fields: read_named(reader, depth)? },
        23 => TypeOwned::Choice {
            name: reader.text()?.into(),
            variants: read_variants(reader, depth)?,
        },
        _ => return Err(Malformed("there is no such type")),
    })
}

/// Reads the type of items or keys. A value of it takes at least a byte, so that the length of an
/// input bounds how many it can hold.
fn read_item(reader: &mut Reader<'_>, depth: usize) -> Result<Box<TypeOwned>, Malformed> {
    let ty = read_type(reader, depth)?;
    if ty.least() == 0 {
        return Err(Malformed("it has a collection whose items take no bytes"));
    }
    Ok(Box::new(ty))
}
