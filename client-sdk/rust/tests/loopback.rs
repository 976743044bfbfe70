//! The client over real sockets, against peers whose every word is scripted.
//!
//! Each test plays the replicas itself, so that it decides when a connection breaks and what was
//! heard before. Clusters of real replicas are tested elsewhere (`tests/cluster`).

mod peer;

use std::time::Duration;

use gesmas_client::{
    CallFailure, Client, LinkState, NotSentReason, SessionEvent, SessionState, UnknownReason,
    protocol::{
        BODY_MAX, Bytes, ClientMessage, Event, GoingAway, OverReason, Position, Refusal, Refused,
        RequestBody, SessionAttached, SessionOver,
    },
};
use peer::{Peer, Replica, bounded, client};

impl Peer {
    async fn reply(&mut self, session: u64, number: u64, result: &'static str) {
        self.end(session, number, Ok(Bytes::from_static(result.as_bytes()))).await;
    }
}

#[tokio::test]
async fn a_broken_connection_is_replaced_and_calls_go_on_under_their_numbers() {
    bounded(async {
        let replica = Replica::start().await;
        let (client, mut peer) = tokio::join!(client([&replica]), replica.accept());
        let (session, ()) = tokio::join!(client.session().open(), peer.open(7));
        let session = session.expect("it is opened");
        let mut states = session.states();
        assert_eq!(*states.borrow_and_update(), SessionState::Connected);

        let one = session.call("Queue", "jobs", "consume", 1, vec![]).send();
        let two = session.call("Queue", "jobs", "consume", 1, vec![]).send();
        assert_eq!(peer.request().await.1, 1);
        assert_eq!(peer.request().await.1, 2);
        peer.reply(7, 2, "two").await;
        assert_eq!(two.await, Ok(Bytes::from_static(b"two")));
        drop(peer);

        let mut peer = replica.accept().await;
        let message = peer.hear().await;
        let ClientMessage::AttachSession(attach) = message else { panic!("{message:?}") };
        assert_eq!((attach.session, attach.seen.step), (7, 2));
        assert_eq!(session.state(), SessionState::Suspended);
        let three = session.call("Queue", "jobs", "consume", 1, vec![]).send();
        peer.say(SessionAttached { session: 7, last_admitted: 2 }).await;
        assert_eq!(peer.request().await.1, 3, "what is admitted is not sent again");
        peer.reply(7, 1, "one").await;
        peer.reply(7, 3, "three").await;
        assert_eq!(three.await, Ok(Bytes::from_static(b"three")));
        assert_eq!(one.await, Ok(Bytes::from_static(b"one")));
        assert_eq!(session.state(), SessionState::Connected);
    })
    .await;
}

#[tokio::test]
async fn a_server_that_goes_away_is_left_for_another() {
    bounded(async {
        let replicas = [Replica::start().await, Replica::start().await];
        let connecting = client([&replicas[0], &replicas[1]]);
        let greeting = async {
            tokio::select! {
                peer = replicas[0].accept() => (peer, 1),
                peer = replicas[1].accept() => (peer, 0),
            }
        };
        let (client, (mut peer, other)) = tokio::join!(connecting, greeting);
        peer.say(GoingAway { reason: "maintenance".into() }).await;
        let _peer = replicas[other].accept().await;
        let other = LinkState::Connected(replicas[other].endpoint.clone());
        let mut link = client.link();
        link.wait_for(|state| *state == other).await.expect("the client lives");
    })
    .await;
}

#[tokio::test]
async fn dropping_a_call_cancels_it_and_losing_the_session_says_unknown() {
    bounded(async {
        let replica = Replica::start().await;
        let (client, mut peer) = tokio::join!(client([&replica]), replica.accept());
        let (session, ()) = tokio::join!(client.session().open(), peer.open(7));
        let session = session.expect("it is opened");
        let guard = session.guard(3);
        let dropped = session.call("Queue", "jobs", "consume", 1, vec![]).send();
        let kept = session.call("Queue", "jobs", "consume", 1, vec![]).send();
        peer.request().await;
        peer.request().await;
        drop(dropped);
        let message = peer.hear().await;
        let ClientMessage::Cancel(cancel) = message else { panic!("a cancel: {message:?}") };
        assert_eq!((cancel.session, cancel.number, cancel.previous), (7, 1, 0));
        assert!(!guard.is_lost());
        peer.say(SessionOver { session: 7, reason: OverReason::Expired }).await;
        let unknown = CallFailure::Unknown(UnknownReason::SessionOver(OverReason::Expired));
        assert_eq!(kept.await, Err(unknown));
        guard.lost().await;
        let late = session.invoke("Queue", "jobs", "consume", 1, vec![]).await;
        let unsent = CallFailure::NotSent(NotSentReason::SessionOver(OverReason::Expired));
        assert_eq!(late, Err(unsent));
    })
    .await;
}

#[tokio::test]
async fn a_missing_class_is_shipped_through_another_session_unseen_by_the_callers() {
    bounded(async {
        let replica = Replica::start().await;
        let (client, mut peer) = tokio::join!(client([&replica]), replica.accept());
        client.add_class("Queue", Bytes::from_static(b"code"));
        let (session, ()) = tokio::join!(client.session().open(), peer.open(7));
        let session = session.expect("it is opened");
        let large = session.call("Queue", "jobs", "length", 1, vec![0; BODY_MAX as usize]);
        assert_eq!(large.await, Err(CallFailure::NotSent(NotSentReason::TooLarge)));
        let large = session.read("Queue", "x".repeat(BODY_MAX as usize), "length", 1, vec![]);
        assert_eq!(large.await, Err(CallFailure::NotSent(NotSentReason::TooLarge)));
        let calls = [2, 3].map(|_| session.call("Queue", "jobs", "length", 1, vec![]).send());
        let class = || "Queue".to_owned();
        for number in 2..=3 {
            assert_eq!(peer.request().await.1, number, "1 was never sent");
            let refusal = match number {
                2 => Refusal::ClassUnknown { class: class() },
                _ => Refusal::OutOfOrder { last: 0 },
            };
            peer.say(Refused { session: 7, number, refusal, id: None }).await;
        }
        peer.open(8).await;
        let module = Bytes::from_static(b"code");
        let put = RequestBody::PutClass { class: class(), module, replace: None };
        assert_eq!(peer.request().await, (8, 1, put));
        peer.reply(8, 1, "").await;
        for (number, call) in (2..=3).zip(calls) {
            let (session, again, _) = peer.request().await;
            assert_eq!((session, again), (7, number));
            peer.reply(7, number, "0").await;
            assert_eq!(call.await, Ok(Bytes::from_static(b"0")));
        }
    })
    .await;
}

#[tokio::test]
async fn events_reach_their_consumer_and_closing_waits_for_the_cluster() {
    bounded(async {
        let replica = Replica::start().await;
        let (client, mut peer) = tokio::join!(client([&replica]), replica.accept());
        let (session, ()) = tokio::join!(client.session().open(), peer.open(7));
        let session = session.expect("it is opened");
        let mut events = session.events().expect("nobody has taken them");
        assert!(session.events().is_none());
        let position = Position { epoch: 0, step: 4 };
        let payload = Bytes::from_static(b"watch out");
        peer.say(Event { session: 7, number: 1, position, payload: payload.clone() }).await;
        let event = SessionEvent::Event { number: 1, position, payload };
        assert_eq!(events.next().await, Some(event));
        let closing = async {
            assert!(matches!(peer.hear().await, ClientMessage::CloseSession(_)));
            peer.say(SessionOver { session: 7, reason: OverReason::Closed }).await;
        };
        let clone = session.clone();
        tokio::join!(session.close(), closing);
        let late = clone.invoke("Queue", "jobs", "consume", 1, vec![]).await;
        assert_eq!(late, Err(CallFailure::NotSent(NotSentReason::Closed)));
        assert_eq!(events.next().await, None);
        client.shutdown().await;
    })
    .await;
}

#[tokio::test]
async fn a_client_without_servers_says_what_it_ran_into() {
    let replica = Replica::start().await;
    let endpoint = replica.endpoint.clone();
    drop(replica);
    let connecting =
        Client::builder().endpoints([endpoint.clone()]).patience(Duration::from_millis(200));
    let error = connecting.connect().await.expect_err("nobody listens");
    assert!(error.to_string().contains(&endpoint), "{error}");
}

#[tokio::test]
async fn many_calls_share_one_connection_within_what_the_server_takes() {
    const CALLS: u64 = 10_000;
    bounded(async {
        let replica = Replica::start().await;
        let (client, mut peer) = tokio::join!(client([&replica]), replica.accept());
        let (session, ()) = tokio::join!(client.session().open(), peer.open(7));
        let session = session.expect("it is opened");
        let calls: Vec<_> =
            (0..CALLS).map(|_| session.call("Counter", "c", "add", 1, vec![]).send()).collect();
        let serving = async {
            // The server takes 100: it is left waiting for its replies before more come.
            for batch in 0..CALLS / 100 {
                for place in 1..=100 {
                    assert_eq!(peer.request().await.1, batch * 100 + place);
                }
                for place in 1..=100 {
                    peer.reply(7, batch * 100 + place, "done").await;
                }
            }
        };
        let waiting = async {
            for call in calls {
                assert_eq!(call.await, Ok(Bytes::from_static(b"done")));
            }
        };
        tokio::join!(serving, waiting);
    })
    .await;
}
