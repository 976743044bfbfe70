//! Wrong twins of standard classes, planted in place of the right ones to prove the workloads' checkers.
//!
//! A twin has the interface of its class and runs the right methods, but for what it does wrong: it passes
//! a call on as another one, makes it twice, or answers by itself.
//! Invariant: each replica computes the same, so that only who looks at the results can notice.
//! Not here: bugs of the kernel (`kernel/machine/src/planted.rs`).

use std::time::Duration;

use gesmas_abi::value::{Bytes, Time, Value, from_bytes, to_bytes};
use gesmas_election::Leader;
use gesmas_lease::{Granted, HolderInfo};
use gesmas_membership::Member;
use gesmas_register::Expected;
use gesmas_sdk::{class::Finish, ctx, host::NativeClass};

macro_rules! twins {
    ($($(#[$doc:meta])+ $name:ident of $class:literal runs $run:ident,)*) => {
        /// A wrong twin that can be planted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Twin {
            $($(#[$doc])+ $name,)*
        }

        impl Twin {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The class that it stands in for.
            #[must_use]
            pub fn class(self) -> &'static str {
                match self {
                    $(Self::$name => $class,)*
                }
            }

            /// It, in place of the class.
            pub(crate) fn native(self) -> NativeClass {
                let run: fn(&str, &[u8]) -> Finish = match self {
                    $(Self::$name => $run,)*
                };
                NativeClass { version: "wrong", run, ..right(self.class()) }
            }
        }
    };
}

twins! {
    /// Who asks while another holds the lease gets its token.
    LeaseGivenTwice of "Lease" runs lease_given_twice,
    /// A lease that has run out is renewed and given back as if it had not.
    LeaseGoodForEver of "Lease" runs lease_good_for_ever,
    /// Counting down counts twice.
    LatchCountsTwice of "Latch" runs latch_counts_twice,
    /// Nobody waits.
    LatchOpensEarly of "Latch" runs latch_opens_early,
    /// The last to count down is told so, and does not count.
    LatchForgetsLast of "Latch" runs latch_forgets_last,
    /// Taking a tuple leaves it there.
    TupleStays of "TupleSpace" runs tuple_stays,
    /// Now and then a tuple is not put.
    TupleLost of "TupleSpace" runs tuple_lost,
    /// What a writer takes for granted does not matter.
    RegisterIgnoresVersion of "Register" runs register_ignores_version,
    /// Now and then a value is not written.
    RegisterLosesValue of "Register" runs register_loses_value,
    /// A job that is given back is there again at once.
    JobComesAtOnce of "WorkQueue" runs job_comes_at_once,
    /// Giving back a job ends it.
    JobGivenAway of "WorkQueue" runs job_given_away,
    /// Who runs while another leads leads too.
    ElectionOfTwo of "Election" runs election_of_two,
    /// Who resigns keeps the seat.
    ElectionForLife of "Election" runs election_for_life,
    /// Who led when its session ended is still said to lead.
    ElectionOfTheDead of "Election" runs election_of_the_dead,
    /// An observer of a leader is told that nobody leads.
    ElectionHidesLeader of "Election" runs election_hides_leader,
    /// A session that joins again is another member.
    MembershipForgetsItsOwn of "Membership" runs membership_forgets_its_own,
    /// Each call costs one permit.
    RateLimiterUndercharges of "RateLimiter" runs rate_limiter_undercharges,
    /// Permits are taken one by one, so that a call waits for its own turn.
    RateLimiterTakesPiecemeal of "RateLimiter" runs rate_limiter_takes_piecemeal,
}

/// The class as it should be.
fn right(class: &str) -> NativeClass {
    let standard = gesmas_classes::native().into_iter().find(|found| found.name == class);
    standard.expect("twins are of standard classes")
}

/// What the class itself does.
fn rightly(class: &str, method: &str, arguments: &[u8]) -> Finish {
    (right(class).run)(method, arguments)
}

/// What the class itself returns, of a method that cannot fail.
fn returned<T: Value>(class: &str, method: &str, arguments: &[u8]) -> T {
    match rightly(class, method, arguments) {
        Finish::Returned(bytes) => from_bytes(&bytes).expect("the class encoded it"),
        other => panic!("{class}/{method} ended with {other:?}"),
    }
}

fn arguments<T: Value>(bytes: &[u8]) -> T {
    from_bytes(bytes).expect("the simulation's arguments decode")
}

fn answer<T: Value>(value: &T) -> Finish {
    Finish::Returned(to_bytes(value))
}

fn lease_given_twice(method: &str, bytes: &[u8]) -> Finish {
    if method == "acquire" {
        let holder: Option<HolderInfo> = returned("Lease", "holder", &[]);
        if let Some(HolderInfo { token, ends, .. }) = holder {
            return answer(&Granted { token, key: 0, ends });
        }
    }
    rightly("Lease", method, bytes)
}

fn lease_good_for_ever(method: &str, bytes: &[u8]) -> Finish {
    match (method, rightly("Lease", method, bytes)) {
        ("renew", Finish::Failed(_)) => {
            let (_, duration): (u64, Duration) = arguments(bytes);
            let Time(now) = ctx::now();
            let duration = u64::try_from(duration.as_nanos()).expect("it is short");
            answer(&Time(now + duration))
        }
        ("release", Finish::Failed(_)) => Finish::Returned(Vec::new()),
        (_, finish) => finish,
    }
}

fn latch_counts_twice(method: &str, bytes: &[u8]) -> Finish {
    if method == "count_down" {
        let _: u32 = returned("Latch", method, bytes);
    }
    rightly("Latch", method, bytes)
}

fn latch_opens_early(method: &str, bytes: &[u8]) -> Finish {
    if method == "wait" { Finish::Returned(Vec::new()) } else { rightly("Latch", method, bytes) }
}

fn latch_forgets_last(method: &str, bytes: &[u8]) -> Finish {
    if method == "count_down" && returned::<u32>("Latch", "count", &[]) == 1 {
        return answer(&0_u32);
    }
    rightly("Latch", method, bytes)
}

fn tuple_stays(method: &str, bytes: &[u8]) -> Finish {
    rightly("TupleSpace", if method == "in" { "rd" } else { method }, bytes)
}

fn tuple_lost(method: &str, bytes: &[u8]) -> Finish {
    if method == "out" && ctx::fencing_token().is_multiple_of(4) {
        return answer(&ctx::fencing_token());
    }
    rightly("TupleSpace", method, bytes)
}

fn register_ignores_version(method: &str, bytes: &[u8]) -> Finish {
    if method == "compare_and_set" {
        let (key, _, value): (Bytes, Expected, Bytes) = arguments(bytes);
        let version: u64 = returned("Register", "set", &to_bytes(&(key, value)));
        return answer(&Some(version));
    }
    rightly("Register", method, bytes)
}

fn register_loses_value(method: &str, bytes: &[u8]) -> Finish {
    if method == "set" && ctx::fencing_token().is_multiple_of(4) {
        return answer(&ctx::fencing_token());
    }
    rightly("Register", method, bytes)
}

fn job_comes_at_once(method: &str, bytes: &[u8]) -> Finish {
    if method == "nack" {
        let (lease, _): (u64, Option<Duration>) = arguments(bytes);
        return rightly("WorkQueue", method, &to_bytes(&(lease, Some(Duration::ZERO))));
    }
    rightly("WorkQueue", method, bytes)
}

fn job_given_away(method: &str, bytes: &[u8]) -> Finish {
    if method == "nack" {
        let (lease, _): (u64, Option<Duration>) = arguments(bytes);
        return rightly("WorkQueue", "ack", &to_bytes(&lease));
    }
    rightly("WorkQueue", method, bytes)
}

fn election_of_two(method: &str, bytes: &[u8]) -> Finish {
    if method == "campaign" && returned::<Option<Leader>>("Election", "leader", &[]).is_some() {
        return answer(&ctx::fencing_token());
    }
    rightly("Election", method, bytes)
}

fn election_for_life(method: &str, bytes: &[u8]) -> Finish {
    if method == "resign" {
        return Finish::Returned(Vec::new());
    }
    rightly("Election", method, bytes)
}

fn election_of_the_dead(method: &str, bytes: &[u8]) -> Finish {
    if method == "session_over" {
        return Finish::Returned(Vec::new());
    }
    rightly("Election", method, bytes)
}

fn election_hides_leader(method: &str, bytes: &[u8]) -> Finish {
    if method == "observe" {
        return answer(&None::<Leader>);
    }
    rightly("Election", method, bytes)
}

fn membership_forgets_its_own(method: &str, bytes: &[u8]) -> Finish {
    if method == "join" {
        let (name, _): (String, Bytes) = arguments(bytes);
        let member: Option<Member> = returned("Membership", "member", &to_bytes(&name));
        if let Some(Member { token, session, .. }) = member
            && ctx::session() == Some(session)
        {
            let () = returned("Membership", "leave", &to_bytes(&(name, token)));
        }
    }
    rightly("Membership", method, bytes)
}

fn rate_limiter_undercharges(method: &str, bytes: &[u8]) -> Finish {
    let bytes = if method == "acquire" { to_bytes(&1_u32) } else { bytes.to_vec() };
    rightly("RateLimiter", method, &bytes)
}

fn rate_limiter_takes_piecemeal(method: &str, bytes: &[u8]) -> Finish {
    if method == "acquire" {
        for _ in 1..arguments::<u32>(bytes) {
            match rightly("RateLimiter", method, &to_bytes(&1_u32)) {
                Finish::Returned(_) => {}
                other => return other,
            }
        }
        return rightly("RateLimiter", method, &to_bytes(&1_u32));
    }
    rightly("RateLimiter", method, bytes)
}
