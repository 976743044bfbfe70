//! What callers of the client hold, over real sockets, against a peer whose every word is scripted.
//!
//! Each test decides when a grant arrives and when its caller goes, and hears what the client says then.
//! Clusters of real replicas are tested elsewhere (`tests/cluster`).

mod peer;

use std::{
    future::Future,
    pin::pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
    time::Duration,
};

use gesmas_abi::value::{Value, from_bytes, to_bytes};
use gesmas_client::{
    CallFailure, Client, Clock, Session, UnknownReason,
    protocol::{
        CallError, CancelReason, ClientMessage, OverReason, RequestBody, SessionAttached,
        SessionOver,
    },
};
use gesmas_lease::{Granted, LeaseError};
use gesmas_lock::LockError;
use gesmas_sdk::{abi::value::Time, stub::StubError};

use peer::{Peer, Replica, bounded, client};

const SESSION: u64 = 7;
const SHORT: Duration = Duration::from_secs(10);
/// So long that no keep-alive is missed by a test that turns the clock.
const LONG: Duration = Duration::from_secs(1_000_000);

async fn session(replica: &Replica) -> (Session, Peer) {
    let (client, mut peer) = tokio::join!(client([replica]), replica.accept());
    let (session, ()) = tokio::join!(client.session().open(), peer.open(SESSION));
    (session.expect("it is opened"), peer)
}

impl Peer {
    /// Hears a call; gives its number, its method and its arguments.
    async fn call(&mut self) -> (u64, String, Vec<u8>) {
        match self.request().await {
            (SESSION, number, RequestBody::Call { method, arguments, .. }) => {
                (number, method, arguments.to_vec())
            }
            other => panic!("a call: {other:?}"),
        }
    }

    async fn cancel(&mut self) -> u64 {
        match self.hear().await {
            ClientMessage::Cancel(cancel) => cancel.number,
            other => panic!("a cancel: {other:?}"),
        }
    }

    async fn grant(&mut self, number: u64, result: impl Value) {
        self.end(SESSION, number, Ok(to_bytes(&result).into())).await;
    }

    /// Hears that a token is given back, and takes it.
    async fn given_back(&mut self, token: u64) {
        let (number, method, arguments) = self.call().await;
        assert_eq!((method.as_str(), from_bytes(&arguments)), ("unlock", Ok(token)));
        self.grant(number, ()).await;
    }
}

/// Polls a future once, without anybody whom it could wake.
fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn a_caller_that_goes_before_the_grant_comes_leaves_nothing_held() {
    bounded(async {
        let replica = Replica::start().await;
        let (session, mut peer) = session(&replica).await;
        let lock = session.lock("printer");
        {
            let _unpolled = lock.acquire();
        }
        {
            let mut acquiring = pin!(lock.acquire());
            assert!(poll_once(acquiring.as_mut()).is_pending());
            assert_eq!(peer.call().await.1, "lock");
        }
        assert_eq!(peer.cancel().await, 1);
        peer.grant(1, 41_u64).await;
        peer.given_back(41).await;
        // One that is withdrawn in time has nothing to give back.
        {
            let mut acquiring = pin!(lock.acquire());
            assert!(poll_once(acquiring.as_mut()).is_pending());
            peer.call().await;
        }
        assert_eq!(peer.cancel().await, 3);
        peer.end(SESSION, 3, Err(CallError::Cancelled(CancelReason::Caller))).await;
        let (free, ()) = tokio::join!(lock.try_acquire(), async {
            let (number, method, _) = peer.call().await;
            assert_eq!((number, method.as_str()), (4, "try_lock"));
            peer.grant(number, None::<u64>).await;
        });
        assert!(free.expect("it is answered").is_none());
    })
    .await;
}

#[tokio::test]
async fn a_grant_that_was_not_looked_at_is_given_back() {
    bounded(async {
        let replica = Replica::start().await;
        let (session, mut peer) = session(&replica).await;
        let lock = session.lock("printer");
        {
            let mut acquiring = pin!(lock.acquire());
            assert!(poll_once(acquiring.as_mut()).is_pending());
            let (number, ..) = peer.call().await;
            peer.grant(number, 41_u64).await;
            // Replies come in their order: with this one the grant is in the future's hand.
            let (other, ()) =
                tokio::join!(session.invoke("Queue", "q", "length", 1, vec![]), async {
                    let (number, ..) = peer.call().await;
                    peer.grant(number, ()).await;
                });
            other.expect("it is answered");
        }
        peer.given_back(41).await;
    })
    .await;
}

#[tokio::test]
async fn a_result_that_its_task_never_hands_out_is_given_back() {
    bounded(async {
        let replica = Replica::start().await;
        let (session, mut peer) = session(&replica).await;
        let lock = session.lock("printer");
        let task = tokio::spawn(async move { lock.acquire().await });
        let (number, ..) = peer.call().await;
        peer.grant(number, 41_u64).await;
        // Whether the task has looked at it or not when it is aborted.
        task.abort();
        drop(task);
        loop {
            match peer.hear().await {
                ClientMessage::Cancel(cancel) => assert_eq!(cancel.number, number),
                ClientMessage::Request(request) => {
                    let RequestBody::Call { method, .. } = request.body else { panic!("a call") };
                    assert_eq!(method, "unlock");
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        drop(session);
    })
    .await;
}

#[tokio::test]
async fn a_wait_that_was_given_up_here_is_given_back_when_it_ends_there() {
    bounded(async {
        let replica = Replica::start().await;
        let (session, mut peer, dial) = session_with_dial(&replica, LONG).await;
        let lock = session.lock("printer");
        let limited = lock.acquire_for(Duration::from_secs(60));
        let failure = tokio::join!(limited, async {
            assert_eq!(peer.call().await.1, "lock_for");
            // Nothing is heard of it until after its end, and its margin, and the grace.
            turn(&dial, 64);
        })
        .0
        .expect_err("nobody has answered");
        let unknown = CallFailure::Unknown(UnknownReason::Deadline);
        assert_eq!(failure, StubError::Other(unknown));
        assert_eq!(peer.cancel().await, 1);
        peer.grant(1, Some(41_u64)).await;
        peer.given_back(41).await;
    })
    .await;
}

#[tokio::test]
async fn a_hold_is_given_back_once_whether_it_is_dropped_or_released() {
    bounded(async {
        let replica = Replica::start().await;
        let (session, mut peer) = session(&replica).await;
        let lock = session.lock("printer");
        let mut token = 40_u64;
        let mut held = async |peer: &mut Peer| {
            token += 1;
            let (hold, ()) = tokio::join!(lock.acquire(), async {
                let (number, ..) = peer.call().await;
                peer.grant(number, token).await;
            });
            hold.expect("it is granted")
        };
        let hold = held(&mut peer).await;
        assert_eq!((hold.token(), hold.is_lost()), (41, false));
        drop(hold);
        peer.given_back(41).await;

        let hold = held(&mut peer).await;
        let (released, ()) = tokio::join!(hold.release(), peer.given_back(42));
        released.expect("it was held");

        let hold = held(&mut peer).await;
        let (released, ()) = tokio::join!(hold.release(), async {
            let (number, ..) = peer.call().await;
            let payload = to_bytes(&LockError::NotHeld);
            peer.end(SESSION, number, Err(CallError::Failed(payload.into()))).await;
        });
        assert_eq!(released, Err(StubError::Failed(LockError::NotHeld)));

        // A release that is given up, before it has begun and after, is one all the same.
        drop(held(&mut peer).await.release());
        peer.given_back(44).await;
        let hold = held(&mut peer).await;
        {
            let mut releasing = pin!(hold.release());
            assert!(poll_once(releasing.as_mut()).is_pending());
        }
        peer.given_back(45).await;

        assert_eq!(held(&mut peer).await.keep(), 46);
        let hold = held(&mut peer).await;
        peer.say(SessionOver { session: SESSION, reason: OverReason::Expired }).await;
        hold.lost().await;
        assert!(hold.is_lost());
        let failure = hold.release().await.expect_err("the session is over");
        let StubError::Other(CallFailure::NotSent(_)) = failure else { panic!("{failure:?}") };
    })
    .await;
}

#[tokio::test]
async fn what_is_dropped_before_its_session_is_left_is_given_back() {
    bounded(async {
        let replica = Replica::start().await;
        let (session, mut peer) = session(&replica).await;
        let lock = session.lock("printer");
        let (hold, ()) = tokio::join!(lock.acquire(), async {
            let (number, ..) = peer.call().await;
            peer.grant(number, 41_u64).await;
        });
        drop((hold, lock));
        session.leave();
        peer.given_back(41).await;
    })
    .await;
}

/// A clock and what turns it: seconds.
fn dial() -> (Arc<Mutex<u64>>, Clock) {
    let dial = Arc::new(Mutex::new(1_000));
    let clock = Clock::new({
        let dial = dial.clone();
        move || Duration::from_secs(*dial.lock().expect("nobody panics with it"))
    });
    (dial, clock)
}

fn turn(dial: &Mutex<u64>, seconds: u64) {
    *dial.lock().expect("nobody panics with it") += seconds;
}

async fn client_with_dial(replica: &Replica) -> (Client, Peer, Arc<Mutex<u64>>) {
    let (dial, clock) = dial();
    let builder = Client::builder().endpoints([replica.endpoint.clone()]).clock(clock);
    let (client, peer) = tokio::join!(builder.connect(), replica.accept());
    (client.expect("the replica answers"), peer, dial)
}

async fn session_with_dial(
    replica: &Replica,
    timeout: Duration,
) -> (Session, Peer, Arc<Mutex<u64>>) {
    let (client, mut peer, dial) = client_with_dial(replica).await;
    let builder = client.session().timeout(timeout);
    let (session, ()) = tokio::join!(builder.open(), peer.open(SESSION));
    (session.expect("it is opened"), peer, dial)
}

#[tokio::test]
async fn a_hold_is_lost_at_once_when_a_machine_wakes_that_slept_longer_than_the_timeout() {
    bounded(async {
        let replica = Replica::start().await;
        let (session, mut peer, dial) = session_with_dial(&replica, SHORT).await;
        let lock = session.lock("printer");
        let (hold, ()) = tokio::join!(lock.acquire(), async {
            let (number, ..) = peer.call().await;
            peer.grant(number, 41_u64).await;
        });
        let hold = hold.expect("it is granted");
        turn(&dial, 9);
        assert!(!hold.is_lost(), "the timeout is 10 s");
        turn(&dial, 3_600);
        assert!(hold.is_lost(), "whatever has been noticed yet");
        hold.lost().await;
        // Set back, the clock does not trust again.
        *dial.lock().expect("nobody panics with it") = 0;
        assert!(hold.is_lost());
    })
    .await;
}

#[tokio::test]
async fn doubts_are_told_when_the_connection_takes_no_more_bytes() {
    bounded(async {
        let replica = Replica::start().await;
        let (client, mut peer, dial) = client_with_dial(&replica).await;
        let (session, ()) = tokio::join!(client.session().open(), peer.open(SESSION));
        let session = session.expect("it is opened");
        let lock = session.lock("printer");
        let (hold, ()) = tokio::join!(lock.acquire(), async {
            let (number, ..) = peer.call().await;
            peer.grant(number, 41_u64).await;
        });
        let hold = hold.expect("it is granted");
        // The peer reads nothing any more: more is sent than all buffers take.
        let large = || session.call("Queue", "jobs", "produce", 1, vec![0; 1 << 20]).send();
        let _calls: Vec<_> = (0..64).map(|_| large()).collect();
        while client.bytes_sent() < 1 << 20 {
            tokio::task::yield_now().await;
        }
        turn(&dial, 20);
        hold.lost().await;
        // The connection is given up for another one.
        let mut again = replica.accept().await;
        let message = again.hear().await;
        assert!(matches!(message, ClientMessage::AttachSession(_)), "{message:?}");
        again.say(SessionAttached { session: SESSION, last_admitted: 1 }).await;
        drop(peer);
    })
    .await;
}

#[tokio::test]
async fn a_lease_counts_from_when_its_call_was_made() {
    bounded(async {
        let replica = Replica::start().await;
        let (session, mut peer, dial) = session_with_dial(&replica, LONG).await;
        let lease = session.lease("nightly");
        let hour = Duration::from_secs(3_600);
        let granted = |token| Granted { token, key: token, ends: Time(0) };

        let (hold, ()) = tokio::join!(lease.try_acquire("ann", hour), async {
            let (number, ..) = peer.call().await;
            turn(&dial, 2);
            peer.grant(number, Some(granted(41))).await;
        });
        let hold = hold.expect("it is answered").expect("it is free");
        assert_eq!((hold.token(), hold.left()), (41, hour - Duration::from_secs(2)));
        // A renewal that is given up may have been made: the shorter time counts.
        {
            let mut renewing = pin!(hold.renew(Duration::from_secs(60)));
            assert!(poll_once(renewing.as_mut()).is_pending());
            peer.call().await;
        }
        peer.cancel().await;
        assert_eq!(hold.left(), Duration::from_secs(60));
        let (renewed, ()) = tokio::join!(hold.renew(hour), async {
            let (number, ..) = peer.call().await;
            turn(&dial, 5);
            peer.grant(number, Time(9)).await;
        });
        assert_eq!((renewed, hold.left()), (Ok(Time(9)), hour - Duration::from_secs(5)));
        turn(&dial, 3_600);
        assert!(hold.is_lost());
        hold.lost().await;
        drop(hold);
        assert_eq!(peer.call().await.1, "release");
    })
    .await;
}

#[tokio::test]
async fn a_lease_that_was_waited_for_is_renewed_before_it_is_handed_out() {
    bounded(async {
        let replica = Replica::start().await;
        let (session, mut peer, dial) = session_with_dial(&replica, LONG).await;
        let lease = session.lease("nightly");
        let minute = Duration::from_secs(60);
        let (hold, ()) = tokio::join!(lease.acquire("ann", minute), async {
            let (number, ..) = peer.call().await;
            turn(&dial, 7);
            turn(&dial, 600);
            peer.grant(number, Granted { token: 41, key: 41, ends: Time(0) }).await;
            let (number, method, _) = peer.call().await;
            assert_eq!(method, "renew");
            peer.grant(number, Time(9)).await;
        });
        assert_eq!(hold.expect("it is held").left(), minute);
        assert_eq!(peer.call().await.1, "release");

        // One that has run out meanwhile is not held.
        let (hold, ()) = tokio::join!(lease.acquire("ann", minute), async {
            let (number, ..) = peer.call().await;
            turn(&dial, 600);
            peer.grant(number, Granted { token: 42, key: 42, ends: Time(0) }).await;
            let (number, ..) = peer.call().await;
            let payload = to_bytes(&LeaseError::NotHeld);
            peer.end(SESSION, number, Err(CallError::Failed(payload.into()))).await;
        });
        assert_eq!(hold.map(|_| ()), Err(StubError::Failed(LeaseError::NotHeld)));
    })
    .await;
}
