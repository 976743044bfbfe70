//! Types of values as hosts and tools hold them.

use alloc::{boxed::Box, string::String, vec::Vec};

use super::{Named, Type};

/// The type of a value. See [`Type`] for the bytes of each.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is documented at the variant of `Type` of the same name")]
pub enum TypeOwned {
    Unit,
    Bool,
    U8,
    U16,
    U32,
    U64,
    U128,
    I8,
    I16,
    I32,
    I64,
    I128,
    Text,
    Bytes,
    Array(u32),
    Duration,
    Time,
    Option(Box<Self>),
    List(Box<Self>),
    Map(Box<Self>, Box<Self>),
    Set(Box<Self>),
    Tuple(Vec<Self>),
    Record { name: String, fields: Vec<NamedOwned> },
    Choice { name: String, variants: Vec<VariantOwned> },
}

/// A name and a type: a field or a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedOwned {
    /// The name.
    pub name: String,
    /// The type.
    pub ty: TypeOwned,
}

/// A variant of a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariantOwned {
    /// The name.
    pub name: String,
    /// Its fields.
    pub fields: Vec<NamedOwned>,
}

impl TypeOwned {
    /// The least number of bytes that a value of this type takes.
    #[must_use]
    pub fn least(&self) -> usize {
        let sum = |fields: &[NamedOwned]| {
            fields.iter().fold(0_usize, |sum, field| sum.saturating_add(field.ty.least()))
        };
        match self {
            Self::Unit => 0,
            Self::Bool | Self::U8 | Self::I8 | Self::Option(_) => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::Text | Self::Bytes => 4,
            Self::List(_) | Self::Map(..) | Self::Set(_) => 4,
            Self::U64 | Self::I64 | Self::Duration | Self::Time => 8,
            Self::U128 | Self::I128 => 16,
            Self::Array(length) => *length as usize,
            Self::Tuple(parts) => {
                parts.iter().fold(0_usize, |sum, part| sum.saturating_add(part.least()))
            }
            Self::Record { fields, .. } => sum(fields),
            Self::Choice { variants, .. } => {
                let least = variants.iter().map(|variant| sum(&variant.fields)).min();
                least.unwrap_or(0).saturating_add(1)
            }
        }
    }
}

impl From<&Type> for TypeOwned {
    fn from(ty: &Type) -> Self {
        let boxed = |ty: &Type| Box::new(Self::from(ty));
        match ty {
            Type::Unit => Self::Unit,
            Type::Bool => Self::Bool,
            Type::U8 => Self::U8,
            Type::U16 => Self::U16,
            Type::U32 => Self::U32,
            Type::U64 => Self::U64,
            Type::U128 => Self::U128,
            Type::I8 => Self::I8,
            Type::I16 => Self::I16,
            Type::I32 => Self::I32,
            Type::I64 => Self::I64,
            Type::I128 => Self::I128,
            Type::Text => Self::Text,
            Type::Bytes => Self::Bytes,
            Type::Array(length) => Self::Array(*length),
            Type::Duration => Self::Duration,
            Type::Time => Self::Time,
            Type::Option(part) => Self::Option(boxed(part)),
            Type::List(item) => Self::List(boxed(item)),
            Type::Map(key, value) => Self::Map(boxed(key), boxed(value)),
            Type::Set(key) => Self::Set(boxed(key)),
            Type::Tuple(parts) => Self::Tuple(parts.iter().map(Self::from).collect()),
            Type::Record { name, fields } => {
                Self::Record { name: (*name).into(), fields: named(fields) }
            }
            Type::Choice { name, variants } => Self::Choice {
                name: (*name).into(),
                variants: variants
                    .iter()
                    .map(|variant| VariantOwned {
                        name: variant.name.into(),
                        fields: named(variant.fields),
                    })
                    .collect(),
            },
        }
    }
}

fn named(fields: &[Named]) -> Vec<NamedOwned> {
    fields
        .iter()
        .map(|field| NamedOwned { name: field.name.into(), ty: TypeOwned::from(&field.ty) })
        .collect()
}
