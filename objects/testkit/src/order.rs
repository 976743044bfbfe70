//! In which order calls that are on their way arrive.
//!
//! Invariant: those of one session arrive in the order in which they were made, as the protocol has it.

use std::collections::VecDeque;

use crate::client::Sent;

/// The order among sessions.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    /// As the calls were made.
    Made,
    /// Drawn; with the generator's state.
    Drawn(u64),
}

impl Order {
    /// Takes the call that arrives next.
    pub(crate) fn take(&mut self, outbox: &mut VecDeque<Sent>) -> Option<Sent> {
        let Self::Drawn(state) = self else { return outbox.pop_front() };
        let count = u64::try_from(outbox.len()).expect("it is in memory");
        let drawn = usize::try_from(next(state).checked_rem(count)?).expect("it is a place in it");
        let session = outbox[drawn].session;
        let oldest = outbox.iter().position(|sent| sent.session == session);
        outbox.remove(oldest.expect("the one that was drawn is of it"))
    }
}

/// The next number of a splitmix64 generator.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut value = *state;
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
