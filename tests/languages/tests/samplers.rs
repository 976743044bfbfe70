//! The class `Sampler` in each language has the histories of the one in Rust: all that the libraries
//! have does what it does in the SDK.
//!
//! The class in Rust runs natively; that native classes do what their modules do is proved elsewhere.
//! Not here: messages of panics, which end with places in the sources. They are looked at by
//! themselves.

use gesmas_abi::{
    interface::Interface,
    value::{Bytes, to_bytes},
};
use gesmas_languages::{
    Language, Sampler,
    history::{Draw, Work, difference, history},
};
use gesmas_sdk::stub::{Invoke, StubCall};
use gesmas_testkit::{Class, World};

/// How many histories are compared.
const SEEDS: u64 = 50;

const SAMPLER: Work = Work { create: |_| Vec::new(), call };

fn call(draw: &mut Draw) -> (&'static str, Vec<u8>) {
    if draw.below(2) == 0 { store(draw) } else { wait(draw) }
}

/// Calls about the store and the context.
fn store(draw: &mut Draw) -> (&'static str, Vec<u8>) {
    let number = draw.one_of(&[0, 1, 258, u64::MAX]);
    let name = draw.one_of(&["", "a", "a\0", "a\0b", "ab", "hé", "日本", "𝄞"]).to_owned();
    let depth = draw.one_of(&[0, 1, -1, 256, i64::MIN, i64::MAX]);
    match draw.below(12) {
        0..=1 => ("write", to_bytes(&number)),
        2 => ("forget", Vec::new()),
        3 => ("shelve", to_bytes(&(name, Bytes(vec![7; draw.place(300)])))),
        4 => ("unshelve", to_bytes(&name)),
        5 => ("browse", to_bytes(&name)),
        // A text that is not UTF-8: too long, a surrogate, too great, cut short, no lead.
        6 => {
            let wrong: [&[u8]; 6] =
                [b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"a\xe2\x82", b"\x80", b"\xff"];
            ("browse", to_bytes(&Bytes::from(draw.one_of(&wrong))))
        }
        7 => ("mark", to_bytes(&(depth, number as u16))),
        // One flag in three is none.
        8 => ("join", to_bytes(&(number, draw.below(3) as u8))),
        9 => ("part", to_bytes(&(draw.below(4), draw.below(2) == 0))),
        10 => ("facts", Vec::new()),
        _ => ("look", Vec::new()),
    }
}

/// Calls that wait, that let others go on, and that end early.
fn wait(draw: &mut Draw) -> (&'static str, Vec<u8>) {
    let door = draw.below(3) as u32;
    let number = draw.below(12);
    let nanoseconds = draw.one_of(&[0_u64, 1, 400_000_000, 1_000_000_000]);
    match draw.below(18) {
        0 => ("pass", to_bytes(&door)),
        1 => ("hurry", to_bytes(&(door, nanoseconds))),
        2..=4 => ("open", to_bytes(&(door, draw.below(3)))),
        5 => ("own", to_bytes(&door)),
        6..=7 => ("keep", to_bytes(&nanoseconds)),
        8 => ("give", to_bytes(&number)),
        9 => ("census", to_bytes(&door)),
        10..=11 => ("later", to_bytes(&(nanoseconds, number))),
        12 => ("mourn", to_bytes(&number)),
        13 => ("unset", to_bytes(&number)),
        14 => ("tell", to_bytes(&(number, Bytes::from("news")))),
        15 => ("fail", to_bytes(&number)),
        16 => ("abort", to_bytes(&(door, number))),
        _ => ("rounds", to_bytes(&(door, draw.below(3)))),
    }
}

fn interface() -> Interface {
    Interface::decode(Sampler::native().interface).expect("the macro writes it")
}

fn expected(seed: u64) -> Vec<String> {
    let world = World::native(&Class::new(Sampler::native(), &[]));
    history(world, "Sampler", &interface(), SAMPLER, seed)
}

fn check(language: Language) {
    if !language.is_wanted() {
        return;
    }
    let module = language.specimen("sampler", Sampler::native().interface);
    for seed in 0..SEEDS {
        let world = World::of_module(&module);
        let history = history(world, "Sampler", &interface(), SAMPLER, seed);
        if let Some(parted) = difference(&expected(seed), &history) {
            panic!("the sampler in {language:?} is another one, seed {seed}:\n{parted}");
        }
    }
    panics_with_its_message(&module);
}

/// A panic tells its message, and undoes what its segment wrote.
fn panics_with_its_message(module: &[u8]) {
    let mut world = World::of_module(module);
    let client = world.client();
    let interface = interface();
    let mut run = |method: &'static str, arguments: Vec<u8>| {
        let signature = interface.method(method).expect("it is one of the sampler").signature;
        let (class, object, mode) = ("Sampler", "one".into(), gesmas_sdk::stub::CallMode::Update);
        let call = StubCall { class, object, method, signature, arguments, mode };
        let client = client.clone();
        world.run(async move { client.invoke(call).await })
    };
    run("write", to_bytes(&5_u64)).expect("it does not fail");
    let ended = format!("{:?}", run("fall", Vec::new()));
    assert!(ended.contains("Trapped(Panicked(\"it falls"), "{ended}");
    assert_eq!(run("forget", Vec::new()), Ok(to_bytes(&Some(5_u64))));
}

#[test]
fn the_sampler_in_assemblyscript_has_the_histories_of_rust() {
    check(Language::AssemblyScript);
}

#[test]
fn the_sampler_in_c_has_the_histories_of_rust() {
    check(Language::C);
}

#[test]
fn the_sampler_in_zig_has_the_histories_of_rust() {
    check(Language::Zig);
}

/// The histories are about all that the libraries have.
#[test]
fn histories_reach_all_of_the_library() {
    let all = (0..SEEDS).map(expected).collect::<Vec<_>>().concat().join("\n");
    for method in interface().methods.iter().map(|method| method.name.as_str()) {
        let called = all.contains(&format!(": {method}: Ok("));
        assert!(
            called || ["ring", "fail", "abort", "fall"].contains(&method),
            "nobody calls {method}"
        );
    }
    for way in [
        "fail: Failed([0, ",
        "abort: Aborted([0, ",
        "abort: Failed([1])",
        "keep: Failed([1])",
        "a text is not UTF-8",
        "a flag is neither 0 nor 1",
        "events\", [[110, 101, 119, 115]",
        "rung",
        "owners: [Owner",
    ] {
        assert!(all.contains(way), "no history has {way}");
    }
}
