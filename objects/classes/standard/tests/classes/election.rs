//! `Election`.

use gesmas_election::{ElectionError, ElectionStub};
use gesmas_sdk::abi::value::Bytes;
use gesmas_testkit::{Client, World, call, on_both_engines};

use crate::{failed, seconds, standard};

fn of(client: &Client) -> ElectionStub<Client> {
    ElectionStub::new(client.clone(), "scheduler")
}

fn candidates_lead_in_their_order(world: &mut World) {
    let ann = world.client();
    let (of_ann, of_bob) = (of(&ann), of(&world.client()));
    let first = world.run(call!(of_ann.campaign("ann".into()))).expect("nobody leads");
    let waits = world.start(call!(of_bob.campaign("bob".into())));
    let watches = world.start(call!(of_bob.observe(first)));
    assert_eq!(world.run(call!(of_bob.try_campaign("bob".into()))), Ok(None));
    assert_eq!(world.run(call!(of_bob.candidates())), Ok(1));
    assert_eq!(world.blocked(), ["campaign at seat", "observe at news"]);
    world.restart();
    world.expire(&ann);
    let second = waits.result().expect("the leader is dead");
    assert!(second > first);
    // The next leader is there in the step in which the last one goes, so nobody is told of none.
    let leader = watches.result().expect("there is news").expect("it leads");
    assert_eq!((leader.token, leader.candidate), (second, "bob".into()));
    assert_eq!(failed(world.run(call!(of_bob.resign(first)))), ElectionError::NotLeader);
    world.run(call!(of_bob.resign(second))).expect("it leads");
    assert_eq!(world.run(call!(of_bob.leader())), Ok(None));
    assert!(world.object("scheduler").is_none(), "an election without anybody takes no room");
}

fn observers_are_told_that_nobody_leads(world: &mut World) {
    let ann = world.client();
    let (of_ann, of_bob) = (of(&ann), of(&world.client()));
    let waits = world.start(call!(of_bob.observe(0)));
    let first = world.run(call!(of_ann.campaign("ann".into()))).expect("nobody leads");
    let leader = waits.result().expect("there is news").expect("it leads");
    assert_eq!(leader.token, first);
    let waits = world.start(call!(of_bob.observe(first)));
    world.run(call!(of_ann.resign(first))).expect("it leads");
    assert_eq!(waits.result(), Ok(None));
    // A caller that knows of a leader which is gone is told at once.
    assert_eq!(world.run(call!(of_bob.observe(first))), Ok(None));
    let second = world.run(call!(of_ann.campaign("ann".into()))).expect("nobody leads");
    let waits = world.start(call!(of_bob.observe(second)));
    world.expire(&ann);
    assert_eq!(waits.result(), Ok(None));
    assert!(world.object("scheduler").is_none(), "an election without anybody takes no room");
}

/// Of a leader that says much of itself fewer are told in a step.
fn observers_are_told_in_portions_of_bytes(world: &mut World) {
    let [ann, bob] = [world.client(), world.client()].map(|client| of(&client));
    let waiting: Vec<_> = (0..100).map(|_| world.start(call!(bob.observe(0)))).collect();
    world.run(call!(ann.campaign(Bytes(vec![b'x'; 64 << 10])))).expect("nobody leads");
    assert_eq!(world.blocked().len(), 68, "two mebibytes are told in a step");
    world.advance(seconds(1));
    assert!(waiting.iter().all(|call| call.result().is_ok_and(|leader| leader.is_some())));
}

/// As many as wait are told, a portion at a time.
fn many_observers_are_told_in_portions(world: &mut World) {
    let [ann, bob] = [world.client(), world.client()].map(|client| of(&client));
    let waiting: Vec<_> = (0..2_500).map(|_| world.start(call!(bob.observe(0)))).collect();
    let first = world.run(call!(ann.campaign("ann".into()))).expect("nobody leads");
    assert_eq!(world.blocked().len(), 2_250);
    world.advance(seconds(1));
    let told = |leader: &gesmas_election::Leader| leader.token == first;
    assert!(
        waiting
            .iter()
            .all(|call| call.result().is_ok_and(|leader| leader.is_some_and(|one| told(&one))))
    );
    // A change while a portion waits for its turn is told with the one before.
    let waiting: Vec<_> = (0..2_500).map(|_| world.start(call!(bob.observe(first)))).collect();
    world.run(call!(ann.resign(first))).expect("it leads");
    let second = world.run(call!(ann.campaign("ann".into()))).expect("nobody leads");
    world.advance(seconds(1));
    let told: Vec<_> = waiting.iter().map(|call| call.result().expect("there is news")).collect();
    let none = told.iter().filter(|leader| leader.is_none()).count();
    // The second change comes within the least delay of the timer that the first has set.
    assert_eq!((none, told.len()), (250, 2_500));
    assert!(
        told[250..].iter().all(|leader| leader.as_ref().is_some_and(|one| one.token == second))
    );
    world.run(call!(ann.resign(second))).expect("it leads");
    assert!(world.object("scheduler").is_none(), "an election without anybody takes no room");
}

/// Calls of one candidate that wait together, as a retry and the call before it do, lead together.
fn a_retry_does_not_wait_behind_its_candidate(world: &mut World) {
    let [ann, bob, cid] = [(); 3].map(|()| of(&world.client()));
    let token = world.run(call!(ann.campaign("ann".into()))).expect("nobody leads");
    assert_eq!(world.run(call!(ann.campaign("ann".into()))), Ok(token));
    assert_eq!(world.run(call!(ann.try_campaign("ann".into()))), Ok(Some(token)));
    let given = world.start(call!(bob.campaign("bob".into())));
    let first = world.start(call!(bob.campaign("bob".into())));
    let again = world.start(call!(bob.campaign("bob".into())));
    let other = world.start(call!(bob.campaign("another of bob".into())));
    let last = world.start(call!(cid.campaign("bob".into())));
    assert_eq!(world.run(call!(cid.candidates())), Ok(5));
    world.cancel(&given);
    world.restart();
    world.run(call!(ann.resign(token))).expect("it leads");
    let token = other.result().expect("nobody leads");
    world.run(call!(bob.resign(token))).expect("it leads");
    let token = last.result().expect("nobody leads");
    world.run(call!(cid.resign(token))).expect("it leads");
    let token = first.result().expect("nobody leads");
    assert_eq!(again.result(), Ok(token));
    world.run(call!(bob.resign(token))).expect("it leads");
    assert!(world.object("scheduler").is_none(), "an election without anybody takes no room");
}

fn only_the_leader_s_session_resigns(world: &mut World) {
    let [ann, bob] = [(); 2].map(|()| of(&world.client()));
    world.run(call!(ann.campaign("ann".into()))).expect("nobody leads");
    let seen = world.run(call!(bob.leader())).expect("a read").expect("it leads").token;
    assert_eq!(failed(world.run(call!(bob.resign(seen)))), ElectionError::NotHolder);
    world.run(call!(ann.resign(seen))).expect("it leads");
}

fn candidates_say_so_much_of_themselves(world: &mut World) {
    let ann = of(&world.client());
    let limit = 64 << 10;
    for bytes in [0, limit] {
        let most = Bytes(vec![7; bytes]);
        let said = most.clone();
        let token = world.run(call!(ann.campaign(said))).expect("nobody leads");
        let leader = world.run(call!(ann.leader())).expect("a read").expect("it leads");
        assert_eq!(leader.candidate, most);
        world.run(call!(ann.resign(token))).expect("it leads");
    }
    let more = move || Bytes(vec![7; limit + 1]);
    let refused = failed(world.run(call!(ann.campaign(more()))));
    assert_eq!(refused, ElectionError::CandidateTooLong { limit: limit as u64 });
    assert!(world.run(call!(ann.try_campaign(more()))).is_err());
}

fn who_gives_up_does_not_lead(world: &mut World) {
    let [ann, bob] = [world.client(), world.client()].map(|client| of(&client));
    let token = world.run(call!(ann.campaign("ann".into()))).expect("nobody leads");
    let waits = world.start(call!(bob.campaign("bob".into())));
    let watches = world.start(call!(bob.observe(token)));
    world.cancel(&waits);
    world.cancel(&watches);
    assert_eq!(failed(waits.result()), ElectionError::Cancelled);
    assert!(watches.result().is_err());
    world.run(call!(ann.resign(token))).expect("it leads");
    assert!(world.object("scheduler").is_none(), "an election without anybody takes no room");
}

on_both_engines!(
    standard("Election");
    candidates_lead_in_their_order,
    observers_are_told_that_nobody_leads,
    many_observers_are_told_in_portions,
    observers_are_told_in_portions_of_bytes,
    a_retry_does_not_wait_behind_its_candidate,
    only_the_leader_s_session_resigns,
    candidates_say_so_much_of_themselves,
    who_gives_up_does_not_lead,
);
