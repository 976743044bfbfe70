//! Images that are damaged, and machines that were parked.

use std::convert::Infallible;

use gesmas_machine::{ImageError, Machine, Settings, Snapshot, scripted::ScriptedEngine};

use crate::{
    lab::Lab,
    standard::{LIFE, LOCK, QUEUE},
};

/// A state with all kinds of records.
fn furnished() -> Lab {
    let mut lab = Lab::new(&[QUEUE, LOCK, LIFE]);
    lab.play(
        "
        open ann
        open bob
        ann creates Queue/q 2
        ann calls Queue/q produce apple
        ann within 900 calls Queue/q produce pear
        bob within 900 calls Queue/q produce plum
        ann calls Lock/l take
        bob calls Lock/l take_for 500
        ann calls Life/l after 600 bell
        ann calls Life/l after_panic 1 bell
        ann calls Life/l watch 3 bob
        bob calls Life/l notify 2 hello
        ",
    );
    lab
}

fn written(snapshot: &Snapshot) -> Vec<u8> {
    let mut bytes = Vec::new();
    let outcome: Result<(), Infallible> = snapshot.write(&mut |piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    });
    outcome.expect("memory takes everything");
    bytes
}

#[test]
fn a_snapshot_stays_as_it_is_while_the_machine_goes_on() {
    let mut lab = furnished();
    let before = lab.machine().encode_image();
    let (snapshot, hash) = (lab.machine().snapshot(), lab.machine().state_hash());
    lab.play(
        "
        ann calls Queue/q consume
        ann calls Queue/q consume
        bob calls Queue/q produce fig
        ann calls Lock/l give 1
        close ann
        +2000 tick
        ",
    );
    assert_ne!(lab.machine().state_hash(), hash);
    assert_eq!(written(&snapshot), before);
    assert_eq!(snapshot.state_hash(), hash);
    assert_eq!(load(&before).expect("it is whole").state_hash(), hash);
}

#[test]
fn a_restored_state_goes_on_beyond_everything_that_its_history_gave_out() {
    let mut lab = Lab::new(&[]);
    lab.play("open ann\nopen bob");
    let snapshot = lab.machine().snapshot();
    let hash = snapshot.state_hash();
    let restored = snapshot.restored(vec![1, 2, 3]);
    assert_eq!(restored.epoch(), 1);
    assert_ne!(restored.state_hash(), hash);
    let again = Snapshot::read(&written(&restored)).expect("it is sound");
    assert_eq!(again.state_hash(), restored.state_hash());
    let twice = again.restored(vec![1, 2, 3, 4, 5]);
    assert_eq!(twice.epoch(), 2);
    let mut machine = Machine::from_snapshot(twice, ScriptedEngine::new(), Settings::default())
        .expect("it is of this engine");
    assert_eq!(machine.ballot(), gesmas_machine::Ballot::default(), "any leader may begin");
    let genesis = machine.genesis().expect("it was founded");
    assert_eq!(genesis.replicas, [1, 2, 3, 4, 5], "majorities are those of the new members");
    let ballot = gesmas_machine::Ballot { configuration: 1, number: 1, priority: 0, replica: 1 };
    let now = machine.now();
    let open =
        gesmas_machine::Command::OpenSession { nonce: 77, principal: "eve".into(), timeout: 1_000 };
    let batch = gesmas_machine::Batch { ballot, stamp: now.after(1), commands: vec![open] };
    for entry in [
        gesmas_machine::LogEntry::LeaderStart { ballot, now },
        gesmas_machine::LogEntry::Batch(batch),
    ] {
        machine.handle_entry(entry).expect("it runs");
    }
    while machine.run(100) != gesmas_machine::Progress::Idle {}
    let opened = std::iter::from_fn(|| machine.poll_effect()).find_map(|effect| match effect {
        gesmas_machine::Effect::SessionOpened { session, .. } => session.ok(),
        _ => None,
    });
    assert!(opened.expect("it opens").0 >= 1 << 45, "no session of an earlier epoch has its id");
}

#[test]
fn whoever_takes_no_more_of_a_snapshot_gets_no_more() {
    let snapshot = furnished().machine().snapshot();
    let mut pieces = 0;
    let outcome = snapshot.write(&mut |_| {
        pieces += 1;
        if pieces == 40 { Err("full") } else { Ok(()) }
    });
    assert_eq!((outcome, pieces), (Err("full"), 40));
}

fn load(image: &[u8]) -> Result<Machine<ScriptedEngine>, ImageError> {
    Machine::from_image(image, ScriptedEngine::new(), Settings::default())
}

#[test]
fn a_damaged_image_is_refused_wherever_it_is_damaged() {
    let image = furnished().machine().encode_image();
    load(&image).expect("it is whole");
    for position in 0..image.len() {
        let mut damaged = image.clone();
        damaged[position] ^= 1 << (position % 8);
        assert!(load(&damaged).is_err(), "byte {position} of {} was changed", image.len());
    }
    for length in (0..image.len()).step_by(97).chain([image.len() - 1]) {
        assert!(load(&image[..length]).is_err(), "only {length} bytes are left");
    }
    let longer = [image.as_slice(), &[0]].concat();
    assert!(matches!(load(&longer), Err(ImageError::Torn)));
    assert!(matches!(load(b""), Err(ImageError::Format)));
}

#[test]
fn bodies_are_dropped_and_rebuilt_and_nobody_can_tell() {
    let mut lab = furnished();
    let rest = "
        ann calls Queue/q consume
        ann calls Queue/q consume
        ann calls Queue/q consume
        ann calls Lock/l give 1
        +2000 tick
    ";
    assert!(lab.parking_machine().statistics().parked >= 2);
    let mut copy = lab.copy();
    assert_eq!(copy.state_hash(), lab.machine().state_hash());
    assert_eq!(copy.engine_mut().activations(), 0, "an image holds no bodies");
    lab.play(rest);
    assert!(lab.parking_machine().statistics().rebuilt >= 2);
    assert_eq!(lab.machine().statistics().rebuilt, 0);
    assert_eq!(lab.machine().engine().activations(), 0, "nobody waits any more");
}

#[test]
#[should_panic(expected = "a snapshot is taken between entries")]
fn no_image_is_taken_of_half_an_entry() {
    let mut machine = furnished().copy();
    let ballot = machine.ballot();
    let stamp = machine.now().after(10_000);
    let batch = gesmas_machine::Batch { ballot, stamp, commands: Vec::new() };
    machine.handle_entry(gesmas_machine::LogEntry::Batch(batch)).expect("it runs");
    // The batch has begun, and alarms that its stamp has reached are left.
    machine.run(1);
    assert!(!machine.is_idle(), "a read would see half a batch");
    let _ = machine.encode_image();
}
