//! Keys as literal bytes, and the proof by many examples that bytes sort as keys do.

use alloc::{string::String, vec::Vec};
use core::fmt::Debug;

use proptest::prelude::*;

use super::*;

#[track_caller]
fn check<K: Key + Debug>(key: K, bytes: &[u8]) {
    assert_eq!(to_key(&key), bytes);
    assert_eq!(from_key::<K>(bytes), Ok(key));
}

#[test]
fn keys_have_these_bytes() {
    check(258_u16, &[1, 2]);
    check(258_u32, &[0, 0, 1, 2]);
    check(258_u64, &[0, 0, 0, 0, 0, 0, 1, 2]);
    check(0_i8, &[0x80]);
    check(-1_i8, &[0x7f]);
    check(i8::MIN, &[0]);
    check(-2_i16, &[0x7f, 0xfe]);
    check(1_i32, &[0x80, 0, 0, 1]);
    check(-1_i64, &[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    check(true, &[1]);
    check(String::from("ab"), &[b'a', b'b', 0, 0]);
    check(String::new(), &[0, 0]);
    check(Bytes::from(b"a\x00b"), &[b'a', 0, 0xff, b'b', 0, 0]);
    check([7_u8, 0], &[7, 0]);
    check(Time(1), &[0, 0, 0, 0, 0, 0, 0, 1]);
    check(Duration::from_nanos(1), &[0, 0, 0, 0, 0, 0, 0, 1]);
    check(None::<u8>, &[0]);
    check(Some(9_u8), &[1, 9]);
    check((String::from("a"), 1_u8), &[b'a', 0, 0, 1]);
}

#[test]
fn malformed_keys_are_refused() {
    let early = Err(Malformed("it ends too early"));
    assert_eq!(from_key::<Bytes>(b"a"), early);
    assert_eq!(from_key::<Bytes>(&[b'a', 0]), early);
    assert!(from_key::<Bytes>(&[0, 1, 0, 0]).is_err());
    assert!(from_key::<Bytes>(&[0, 0, 0]).is_err());
    assert!(from_key::<String>(&[0xff, 0, 0]).is_err());
    assert!(from_key::<bool>(&[2]).is_err());
}

fn keeps_order<K: Key + Debug>(a: &K, b: &K) {
    let (bytes_a, bytes_b) = (to_key(a), to_key(b));
    assert_eq!(a.cmp(b), bytes_a.cmp(&bytes_b), "{a:?} and {b:?}");
    assert_eq!(from_key::<K>(&bytes_a).as_ref(), Ok(a));
}

/// Byte strings in which zeros, common prefixes and `FF` are frequent.
fn tricky() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(prop::sample::select(&[0_u8, 1, 0xfe, 0xff][..]), 0..5).prop_map(Bytes)
}

proptest! {
    #[test]
    fn order_of_numbers_is_kept(a: (u32, i64, i128, u8), b: (u32, i64, i128, u8)) {
        keeps_order(&a.0, &b.0);
        keeps_order(&a.1, &b.1);
        keeps_order(&a.2, &b.2);
        keeps_order(&a, &b);
    }

    #[test]
    fn order_of_byte_strings_is_kept(a in tricky(), b in tricky()) {
        keeps_order(&a, &b);
    }

    #[test]
    fn order_of_texts_is_kept(a: String, b: String) {
        keeps_order(&a, &b);
    }

    #[test]
    fn order_of_tuples_is_kept(
        a in (tricky(), any::<bool>(), tricky(), any::<Option<i8>>()),
        b in (tricky(), any::<bool>(), tricky(), any::<Option<i8>>()),
    ) {
        keeps_order(&a, &b);
    }

    #[test]
    fn any_bytes_that_decode_are_the_bytes_of_their_key(bytes: Vec<u8>) {
        if let Ok(key) = from_key::<(Bytes, Option<u8>)>(&bytes) {
            prop_assert_eq!(to_key(&key), bytes);
        }
    }
}
