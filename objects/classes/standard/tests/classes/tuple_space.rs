//! `TupleSpace`.

use gesmas_sdk::stub::StubError;
use gesmas_testkit::{Client, Ended, World, call, on_both_engines};
use gesmas_tuple_space::{Field, Place, Template, Tuple, TupleSpaceError, TupleSpaceStub, Tuples};

use crate::{failed, seconds, standard};

fn begin(world: &mut World) -> TupleSpaceStub<Client> {
    TupleSpaceStub::new(world.client(), "jobs")
}

fn tuple(name: &str, number: i64) -> Tuple {
    vec![Field::text(name), Field::Number(number)]
}

/// Tuples that begin so.
fn named(name: &str) -> Template {
    vec![Place::Exactly(Field::text(name)), Place::Any]
}

fn any() -> Template {
    vec![Place::Any; 2]
}

/// What a page of these tuples is that is the last one.
fn all(tuples: Vec<Tuple>) -> Result<Tuples, StubError<TupleSpaceError, Ended>> {
    Ok(Tuples { tuples, next: None })
}

fn out(world: &mut World, space: &TupleSpaceStub<Client>, name: &'static str, number: i64) -> u64 {
    world.run(call!(space.out(tuple(name, number), None))).expect("it is short")
}

fn what_matches_is_found(world: &mut World) {
    let space = begin(world);
    assert_eq!(world.run(call!(space.rdp(any()))), Ok(None));
    for (name, number) in [("b", 2), ("a", 1), ("b", 1), ("b", 2)] {
        out(world, &space, name, number);
    }
    assert_eq!(world.run(call!(space.rdp(named("b")))), Ok(Some(tuple("b", 1))));
    assert_eq!(world.run(call!(space.rd(named("b")))), Ok(tuple("b", 1)));
    let second = vec![Place::Any, Place::Exactly(Field::Number(2))];
    assert_eq!(world.run(call!(space.rd_all(second, "".into(), 10))), all(vec![tuple("b", 2); 2]));
    let page = world.run(call!(space.rd_all(any(), "".into(), 3))).expect("a read");
    assert_eq!(page.tuples, [tuple("a", 1), tuple("b", 1), tuple("b", 2)]);
    let after = page.next.expect("another follows");
    assert_eq!(world.run(call!(space.rd_all(any(), after, 3))), all(vec![tuple("b", 2)]));
    let nowhere = world.run(call!(space.rd_all(any(), "elsewhere".into(), 3)));
    assert_eq!(failed(nowhere), TupleSpaceError::NoSuchPlace);
    assert_eq!(world.run(call!(space.rdp(vec![Place::Any]))), Ok(None));
    for expected in [Some(tuple("b", 1)), Some(tuple("b", 2)), Some(tuple("b", 2)), None] {
        assert_eq!(world.run(call!(space.inp(named("b")))), Ok(expected));
    }
    assert_eq!(world.run(call!(space.r#in(any()))), Ok(tuple("a", 1)));
    assert!(world.object("jobs").is_none(), "an empty space takes no room");
}

fn a_tuple_goes_to_who_waited_for_it(world: &mut World) {
    let space = begin(world);
    let copies = world.start(call!(space.rd(named("a"))));
    let takes = world.start(call!(space.r#in(any())));
    let late = world.start(call!(space.rd_for(any(), seconds(1))));
    let other = world.start(call!(space.in_for(named("b"), seconds(5))));
    assert_eq!(world.run(call!(space.waiting())), Ok(4));
    assert_eq!(
        world.blocked(),
        ["rd at gates", "in at gates", "rd_for at gates", "in_for at gates"]
    );
    world.restart();
    out(world, &space, "a", 7);
    assert_eq!(copies.result(), Ok(tuple("a", 7)));
    assert_eq!(takes.result(), Ok(tuple("a", 7)));
    assert!(late.is_open(), "the tuple was taken before it");
    world.advance(seconds(1));
    assert_eq!(late.result(), Ok(None));
    out(world, &space, "b", 8);
    assert_eq!(other.result(), Ok(Some(tuple("b", 8))));
    let empty = world.start(call!(space.rd(vec![])));
    world.run(call!(space.out(vec![], None))).expect("it is short");
    assert_eq!(empty.result(), Ok(vec![]));
}

fn nobody_is_woken_in_vain(world: &mut World) {
    let space = begin(world);
    let first = world.start(call!(space.r#in(any())));
    let second = world.start(call!(space.r#in(named("a"))));
    let before = world.resumptions();
    out(world, &space, "a", 1);
    assert_eq!(world.resumptions(), before + 1);
    assert_eq!(first.result(), Ok(tuple("a", 1)));
    out(world, &space, "b", 1);
    assert_eq!(world.resumptions(), before + 1);
    assert!(second.is_open());
}

fn who_gives_up_or_dies_takes_nothing(world: &mut World) {
    let ann = world.client();
    let (of_ann, space) = (TupleSpaceStub::new(ann.clone(), "jobs"), begin(world));
    let dies = world.start(call!(of_ann.r#in(any())));
    let given = world.start(call!(space.r#in(any())));
    let short = world.start(call!(space.in_for(any(), seconds(1))));
    let lives = world.start(call!(space.r#in(any())));
    world.expire(&ann);
    assert!(!dies.is_open());
    world.cancel(&given);
    assert_eq!(failed(given.result()), TupleSpaceError::Cancelled);
    world.advance(seconds(1));
    assert_eq!(short.result(), Ok(None));
    out(world, &space, "a", 1);
    assert_eq!(lives.result(), Ok(tuple("a", 1)));
    assert!(world.object("jobs").is_none(), "an empty space takes no room");
}

fn one_of_many_puts_what_is_not_there(world: &mut World) {
    let space = begin(world);
    assert_eq!(world.run(call!(space.cas(named("a"), tuple("a", 1), None))), Ok(true));
    assert_eq!(world.run(call!(space.cas(named("a"), tuple("a", 2), None))), Ok(false));
    let old = world.run(call!(space.replace(named("a"), tuple("a", 3))));
    assert_eq!(old, Ok(Some(tuple("a", 1))));
    assert_eq!(world.run(call!(space.replace(named("b"), tuple("b", 3)))), Ok(None));
    assert_eq!(world.run(call!(space.rd_all(any(), "".into(), 10))), all(vec![tuple("a", 3)]));
    let long = world.run(call!(space.replace(named("a"), vec![Field::Flag(true); 256])));
    assert_eq!(failed(long), TupleSpaceError::TooLong);
    assert_eq!(world.run(call!(space.length())), Ok(1));
}

/// However many places fit into an argument, the limit is named.
fn a_tuple_is_as_long_as_it_may_be(world: &mut World) {
    let space = begin(world);
    let full = || vec![Field::Flag(true); 255];
    world.run(call!(space.out(full(), None))).expect("it has 255 places");
    assert_eq!(world.run(call!(space.rdp(vec![Place::Any; 255]))), Ok(Some(full())));
    for length in [256, 257, 500_000] {
        let (flags, anything) = (vec![Field::Flag(true); length], vec![Place::Any; 2 * length]);
        let flag = vec![Place::Exactly(Field::Flag(true)); length / 2 + 128];
        let (fresh, other) = (flags.clone(), flags.clone());
        assert_eq!(failed(world.run(call!(space.out(flags, None)))), TupleSpaceError::TooLong);
        assert_eq!(failed(world.run(call!(space.rdp(anything)))), TupleSpaceError::TooLong);
        assert_eq!(failed(world.run(call!(space.r#in(flag)))), TupleSpaceError::TooLong);
        let swapped = world.run(call!(space.replace(named("a"), fresh)));
        assert_eq!(failed(swapped), TupleSpaceError::TooLong);
        let put = world.run(call!(space.cas(named("a"), other, None)));
        assert_eq!(failed(put), TupleSpaceError::TooLong);
    }
    assert_eq!(world.run(call!(space.length())), Ok(1));
}

fn leased_tuples_vanish(world: &mut World) {
    let space = begin(world);
    let id = world.run(call!(space.out(tuple("a", 1), Some(seconds(5))))).expect("it is short");
    let kept = out(world, &space, "b", 1);
    world.advance(seconds(4));
    assert_eq!(world.run(call!(space.renew(id, seconds(5)))), Ok(true));
    assert_eq!(world.run(call!(space.renew(kept, seconds(5)))), Ok(false));
    world.advance(seconds(4));
    assert_eq!(world.run(call!(space.rdp(named("a")))), Ok(Some(tuple("a", 1))));
    world.advance(seconds(1));
    assert_eq!(world.run(call!(space.rdp(named("a")))), Ok(None));
    assert_eq!(world.run(call!(space.renew(id, seconds(5)))), Ok(false));
    // One that is taken has no lease left behind.
    world.run(call!(space.out(tuple("c", 1), Some(seconds(5))))).expect("it is short");
    assert_eq!(world.run(call!(space.inp(named("c")))), Ok(Some(tuple("c", 1))));
    assert_eq!(world.object("jobs").expect("it is there").timers.len(), 0);
}

/// However calls interleave, each tuple is taken once, and nobody waits for one that is there.
fn each_tuple_is_taken_once(world: &mut World) {
    let clients = [(); 4].map(|()| begin(world));
    for seed in 0..20 {
        world.shuffle(seed);
        let mut tasks = Vec::new();
        for (index, space) in clients.iter().cloned().enumerate() {
            tasks.push(world.spawn(async move {
                let mut taken = Vec::new();
                for round in 0..4 {
                    let number = (index * 10 + round) as i64;
                    if index < 2 {
                        let name = if round % 2 == 0 { "a" } else { "b" };
                        space.out(tuple(name, number), None).await.expect("it is short");
                    } else {
                        let template = if index == 2 { named("a") } else { named("b") };
                        taken.push(space.r#in(template).await.expect("nobody gives up"));
                    }
                }
                taken
            }));
        }
        world.settle();
        let taken: Vec<_> = tasks.iter().flat_map(|task| task.result()).collect();
        let mut numbers: Vec<_> = taken.iter().map(|tuple| tuple[1].clone()).collect();
        numbers.sort_by_key(|number| match number {
            Field::Number(number) => *number,
            other => panic!("{other:?} is no number"),
        });
        let expected = [0, 1, 2, 3, 10, 11, 12, 13].map(Field::Number);
        assert_eq!(numbers, expected, "seed {seed}");
        assert!(world.object("jobs").is_none(), "an empty space takes no room");
    }
}

/// More calls wait for a tuple than one step wakes: they get it step by step, nothing is taken twice, and in
/// the end nobody waits for a tuple that is there, whatever is put and taken in between.
fn a_crowd_is_told_in_portions(world: &mut World) {
    for (round, takers) in [[5, 1_191], [400, 1_000], [601, 603], [601, 604]].iter().enumerate() {
        let space = TupleSpaceStub::new(world.client(), format!("crowd{round}"));
        let templates = [named("a"), any(), named("b")];
        let mut calls = Vec::new();
        for call in 0..1_200_usize {
            let template = templates[call % (2 + round % 2)].clone();
            let (asked, takes) = (template.clone(), takers.contains(&call));
            let call = if takes {
                world.start(call!(space.r#in(asked)))
            } else {
                world.start(call!(space.rd(asked)))
            };
            calls.push((template, takes, call));
        }
        let before = world.resumptions();
        out(world, &space, "a", 3);
        let woken = world.resumptions() - before;
        assert!(woken <= 500, "{woken} calls went on in one step");
        out(world, &space, "b", 2);
        out(world, &space, "a", 1);
        let mut taken = Vec::new();
        if round > 0 {
            taken.extend(world.run(call!(space.inp(named("a")))).expect("it is short"));
        }
        world.advance(seconds(1));
        let left = world.run(call!(space.rd_all(any(), "".into(), 10))).expect("a page").tuples;
        let fits = |template: &Template, tuple: &Tuple| match &template[0] {
            Place::Any => true,
            Place::Exactly(name) => *name == tuple[0],
        };
        for (template, takes, call) in &calls {
            if call.is_open() {
                let waits = !left.iter().any(|tuple| fits(template, tuple));
                assert!(waits, "a call waits for {template:?}, and there are {left:?}");
            } else if *takes {
                taken.push(call.result().expect("nobody gives up"));
            }
        }
        taken.extend(left);
        taken.sort_by_key(|tuple| format!("{tuple:?}"));
        assert_eq!(taken, [tuple("a", 1), tuple("a", 3), tuple("b", 2)], "round {round}");
        assert!(calls.iter().filter(|(_, _, call)| !call.is_open()).count() > 300);
    }
}

on_both_engines!(
    standard("TupleSpace");
    what_matches_is_found,
    a_tuple_goes_to_who_waited_for_it,
    nobody_is_woken_in_vain,
    who_gives_up_or_dies_takes_nothing,
    one_of_many_puts_what_is_not_there,
    leased_tuples_vanish,
    each_tuple_is_taken_once,
    a_tuple_is_as_long_as_it_may_be,
    a_crowd_is_told_in_portions,
);
