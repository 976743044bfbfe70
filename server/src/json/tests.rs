//! Every type both ways, against the encoding that guests use; and what errors say.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use gesmas_abi::{
    interface::{Method, MethodKind, NamedOwned, TypeOwned, VariantOwned},
    key::{Key, to_key},
    value::{Bytes, Time, Value as AbiValue, to_bytes},
};
use serde_json::{Value, json};

use super::*;

fn ty<T: AbiValue>() -> TypeOwned {
    TypeOwned::from(&T::TYPE)
}

/// The JSON is that of the value, both ways.
#[track_caller]
fn same<T: AbiValue>(value: T, json: Value) {
    let bytes = to_bytes(&value);
    assert_eq!(decode(&ty::<T>(), &bytes, Integers::Numbers).expect("it decodes"), json);
    assert_eq!(encode(&ty::<T>(), &json).expect("it encodes"), bytes);
}

/// The JSON is read as the value, though it is not what is printed.
#[track_caller]
fn read<T: AbiValue>(json: Value, value: T) {
    assert_eq!(encode(&ty::<T>(), &json).expect("it encodes"), to_bytes(&value));
}

#[track_caller]
fn refused<T: AbiValue>(json: Value) -> String {
    encode(&ty::<T>(), &json).expect_err("it is not of the type").to_string()
}

fn field(name: &str, ty: TypeOwned) -> NamedOwned {
    NamedOwned { name: name.into(), ty }
}

#[test]
fn scalars() {
    same((), json!(null));
    same(true, json!(true));
    same(200_u8, json!(200));
    same(-2_i8, json!(-2));
    same(65_535_u16, json!(65_535));
    same(i16::MIN, json!(-32_768));
    same(u32::MAX, json!(4_294_967_295_u32));
    same(i32::MIN, json!(-2_147_483_648));
    same("hé".to_owned(), json!("hé"));
    same(Duration::from_millis(1_500), json!("1500ms"));
    same(Time(1_795_773_600_000_000_000), json!("2026-11-27T10:00:00Z"));
}

#[test]
fn wide_integers_are_numbers_as_long_as_all_readers_count_exactly() {
    same(1_u64 << 53, json!(9_007_199_254_740_992_u64));
    same((1_u64 << 53) + 1, json!("9007199254740993"));
    same(u64::MAX, json!("18446744073709551615"));
    same(-(1_i64 << 53), json!(-9_007_199_254_740_992_i64));
    same(i64::MIN, json!("-9223372036854775808"));
    same(7_u128, json!(7));
    same(u128::MAX, json!("340282366920938463463374607431768211455"));
    same(i128::MIN, json!("-170141183460469231731687303715884105728"));
    read(json!("12"), 12_u64);
    read(json!(u64::MAX), u64::MAX);
    read(json!("-1"), -1_i64);
    let texts = |bytes: &[u8]| decode(&ty::<u64>(), bytes, Integers::Texts).expect("it decodes");
    assert_eq!(texts(&to_bytes(&7_u64)), json!("7"));
    let narrow = decode(&ty::<u32>(), &to_bytes(&7_u32), Integers::Texts);
    assert_eq!(narrow.expect("it decodes"), json!(7));
}

#[test]
fn byte_strings() {
    same(Bytes::from("job"), json!({ "text": "job" }));
    same(Bytes::from(&[0xff, 0, 1]), json!({ "base64": "/wAB" }));
    same(*b"abcd", json!({ "text": "abcd" }));
    read(json!("job"), Bytes::from("job"));
    read(json!({ "base64": "am9i" }), Bytes::from("job"));
    read(json!("abcd"), *b"abcd");
}

#[test]
fn options_never_lose_what_is_in_them() {
    same(None::<u16>, json!(null));
    same(Some(7_u16), json!(7));
    same(None::<Option<u16>>, json!(null));
    same(Some(None::<u16>), json!({ "some": null }));
    same(Some(Some(7_u16)), json!({ "some": 7 }));
    same(Some(()), json!({ "some": null }));
}

#[test]
fn collections() {
    same(vec![1_u16, 2], json!([1, 2]));
    same((1_u8, "a".to_owned(), vec![true]), json!([1, "a", [true]]));
    same(BTreeSet::from([-1_i8, 3]), json!([-1, 3]));
    same(BTreeMap::from([("a".to_owned(), 1_u8), ("b".to_owned(), 2)]), json!({ "a": 1, "b": 2 }));
    same(BTreeMap::from([(-1_i64, true), (20, false)]), json!({ "-1": true, "20": false }));
    same(BTreeMap::from([((1_u8, true), 5_u8)]), json!([[[1, true], 5]]));
    read(json!([3, -1]), BTreeSet::from([-1_i8, 3]));
    read(json!([["b", 2], ["a", 1]]), BTreeMap::from([("a".to_owned(), 1_u8), ("b".into(), 2)]));
}

#[test]
fn maps_and_sets_are_sorted_as_their_keys_are() {
    let texts = ["", "a", "a\0", "ab", "b", "ä"].map(str::to_owned);
    let mut reversed = texts.clone();
    reversed.reverse();
    read(json!(reversed), BTreeSet::from(texts));
    read(json!([1_000, -1_000, 0, -1]), BTreeSet::from([-1_000_i32, -1, 0, 1_000]));
    read(json!([[2, "a"], [1, "b"]]), BTreeSet::from([(1_u64, "b".to_owned()), (2, "a".into())]));
    read(json!([7, null, 3]), BTreeSet::from([None, Some(3_u16), Some(7)]));
    read(json!([[2], [], [1, 9], [1]]), BTreeSet::from([vec![], vec![1_u16], vec![1, 9], vec![2]]));
    assert!(refused::<BTreeSet<u8>>(json!([1, 1])).contains("twice"));
    let unsorted = [&[2, 0, 0, 0][..], &[2, 1]].concat();
    assert!(decode(&ty::<BTreeSet<u8>>(), &unsorted, Integers::Numbers).is_err());
}

#[test]
fn records_and_choices() {
    let point = TypeOwned::Record {
        name: "Point".into(),
        fields: vec![
            field("x", TypeOwned::I8),
            field("note", TypeOwned::Option(TypeOwned::Text.into())),
        ],
    };
    let whole = json!({ "x": -1, "note": null });
    assert_eq!(decode(&point, &[0xff, 0], Integers::Numbers), Ok(whole.clone()));
    assert_eq!(encode(&point, &whole), Ok(vec![0xff, 0]));
    assert_eq!(encode(&point, &json!({ "x": -1 })), Ok(vec![0xff, 0]));
    let error = |json| encode(&point, &json).expect_err("it is no point").to_string();
    let wanted = "must be Point, an object with x, note, not";
    assert_eq!(error(json!({})), format!("{wanted} without \"x\""));
    assert_eq!(error(json!({ "x": 1, "y": 2 })), format!("{wanted} with \"y\""));
    assert_eq!(
        error(json!({ "x": 300 })),
        ".x must be i8, a whole number from -128 to 127, not 300"
    );

    let id = TypeOwned::Record { name: "Id".into(), fields: vec![field("0", TypeOwned::U8)] };
    assert_eq!(encode(&id, &json!(7)), Ok(vec![7]));
    assert_eq!(decode(&id, &[7], Integers::Numbers), Ok(json!(7)));

    let variant = |name: &str, fields| VariantOwned { name: name.into(), fields };
    let choice = TypeOwned::Choice {
        name: "Shape".into(),
        variants: vec![
            variant("Dot", vec![]),
            variant("Circle", vec![field("0", TypeOwned::U8)]),
            variant("Box", vec![field("0", TypeOwned::U8), field("1", TypeOwned::U8)]),
            variant("Named", vec![field("name", TypeOwned::Text)]),
        ],
    };
    for (bytes, json) in [
        (vec![0], json!("Dot")),
        (vec![1, 7], json!({ "Circle": 7 })),
        (vec![2, 3, 4], json!({ "Box": [3, 4] })),
        (vec![3, 1, 0, 0, 0, b'a'], json!({ "Named": { "name": "a" } })),
    ] {
        assert_eq!(decode(&choice, &bytes, Integers::Numbers), Ok(json.clone()));
        assert_eq!(encode(&choice, &json), Ok(bytes));
    }
    let error = encode(&choice, &json!("Square")).expect_err("there is no such variant");
    assert_eq!(
        error.to_string(),
        r#"must be Shape, one of "Dot", {"Circle": …}, {"Box": …}, {"Named": …}, not "Square""#
    );
    assert!(decode(&choice, &[4], Integers::Numbers).is_err());
}

#[test]
fn what_is_not_of_the_type_is_refused_with_the_place() {
    assert_eq!(refused::<u8>(json!(256)), "must be u8, a whole number from 0 to 255, not 256");
    assert_eq!(refused::<u8>(json!(-1)), "must be u8, a whole number from 0 to 255, not -1");
    assert_eq!(refused::<i8>(json!(128)), "must be i8, a whole number from -128 to 127, not 128");
    assert_eq!(refused::<bool>(json!(1)), "must be true or false, not 1");
    assert_eq!(
        refused::<Vec<(u8, String)>>(json!([[1, "a"], [2, 3]])),
        "[1][1] must be a text, not 3"
    );
    assert!(refused::<u32>(json!(1.5)).ends_with("as texts), not 1.5"));
    assert!(refused::<u32>(json!("+1")).ends_with(r#"not "+1""#));
    assert!(refused::<u32>(json!("")).ends_with(r#"not """#));
    assert!(refused::<Duration>(json!(30)).contains(r#""30s""#));
    assert!(refused::<Time>(json!("yesterday")).contains("2026"));
    assert_eq!(
        refused::<[u8; 2]>(json!("abc")),
        r#"must be 2 bytes: a text, {"text": …} or {"base64": …}, not 3 bytes"#
    );
    assert!(refused::<Bytes>(json!({ "base64": "***" })).contains("base64"));
    assert!(refused::<BTreeMap<u8, u8>>(json!({ "x": 1 })).starts_with(".x must be u8"));
    assert!(refused::<Vec<u16>>(json!({})).contains("list<u16>, an array"));
    let long = refused::<u8>(json!("x".repeat(1_000)));
    assert!(long.len() < 200 && long.ends_with('…'));
}

#[test]
fn bytes_that_are_not_of_the_type_are_refused() {
    for (ty, bytes) in [
        (ty::<bool>(), vec![2]),
        (ty::<u32>(), vec![1, 2, 3]),
        (ty::<u8>(), vec![1, 2]),
        (ty::<String>(), vec![1, 0, 0, 0, 0xff]),
        (ty::<Vec<u16>>(), vec![0xff, 0xff, 0xff, 0xff]),
    ] {
        assert!(decode(&ty, &bytes, Integers::Numbers).is_err(), "{ty:?} {bytes:?}");
    }
}

#[test]
fn keys_of_state() {
    #[track_caller]
    fn key<K: Key>(key: K, json: Value) {
        let bytes = to_key(&key);
        assert_eq!(decode_key(&ty::<K>(), &bytes), Ok(json));
        let mut value = to_bytes(&key);
        value.push(0);
        let (mut order, mut reader) = (Vec::new(), gesmas_abi::Reader::new(&value));
        super::order::order(&ty::<K>(), &mut reader, &mut order).expect("it is of the type");
        assert_eq!(order, bytes, "the order of values is that of keys");
        assert_eq!(reader.remaining(), 1);
    }
    key(258_u16, json!(258));
    key(-1_i8, json!(-1));
    key(i64::MIN, json!("-9223372036854775808"));
    key(u128::MAX, json!("340282366920938463463374607431768211455"));
    key(true, json!(true));
    key("a\0b".to_owned(), json!("a\0b"));
    key(Bytes::from(&[0xff, 0]), json!({ "base64": "/wA=" }));
    key(*b"id", json!({ "text": "id" }));
    key(("a".to_owned(), 1_u8), json!(["a", 1]));
    key(Some(3_u32), json!(3));
    key(None::<u32>, json!(null));
    key(Duration::from_secs(1), json!("1s"));
    key(Time(0), json!("1970-01-01T00:00:00Z"));
    assert!(decode_key(&ty::<u16>(), &[1]).is_err());
    assert!(decode_key(&ty::<Vec<u16>>(), &[1]).is_err());
}

fn method() -> Method {
    Method {
        name: "put".into(),
        docs: String::new(),
        kind: MethodKind::Update,
        detached: false,
        parameters: vec![
            field("item", TypeOwned::Bytes),
            field("after", TypeOwned::Option(TypeOwned::Duration.into())),
        ],
        result: TypeOwned::List(TypeOwned::U64.into()),
        error: None,
        signature: 0,
    }
}

#[test]
fn arguments_by_place_and_by_name() {
    let expected = [to_bytes(&Bytes::from("a")), to_bytes(&Some(Duration::from_secs(1)))].concat();
    let by_place = arguments(&method(), &[json!("a"), json!("1s")]);
    assert_eq!(by_place, Ok(expected.clone()));
    let named = |json: Value| {
        named_arguments(&method(), json.as_object().expect("the test gives an object"))
    };
    assert_eq!(named(json!({ "after": "1s", "item": "a" })), Ok(expected));
    let left_out = arguments(&method(), &[json!("a")]);
    assert_eq!(left_out, arguments(&method(), &[json!("a"), json!(null)]));
    assert_eq!(named(json!({ "item": "a" })), left_out);

    let signature = "put(item: bytes, after: option<duration>) -> list<u64>";
    let text = |result: Result<_, ArgumentError>| result.expect_err("it is wrong").to_string();
    for (given, values) in [(0, vec![]), (3, vec![json!("a"), json!(null), json!(null)])] {
        let wrong = text(arguments(&method(), &values));
        assert_eq!(wrong, format!("{signature} takes 1 to 2 arguments, {given} given"));
    }
    assert_eq!(
        text(arguments(&method(), &[json!("a"), json!(5)])),
        "argument 2, `after`, must be null or a duration such as \"30s\", \"1h30m\" or \"250ms\", \
         not 5"
    );
    assert_eq!(text(named(json!({}))), format!("{signature} lacks the argument \"item\""));
    assert_eq!(
        text(named(json!({ "item": "a", "x": 1 }))),
        format!("{signature} has no parameter \"x\"")
    );
}
