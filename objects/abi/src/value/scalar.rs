//! Numbers, flags, texts, and arrays of bytes.

use alloc::{borrow::ToOwned, string::String, vec::Vec};

use super::{LENGTH, Malformed, Reader, Type, Value, Write};

macro_rules! integer {
    ($($name:ident $ty:ident),*) => {$(
        impl Value for $name {
            const TYPE: Type = Type::$ty;

            fn encode(&self, out: &mut Vec<u8>) {
                out.put(&self.to_le_bytes());
            }

            fn encoded_len(&self) -> usize {
                size_of::<Self>()
            }

            fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
                reader.array().map(Self::from_le_bytes)
            }
        }
    )*};
}

integer!(u16 U16, u32 U32, u64 U64, u128 U128, i8 I8, i16 I16, i32 I32, i64 I64, i128 I128);

impl Value for u8 {
    const TYPE: Type = Type::U8;

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    fn encoded_len(&self) -> usize {
        1
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        reader.u8()
    }

    fn encode_items(items: &[Self], out: &mut Vec<u8>) {
        out.put(items);
    }

    fn items_len(items: &[Self]) -> usize {
        items.len()
    }

    fn decode_items(count: usize, reader: &mut Reader<'_>) -> Result<Vec<Self>, Malformed> {
        reader.take(count).map(<[Self]>::to_vec)
    }
}

impl Value for bool {
    const TYPE: Type = Type::Bool;

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn encoded_len(&self) -> usize {
        1
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        reader.flag()
    }
}

impl Value for () {
    const TYPE: Type = Type::Unit;

    fn encode(&self, _: &mut Vec<u8>) {}

    fn encoded_len(&self) -> usize {
        0
    }

    fn decode(_: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(())
    }
}

impl Value for String {
    const TYPE: Type = Type::Text;

    fn encode(&self, out: &mut Vec<u8>) {
        out.put_led(self.as_bytes());
    }

    fn encoded_len(&self) -> usize {
        LENGTH + self.len()
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        reader.text().map(ToOwned::to_owned)
    }

    fn skip(reader: &mut Reader<'_>) -> Result<(), Malformed> {
        reader.led().map(drop)
    }
}

impl<const N: usize> Value for [u8; N] {
    const TYPE: Type = {
        assert!(N <= u32::MAX as usize, "an array fits into the memory of a guest");
        Type::Array(N as u32)
    };

    fn encode(&self, out: &mut Vec<u8>) {
        out.put(self);
    }

    fn encoded_len(&self) -> usize {
        N
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        reader.array()
    }
}
