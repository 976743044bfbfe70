//! `Membership`.

use gesmas_membership::{Change, Kind, MembershipError, MembershipStub};
use gesmas_sdk::abi::value::Bytes;
use gesmas_testkit::{Client, World, call, on_both_engines};

use crate::{failed, seconds, standard};

fn of(client: &Client) -> MembershipStub<Client> {
    MembershipStub::new(client.clone(), "workers")
}

fn names(world: &mut World, workers: &MembershipStub<Client>) -> Vec<String> {
    let members = world.run(call!(workers.members(String::new(), 10))).expect("a read");
    members.members.into_iter().map(|member| member.name).collect()
}

/// The changes that a client was told of.
fn changes(world: &mut World, client: &Client) -> Vec<Change> {
    let text = |payload| String::from_utf8(payload).expect("it is a text");
    let changes = |text: String| Change::all(&text).expect("it has changes");
    world.events(client).into_iter().map(text).flat_map(changes).collect()
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
    let page = world.run(call!(of_bob.members("a".into(), 1))).expect("a read").members;
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

fn a_session_that_joins_again_stays(world: &mut World) {
    let (ann, bob) = (world.client(), world.client());
    let (of_ann, of_bob) = (of(&ann), of(&bob));
    world.run(call!(of_bob.subscribe())).expect("there is room");
    let token = world.run(call!(of_ann.join("a".into(), "x".into()))).expect("it is new");
    assert_eq!(world.run(call!(of_ann.join("a".into(), "x".into()))), Ok(token));
    assert_eq!(
        world.run(call!(of_ann.join_for("a".into(), "y".into(), seconds(1)))),
        Ok(Some(token))
    );
    let member = world.run(call!(of_bob.member("a".into()))).expect("a read").expect("it is there");
    assert_eq!((member.token, member.metadata), (token, "y".into()));
    let kinds: Vec<_> = changes(world, &bob).into_iter().map(|change| change.kind).collect();
    assert_eq!(kinds, [Kind::Joined, Kind::Updated]);
    assert_eq!(world.run(call!(of_bob.size())), Ok(1));
    world.run(call!(of_ann.leave("a".into(), token))).expect("it is a member");
    assert_eq!(world.object("workers").expect("it is there").timers.len(), 1, "of the subscriber");
}

/// A program that was started again waits until the session that it had before is over.
fn a_join_waits_for_the_end_of_another_session(world: &mut World) {
    let (old, new, other) = (world.client(), world.client(), world.client());
    let (of_old, of_new, of_other) = (of(&old), of(&new), of(&other));
    let first = world.run(call!(of_old.join("a".into(), "old".into()))).expect("it is new");
    let short = world.start(call!(of_new.join_for("a".into(), "new".into(), seconds(1))));
    world.advance(seconds(1));
    assert_eq!(short.result(), Ok(None));
    let waits = world.start(call!(of_new.join_for("a".into(), "new".into(), seconds(60))));
    let again = world.start(call!(of_new.join_for("a".into(), "newer".into(), seconds(60))));
    let rival = world.start(call!(of_other.join_for("a".into(), "rival".into(), seconds(60))));
    let given = world.start(call!(of_other.join_for("a".into(), "given".into(), seconds(60))));
    assert_eq!(world.blocked(), ["join_for at free"; 4]);
    world.cancel(&given);
    assert_eq!(failed(given.result()), MembershipError::Cancelled);
    world.restart();
    world.expire(&old);
    let token = waits.result().expect("a call").expect("the old session is over");
    assert!(token > first);
    // The retry of the same session is the same member.
    assert_eq!(again.result(), Ok(Some(token)));
    assert_eq!(world.blocked(), ["join_for at free"]);
    let member = world.run(call!(of_new.member("a".into()))).expect("a read").expect("it is there");
    assert_eq!((member.token, member.metadata), (token, "newer".into()));
    world.run(call!(of_new.leave("a".into(), token))).expect("it is a member");
    assert!(rival.result().expect("a call").is_some());
}

fn only_the_member_s_session_changes_it(world: &mut World) {
    let [ann, bob] = [(); 2].map(|()| of(&world.client()));
    world.run(call!(ann.join("a".into(), "".into()))).expect("it is new");
    let seen =
        world.run(call!(bob.member("a".into()))).expect("a read").expect("it is there").token;
    let update = world.run(call!(bob.update("a".into(), seen, "b".into())));
    assert_eq!(failed(update), MembershipError::NotHolder);
    assert_eq!(failed(world.run(call!(bob.leave("a".into(), seen)))), MembershipError::NotHolder);
    world.run(call!(ann.leave("a".into(), seen))).expect("it is a member");
}

fn names_and_metadata_are_bounded(world: &mut World) {
    let ann = of(&world.client());
    let name = || "n".repeat(255);
    let metadata = |bytes| Bytes(vec![7; bytes]);
    let most = 64 << 10;
    let token = world.run(call!(ann.join(name(), metadata(most)))).expect("it is new");
    assert_eq!(names(world, &ann), [name()]);
    for bad in [String::new(), "n".repeat(256), "a\nb".into()] {
        let refused = failed(world.run(call!(ann.join(bad, "".into()))));
        assert_eq!(refused, MembershipError::BadName { limit: 255 });
    }
    let refused = [
        failed(world.run(call!(ann.join("b".into(), metadata(most + 1))))),
        failed(world.run(call!(ann.update(name(), token, metadata(most + 1))))),
    ];
    for one in refused {
        assert_eq!(one, MembershipError::MetadataTooLong { limit: most as u64 });
    }
}

/// Pages have as much as a reply can carry, and say where they go on.
fn pages_say_where_they_go_on(world: &mut World) {
    let ann = of(&world.client());
    for number in 0..40 {
        let name = format!("{number:02}");
        world.run(call!(ann.join(name, vec![7; 64 << 10].into()))).expect("it is new");
    }
    let (mut after, mut listed, mut pages) = (Some(String::new()), Vec::new(), 0);
    while let Some(from) = after {
        let page = world.run(call!(ann.members(from, u32::MAX))).expect("a read");
        listed.extend(page.members.into_iter().map(|member| member.name));
        (after, pages) = (page.next, pages + 1);
    }
    assert_eq!(listed, (0..40).map(|number| format!("{number:02}")).collect::<Vec<_>>());
    assert!(pages > 5, "{pages} pages");
    assert_eq!(world.run(call!(ann.members("39".into(), 10))).expect("a read").next, None);
}

/// Members of a session that is over leave in portions, each told in one event; meanwhile their names are
/// free for others, and calls that wait for them get them.
fn many_members_of_a_dead_session_leave_in_portions(world: &mut World) {
    let (ann, bob, cid) = (world.client(), world.client(), world.client());
    let (of_ann, of_bob, of_cid) = (of(&ann), of(&bob), of(&cid));
    for number in 0..250 {
        world.run(call!(of_ann.join(format!("{number:03}"), "".into()))).expect("it is new");
    }
    world.run(call!(of_bob.subscribe())).expect("there is room");
    let waits = world.start(call!(of_cid.join_for("249".into(), "".into(), seconds(9))));
    world.expire(&ann);
    assert_eq!(world.run(call!(of_bob.size())), Ok(150));
    assert_eq!(world.events(&bob).len(), 1, "of a hundred changes");
    world.run(call!(of_cid.join("200".into(), "".into()))).expect("its member is over");
    world.advance(seconds(1));
    assert!(waits.result().expect("a call").is_some());
    assert_eq!(names(world, &of_bob), ["200", "249"]);
    let told = changes(world, &bob);
    assert!(told.is_sorted_by_key(|change| change.version));
    let left = told.iter().filter(|change| change.kind == Kind::Left).count();
    assert_eq!((left, told.len()), (150, 152));
    world.run(call!(of_cid.join("000".into(), "".into()))).expect("it is free");
    assert_eq!(world.object("workers").expect("it is there").timers.len(), 2, "of bob and cid");
}

/// What tells as many subscribers as there may be of members with names as long as they may be is bounded
/// in a step, too: the fuel of one handler is enough for it.
fn long_names_are_told_of_in_portions_of_bytes(world: &mut World) {
    let (ann, bob) = (world.client(), world.client());
    let (of_ann, of_bob) = (of(&ann), of(&bob));
    for number in 0..100 {
        world.run(call!(of_ann.join(format!("{number:0255}"), "".into()))).expect("it is new");
    }
    for _ in 0..999 {
        let subscriber = of(&world.client());
        world.run(call!(subscriber.subscribe())).expect("there is room");
    }
    world.run(call!(of_bob.subscribe())).expect("there is room");
    world.expire(&ann);
    let left = world.run(call!(of_bob.size())).expect("a read");
    assert!((90..100).contains(&left), "{left} are left after the first step");
    world.advance(seconds(1));
    assert_eq!(world.run(call!(of_bob.size())), Ok(0));
    assert_eq!(changes(world, &bob).len(), 100);
}

/// Of the calls that wait for a change a portion is told in a step, and the others after them.
fn many_that_wait_are_told_in_portions(world: &mut World) {
    let [ann, bob] = [(); 2].map(|()| of(&world.client()));
    let waiting: Vec<_> = (0..2_500).map(|_| world.start(call!(bob.await_change(0)))).collect();
    let token = world.run(call!(ann.join("a".into(), "".into()))).expect("it is new");
    assert_eq!(world.blocked().len(), 2_250);
    world.advance(seconds(1));
    assert!(waiting.iter().all(|call| call.result() == Ok(token)));
}

on_both_engines!(
    standard("Membership");
    members_are_there_as_long_as_their_sessions,
    changes_are_events_of_who_wants_them,
    a_dead_subscriber_is_forgotten,
    a_thousand_subscribers_are_told,
    who_waits_for_a_change_is_told_of_it,
    a_session_that_joins_again_stays,
    a_join_waits_for_the_end_of_another_session,
    only_the_member_s_session_changes_it,
    names_and_metadata_are_bounded,
    pages_say_where_they_go_on,
    many_members_of_a_dead_session_leave_in_portions,
    long_names_are_told_of_in_portions_of_bytes,
    many_that_wait_are_told_in_portions,
);
