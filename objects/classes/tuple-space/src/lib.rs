//! `TupleSpace`: tuples that are found by what is in them, as in Linda and DepSpace.
//!
//! `out` puts a tuple; `rd` copies and `in` takes one that matches a *template*, and both wait until there is
//! one; `rdp` and `inp` do not wait. `cas` puts a tuple unless one matches, `replace` exchanges one for
//! another, `rd_all` lists. A template has as many places as the tuples that it matches, each a value or
//! anything. Tuples may have a lease, after which they vanish.
//! A tuple goes to the calls that wait for it in the order in which they came: copies to all that `rd`
//! up to the first that takes it. It does so in portions, of calls and of bytes: the first at once, the others
//! a millisecond after each other, and a call that comes in between may copy or take the tuple.
//! Of several tuples that match, the least is found, by the values from the first place on in the order of
//! their encodings, then the one that was put first.
//! What a search costs: a look at each tuple with the template's number of places and the values in which
//! it begins, up to the first place that is anything. So what is searched for goes first. Putting a tuple
//! costs a look at a portion of the calls that wait for one with as many places and the same first value, or
//! anything there.
//! Only the first thousand bytes of the values count for order and search; a longer tuple is read as a whole
//! where those match.
//! Transient: a space without tuples and waiting calls takes no room.
//! Invariants: a call that waits is written down in `waiting` with its own semaphore; between steps no tuple
//! is there that matches the template of a call that waits, but those in `handing`. A handler that fails
//! leaves another alarm in place of the one that called it.
//! A tuple is as long as an argument may be. A template, or a tuple that replaces another, has 800,000 bytes
//! at most, encoded: what is searched for, what is found and what takes its place are in memory at one time.
//! Not here: floats, and types as places of a template: a type is a value like any other that goes first.
//!
//! ```text
//! $ gesmas call TupleSpace/jobs out '[{"Text": "resize"}, {"Number": 640}]' null
//! 17
//! $ gesmas call TupleSpace/jobs in '[{"Exactly": {"Text": "resize"}}, "Any"]'
//! [{"Text": "resize"}, {"Number": 640}]
//! ```
//!
//! From Rust:
//!
//! ```
//! use gesmas_sdk::stub::Invoke;
//! use gesmas_tuple_space::{Field, Place, TupleSpaceStub};
//!
//! async fn resize(client: impl Invoke) {
//!     let jobs = TupleSpaceStub::new(client, "jobs");
//!     let _ = jobs.out(vec![Field::text("resize"), Field::Number(640)], None).await;
//!     let template = vec![Place::Exactly(Field::text("resize")), Place::Any];
//!     if let Ok(job) = jobs.r#in(template).await {
//!         println!("{job:?}");
//!     }
//! }
//! ```

mod handing;
mod place;

use gesmas_sdk::{
    abi::value::{Value, from_bytes, to_bytes},
    prelude::*,
};

use handing::{Handing, Waiting};
pub use place::{Field, Place, Template, Tuple};
use place::{Shelf, matches, may_match};

/// Bytes that one page of `rd_all` goes through at most: what does not match is looked at too.
const LOOKED_MAX: usize = 4 << 20;
/// Bytes of a template, or of a tuple that replaces another, at most, encoded.
const BESIDE_MAX: usize = 800_000;
/// After how long a handler is called again that failed.
const AGAIN: Duration = Duration::from_secs(30);

/// A space of tuples.
#[class(transient)]
pub struct TupleSpace {
    /// Tuples by shelf and id.
    tuples: Map<Spot, Kept>,
    /// Tuples that are longer than a shelf holds, by id.
    long: Map<u64, Tuple>,
    leases: Map<u64, Leased>,
    /// Calls that wait, by the shelf of their template's first place and their ticket.
    waiting: Map<Spot, Waiting>,
    gates: SemaphoreMap<u64>,
    /// Tuples that other calls wait for than those that were looked at, by id.
    handing: Map<u64, Handing>,
}

/// A place in the space: a shelf, and a number on it.
type Spot = (u8, Bytes, u64);

/// What is kept of a tuple beside its values.
#[derive(Value)]
struct Kept {
    leased: bool,
    /// It lies in `long`; the shelf has the beginning of its values.
    long: bool,
}

/// A page of tuples.
#[derive(Clone, Debug, PartialEq, Eq, Value)]
pub struct Tuples {
    /// The tuples. There may be none though others follow, where many were looked at that do not match.
    pub tuples: Vec<Tuple>,
    /// What to give as `after` for the page after this one; nothing if this is the last.
    pub next: Option<Bytes>,
}

/// What is kept of a tuple with a lease.
#[derive(Value)]
struct Leased {
    shelf: Shelf,
    alarm: Alarm,
}

/// Why a tuple or a template is refused.
#[error]
pub enum TupleSpaceError {
    /// a tuple has at most 255 places
    TooLong,
    /// a template, or a tuple that replaces another, has at most {limit} bytes
    TooManyBytes {
        /// How many it may have, encoded.
        limit: u64,
    },
    /// the call was cancelled
    Cancelled,
    /// a page has one tuple at least
    ZeroLimit,
    /// `after` is neither empty nor what a page said that it goes on after
    NoSuchPlace,
}

/// What a search does with the tuple that it finds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    Copy,
    Take,
}

#[methods]
impl TupleSpace {
    /// A fresh space is empty.
    #[init]
    fn init(&mut self) {}

    /// Puts a tuple, for ever or for the time of a lease, and returns its id, with which the lease is
    /// renewed.
    pub fn out(&mut self, tuple: Tuple, lease: Option<Duration>) -> Result<u64, TupleSpaceError> {
        self.put(tuple, lease)
    }

    /// Copies a tuple that matches, if there is one; never blocks.
    #[read]
    pub fn rdp(&self, template: Template) -> Result<Option<Tuple>, TupleSpaceError> {
        Ok(self.find(&template)?.map(|(_, tuple, _)| tuple))
    }

    /// Takes a tuple that matches, if there is one; never blocks.
    pub fn inp(&mut self, template: Template) -> Result<Option<Tuple>, TupleSpaceError> {
        self.look(&template, Wish::Take)
    }

    /// Copies a tuple that matches; blocks until there is one.
    pub fn rd(&mut self, template: Template) -> Result<Tuple, TupleSpaceError> {
        let found = self.await_tuple(template, Wish::Copy, None)?;
        found.ok_or(TupleSpaceError::Cancelled)
    }

    /// Takes a tuple that matches; blocks until there is one.
    pub fn r#in(&mut self, template: Template) -> Result<Tuple, TupleSpaceError> {
        let found = self.await_tuple(template, Wish::Take, None)?;
        found.ok_or(TupleSpaceError::Cancelled)
    }

    /// Copies a tuple that matches; blocks at most that long, and returns nothing when the time was up.
    pub fn rd_for(
        &mut self,
        template: Template,
        duration: Duration,
    ) -> Result<Option<Tuple>, TupleSpaceError> {
        self.await_tuple(template, Wish::Copy, Some(ctx::now() + duration))
    }

    /// Takes a tuple that matches; blocks at most that long, and returns nothing when the time was up.
    pub fn in_for(
        &mut self,
        template: Template,
        duration: Duration,
    ) -> Result<Option<Tuple>, TupleSpaceError> {
        self.await_tuple(template, Wish::Take, Some(ctx::now() + duration))
    }

    /// Puts a tuple unless one matches, and tells whether it did.
    pub fn cas(
        &mut self,
        template: Template,
        tuple: Tuple,
        lease: Option<Duration>,
    ) -> Result<bool, TupleSpaceError> {
        let absent = self.find(&template)?.is_none();
        if absent {
            self.put(tuple, lease)?;
        }
        Ok(absent)
    }

    /// Takes a tuple that matches and puts another, at once, and returns the one that it took; changes
    /// and returns nothing when none matches.
    pub fn replace(
        &mut self,
        template: Template,
        tuple: Tuple,
    ) -> Result<Option<Tuple>, TupleSpaceError> {
        // Before anything changes: what is returned as an error stands.
        Shelf::of_tuple(&tuple)?;
        fits_beside(&tuple)?;
        let old = self.look(&template, Wish::Take)?;
        if old.is_some() {
            self.put(tuple, None)?;
        }
        Ok(old)
    }

    /// The lease of a tuple ends that long from now instead; tells whether the tuple is there and has
    /// one.
    pub fn renew(&mut self, id: u64, lease: Duration) -> Result<bool> {
        let Some(Leased { shelf, alarm }) = self.leases.remove(&id) else { return Ok(false) };
        ctx::cancel(alarm);
        self.begin_lease(id, shelf, lease);
        Ok(true)
    }

    /// A page of copies of the tuples that match, the least first: those after the page before, or from the
    /// first if `after` is empty; at most `limit`, and as many as fit into a page.
    #[read]
    pub fn rd_all(
        &self,
        template: Template,
        after: Bytes,
        limit: u32,
    ) -> Result<Tuples, TupleSpaceError> {
        if limit == 0 {
            return Err(TupleSpaceError::ZeroLimit);
        }
        let begin = if after.is_empty() {
            None
        } else {
            Some(from_bytes::<Spot>(&after).map_err(|_| TupleSpaceError::NoSuchPlace)?)
        };
        let (mut page, mut looked) = (Portion::of(limit), Portion::of_bytes(LOOKED_MAX));
        let (mut tuples, mut last) = (Vec::new(), None);
        for (spot, kept) in self.near(&template, begin)? {
            if !looked.takes(spot.1.len()) {
                return Ok(Tuples { tuples, next: last });
            }
            if let Some(tuple) = self.read(&template, &spot, &kept) {
                let (length, fits) = (tuple.encoded_len(), matches(&template, &tuple));
                if !looked.takes(length) || (fits && !page.takes(length)) {
                    return Ok(Tuples { tuples, next: last });
                }
                if fits {
                    tuples.push(tuple);
                }
            }
            last = Some(Bytes(to_bytes(&spot)));
        }
        Ok(Tuples { tuples, next: None })
    }

    /// How many tuples there are.
    #[read]
    pub fn length(&self) -> Result<u64> {
        Ok(self.tuples.len())
    }

    /// How many calls wait.
    #[read]
    pub fn waiting(&self) -> Result<u64> {
        Ok(self.waiting.len())
    }

    #[handler]
    fn lease_over(&mut self, id: u64) {
        if let Some(Leased { shelf, .. }) = self.leases.get(&id) {
            let alarm = ctx::after(AGAIN, Self::LEASE_OVER, (id,));
            self.leases.insert(&id, Leased { shelf, alarm });
            ctx::continue_with(Self::END_LEASE, (id,));
        }
    }

    #[handler]
    fn end_lease(&mut self, id: u64) {
        if let Some(Leased { shelf, alarm }) = self.leases.remove(&id) {
            ctx::cancel(alarm);
            self.remove(&shelf.with(id));
        }
    }

    #[handler]
    fn hand_on(&mut self, id: u64) {
        if let Some(handing) = self.handing.get(&id) {
            let alarm = ctx::after(AGAIN, Self::HAND_ON, (id,));
            self.handing.insert(&id, Handing { alarm, ..handing });
            ctx::continue_with(Self::HAND_PORTION, (id,));
        }
    }

    #[handler]
    fn hand_portion(&mut self, id: u64) {
        let Some(Handing { shelf, after, alarm }) = self.handing.remove(&id) else { return };
        ctx::cancel(alarm);
        let spot = shelf.clone().with(id);
        // It may have been taken by now.
        let Some(kept) = self.tuples.get(&spot) else { return };
        let tuple =
            if kept.long { self.long.get(&id) } else { Some(Shelf::tuple(spot.0, &spot.1)) };
        let rest = self.wake_for(&tuple.expect("a long tuple lies apart"), after);
        if let Ok(Some(after)) = rest {
            self.hand_later(id, shelf, after);
        }
    }

    fn put(&mut self, tuple: Tuple, lease: Option<Duration>) -> Result<u64, TupleSpaceError> {
        let (shelf, long) = Shelf::of_tuple(&tuple)?;
        let id = ctx::fencing_token();
        // They look when this is over.
        let rest = self.wake_for(&tuple, 0)?;
        if let Some(after) = rest {
            self.hand_later(id, shelf.clone(), after);
        }
        self.tuples.insert(&shelf.clone().with(id), Kept { leased: lease.is_some(), long });
        if long {
            self.long.insert(&id, tuple);
        }
        if let Some(lease) = lease {
            self.begin_lease(id, shelf, lease);
        }
        Ok(id)
    }

    /// Removes what is kept of a tuple, and returns what it was if that lay apart.
    fn remove(&mut self, spot: &Spot) -> Option<Tuple> {
        let kept = self.tuples.remove(spot)?;
        let lease = if kept.leased { self.leases.remove(&spot.2) } else { None };
        if let Some(Leased { alarm, .. }) = lease {
            ctx::cancel(alarm);
        }
        if kept.long { self.long.remove(&spot.2) } else { None }
    }

    fn begin_lease(&mut self, id: u64, shelf: Shelf, lease: Duration) {
        let alarm = ctx::after(lease, Self::LEASE_OVER, (id,));
        self.leases.insert(&id, Leased { shelf, alarm });
    }

    fn await_tuple(
        &mut self,
        template: Template,
        wish: Wish,
        end: Option<Time>,
    ) -> Result<Option<Tuple>, TupleSpaceError> {
        if let Some(tuple) = self.look(&template, wish)? {
            return Ok(Some(tuple));
        }
        let ticket = ctx::fencing_token();
        let place = Shelf::of_template(&template)?.with(ticket);
        let takes = wish == Wish::Take;
        self.waiting.insert(&place, Waiting { template: template.clone(), takes });
        let mut gate = self.gates.at(&ticket);
        let found = loop {
            let woken = match end {
                None => gate.p().map(|()| true),
                Some(end) => gate.p_until(end),
            };
            match woken {
                Ok(true) => {}
                Ok(false) => break Ok(None),
                Err(Cancelled) => break Err(TupleSpaceError::Cancelled),
            }
            match self.look(&template, wish) {
                Ok(None) => {}
                found => break found,
            }
        };
        // Of three large values that would be here, one makes room.
        drop(template);
        self.waiting.remove(&place);
        found
    }

    fn look(&mut self, template: &Template, wish: Wish) -> Result<Option<Tuple>, TupleSpaceError> {
        let Some((spot, tuple, long)) = self.find(template)? else { return Ok(None) };
        if wish == Wish::Copy {
            return Ok(Some(tuple));
        }
        if !long {
            self.remove(&spot);
            return Ok(Some(tuple));
        }
        // What is removed comes in its place: both would not fit.
        drop(tuple);
        Ok(self.remove(&spot))
    }

    /// The first tuple that matches: where it lies, what it is, and whether it lies apart.
    fn find(&self, template: &Template) -> Result<Option<(Spot, Tuple, bool)>, TupleSpaceError> {
        let found = self.near(template, None)?.find_map(|(spot, kept)| {
            let tuple = self.read(template, &spot, &kept)?;
            matches(template, &tuple).then_some((spot, tuple, kept.long))
        });
        Ok(found)
    }

    /// What lies on the shelves on which tuples that match lie, from a spot on.
    fn near(
        &self,
        template: &Template,
        after: Option<Spot>,
    ) -> Result<impl Iterator<Item = (Spot, Kept)> + use<>, TupleSpaceError> {
        fits_beside(template)?;
        let shelf = Shelf::of_template_prefix(template)?;
        let first = shelf.clone().with(0);
        let after = match after {
            Some(after) => after.max(first),
            None => first,
        };
        let tuples = self.tuples.iter_after(&after);
        Ok(tuples.take_while(move |((places, values, _), _)| shelf.begins(*places, values)))
    }

    /// The tuple that lies there, unless what lies on the shelf says that it does not match.
    fn read(&self, template: &Template, spot: &Spot, kept: &Kept) -> Option<Tuple> {
        let (places, values, id) = spot;
        if !kept.long {
            return Some(Shelf::tuple(*places, values));
        }
        may_match(template, values).then(|| self.long.get(id).expect("a long tuple lies apart"))
    }
}

/// Whether a value may be in memory beside a tuple that is found.
fn fits_beside(value: &impl Value) -> Result<(), TupleSpaceError> {
    let limit = BESIDE_MAX as u64;
    if value.encoded_len() > BESIDE_MAX {
        Err(TupleSpaceError::TooManyBytes { limit })
    } else {
        Ok(())
    }
}
