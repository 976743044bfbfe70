//! Replicas compare their states by votes; what differs is found; an invocation can be overridden.

use expect_test::expect;
use gesmas_machine::{Command, Effect, InvocationId, Override, RecordName, Step, Sum};

use crate::{
    lab::{Lab, Scripted},
    standard::{LOCK, PIECES, QUEUE},
};

/// Ordered time after which replicas that contradict each other stop waiting, nanoseconds.
const PATIENCE: u64 = 10_000_000_000;

/// A laboratory in which states are compared every ten steps, just after such a step, and the hash.
fn at_checkpoint() -> (Lab, Step, Sum) {
    let mut lab = Lab::with_limits(&[QUEUE, PIECES], |limits| limits.checkpoint_steps = 10);
    lab.play("open ann");
    loop {
        let trace = lab.play("ann calls Pieces/x vs s 1");
        let step = lab.machine().step();
        if let Some(hash) = lab.machine().hash_after(step) {
            assert!(trace.contains(&format!("checkpoint after step {step}")), "{trace}");
            assert_eq!(hash, lab.machine().state_hash());
            return (lab, step, hash);
        }
    }
}

fn vote(replica: u64, step: Step, hash: Sum) -> Command {
    Command::Vote { replica, step, hash }
}

/// What a vote brings, the checkpoints of its own step apart.
fn cast(lab: &mut Lab, votes: &[(u64, Step, Sum)]) -> Vec<Effect> {
    let commands = votes.iter().map(|(replica, step, hash)| vote(*replica, *step, *hash));
    let stamp = lab.machine().now().after(1);
    let mut effects = lab.batch(stamp, commands.collect());
    effects.retain(|effect| !matches!(effect, Effect::Checkpoint { .. }));
    effects
}

#[test]
fn a_checkpoint_comes_every_so_many_steps_and_is_remembered() {
    let (mut lab, step, hash) = at_checkpoint();
    assert_eq!(step.0 % 10, 0);
    assert_eq!(lab.machine().hash_after(step), Some(hash));
    let state = lab.machine().state_after(step).expect("it is the newest").clone();
    lab.play("ann calls Pieces/x vs s 1");
    assert_eq!(state.state_hash(), hash);
    assert_eq!(lab.machine().hash_after(Step(step.0 + 1)), None);
}

#[test]
fn a_majority_agrees_once_and_whoever_votes_otherwise_is_named() {
    let (mut lab, step, hash) = at_checkpoint();
    let other = Sum(hash.0 ^ 1);
    assert_eq!(cast(&mut lab, &[(2, step, other)]), []);
    assert_eq!(cast(&mut lab, &[(1, step, hash)]), []);
    assert_eq!(lab.machine().agreed_step(), None);
    let found = [Effect::Agreed { step, hash }, Effect::VotedOtherwise { step, replica: 2 }];
    assert_eq!(cast(&mut lab, &[(3, step, hash)]), found);
    assert_eq!(lab.machine().agreed_step(), Some(step));
    assert_eq!(lab.machine().agreed_with(3), Some(step));
    assert_eq!(lab.machine().agreed_with(2), None);
    // The same again changes nothing; another one after the judgement is still found.
    assert_eq!(cast(&mut lab, &[(2, step, other), (3, step, hash)]), []);
    assert_eq!(cast(&mut lab, &[(1, step, other)]), [Effect::VotedOtherwise { step, replica: 1 }]);
}

#[test]
fn a_vote_that_cannot_count_does_not() {
    let (mut lab, step, hash) = at_checkpoint();
    let future = Step(step.0 + 1_000);
    let between = Step(step.0 - 1);
    let before = lab.machine().state_hash();
    for (replica, step) in [(4, step), (0, step), (1, future), (1, between), (1, Step(0))] {
        assert_eq!(cast(&mut lab, &[(replica, step, hash)]), []);
        assert_eq!(lab.machine().votes(step).count(), 0);
    }
    assert_ne!(before, lab.machine().state_hash(), "steps pass all the same");
    assert_eq!(
        cast(&mut lab, &[(1, step, hash), (2, step, hash)]),
        [Effect::Agreed { step, hash }]
    );
}

#[test]
fn without_any_possible_majority_all_are_told_at_once() {
    let (mut lab, step, hash) = at_checkpoint();
    let votes = [(1, step, hash), (2, step, Sum(1)), (3, step, Sum(2))];
    assert_eq!(cast(&mut lab, &votes), [Effect::NoAgreement { step }]);
    // It stands, whatever is said of that step in later lives.
    assert_eq!(cast(&mut lab, &[(2, step, hash), (1, step, Sum(2)), (1, step, hash)]), []);
    assert_eq!(lab.machine().agreed_step(), None);
}

#[test]
fn replicas_that_contradict_each_other_do_not_wait_for_ever_for_a_third() {
    let (mut lab, step, hash) = at_checkpoint();
    assert_eq!(cast(&mut lab, &[(1, step, hash), (2, step, Sum(1))]), []);
    let since = lab.machine().now();
    let step_at = |lab: &mut Lab, after| lab.batch(since.after(after), vec![vote(9, step, hash)]);
    let told = Effect::NoAgreement { step };
    assert!(!step_at(&mut lab, PATIENCE - 1).contains(&told));
    assert!(step_at(&mut lab, PATIENCE).contains(&told));
    assert!(!step_at(&mut lab, PATIENCE + 1).contains(&told), "only once");
    assert_eq!(cast(&mut lab, &[(3, step, hash)]), [], "and it stands");
}

#[test]
fn a_third_can_vote_after_hours_without_a_leader() {
    let (mut lab, step, hash) = at_checkpoint();
    cast(&mut lab, &[(1, step, hash), (2, step, Sum(1))]);
    let since = lab.machine().now().after(100 * PATIENCE);
    lab.lead(since);
    let told = Effect::NoAgreement { step };
    let later = since.after(PATIENCE - 1);
    assert!(!lab.batch(later, vec![vote(9, step, hash)]).contains(&told));
    let found = [Effect::Agreed { step, hash }, Effect::VotedOtherwise { step, replica: 2 }];
    assert_eq!(cast(&mut lab, &[(3, step, hash)]), found);
}

#[test]
fn a_third_that_votes_in_time_ends_the_dispute() {
    let (mut lab, step, hash) = at_checkpoint();
    cast(&mut lab, &[(1, step, hash), (2, step, Sum(1))]);
    let found = [Effect::Agreed { step, hash }, Effect::VotedOtherwise { step, replica: 2 }];
    assert_eq!(cast(&mut lab, &[(3, step, hash)]), found);
    let later = lab.machine().now().after(2 * PATIENCE);
    assert!(!lab.batch(later, vec![vote(9, step, hash)]).contains(&Effect::NoAgreement { step }));
}

#[test]
fn who_never_votes_on_a_disputed_step_ends_the_dispute_by_a_later_one() {
    let (mut lab, step, hash) = at_checkpoint();
    cast(&mut lab, &[(1, step, hash), (2, step, Sum(1))]);
    lab.play(&"ann calls Pieces/x vs s 1\n".repeat(10));
    let later = Step(step.0 + 10);
    let hash = lab.machine().hash_after(later).expect("it was a checkpoint");
    let agreed = Effect::Agreed { step: later, hash };
    assert_eq!(cast(&mut lab, &[(1, later, hash), (3, later, hash)]), [agreed]);
    let end = lab.machine().now().after(2 * PATIENCE);
    assert!(!lab.batch(end, vec![vote(9, step, hash)]).contains(&Effect::NoAgreement { step }));
}

#[test]
fn what_is_remembered_of_votes_is_bounded() {
    let (mut lab, first, _) = at_checkpoint();
    for _ in 0..70 {
        let step = Step(lab.machine().step().0 / 10 * 10);
        cast(&mut lab, &[(1, step, Sum(7)), (2, step, Sum(7))]);
        lab.play(&"ann calls Pieces/x vs s 1\n".repeat(10));
    }
    assert_eq!(lab.machine().votes(first).count(), 0, "it is forgotten");
    let image = lab.machine().encode_image().len();
    cast(&mut lab, &[(3, first, Sum(8))]);
    assert_eq!(lab.machine().votes(first).count(), 0, "and stays so");
    assert_eq!(lab.machine().encode_image().len(), image);
}

/// Two states of the same step that differ in what the lines do.
fn two(lines: &str, others: &str) -> (Scripted, Scripted) {
    let play = |lines: &str| {
        let mut lab = Lab::new(&[QUEUE, LOCK]);
        lab.play("open ann\nopen bob\nann creates Queue/a 2\nann creates Queue/q 2");
        lab.play("ann creates Queue/r 2\nann calls Queue/q produce apple");
        lab.play(lines);
        lab.copy()
    };
    (play(lines), play(others))
}

/// As two replicas find it that tell each other sums in pages of two.
fn first_difference(one: &Scripted, another: &Scripted) -> Option<RecordName> {
    let (one, another) = (one.snapshot(), another.snapshot());
    let mut after = None;
    loop {
        let theirs = another.sums(after.as_ref(), 2);
        if let Some(found) = one.first_difference(after.as_ref(), &theirs) {
            return Some(found);
        }
        after = Some(theirs.last()?.0.clone());
    }
}

#[test]
fn the_first_record_that_differs_is_found_by_sums() {
    let found = |one: &str, another: &str| {
        let (one, another) = two(one, another);
        let found = first_difference(&one, &another).map(|found| found.to_string());
        let other_way = first_difference(&another, &one).map(|found| found.to_string());
        assert_eq!(found, other_way);
        found.unwrap_or_default()
    };
    assert_eq!(found("ann calls Queue/q consume", "ann calls Queue/q consume"), "");
    assert_eq!(
        found("ann calls Queue/q produce x", "ann calls Queue/q produce y"),
        "object Queue/q"
    );
    assert_eq!(found("ann creates Queue/b 1", "ann creates Queue/c 1"), "object Queue/b");
    assert_eq!(found("ann removes Queue/r", "ann creates Queue/r 2"), "object Queue/r");
    assert_eq!(found("ann calls Queue/r consume", "bob calls Queue/r consume"), "object Queue/r");
    assert_eq!(found("bob acks 1", "ann acks 1"), "session 2");
    assert_eq!(found("+1 tick", "+2 tick"), "what belongs to no object, session or class");
}

#[test]
fn differences_are_shown_in_words() {
    let shown = |one: &str, another: &str| {
        let (one, another) = two(one, another);
        let (one, another) = (one.snapshot(), another.snapshot());
        assert_eq!(one.differences(&one, 100), []);
        let words = |side: Option<String>| side.unwrap_or_else(|| "nothing".into());
        let lines = one.differences(&another, 100).into_iter().filter(|difference| {
            !difference.part.starts_with("sum of") && difference.record != RecordName::Rest
        });
        let lines = lines.map(|difference| {
            let (left, right) = (words(difference.left), words(difference.right));
            format!("{}: {}: {left} / {right}\n", difference.record, difference.part)
        });
        lines.collect::<String>()
    };
    expect![[r#"
        object Queue/q: entry items\x00\x80\x00\x00\x00\x00\x00\x00\x01: x / y
    "#]]
    .assert_eq(&shown("ann calls Queue/q produce x", "ann calls Queue/q produce y"));
    expect![[r#"
        object Queue/r: semaphore filled: count 0, next ticket 1, waiters [2], permits [] / nothing
        object Queue/r: invocation 2: consume() of Request { session: SessionId(3), number: 1 } by bob, waits at semaphore filled with ticket 0 since 1012, timeout None, permit for Nobody, call b7f4cf33665e2fd7, deadline None, permits [], cancelled None / nothing
        session 2: reply 1: of step 10: Ok([]) / nothing
        session 2: reply 2: of step 11: Ok([]) / nothing
        session 3: session: principal bob, timeout 1000 ns, last request 1, next event 1, acknowledged 0 / principal bob, timeout 1000 ns, last request 0, next event 1, acknowledged 0
        session 3: request 1: open: Invocation(InvocationId(2)) / nothing
    "#]].assert_eq(&shown("bob calls Queue/r consume", "ann acks 1-2"));
}

#[test]
fn at_most_as_many_differences_as_asked_for() {
    let (one, another) = two("ann calls Queue/q produce x", "ann creates Queue/s 2");
    assert_eq!(one.snapshot().differences(&another.snapshot(), 1).len(), 1);
}

const METHODS: &str = "
class Methods
update wait 0
  acquire s -> permit
  write done yes
  P t
  write done twice
  return
update give 1
  V $0
  return
update note 0
  write noted yes
  return
read noted 0
  read noted -> x
  return $x
read done 0
  read done -> x
  return $x
";

#[test]
fn an_invocation_that_is_overridden_ends_instead_of_beginning_or_going_on() {
    let mut lab = Lab::new(&[METHODS]);
    lab.play("open ann\nopen bob\nann calls Methods/m wait\nbob calls Methods/m wait");
    let ids: Vec<_> = lab.machine().invocations(9).into_iter().map(|found| found.id.0).collect();
    let [anns, bobs] = ids[..] else { panic!("two wait: {ids:?}") };
    let now = lab.machine().step().0;
    let ends = |ahead, invocation| Override {
        step: Step(now + ahead),
        invocation: InvocationId(invocation),
    };
    // The last comes at a step in which it is not that one's turn.
    lab.set_overrides(vec![ends(1, anns), ends(2, bobs + 2), ends(3, bobs)]);
    expect![[r#"
        > ann calls Methods/m give s
          ann#2 ok
          ann#1 error: the call was cancelled: an operator ended it
        > ann calls Methods/m note
          ann#3 error: the call was cancelled: an operator ended it
        > read ann Methods/m noted
          ok none
        > read ann Methods/m done
          ok yes
        > ann calls Methods/m note
          ann#4 ok
        > read ann Methods/m noted
          ok yes
    "#]]
    .assert_eq(&lab.play(
        "
        ann calls Methods/m give s
        ann calls Methods/m note
        read ann Methods/m noted
        read ann Methods/m done
        ann calls Methods/m note
        read ann Methods/m noted
        ",
    ));
}
