//! Where connections to the peers' port wait until they have proven that they are peers'.
//!
//! Strangers may come as often as they like: so many wait at once, and when one more comes the one that
//! has waited longest makes room. A peer needs a moment, a stranger who says nothing waits for ever. Those who
//! come from the address of a member wait apart from all others.
//! Invariant: at most [`Vestibule::descriptors`] wait.
//! Not here: what they prove (`secret.rs`).

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

/// Connections that wait at once, of those from one member's address, and of all others together.
pub(super) const WAITING: usize = 32;

/// Those who wait, by the member's address from which they came, in the order in which they did.
type Waiting = BTreeMap<Option<IpAddr>, VecDeque<(u64, oneshot::Sender<()>)>>;

/// See the file's head.
pub(super) struct Vestibule {
    members: BTreeSet<IpAddr>,
    waiting: Arc<Mutex<Waiting>>,
    next: u64,
}

/// Somebody who waits. Dropped when it has proven itself, or is gone.
pub(super) struct Visitor {
    from: Option<IpAddr>,
    number: u64,
    waiting: Arc<Mutex<Waiting>>,
}

impl Vestibule {
    pub(super) fn new(members: BTreeSet<IpAddr>) -> Self {
        Self { members, waiting: Arc::default(), next: 0 }
    }

    /// Most that wait where the members have so many addresses.
    pub(super) const fn descriptors(addresses: u64) -> u64 {
        WAITING as u64 * (addresses + 1)
    }

    /// Somebody comes. What is returned beside it ends when it has to make room.
    pub(super) fn enter(&mut self, from: IpAddr) -> (Visitor, oneshot::Receiver<()>) {
        let from = Some(from).filter(|from| self.members.contains(from));
        let (sender, leaves) = oneshot::channel();
        self.next += 1;
        let visitor = Visitor { from, number: self.next, waiting: self.waiting.clone() };
        let mut waiting = lock(&self.waiting);
        let queue = waiting.entry(from).or_default();
        queue.push_back((self.next, sender));
        if queue.len() > WAITING {
            queue.pop_front();
        }
        drop(waiting);
        (visitor, leaves)
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        if let Some(queue) = lock(&self.waiting).get_mut(&self.from) {
            queue.retain(|(number, _)| *number != self.number);
        }
    }
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    // What a panic left is whole: one is added or removed at a time.
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_waited_longest_makes_room_and_strangers_take_none_of_members() {
        let [member, stranger] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
        let mut vestibule = Vestibule::new(BTreeSet::from([member]));
        let (peer, mut peer_leaves) = vestibule.enter(member);
        let mut strangers: VecDeque<_> = (0..WAITING).map(|_| vestibule.enter(stranger)).collect();
        let empty = Err(oneshot::error::TryRecvError::Empty);
        assert!(strangers.iter_mut().all(|(_, leaves)| leaves.try_recv() == empty));
        for _ in 0..3 {
            strangers.push_back(vestibule.enter(stranger));
            let (_visitor, mut leaves) = strangers.pop_front().expect("there are many");
            assert_eq!(leaves.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        }
        // One who has proven itself makes room without having to leave.
        strangers.pop_back();
        strangers.push_back(vestibule.enter(stranger));
        assert!(strangers.iter_mut().all(|(_, leaves)| leaves.try_recv() == empty));
        assert_eq!(peer_leaves.try_recv(), empty);
        drop((peer, strangers));
        assert!(lock(&vestibule.waiting).values().all(VecDeque::is_empty));
    }
}
