//! How long nothing was acknowledged: over all, and while a majority of the replicas ran.
//!
//! Invariant checked: while a majority runs undisturbed, calls are acknowledged again within
//! [`BOUND`].
//! Not here: whose fault a gap was. A replica counts as running from when its process starts, so
//! reading its log is part of a gap.

use std::time::Duration;

use super::Findings;

/// Longest time without an acknowledgement while a majority runs undisturbed.
pub(crate) const BOUND: Duration = Duration::from_secs(30);

/// From then on, whether a majority runs.
pub(crate) type Change = (u64, bool);

/// The longest gaps, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gaps {
    /// Over all.
    pub(crate) longest: u64,
    /// While a majority ran all the time.
    pub(crate) longest_with_majority: u64,
}

/// Measures from the first change to the last acknowledgement.
pub(crate) fn measure(times: &[u64], changes: &[Change]) -> (Gaps, Findings) {
    let mut times = times.to_vec();
    times.sort_unstable();
    let longest = times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
    let mut gaps = Gaps { longest, longest_with_majority: 0 };
    let end = times.last().copied().unwrap_or(0);
    let mut since = None;
    // A pseudo change at the end closes the last interval.
    for (at, majority) in changes.iter().copied().chain([(end, false)]) {
        if majority {
            since.get_or_insert(at);
        } else if let Some(from) = since.take() {
            gaps.longest_with_majority =
                gaps.longest_with_majority.max(longest_between(&times, from, at));
        }
    }
    let mut findings = Findings::default();
    if u128::from(gaps.longest_with_majority) > BOUND.as_nanos() {
        let seconds = gaps.longest_with_majority / 1_000_000_000;
        let text = format!("nothing was acknowledged for {seconds} s while a majority ran");
        findings.tell("availability", vec![text]);
    }
    (gaps, findings)
}

fn longest_between(times: &[u64], from: u64, to: u64) -> u64 {
    let first = times.partition_point(|time| *time <= from);
    let last = times.partition_point(|time| *time < to).max(first);
    let mut longest = 0;
    let mut previous = from;
    for time in times[first..last].iter().copied().chain([to]) {
        longest = longest.max(time.saturating_sub(previous));
        previous = time;
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn gaps_without_a_majority_are_told_apart() {
        let times = [1, 2, 50, 51, 60].map(|time| time * SECOND);
        let changes = [(0, true), (3 * SECOND, false), (45 * SECOND, true)];
        let (gaps, findings) = measure(&times, &changes);
        assert_eq!(gaps.longest, 48 * SECOND);
        assert_eq!(gaps.longest_with_majority, 9 * SECOND);
        assert_eq!(findings, Findings::default());
    }

    #[test]
    fn a_long_gap_with_a_majority_is_refused() {
        let times = [1, 32, 33].map(|time| time * SECOND);
        let (gaps, findings) = measure(&times, &[(0, true)]);
        assert_eq!(gaps.longest_with_majority, 31 * SECOND);
        assert_eq!(findings.violations.len(), 1);
    }
}
