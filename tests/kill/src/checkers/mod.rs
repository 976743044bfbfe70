//! What a good history is. Each checker takes the calls of one workload and says what is wrong.
//!
//! Invariants: a checker believes only what a client knows for certain; an unknown call may have
//! taken effect at any time after it began, once, or not at all. Checkers see values and no sockets,
//! so that their tests feed them bad histories.
//! Not here: who made the history (`load/`).

pub(crate) mod availability;
pub(crate) mod barrier;
pub(crate) mod counter;
pub(crate) mod lock;
pub(crate) mod queue;

/// How many violations of one kind are spelled out.
const SPELLED_OUT: usize = 5;

/// What a checker found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    /// Effects that happened twice.
    pub(crate) duplicates: u64,
    /// Acknowledged effects that are gone.
    pub(crate) lost: u64,
    /// Effects in another order than was promised.
    pub(crate) out_of_order: u64,
    /// Everything in words.
    pub(crate) violations: Vec<String>,
}

impl Findings {
    /// Adds what another checker found.
    pub(crate) fn add(&mut self, other: Self) {
        self.duplicates += other.duplicates;
        self.lost += other.lost;
        self.out_of_order += other.out_of_order;
        self.violations.extend(other.violations);
    }

    /// Adds violations of one kind: all are counted, the first are spelled out.
    fn tell(&mut self, kind: &str, told: Vec<String>) -> u64 {
        let count = told.len();
        self.violations
            .extend(told.into_iter().take(SPELLED_OUT).map(|text| format!("{kind}: {text}")));
        if count > SPELLED_OUT {
            self.violations.push(format!("{kind}: {} more of the kind", count - SPELLED_OUT));
        }
        count as u64
    }
}

/// Goes through things in the order of their beginnings, and shows each together with the greatest
/// of the values of those that had ended before.
fn sweep<T, V: Ord + Copy>(
    mut begins: Vec<(u64, T)>,
    mut ends: Vec<(u64, V)>,
    mut look: impl FnMut(&T, Option<V>),
) {
    begins.sort_by_key(|(began, _)| *began);
    ends.sort_by_key(|(ended, _)| *ended);
    let mut ends = ends.into_iter().peekable();
    let mut greatest = None;
    for (began, thing) in begins {
        while let Some((_, value)) = ends.next_if(|(ended, _)| *ended < began) {
            greatest = greatest.max(Some(value));
        }
        look(&thing, greatest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_sees_what_ended_before_and_nothing_else() {
        let mut seen = Vec::new();
        let begins = vec![(10, 'b'), (0, 'a'), (6, 'c')];
        sweep(begins, vec![(5, 50), (9, 40), (10, 60)], |name, value| seen.push((*name, value)));
        assert_eq!(seen, [('a', None), ('c', Some(50)), ('b', Some(50))]);
    }

    #[test]
    fn many_violations_of_a_kind_are_counted_and_cut_short() {
        let mut findings = Findings::default();
        assert_eq!(findings.tell("kind", vec!["text".into(); 9]), 9);
        assert_eq!(findings.violations.len(), SPELLED_OUT + 1);
        assert_eq!(findings.violations[SPELLED_OUT], "kind: 4 more of the kind");
    }
}
