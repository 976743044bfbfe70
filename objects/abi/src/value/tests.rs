//! Every kind of value as literal bytes, and what decoders refuse.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    string::String,
    vec,
    vec::Vec,
};
use core::{fmt::Debug, time::Duration};

use super::*;

#[track_caller]
fn check<T: Value + PartialEq + Debug>(value: T, ty: Type, bytes: &[u8]) {
    assert_eq!(T::TYPE, ty);
    assert_eq!(to_bytes(&value), bytes);
    assert_eq!(value.encoded_len(), bytes.len(), "the length that a buffer is made for");
    assert!(bytes.len() >= T::TYPE.least());
    assert_eq!(from_bytes::<T>(bytes), Ok(value));
}

#[test]
fn numbers_are_little_endian_and_of_fixed_width() {
    check(true, Type::Bool, &[1]);
    check(200_u8, Type::U8, &[200]);
    check(258_u16, Type::U16, &[2, 1]);
    check(258_u32, Type::U32, &[2, 1, 0, 0]);
    check(258_u64, Type::U64, &[2, 1, 0, 0, 0, 0, 0, 0]);
    check(258_u128, Type::U128, &[2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    check(-2_i8, Type::I8, &[0xfe]);
    check(-2_i16, Type::I16, &[0xfe, 0xff]);
    check(-2_i32, Type::I32, &[0xfe, 0xff, 0xff, 0xff]);
    check(-2_i64, Type::I64, &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    check(-1_i128, Type::I128, &[0xff; 16]);
}

#[test]
fn texts_and_byte_strings_are_led_by_their_length() {
    check((), Type::Unit, &[]);
    check(String::from("hé"), Type::Text, &[3, 0, 0, 0, b'h', 0xc3, 0xa9]);
    check(Bytes::from(b"\x00\xff"), Type::Bytes, &[2, 0, 0, 0, 0x00, 0xff]);
    check(vec![1_u8, 2], Type::Bytes, &[2, 0, 0, 0, 1, 2]);
    check([1_u8, 2, 3], Type::Array(3), &[1, 2, 3]);
}

#[test]
fn times_are_nanoseconds() {
    let second = [0x00, 0xca, 0x9a, 0x3b, 0, 0, 0, 0];
    check(Duration::from_secs(1), Type::Duration, &second);
    check(Time(1_000_000_000), Type::Time, &second);
    assert_eq!(to_bytes(&Duration::MAX), [0xff; 8], "the longest span that fits");
    assert_eq!(Time(5) + Duration::MAX, Time(u64::MAX));
    assert_eq!(Time(5) - Duration::from_nanos(7), Time(0));
    assert_eq!(Time(9).since(Time(4)), Duration::from_nanos(5));
    assert_eq!(Time(4).since(Time(9)), Duration::ZERO);
}

#[test]
fn values_of_values_are_their_parts_in_a_row() {
    check(None::<u16>, Type::Option(&Type::U16), &[0]);
    check(Some(1_u16), Type::Option(&Type::U16), &[1, 1, 0]);
    check(vec![1_u16, 2], Type::List(&Type::U16), &[2, 0, 0, 0, 1, 0, 2, 0]);
    check((1_u8, true), Type::Tuple(&[Type::U8, Type::Bool]), &[1, 1]);
    let map = BTreeMap::from([(2_u8, 'b' as u16), (1, 'a' as u16)]);
    check(map, Type::Map(&Type::U8, &Type::U16), &[2, 0, 0, 0, 1, b'a', 0, 2, b'b', 0]);
    check(BTreeSet::from([2_u8, 1]), Type::Set(&Type::U8), &[2, 0, 0, 0, 1, 2]);
}

#[test]
fn malformed_values_are_refused() {
    let early = Err(Malformed("it ends too early"));
    let too_many = Malformed("a count is greater than the input can hold");
    let order = "are not in order";
    assert_eq!(from_bytes::<u32>(&[1, 2, 3]), Err(Malformed("it ends too early")));
    assert_eq!(from_bytes::<u8>(&[1, 2]), Err(Malformed("bytes follow after its end")));
    assert_eq!(from_bytes::<bool>(&[2]), Err(Malformed("a flag is neither 0 nor 1")));
    assert_eq!(from_bytes::<String>(&[1, 0, 0, 0, 0xff]), Err(Malformed("a text is not UTF-8")));
    assert_eq!(from_bytes::<Bytes>(&[0xff, 0xff, 0xff, 0xff, 0]), early);
    assert_eq!(from_bytes::<Vec<u64>>(&[2, 0, 0, 0, 1, 2, 3]), Err(too_many));
    assert_eq!(from_bytes::<Vec<u128>>(&[0xff, 0xff, 0xff, 0xff]), Err(too_many));
    assert_eq!(from_bytes::<BTreeMap<u8, u8>>(&[0xff, 0, 0, 0, 1]), Err(too_many));
    for twice in [[2, 0, 0, 0, 1, 1], [2, 0, 0, 0, 2, 1]] {
        let refused = from_bytes::<BTreeSet<u8>>(&twice).map_err(|Malformed(reason)| reason);
        assert!(refused.is_err_and(|reason| reason.ends_with(order)));
    }
    let refused = from_bytes::<BTreeMap<u8, ()>>(&[2, 0, 0, 0, 2, 1]);
    assert!(refused.is_err_and(|Malformed(reason)| reason.ends_with(order)));
}

/// What follows a list begins where it ends, however much of it is kept.
#[test]
fn the_first_items_of_a_list_are_kept() {
    let bytes = [1, 0, 0, 0, b'a', 0, 0, 0, 0, 2, 0, 0, 0, b'b', b'c', 7];
    for (most, kept) in [(0, 0), (2, 2), (3, 3), (9, 3)] {
        let mut reader = Reader::new(&bytes);
        let items = first_items::<String>(most, 3, &mut reader).expect("there are three");
        assert_eq!(items, ["a", "", "bc"][..kept]);
        assert!(items.capacity() <= most, "room is made for what is kept");
        assert_eq!(reader.rest(), [7]);
    }
    let early = first_items::<String>(1, 3, &mut Reader::new(&bytes[..14]));
    assert_eq!(early, Err(Malformed("it ends too early")));
}

#[test]
fn least_length_of_a_choice_is_that_of_its_smallest_variant() {
    const FIELDS: &[Named] = &[Named { name: "0", ty: Type::U64 }];
    let small = Variant { name: "Small", fields: &[] };
    let large = Variant { name: "Large", fields: FIELDS };
    const NAME: &str = "Size";
    let variants: &'static [Variant] = Vec::leak(vec![large, small]);
    assert_eq!(Type::Choice { name: NAME, variants }.least(), 1);
    let variants: &'static [Variant] = Vec::leak(vec![large]);
    assert_eq!(Type::Choice { name: NAME, variants }.least(), 9);
    assert_eq!(Type::Record { name: NAME, fields: FIELDS }.least(), 8);
}
