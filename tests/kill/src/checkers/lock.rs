//! The lock: never two holders at once, and tokens only rise.
//!
//! A hold counts from when its holder was told until it called `unlock`, died, or began to doubt
//! that its session lives; what comes after is what fencing tokens are for.
//! Not here: calls whose end is unknown. Who does not know that it holds the lock does nothing with
//! it.

use super::Findings;

/// One time that a client held the lock for certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    /// Its session.
    pub(crate) session: u64,
    /// Its token.
    pub(crate) token: u64,
    /// When the client was told.
    pub(crate) from: u64,
    /// When it called `unlock`, died or began to doubt.
    pub(crate) until: u64,
}

/// Checks the holds of one lock.
pub(crate) fn check(holds: &[Hold]) -> Findings {
    let mut holds = holds.to_vec();
    holds.sort_by_key(|hold| hold.from);
    let mut findings = Findings::default();
    let (mut together, mut falling) = (Vec::new(), Vec::new());
    let mut last: Option<Hold> = None;
    let mut greatest = 0;
    for hold in holds {
        if let Some(last) = last
            && hold.from < last.until
        {
            together.push(format!(
                "session {} was given token {} while session {} held token {}",
                hold.session, hold.token, last.session, last.token
            ));
        }
        if hold.token <= greatest {
            falling.push(format!("token {} came after token {greatest}", hold.token));
        }
        greatest = greatest.max(hold.token);
        if last.is_none_or(|last| hold.until > last.until) {
            last = Some(hold);
        }
    }
    findings.tell("lock", together);
    findings.out_of_order = findings.tell("lock", falling);
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(token: u64, from: u64, until: u64) -> Hold {
        Hold { session: token, token, from, until }
    }

    #[test]
    fn one_after_the_other_passes() {
        assert_eq!(check(&[hold(5, 20, 30), hold(1, 0, 10), hold(3, 11, 20)]), Findings::default());
    }

    #[test]
    fn two_holders_at_once_are_refused() {
        let found = check(&[hold(1, 0, 10), hold(2, 9, 12)]);
        assert!(found.violations[0].contains("while session 1 held token 1"), "{found:?}");
        let found = check(&[hold(1, 0, 100), hold(2, 120, 130), hold(3, 125, 126)]);
        assert_eq!(found.violations.len(), 1);
    }

    #[test]
    fn a_long_hold_is_not_forgotten_behind_a_short_one() {
        let found = check(&[hold(1, 0, 100), hold(2, 10, 20), hold(3, 30, 40)]);
        assert_eq!(found.violations.len(), 2, "{found:?}");
    }

    #[test]
    fn a_token_that_does_not_rise_is_refused() {
        assert_eq!(check(&[hold(2, 0, 10), hold(1, 11, 12)]).out_of_order, 1);
        let again = Hold { session: 9, ..hold(2, 11, 12) };
        assert_eq!(check(&[hold(2, 0, 10), again]).out_of_order, 1);
    }
}
