//! `Membership`.

use gesmas_membership::{Change, Kind, MembershipError, MembershipStub};
use gesmas_testkit::{Client, World, call, on_both_engines};

use crate::{failed, standard};

fn of(client: &Client) -> MembershipStub<Client> {
    MembershipStub::new(client.clone(), "workers")
}

fn names(world: &mut World, workers: &MembershipStub<Client>) -> Vec<String> {
    let members = world.run(call!(workers.members(String::new(), 10))).expect("a read");
    members.into_iter().map(|member| member.name).collect()
}

/// The changes that a client was told of.
fn changes(world: &mut World, client: &Client) -> Vec<Change> {
    let change = |payload| String::from_utf8(payload).expect("it is a text").parse();
    world
        .events(client)
        .into_iter()
        .map(|payload| change(payload).expect("it is a change"))
        .collect()
}

fn members_are_there_as_long_as_their_sessions(world: &mut World) {
    let (ann, bob) = (world.client(), world.client());
    let (of_ann, of_bob) = (of(&ann), of(&bob));
    let first = world.run(call!(of_ann.join("b".into(), "10.0.0.2".into()))).expect("it is new");
    let second = world.run(call!(of_bob.join("a".into(), "10.0.0.1".into()))).expect("it is new");
    assert!(second > first);
    let taken = world.run(call!(of_bob.join("b".into(), "10.0.0.1".into())));
    assert_eq!(failed(taken), MembershipError::NameTaken);
    assert_eq!(names(world, &of_ann), ["a", "b"]);
    let page = world.run(call!(of_bob.members("a".into(), 1))).expect("a read");
    assert_eq!((page[0].name.as_str(), page[0].session), ("b", ann.session()));
    world.restart();
    world.expire(&ann);
    assert_eq!(names(world, &of_bob), ["a"]);
    assert_eq!(world.run(call!(of_bob.size())), Ok(1));
    // The name is free again, and the old member's token is of no use.
    let third = world.run(call!(of_bob.join("b".into(), "".into()))).expect("it is free");
    let old = world.run(call!(of_bob.leave("b".into(), first)));
    assert_eq!(failed(old), MembershipError::NotAMember);
    world.run(call!(of_bob.leave("b".into(), third))).expect("it is a member");
    assert_eq!(names(world, &of_bob), ["a"]);
}

fn changes_are_events_of_who_wants_them(world: &mut World) {
    let (ann, bob) = (world.client(), world.client());
    let (of_ann, of_bob) = (of(&ann), of(&bob));
    let before = world.run(call!(of_bob.subscribe())).expect("there is room");
    assert_eq!(world.run(call!(of_bob.subscribe())), Ok(before));
    let token = world.run(call!(of_ann.join("host 3".into(), "x".into()))).expect("it is new");
    let update = call!(of_ann.update("host 3".into(), token, "y".into()));
    let version = world.run(update).expect("it is a member");
    let member = world.run(call!(of_bob.member("host 3".into()))).expect("a read");
    assert_eq!(member.expect("it is there").metadata, "y".into());
    world.expire(&ann);
    let told = changes(world, &bob);
    let change = |kind, version| Change { version, kind, name: "host 3".into() };
    let last = world.run(call!(of_bob.version())).expect("a read");
    let expected =
        [change(Kind::Joined, token), change(Kind::Updated, version), change(Kind::Left, last)];
    assert_eq!(told, expected);
    assert_eq!(world.run(call!(of_bob.unsubscribe())), Ok(true));
    assert_eq!(world.run(call!(of_bob.unsubscribe())), Ok(false));
    world.run(call!(of_bob.join("b".into(), "".into()))).expect("it is new");
    assert_eq!(changes(world, &bob), []);
}

fn a_dead_subscriber_is_forgotten(world: &mut World) {
    let (ann, bob) = (world.client(), world.client());
    let (of_ann, of_bob) = (of(&ann), of(&bob));
    world.run(call!(of_ann.subscribe())).expect("there is room");
    world.expire(&ann);
    world.run(call!(of_bob.join("b".into(), "".into()))).expect("it is new");
    assert_eq!(world.object("workers").expect("it is there").timers.len(), 1, "of the member");
}

/// As many as there may be, each told of a change within the fuel of one call.
fn a_thousand_subscribers_are_told(world: &mut World) {
    let clients: Vec<_> = (0..1_000).map(|_| world.client()).collect();
    for client in &clients {
        let stub = of(client);
        world.run(call!(stub.subscribe())).expect("there is room");
    }
    let late = of(&world.client());
    let refused = world.run(call!(late.subscribe()));
    assert_eq!(failed(refused), MembershipError::TooManySubscribers);
    world.run(call!(late.join("a".into(), "".into()))).expect("it is new");
    for client in &clients {
        assert_eq!(changes(world, client).len(), 1);
    }
    world.expire(&clients[0]);
    world.run(call!(late.subscribe())).expect("there is room again");
}

fn who_waits_for_a_change_is_told_of_it(world: &mut World) {
    let [ann, bob] = [world.client(), world.client()].map(|client| of(&client));
    let waits = [world.start(call!(bob.await_change(0))), world.start(call!(bob.await_change(0)))];
    let given = world.start(call!(bob.await_change(0)));
    assert_eq!(world.blocked(), ["await_change at news"; 3]);
    world.cancel(&given);
    assert!(given.result().is_err());
    let token = world.run(call!(ann.join("a".into(), "".into()))).expect("it is new");
    waits.iter().for_each(|wait| assert_eq!(wait.result(), Ok(token)));
    assert_eq!(world.run(call!(bob.await_change(0))), Ok(token));
    let next = world.start(call!(bob.await_change(token)));
    let later = world.start(call!(bob.await_change(token + 1)));
    world.run(call!(ann.leave("a".into(), token))).expect("it is a member");
    assert_eq!(next.result(), Ok(token + 1));
    assert_eq!(world.blocked(), ["await_change at news"]);
    world.cancel(&later);
}

on_both_engines!(
    standard("Membership");
    members_are_there_as_long_as_their_sessions,
    changes_are_events_of_who_wants_them,
    a_dead_subscriber_is_forgotten,
    a_thousand_subscribers_are_told,
    who_waits_for_a_change_is_told_of_it,
);
