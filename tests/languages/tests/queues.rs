//! The bounded queue in each language has the histories of the standard class `Queue`.
//!
//! The modules are the ones that would be shipped, on the engine and behind the validator of
//! production. Invariant: each test either compares all seeds or fails; only a language that
//! `GESMAS_LANGUAGES` leaves out is left out.

use std::sync::OnceLock;

use gesmas_abi::{
    interface::Interface,
    value::{Bytes, to_bytes},
};
use gesmas_languages::{
    Language,
    history::{Draw, Work, difference, history},
};
use gesmas_testkit::World;

/// How many histories are compared.
const SEEDS: u64 = 50;
/// Sizes of items: most fit the buffer of a response, some do not, some need another page of memory.
const SIZES: [usize; 6] = [0, 1, 10, 240, 300, 70_000];

const QUEUE: Work = Work { create, call };

fn create(draw: &mut Draw) -> Vec<u8> {
    to_bytes(&(draw.below(4) as u32))
}

fn call(draw: &mut Draw) -> (&'static str, Vec<u8>) {
    let nanoseconds = draw.one_of(&[0_u64, 1, 400_000_000, 1_000_000_000, u64::MAX]);
    let byte = b'a' + draw.below(26) as u8;
    let item = Bytes(vec![byte; draw.one_of(&SIZES)]);
    match draw.below(14) {
        0..=2 => ("produce", to_bytes(&item)),
        3 => ("try_produce", to_bytes(&item)),
        4..=5 => ("produce_for", to_bytes(&(item, nanoseconds))),
        6..=8 => ("consume", Vec::new()),
        9 => ("try_consume", Vec::new()),
        10..=11 => ("consume_for", to_bytes(&nanoseconds)),
        _ => ("length", Vec::new()),
    }
}

fn standard() -> (&'static [u8], Interface) {
    let module = gesmas_classes::find("Queue").expect("it is standard").module;
    (module, gesmas_build::interface_of(module).expect("it has an interface"))
}

/// The histories of the class in Rust.
fn expected() -> &'static [Vec<String>] {
    static EXPECTED: OnceLock<Vec<Vec<String>>> = OnceLock::new();
    EXPECTED.get_or_init(|| (0..SEEDS).map(|seed| run(standard().0, seed)).collect())
}

fn run(module: &[u8], seed: u64) -> Vec<String> {
    let class = gesmas_build::interface_of(module).expect("it has an interface").class;
    history(World::of_module(module), &class, &standard().1, QUEUE, seed)
}

/// Where the first history parts that is not the expected one.
fn parted(module: &[u8]) -> Option<String> {
    (0..SEEDS).zip(expected()).find_map(|(seed, expected)| {
        let difference = difference(expected, &run(module, seed))?;
        Some(format!("seed {seed}:\n{difference}"))
    })
}

fn check(language: Language) {
    if !language.is_wanted() {
        return;
    }
    let module = language.queue();
    assert!(module.len() < 20_000, "{} bytes", module.len());
    let interface = gesmas_build::interface_of(&module).expect("it was attached");
    assert_eq!(interface, Interface { class: "BoundedQueue".into(), ..standard().1 });
    if let Some(parted) = parted(&module) {
        panic!("the queue in {language:?} does something else than the one in Rust, {parted}");
    }
}

#[test]
fn the_queue_in_assemblyscript_has_the_histories_of_rust() {
    check(Language::AssemblyScript);
}

#[test]
fn the_queue_in_c_has_the_histories_of_rust() {
    check(Language::C);
}

#[test]
fn the_queue_in_zig_has_the_histories_of_rust() {
    check(Language::Zig);
}

/// Each mistake shows in some history, so that equal histories mean something.
#[test]
fn mistakes_of_a_queue_show() {
    let mistakes = [
        ("gesmas_push_back(", "gesmas_push_front("),
        ("gesmas_v(filled)", "gesmas_v(room)"),
        ("gesmas_v(room)", "gesmas_v_n(room, 2)"),
        ("gesmas_return_u64(gesmas_deque_length(items))", "gesmas_return_u64(0)"),
        ("if (status == GESMAS_CANCELLED)", "if (status != GESMAS_GRANTED)"),
        ("status == GESMAS_CANCELLED", "false"),
        ("gesmas_try_p(filled)", "gesmas_p(filled)"),
        (
            "uint64_t duration = gesmas_take_u64(arguments)",
            "uint64_t duration = gesmas_take_u32(arguments)",
        ),
        ("gesmas_p_for(room, duration)", "gesmas_p_for(room, duration / 2)"),
        ("gesmas_end_arguments(arguments);", "(void)arguments;"),
    ];
    if !Language::C.is_wanted() {
        return;
    }
    for (good, bad) in mistakes {
        let module = Language::C.wrong_queue(good, bad, &standard().1.encode());
        assert!(parted(&module).is_some(), "nobody notices that {good} is {bad}");
    }
}

/// The histories are about all that a queue promises.
#[test]
fn histories_reach_every_way_to_end() {
    let all = expected().concat().join("\n");
    for way in [
        "produce: Ok()",
        "try_produce: Ok(\\x00)",
        "try_produce: Ok(\\x01)",
        "produce_for: Ok(\\x00)",
        "produce_for: Ok(\\x01)",
        "consume: Ok(\\x01\\x00\\x00\\x00",
        "70004 bytes",
        "try_consume: Ok(\\x00)",
        "try_consume: Ok(\\x01",
        "consume_for: Ok(\\x00)",
        "consume_for: Ok(\\x01",
        "length: Ok(\\x03",
        "consume: Other(Failed(Cancelled(Caller)))",
        "produce_for: Other(Failed(Cancelled(Caller)))",
        "consume_for: Other(SessionOver)",
        "it ends too early",
        "bytes follow after its end",
        "ClassMismatch",
        "MethodUnknown",
        "NotARead",
        "NotAnUpdate",
        "ObjectUnknown",
        "ObjectExists",
        "InitFailed",
        "a restart",
        "produce at free",
        "consume at filled",
    ] {
        assert!(all.contains(way), "no history has {way}");
    }
}
