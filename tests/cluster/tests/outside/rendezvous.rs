//! `Rendezvous`: two parties meet and swap values.

use gesmas_sdk::prelude::*;

/// A place where two parties at a time meet.
#[class(transient)]
pub struct Rendezvous {
    offer: Value<Bytes>,
    answer: Value<Bytes>,
    met: Semaphore,
}

#[methods]
impl Rendezvous {
    /// Offers a value; blocks until another party comes, and returns its value.
    pub fn swap(&mut self, mine: Bytes) -> Result<Bytes> {
        if let Some(theirs) = self.offer.take() {
            self.answer.set(mine);
            self.met.v();
            return Ok(theirs);
        }
        self.offer.set(mine);
        if let Err(cancelled) = self.met.p() {
            // Nobody came: the offer is withdrawn.
            self.offer.take();
            return Err(cancelled);
        }
        Ok(self.answer.take().expect("whoever came has answered"))
    }

    /// Whether a party waits for another.
    #[read]
    pub fn is_waiting(&self) -> Result<bool> {
        Ok(self.offer.read().is_some())
    }
}
