//! Values made of values.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};

use super::{LENGTH, Malformed, Reader, Type, Value, Write};

/// Least bytes of an item. A collection of items without bytes does not compile, since then the
/// length of an input would not bound the count.
const fn least<T: Value>() -> usize {
    let least = T::TYPE.least();
    assert!(least > 0, "items of a collection take at least one byte each");
    least
}

impl<T: Value> Value for Vec<T> {
    /// A list of bytes is a byte string, which has the same encoding.
    const TYPE: Type = match T::TYPE {
        Type::U8 => Type::Bytes,
        _ => Type::List(&T::TYPE),
    };

    fn encode(&self, out: &mut Vec<u8>) {
        out.put_count(self.len());
        T::encode_items(self, out);
    }

    fn encoded_len(&self) -> usize {
        LENGTH + T::items_len(self)
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let count = reader.count(const { least::<T>() })?;
        T::decode_items(count, reader)
    }
}

impl<T: Value> Value for Option<T> {
    const TYPE: Type = Type::Option(&T::TYPE);

    fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(u8::from(self.is_some()));
        self.iter().for_each(|value| value.encode(out));
    }

    fn encoded_len(&self) -> usize {
        1 + self.as_ref().map_or(0, T::encoded_len)
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        if reader.flag()? { T::decode(reader).map(Some) } else { Ok(None) }
    }
}

impl<K: Value + Ord, V: Value> Value for BTreeMap<K, V> {
    const TYPE: Type = Type::Map(&K::TYPE, &V::TYPE);

    fn encode(&self, out: &mut Vec<u8>) {
        out.put_count(self.len());
        for (key, value) in self {
            key.encode(out);
            value.encode(out);
        }
    }

    fn encoded_len(&self) -> usize {
        let entries = self.iter().map(|(key, value)| key.encoded_len() + value.encoded_len());
        LENGTH + entries.sum::<usize>()
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let count = reader.count(const { least::<K>() })?;
        let mut map = Self::new();
        for _ in 0..count {
            let (key, value) = (K::decode(reader)?, V::decode(reader)?);
            if map.last_key_value().is_some_and(|(last, _)| *last >= key) {
                return Err(Malformed("the keys of a map are not in order"));
            }
            map.insert(key, value);
        }
        Ok(map)
    }
}

impl<K: Value + Ord> Value for BTreeSet<K> {
    const TYPE: Type = Type::Set(&K::TYPE);

    fn encode(&self, out: &mut Vec<u8>) {
        out.put_count(self.len());
        self.iter().for_each(|key| key.encode(out));
    }

    fn encoded_len(&self) -> usize {
        LENGTH + self.iter().map(K::encoded_len).sum::<usize>()
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let count = reader.count(const { least::<K>() })?;
        let mut set = Self::new();
        for _ in 0..count {
            let key = K::decode(reader)?;
            if set.last().is_some_and(|last| *last >= key) {
                return Err(Malformed("the keys of a set are not in order"));
            }
            set.insert(key);
        }
        Ok(set)
    }
}

macro_rules! tuple {
    ($($name:ident $index:tt),*) => {
        impl<$($name: Value),*> Value for ($($name,)*) {
            const TYPE: Type = Type::Tuple(&[$($name::TYPE),*]);

            fn encode(&self, out: &mut Vec<u8>) {
                $(self.$index.encode(out);)*
            }

            fn encoded_len(&self) -> usize {
                0 $(+ self.$index.encoded_len())*
            }

            fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
                Ok(($($name::decode(reader)?,)*))
            }
        }
    };
}

tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, E 4);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11);
