//! Why a call is blocked: what it waits for, who owns that, and what the owners wait for in turn.
//!
//! Asked of a replica question by question, so the links may be of moments some milliseconds apart.
//! An owner that is a session may give its permit back by a call to come; what it is blocked in is
//! shown all the same, since it is most likely why it does not.
//! Not here: deadlocks that are certain. The kernel ends those.

use std::collections::{BTreeMap, BTreeSet, VecDeque, btree_map::Entry};

use gesmas_client::{
    AdminFailure, Client, InvocationFilter,
    protocol::{AdminError, InvocationState, InvocationSummary, PermitHolder, SemaphoreDetail},
};
use serde_json::{Value, json};

use super::invocation;
use crate::failure::{Failure, exit::Exit};

/// Links that are followed.
const LINKS_MAX: usize = 100;
/// Waiters and owners of a semaphore that are looked at, and blocked calls of a session.
const PARTS_MAX: u32 = 1_000;

/// A blocked call and what it waits for.
pub(crate) struct Link {
    pub(crate) invocation: InvocationSummary,
    /// None when it had gone on by the time it was looked at.
    pub(crate) semaphore: Option<SemaphoreDetail>,
    /// Calls that the owners of its permits are blocked in.
    pub(crate) next: Vec<u64>,
}

/// What is known of why a call is blocked: itself first, then what it waits for.
pub(crate) struct Chain {
    pub(crate) links: Vec<Link>,
    /// Calls that wait for each other, if the first one waits for itself in the end.
    pub(crate) cycle: Vec<u64>,
}

impl Chain {
    /// Follows a call.
    pub(crate) async fn of(client: &Client, first: u64) -> Result<Self, Failure> {
        let mut links = Vec::new();
        let mut known = BTreeSet::from([first]);
        let mut open = VecDeque::from([first]);
        while let Some(id) = open.pop_front().filter(|_| links.len() < LINKS_MAX) {
            let Some(link) = Link::of(client, id).await? else { continue };
            open.extend(link.next.iter().filter(|next| known.insert(**next)));
            links.push(link);
        }
        if links.is_empty() {
            let message = format!("invocation {first} is not blocked");
            return Err(Failure::new(Exit::NotFound, "invocation-unknown", message)
                .advise("`gesmas invocation ls` lists those that are"));
        }
        let cycle = cycle(first, &links);
        Ok(Self { links, cycle })
    }

    /// The chain as JSON.
    pub(crate) fn as_json(&self) -> Value {
        let links: Vec<_> = self.links.iter().map(Link::as_json).collect();
        json!({ "links": links, "cycle": self.cycle })
    }
}

impl Link {
    async fn of(client: &Client, id: u64) -> Result<Option<Self>, Failure> {
        let before = id.saturating_sub(1);
        let page = client.list_invocations(InvocationFilter::default(), before, 1).await?;
        let found = page.items.into_iter().find(|found| found.invocation == id);
        let Some(invocation) = found else { return Ok(None) };
        let semaphore = semaphore_of(client, &invocation).await?;
        let mut next = BTreeSet::new();
        for owner in semaphore.iter().flat_map(|semaphore| &semaphore.owners) {
            match owner.holder {
                PermitHolder::Invocation(owner) => {
                    next.insert(owner);
                }
                PermitHolder::Session(session) => {
                    let filter = InvocationFilter { session: Some(session), ..Default::default() };
                    let page = client.list_invocations(filter, 0, PARTS_MAX).await?;
                    next.extend(page.items.iter().map(|blocked| blocked.invocation));
                }
            }
        }
        Ok(Some(Self { invocation, semaphore, next: next.into_iter().collect() }))
    }

    /// Its place in the queue, from 1.
    pub(crate) fn place(&self) -> Option<usize> {
        let waiters = &self.semaphore.as_ref()?.waiters;
        Some(waiters.iter().position(|waiter| *waiter == self.invocation.invocation)? + 1)
    }

    /// Who owns permits of what it waits for.
    pub(crate) fn owners(&self) -> Vec<String> {
        let owners = self.semaphore.iter().flat_map(|semaphore| &semaphore.owners);
        let names = owners.map(|owner| match owner.holder {
            PermitHolder::Invocation(id) => format!("invocation {id}"),
            PermitHolder::Session(id) => format!("session {id}"),
        });
        names.collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn as_json(&self) -> Value {
        let mut value = invocation::as_json(&self.invocation);
        value["place"] = json!(self.place());
        value["waiters"] = json!(self.semaphore.as_ref().map(|found| found.waiters.len()));
        value["count"] = json!(self.semaphore.as_ref().map(|found| found.count));
        value["owners"] = json!(self.owners());
        value["waits_for"] = json!(self.next);
        value
    }
}

/// The semaphore that a call waits for, as its object has it now.
async fn semaphore_of(
    client: &Client,
    invocation: &InvocationSummary,
) -> Result<Option<SemaphoreDetail>, Failure> {
    let InvocationState::Blocked { semaphore, .. } = &invocation.state else { return Ok(None) };
    match client.show_object(&invocation.class, &invocation.object, PARTS_MAX).await {
        Ok(detail) => Ok(detail.semaphores.into_iter().find(|found| found.name == *semaphore)),
        Err(AdminFailure::Answered(AdminError::ObjectUnknown { .. })) => Ok(None),
        Err(failure) => Err(failure.into()),
    }
}

/// A shortest way from a call back to itself.
fn cycle(first: u64, links: &[Link]) -> Vec<u64> {
    let edges: BTreeMap<_, _> =
        links.iter().map(|link| (link.invocation.invocation, link.next.as_slice())).collect();
    shortest_cycle(first, &edges)
}

fn shortest_cycle(first: u64, edges: &BTreeMap<u64, &[u64]>) -> Vec<u64> {
    let mut came_from = BTreeMap::new();
    let mut open = VecDeque::from([first]);
    while let Some(id) = open.pop_front() {
        for &next in edges.get(&id).copied().unwrap_or_default() {
            if next == first {
                let mut way = vec![id];
                while let Some(&before) = came_from.get(way.last().expect("it has one")) {
                    way.push(before);
                }
                way.reverse();
                return way;
            }
            if let Entry::Vacant(place) = came_from.entry(next) {
                place.insert(id);
                open.push_back(next);
            }
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_way_back_is_found() {
        let edges: [(u64, &[u64]); 4] = [(1, &[2, 3]), (2, &[4]), (3, &[1]), (4, &[1, 4])];
        let edges = BTreeMap::from(edges);
        assert_eq!(shortest_cycle(1, &edges), [1, 3]);
        assert_eq!(shortest_cycle(2, &edges), [2, 4, 1]);
        assert_eq!(shortest_cycle(4, &edges), [4]);
        assert_eq!(shortest_cycle(9, &edges), [0_u64; 0]);
    }
}
