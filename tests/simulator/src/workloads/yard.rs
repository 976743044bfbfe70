//! The yard: timed waits, deadlines, owned permits, timers, events, and segments that are undone.
//!
//! At most two own a tool at once, each for as long as it asked for; time and tokens rise with the
//! steps, and no token comes twice; scores are those of the gambles that were not undone, each once;
//! detached calls count themselves once each, also when nobody waits for them any more;
//! every gamble that stands and every reminder sends one event, in its time, and nothing else does.
//! Everything here ends by itself, and all but dozing soon.

use std::collections::{BTreeMap, BTreeSet};

use gesmas_abi::value::{Time, to_bytes};
use gesmas_machine::{CallError, CancelReason, Machine, SessionId, Step};

use super::{Ended, Facts, Worker, Workload, decode, is_given_up, read, unexpected};
use crate::{
    catalog::{Call, Catalog, object},
    engine::SimulatedEngine,
    prng::Prng,
    schedule::{MILLISECOND, SECOND},
    verdict::{Checked, demand},
    yard::{GAMBLE, REMINDER, WAYS},
};

const CHECKER: &str = "yard";
/// Calls of one client that are open at most.
const PIPELINE: usize = 8;
/// What ends by itself within this is not given up.
const LONGEST: u64 = 300 * MILLISECOND;
/// A reminder is later than this only if something is wrong.
const LATE: u64 = 1_500 * MILLISECOND;
/// How long an event may be on its way.
const UNDER_WAY: u64 = 1_500 * MILLISECOND;
/// Tools in the yard.
const TOOLS: usize = 2;
/// The beginning of 2020. No time of the cluster is before it, unless the leader believed a clock that nobody
/// has set.
const FIRST_TIME: u64 = 1_577_836_800 * SECOND;

/// What was asked for under a key.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    /// How a gamble is to end.
    way: u64,
    /// How long something is to take.
    duration: u64,
    /// The session to which an event is due, since the call ended well.
    owed: Option<SessionId>,
    /// When that is, of a reminder.
    due: u64,
}

#[derive(Default)]
pub(super) struct Yards {
    next_key: u64,
    asked: BTreeMap<u64, Asked>,
    /// Time and token by step.
    stamps: BTreeMap<Step, (u64, u64)>,
    tokens: BTreeSet<u64>,
    /// When tools were owned.
    owned: Vec<(u64, u64)>,
    scores: BTreeSet<u64>,
    /// Gambles that may have scored unknown to their callers.
    unknown: u64,
    /// Counts of detached calls, and how many may have counted unknown to their callers.
    kept: BTreeSet<u64>,
    unknown_kept: u64,
    /// Events that came: kind and key.
    events: BTreeSet<(u64, u64)>,
    /// What leaders' clocks had reached [`UNDER_WAY`] before the end of the run.
    come_until: u64,
}

impl Yards {
    pub(super) fn new() -> Self {
        Self::default()
    }

    fn plan_one(&mut self, prng: &mut Prng) -> Call {
        self.next_key += 1;
        let key = self.next_key;
        let (way, duration) =
            (prng.below(WAYS), prng.between(1, LONGEST / MILLISECOND) * MILLISECOND);
        self.asked.insert(key, Asked { way, duration, ..Asked::default() });
        // Some sessions end before the deadlines of some of their calls.
        let doze = if prng.permille(500) { 60 * duration } else { duration };
        let (method, arguments, time_left) = match prng.below(14) {
            0..2 => ("hold", to_bytes(&duration), None),
            2..4 => ("linger", to_bytes(&(duration / 4)), None),
            4..7 => ("gamble", to_bytes(&(key, way)), None),
            7..10 => ("doze", to_bytes(&key), Some(doze)),
            10..12 => ("keep", to_bytes(&duration), None),
            12 => {
                // Some come when nothing else happens.
                let later = if prng.permille(500) { 30 * duration } else { duration };
                self.asked.entry(key).or_default().duration = later;
                ("remind", to_bytes(&(key, later)), None)
            }
            _ => ("stamp", Vec::new(), None),
        };
        Call { object: object("Yard", "yard"), method, arguments, key, time_left }
    }

    fn token(&mut self, token: u64) -> Checked {
        demand(token > 0 && self.tokens.insert(token), CHECKER, || {
            format!("token {token} was given out twice or never")
        })
    }

    fn held(&mut self, bytes: &[u8], asked: Asked) -> Checked {
        let (token, Time(from), Time(to), rang): (u64, Time, Time, bool) = decode(CHECKER, bytes)?;
        self.token(token)?;
        demand(!rang && to >= from + asked.duration, CHECKER, || {
            format!("a wait of {} ended from {from} to {to}, rung: {rang}", asked.duration)
        })?;
        self.owned.push((from, to));
        let owners =
            |at: u64| self.owned.iter().filter(|(from, to)| (*from..*to).contains(&at)).count();
        let begun = self.owned.iter().map(|(begun, _)| *begun);
        let most = begun.filter(|begun| (from..to).contains(begun)).map(owners).max().unwrap_or(0);
        demand(most <= TOOLS, CHECKER, || format!("{most} owned a tool at once"))
    }

    fn stamped(&mut self, bytes: &[u8], step: Step) -> Checked {
        let (Time(time), token) = decode(CHECKER, bytes)?;
        self.token(token)?;
        demand(time >= FIRST_TIME, CHECKER, || format!("it is {time} at {step}"))?;
        let before = self.stamps.range(..step).next_back();
        let after = self.stamps.range(step..).next();
        let rises = before.is_none_or(|(_, other)| other.0 <= time && other.1 < token)
            && after.is_none_or(|(_, other)| time <= other.0 && token < other.1);
        demand(rises, CHECKER, || {
            format!("time {time} and token {token} of {step} lie between {before:?} and {after:?}")
        })?;
        self.stamps.insert(step, (time, token));
        Ok(())
    }

    fn succeeded(
        &mut self,
        call: &Call,
        (session, step): (SessionId, Step),
        bytes: &[u8],
    ) -> Checked {
        let asked = self.asked[&call.key];
        match call.method {
            "hold" => return self.held(bytes, asked),
            "stamp" => return self.stamped(bytes, step),
            "linger" => {
                let rang: bool = decode(CHECKER, bytes)?;
                return demand(!rang, CHECKER, || "the bell rang".into());
            }
            "gamble" => {
                let (score, _): (u64, u64) = decode(CHECKER, bytes)?;
                let once = asked.way == 0 && self.scores.insert(score);
                demand(once, CHECKER, || format!("{asked:?} scored {score}, again or in vain"))?;
            }
            "keep" => {
                let kept: u64 = decode(CHECKER, bytes)?;
                let once = kept > 0 && self.kept.insert(kept);
                return demand(once, CHECKER, || format!("two detached calls counted {kept}"));
            }
            "remind" => {
                let Time(due) = decode(CHECKER, bytes)?;
                let asked = self.asked.entry(call.key).or_default();
                asked.due = due;
            }
            _ => {
                let message = || format!("{} ended well, for nothing", call.method);
                return demand(false, CHECKER, message);
            }
        }
        self.asked.entry(call.key).or_default().owed = Some(session);
        Ok(())
    }

    /// Whether a call may end so.
    fn may_fail(&self, call: &Call, error: &CallError) -> bool {
        let way = self.asked[&call.key].way;
        match error {
            CallError::Cancelled(CancelReason::Deadline) => call.time_left.is_some(),
            CallError::Aborted(_) => call.method == "gamble" && (way == 1 || way == 2),
            CallError::Trapped(_) => call.method == "gamble" && way == 3,
            error => is_given_up(error),
        }
    }
}

impl Workload for Yards {
    fn class(&self) -> &'static str {
        "Yard"
    }

    fn creation(&self) -> Option<Call> {
        let object = object("Yard", "yard");
        Some(Call { object, method: "init", arguments: Vec::new(), key: 0, time_left: None })
    }

    fn may_starve(&self, call: &Call) -> bool {
        call.time_left.is_some_and(|left| left > LONGEST)
    }

    fn plan(&mut self, worker: &Worker, prng: &mut Prng, _facts: &Facts<'_>) -> Vec<Call> {
        if worker.draining || worker.open >= PIPELINE {
            return Vec::new();
        }
        let number = prng.index(PIPELINE + 1 - worker.open);
        (0..number).map(|_| self.plan_one(prng)).collect()
    }

    fn ended(
        &mut self,
        _client: usize,
        call: &Call,
        ended: &Ended<'_>,
        _facts: &Facts<'_>,
    ) -> Checked {
        match ended {
            Ended::Unknown => {
                let scores = call.method == "gamble" && self.asked[&call.key].way == 0;
                self.unknown += u64::from(scores);
                self.unknown_kept += u64::from(call.method == "keep");
                Ok(())
            }
            Ended::Reply { session, step, outcome: Ok(bytes), .. } => {
                self.succeeded(call, (*session, *step), bytes)
            }
            Ended::Reply { outcome: Err(error), .. } if self.may_fail(call, error) => Ok(()),
            Ended::Reply { outcome: Err(error), .. } => Err(unexpected(CHECKER, call, error)),
        }
    }

    fn timed_event(&mut self, session: SessionId, payload: &[u8], facts: &Facts<'_>) -> Checked {
        let (kind, key, due, now): (u64, u64, u64, u64) = decode("events", payload)?;
        if let (REMINDER, Some(since)) = (kind, facts.in_order_since) {
            // Had it come due before the cluster was in order, it could not be blamed. A leader whose
            // clock is ahead of the one before is late by its own time only.
            let late = now.saturating_sub(due);
            let passed = |time| facts.leader_times.reached(time).unwrap_or(facts.now);
            let in_time = passed(now) < passed(due) + LATE;
            let blamed = since + late + UNDER_WAY <= facts.now;
            demand(late < LATE || in_time || !blamed, "timers", || {
                format!("a reminder {key} was {} ms late", late / MILLISECOND)
            })?;
        }
        let asked = self.asked.get(&key).copied();
        let stands = asked.is_some_and(|asked| kind != GAMBLE || asked.way == 0);
        let told = || format!("event {kind} of call {key} ({asked:?}) to session {session}");
        demand(stands, "events", || format!("{}, which never stood", told()))?;
        demand(kind != REMINDER || now >= due, "events", || {
            format!("{} came at {now}, before {due}", told())
        })?;
        demand(self.events.insert((kind, key)), "events", || format!("{} came again", told()))
    }

    fn note_end(&mut self, facts: &Facts<'_>) {
        self.come_until = facts.leader_times.at(facts.now.saturating_sub(UNDER_WAY));
    }

    fn finish(&mut self, machine: &mut Machine<SimulatedEngine>, catalog: &Catalog) -> Checked {
        let sessions: BTreeSet<_> = machine.sessions().map(|(session, _)| session).collect();
        for (key, asked) in &self.asked {
            let owed = asked.owed.is_some_and(|session| sessions.contains(&session));
            let came = [GAMBLE, REMINDER].iter().any(|kind| self.events.contains(&(*kind, *key)));
            // The run may end while it is on its way, or just after a leader has begun: that moves time on,
            // by much if its clock is ahead, and what is due runs in the next batch.
            let late = asked.due + UNDER_WAY <= machine.now().0 && asked.due <= self.come_until;
            demand(came || !owed || !late, "events", || {
                format!("no event came of call {key}: {asked:?}")
            })?;
        }
        let mut count = |method| {
            let object = object("Yard", "yard");
            let call = Call { object, method, arguments: Vec::new(), key: 0, time_left: None };
            read::<u64>(CHECKER, machine, catalog, &call).map(Option::unwrap_or_default)
        };
        let (score, kept) = (count("score")?, count("kept")?);
        let least = self.scores.len() as u64;
        demand((least..=least + self.unknown).contains(&score), CHECKER, || {
            format!("the score is {score}, {least} gambles stand and {} may", self.unknown)
        })?;
        let least = self.kept.len() as u64;
        demand((least..=least + self.unknown_kept).contains(&kept), CHECKER, || {
            let unknown = self.unknown_kept;
            format!("{kept} detached calls counted, {least} said so and {unknown} may have")
        })
    }
}
