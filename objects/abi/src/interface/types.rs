//! Types of values as constants.
//!
//! A type is a tree of references to constants, so that `T::TYPE` of a generic container can refer
//! to that of its part. A type that contains itself has no such constant and does not compile.

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// No bytes.
    Unit,
    /// One byte, 0 or 1.
    Bool,
    /// One byte.
    U8,
    /// Two bytes.
    U16,
    /// Four bytes.
    U32,
    /// Eight bytes.
    U64,
    /// Sixteen bytes.
    U128,
    /// One byte, two's complement.
    I8,
    /// Two bytes, two's complement.
    I16,
    /// Four bytes, two's complement.
    I32,
    /// Eight bytes, two's complement.
    I64,
    /// Sixteen bytes, two's complement.
    I128,
    /// UTF-8 led by its length in bytes.
    Text,
    /// Bytes led by their length.
    Bytes,
    /// That many bytes.
    Array(u32),
    /// Nanoseconds, eight bytes.
    Duration,
    /// Nanoseconds since the Unix epoch, eight bytes.
    Time,
    /// A byte 0, or a byte 1 and the value.
    Option(&'static Self),
    /// A count and the items.
    List(&'static Self),
    /// A count and that many keys and values, in the order of the keys, each key once.
    Map(&'static Self, &'static Self),
    /// A count and the keys, in their order, each once.
    Set(&'static Self),
    /// The parts, one after the other.
    Tuple(&'static [Self]),
    /// The fields, one after the other.
    Record {
        /// Name of the type.
        name: &'static str,
        /// Its fields.
        fields: &'static [Named],
    },
    /// One byte, the index of the variant, and the fields of the variant.
    Choice {
        /// Name of the type.
        name: &'static str,
        /// Its variants.
        variants: &'static [Variant],
    },
}

/// A name and a type: a field or a parameter.
///
/// Fields without names (of `struct Pair(u8, u8)`) are called `0`, `1` and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// The name.
    pub name: &'static str,
    /// The type.
    pub ty: Type,
}

/// A variant of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The name.
    pub name: &'static str,
    /// Its fields.
    pub fields: &'static [Named],
}

impl Type {
    /// The least number of bytes that a value of this type takes.
    #[must_use]
    pub const fn least(&self) -> usize {
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
                let mut sum = 0;
                let mut index = 0;
                while index < parts.len() {
                    sum += parts[index].least();
                    index += 1;
                }
                sum
            }
            Self::Record { fields, .. } => least_of(fields),
            Self::Choice { variants, .. } => {
                let mut least = usize::MAX - 1;
                let mut index = 0;
                while index < variants.len() {
                    let fields = least_of(variants[index].fields);
                    least = if fields < least { fields } else { least };
                    index += 1;
                }
                least + 1
            }
        }
    }
}

const fn least_of(fields: &[Named]) -> usize {
    let mut sum = 0;
    let mut index = 0;
    while index < fields.len() {
        sum += fields[index].ty.least();
        index += 1;
    }
    sum
}
