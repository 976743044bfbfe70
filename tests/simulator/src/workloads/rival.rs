//! Rivals: two classes want one name, and clients put now the one, now the other.
//!
//! Whichever is put first has the name for good: every put of it succeeds, every other one is told who
//! has the name, and every call reaches it.

use gesmas_abi::value::to_bytes;
use gesmas_machine::{CallError, CodeHash, Machine};

use super::{Ended, Facts, Worker, Workload, decode, is_given_up, unexpected};
use crate::{
    catalog::{Call, Catalog, object},
    engine::SimulatedEngine,
    prng::Prng,
    verdict::{Checked, demand},
};

const CHECKER: &str = "classes";
/// Calls of one client that are open at most.
const PIPELINE: usize = 3;

pub(super) struct Rivals {
    codes: [CodeHash; 2],
    /// The one that has the name, once somebody was told.
    winner: Option<usize>,
    next_key: u64,
}

impl Rivals {
    pub(super) fn new(catalog: &Catalog) -> Self {
        Self { codes: catalog.rivals(), winner: None, next_key: 0 }
    }

    fn call(&mut self, method: &'static str, arguments: Vec<u8>) -> Call {
        self.next_key += 1;
        Call {
            object: object("Rival", "r"),
            method,
            arguments,
            key: self.next_key,
            time_left: None,
        }
    }

    /// Puts one of the two; an argument names the second.
    fn put(&mut self, prng: &mut Prng) -> Call {
        let side = if prng.permille(500) { to_bytes(&1_u64) } else { Vec::new() };
        self.call("put", side)
    }

    fn won(&mut self, side: usize) -> Checked {
        let known = *self.winner.get_or_insert(side);
        demand(known == side, CHECKER, || {
            format!("both rivals have the name: {known} had it, and now {side}")
        })
    }
}

impl Workload for Rivals {
    fn class(&self) -> &'static str {
        "Rival"
    }

    fn creation(&self) -> Option<Call> {
        None
    }

    fn first_put(&mut self, prng: &mut Prng) -> Option<Call> {
        Some(self.put(prng))
    }

    fn may_starve(&self, _call: &Call) -> bool {
        false
    }

    fn plan(&mut self, worker: &Worker, prng: &mut Prng, _facts: &Facts<'_>) -> Vec<Call> {
        if worker.draining || worker.open >= PIPELINE {
            return Vec::new();
        }
        // A class whose puts were all given up is not there, and a call of it waits for ever.
        let put = self.winner.is_none() || prng.permille(500);
        vec![if put { self.put(prng) } else { self.call("side", Vec::new()) }]
    }

    fn ended(
        &mut self,
        _client: usize,
        call: &Call,
        ended: &Ended<'_>,
        _facts: &Facts<'_>,
    ) -> Checked {
        let outcome = match ended {
            Ended::Unknown => return Ok(()),
            Ended::Reply { outcome, .. } => outcome,
        };
        let side = usize::from(!call.arguments.is_empty());
        match (call.method, outcome) {
            ("put", Ok(_)) => self.won(side),
            ("put", Err(CallError::ClassExists { have, .. })) => {
                demand(*have == self.codes[1 - side], CHECKER, || {
                    format!("rival {side} lost against {have}, which is not the other one")
                })?;
                self.won(1 - side)
            }
            ("side", Ok(bytes)) => {
                let side: u64 = decode(CHECKER, bytes)?;
                self.won(usize::try_from(side).unwrap_or(usize::MAX))
            }
            (_, Err(error)) if is_given_up(error) => Ok(()),
            (_, Err(error)) => Err(unexpected(CHECKER, call, error)),
            (other, Ok(_)) => panic!("{other} is never called"),
        }
    }

    fn finish(&mut self, _machine: &mut Machine<SimulatedEngine>, _catalog: &Catalog) -> Checked {
        Ok(())
    }
}
