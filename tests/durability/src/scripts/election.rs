//! `Election`: candidates wait for the leader to go, observers for a leader to come.

use gesmas_abi::value::{Bytes, to_bytes};
use gesmas_election::{ElectionError, Leader};
use gesmas_machine::{CallError, Limits, SessionId};

use super::{Script, Standard};
use crate::writer::{Call, Writer};

pub(super) const ELECTION: Standard = Standard {
    name: "Election",
    // Before it waits a call tries the seat, then its candidate's line, or a place among those that wait for
    // another call of their candidate.
    points: &[
        ("campaign", 3, "seat"),
        ("campaign", 3, "line"),
        ("campaign", 4, "seat"),
        ("observe", 1, "news"),
    ],
    scripts: &[Script { class: "Election", limits: Limits::default, write }],
};

/// The object; calls create it.
const CHAIR: &str = "chair";

fn write(w: &mut Writer<'_>) {
    let clients = w.open();
    candidates_follow_each_other(w, clients);
    leaders_die(w, clients);
    observers_wait(w, clients);
    removal(w, clients);
}

fn campaign(w: &mut Writer<'_>, by: SessionId) -> Call {
    w.call(by, CHAIR, "campaign", &(Bytes::from("candidate"),))
}

fn observe(w: &mut Writer<'_>, by: SessionId, known: u64) -> Call {
    w.call(by, CHAIR, "observe", &(known,))
}

fn resign(w: &mut Writer<'_>, by: SessionId, token: u64) {
    let resigned = w.call(by, CHAIR, "resign", &(token,));
    w.result::<()>(resigned);
}

/// Candidates wait in their order; some leave it in each of the ways there are.
fn candidates_follow_each_other(w: &mut Writer<'_>, [ann, bob, cid]: [SessionId; 3]) {
    let [dan] = w.open();
    let first = campaign(w, ann);
    let second = campaign(w, bob);
    let late = w.call_within(30, cid, CHAIR, "campaign", &(Bytes::from("late"),));
    let unwanted = campaign(w, cid);
    let orphan = campaign(w, dan);
    let killed = campaign(w, bob);
    let last = campaign(w, cid);
    let none = w.call(ann, CHAIR, "try_campaign", &(Bytes::from("impatient"),));
    assert_eq!(w.result::<Option<u64>>(none), None);
    w.blocked(&[second, late, unwanted, orphan, killed, last]);
    w.again(second);
    w.cancel(unwanted);
    w.kill(ann, killed);
    w.pass(30);
    for gone in [late, unwanted, killed] {
        let cancelled = CallError::Failed(to_bytes(&ElectionError::Cancelled));
        assert_eq!(*w.error(gone), cancelled);
    }
    w.close(dan);
    assert!(w.is_untold(orphan));
    let token = w.result::<u64>(first);
    resign(w, ann, token);
    w.elect();
    w.blocked(&[last]);
    let next = w.result::<u64>(second);
    assert!(next > token);
    resign(w, bob, next);
    let token = w.result::<u64>(last);
    resign(w, cid, token);
    w.blocked(&[]);
}

/// The sessions of leaders end, and the next candidate leads.
fn leaders_die(w: &mut Writer<'_>, [ann, bob, _]: [SessionId; 3]) {
    let [fay, gus] = w.open();
    let first = campaign(w, fay);
    let second = campaign(w, gus);
    let third = campaign(w, ann);
    w.blocked(&[second, third]);
    w.expire(fay);
    assert!(w.result::<u64>(second) > w.result::<u64>(first));
    let fourth = w.together(|w| {
        let fourth = campaign(w, bob);
        w.close(gus);
        fourth
    });
    w.blocked(&[fourth]);
    let token = w.result::<u64>(third);
    resign(w, ann, token);
    let token = w.result::<u64>(fourth);
    resign(w, bob, token);
}

/// Observers wait for the first leader, and for the end of it.
fn observers_wait(w: &mut Writer<'_>, [ann, bob, cid]: [SessionId; 3]) {
    let anybody = observe(w, bob, 0);
    let unwanted = observe(w, cid, 0);
    w.blocked(&[anybody, unwanted]);
    w.cancel(unwanted);
    w.error(unwanted);
    let led = campaign(w, ann);
    let token = w.result::<u64>(led);
    let leader = w.result::<Option<Leader>>(anybody).expect("somebody leads");
    assert_eq!(leader.token, token);
    let end = observe(w, cid, token);
    w.blocked(&[end]);
    w.again(end);
    w.elect();
    resign(w, ann, token);
    assert_eq!(w.result::<Option<Leader>>(end), None);
    let late = observe(w, cid, token);
    assert_eq!(w.result::<Option<Leader>>(late), None);
    let next = observe(w, bob, 0);
    w.blocked(&[next]);
    let led = campaign(w, cid);
    let token = w.result::<u64>(led);
    let leader = w.result::<Option<Leader>>(next).expect("somebody leads");
    assert_eq!(leader.token, token);
    // The next leads when the one before it dies, and an observer is told of it.
    let [dan] = w.open();
    let last = campaign(w, dan);
    let next = observe(w, bob, token);
    w.blocked(&[last, next]);
    resign(w, cid, token);
    let token = w.result::<u64>(last);
    let leader = w.result::<Option<Leader>>(next).expect("somebody leads");
    assert_eq!(leader.token, token);
    let next = observe(w, bob, token);
    w.expire(dan);
    assert_eq!(w.result::<Option<Leader>>(next), None);
    w.blocked(&[]);
}

/// The object goes, and with it all that wait.
fn removal(w: &mut Writer<'_>, [ann, bob, cid]: [SessionId; 3]) {
    let led = campaign(w, ann);
    let token = w.result::<u64>(led);
    let waiters = [campaign(w, bob), campaign(w, bob), observe(w, cid, token)];
    w.blocked(&waiters);
    w.remove(ann, CHAIR);
    for waiter in waiters {
        assert_eq!(*w.error(waiter), CallError::ObjectRemoved);
    }
}
