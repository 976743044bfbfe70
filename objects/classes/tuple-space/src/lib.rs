//! `TupleSpace`: tuples that are found by what is in them, as in Linda and DepSpace.
//!
//! `out` puts a tuple; `rd` copies and `in` takes one that matches a *template*, and both wait until there is
//! one; `rdp` and `inp` do not wait. `cas` puts a tuple unless one matches, `replace` exchanges one for
//! another, `rd_all` lists. A template has as many places as the tuples that it matches, each a value or
//! anything. Tuples may have a lease, after which they vanish.
//! A tuple goes to the calls that wait for it in the order in which they came: copies to all that `rd`
//! up to the first that takes it. Of several tuples that match, the least is found, by the values from the
//! first place on in the order of their encodings, then the one that was put first.
//! What a search costs: a look at each tuple with the template's number of places and the values in which
//! it begins, up to the first place that is anything. So what is searched for goes first. Putting a tuple
//! costs a look at each call that waits for one with as many places and the same first value, or
//! anything there.
//! Only the first thousand bytes of the values count for order and search; a longer tuple is read as a whole
//! where those match.
//! Transient: a space without tuples and waiting calls takes no room.
//! Invariants: a call that waits is written down in `waiting` with its own semaphore; between steps no tuple
//! is there that matches the template of a call that waits. A handler that fails leaves another alarm in
//! place of the one that called it.
//! A tuple is as long as an argument may be. A template, or a tuple that replaces another, has 800,000 bytes
//! at most: what is searched for, what is found and what takes its place are in memory at one time.
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

mod place;

use std::vec::IntoIter;

use gesmas_sdk::{
    abi::value::{Value as _, from_bytes, to_bytes},
    prelude::*,
};

pub use place::{Field, Place, Template, Tuple};
use place::{Shelf, matches, may_match};

/// Bytes that one page of `rd_all` goes through at most: what does not match is looked at too.
const LOOKED_MAX: usize = 4 << 20;
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

/// A call that waits.
#[derive(Value)]
struct Waiting {
    template: Template,
    takes: bool,
}

/// Why a tuple or a template is refused.
#[error]
pub enum TupleSpaceError {
    /// a tuple has at most 255 places
    TooLong,
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

    fn put(&mut self, tuple: Tuple, lease: Option<Duration>) -> Result<u64, TupleSpaceError> {
        let (shelf, long) = Shelf::of_tuple(&tuple)?;
        let id = ctx::fencing_token();
        // They look when this is over.
        self.wake_for(&tuple)?;
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

    /// Wakes the calls that a tuple is for, in the order in which they came, up to the first that takes
    /// it. Each looks for itself when it goes on, before any other call begins.
    fn wake_for(&mut self, tuple: &Tuple) -> Result<(), TupleSpaceError> {
        let [mut nearer, mut further] =
            Shelf::of_waiting_for(tuple)?.map(|shelf| self.waiting_on(&shelf, tuple).peekable());
        loop {
            // Tickets rise on each shelf, so the first comes next on one of the two.
            let ticket = |call: Option<&(u64, bool)>| call.map_or(u64::MAX, |(ticket, _)| *ticket);
            let is_nearer = ticket(nearer.peek()) <= ticket(further.peek());
            let next = if is_nearer { nearer.next() } else { further.next() };
            let Some((ticket, takes)) = next else { return Ok(()) };
            let mut gate = self.gates.at(&ticket);
            // One that failed without tidying up waits no more.
            if gate.waiters() > 0 {
                gate.v();
                if takes {
                    return Ok(());
                }
            }
        }
    }

    /// The calls that are written down on a shelf and that a tuple is for: ticket, and whether it takes.
    fn waiting_on(&self, shelf: &Shelf, tuple: &Tuple) -> IntoIter<(u64, bool)> {
        let calls = self.waiting.iter_after(&shelf.clone().with(0));
        let on_it = calls.take_while(|((places, values, _), _)| shelf.is(*places, values));
        let fits = on_it.filter(|(_, waiting)| matches(&waiting.template, tuple));
        let fits: Vec<_> = fits.map(|((_, _, ticket), waiting)| (ticket, waiting.takes)).collect();
        fits.into_iter()
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
