//! Snapshots on disk: what is written is read back, and damage is found wherever it is.

use gesmas_machine::{Machine, Settings, scripted::ScriptedEngine};

use super::{
    repo::{FsRepo, MemRepo, Repo, Stage},
    *,
};

const OWNER: Owner = Owner { cluster: 0x6e5, group: 1, configuration: 1 };

fn snapshot() -> gesmas_machine::Snapshot {
    Machine::new(ScriptedEngine::new(), Settings::default()).snapshot()
}

fn store(disk: &MemRepo) -> Store {
    Store::new(Box::new(disk.clone()), OWNER)
}

#[test]
fn the_newest_good_one_is_found_and_damaged_ones_are_removed() {
    let disk = MemRepo::new();
    let mut store = store(&disk);
    for index in [10, 20, 30] {
        let (head, bytes) = store.write(index, &snapshot()).unwrap();
        assert_eq!((head.index, bytes), (index, store.load(index).unwrap().bytes));
    }
    disk.alter(30, |bytes| *bytes.last_mut().unwrap() ^= 1);
    let (newest, refused) = store.newest().unwrap();
    assert_eq!(newest.unwrap().head.index, 20);
    assert!(matches!(refused[..], [SnapshotError::Damaged { index: 30, .. }]), "{refused:?}");
    assert_eq!(disk.whole(), [10, 20]);
    store.remove_before(20).unwrap();
    assert_eq!(disk.whole(), [20]);
}

#[test]
fn every_flipped_bit_and_every_lost_tail_is_found() {
    let disk = MemRepo::new();
    let mut store = store(&disk);
    store.write(7, &snapshot()).unwrap();
    let length = usize::try_from(store.load(7).unwrap().bytes).unwrap();
    for at in 0..length * 8 {
        let flip = |bytes: &mut Vec<u8>| bytes[at / 8] ^= 1 << (at % 8);
        disk.alter(7, flip);
        store.load(7).expect_err("a bit is flipped");
        disk.alter(7, flip);
    }
    let whole = store.piece(7, 0).unwrap().0;
    for kept in 0..length {
        disk.alter(7, |bytes| bytes.truncate(kept));
        store.load(7).expect_err("the end is missing");
        disk.alter(7, |bytes| *bytes = whole.clone());
    }
    disk.alter(7, |bytes| bytes.push(0));
    store.load(7).expect_err("something follows");
}

#[test]
fn another_clusters_snapshot_is_refused_and_kept() {
    let disk = MemRepo::new();
    store(&disk).write(7, &snapshot()).unwrap();
    let mut other = Store::new(Box::new(disk.clone()), Owner { cluster: 1, ..OWNER });
    assert!(matches!(other.newest(), Err(SnapshotError::WrongOwner { index: 7, .. })));
    assert_eq!(disk.whole(), [7]);
}

#[test]
fn a_full_disk_leaves_nothing_of_the_file() {
    let disk = MemRepo::new();
    disk.set_room(Some(100));
    let error = store(&disk).write(7, &snapshot()).unwrap_err();
    assert!(error.passes(), "{error}");
    disk.set_room(None);
    assert!(store(&disk).list().unwrap().is_empty());
    assert!(disk.clone().list(Stage::Writing).unwrap().is_empty());
    store(&disk).write(7, &snapshot()).unwrap();
}

#[test]
fn want_of_a_descriptor_costs_neither_a_snapshot_nor_what_was_fetched() {
    let (here, there) = (MemRepo::new(), MemRepo::new());
    here.set_descriptors(false);
    let error = store(&here).write(7, &snapshot()).unwrap_err();
    assert!(error.passes(), "{error}");
    here.set_descriptors(true);
    store(&there).write(7, &snapshot()).unwrap();
    let (whole, total) = store(&there).piece(7, 0).unwrap();
    let mut fetching = store(&here);
    fetching.begin_fetch(7).unwrap();
    assert_eq!(fetching.add_piece(7, 0, &whole).unwrap(), total);
    here.set_descriptors(false);
    let error = fetching.finish_fetch(7).unwrap_err();
    assert!(error.passes(), "{error}");
    here.set_descriptors(true);
    assert_eq!(fetching.begin_fetch(7).unwrap(), total, "all of it is still there");
    assert_eq!(fetching.finish_fetch(7).unwrap().head.index, 7);
}

#[test]
fn a_fetch_goes_on_where_it_was_and_ends_with_the_same_file() {
    let (here, there) = (MemRepo::new(), MemRepo::new());
    store(&there).write(7, &snapshot()).unwrap();
    let (whole, total) = store(&there).piece(7, 0).unwrap();
    let middle = whole.len() / 2;
    let mut fetching = store(&here);
    assert_eq!(fetching.begin_fetch(7).unwrap(), 0);
    assert_eq!(fetching.add_piece(7, 0, &whole[..middle]).unwrap(), middle as u64);
    // A piece that comes twice adds nothing.
    assert_eq!(fetching.add_piece(7, 0, &whole[..middle]).unwrap(), middle as u64);
    here.cut_power(&mut |_| 0);
    let mut fetching = store(&here);
    assert_eq!(fetching.begin_fetch(7).unwrap(), middle as u64);
    assert_eq!(fetching.add_piece(7, middle as u64, &whole[middle..]).unwrap(), total);
    assert_eq!(fetching.finish_fetch(7).unwrap().head.index, 7);
    assert_eq!(store(&here).piece(7, 0).unwrap().0, whole);
}

#[test]
fn what_was_fetched_damaged_is_dropped() {
    let (here, there) = (MemRepo::new(), MemRepo::new());
    store(&there).write(7, &snapshot()).unwrap();
    let (mut whole, _) = store(&there).piece(7, 0).unwrap();
    whole[150] ^= 4;
    let mut fetching = store(&here);
    fetching.begin_fetch(7).unwrap();
    fetching.add_piece(7, 0, &whole).unwrap();
    fetching.finish_fetch(7).unwrap_err();
    assert!(here.whole().is_empty());
    assert_eq!(fetching.begin_fetch(7).unwrap(), 0, "it begins anew");
}

#[test]
fn a_folder_of_the_file_system_does_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Store::new(Box::new(FsRepo::open(folder.path()).unwrap()), OWNER);
    open().write(5, &snapshot()).unwrap();
    open().write(9, &snapshot()).unwrap();
    assert_eq!(open().newest().unwrap().0.unwrap().head.index, 9);
    let (bytes, total) = open().piece(9, 0).unwrap();
    assert_eq!(bytes.len() as u64, total);
    let mut fetching = open();
    fetching.begin_fetch(12).unwrap();
    fetching.add_piece(12, 0, b"no snapshot").unwrap();
    assert_eq!(open().begin_fetch(12).unwrap(), 11);
    open().finish_fetch(12).unwrap_err();
    open().remove_before(9).unwrap();
    assert_eq!(open().list().unwrap(), [9]);
}

#[test]
fn a_snapshot_of_another_version_stops_the_start_and_stays() {
    let disk = MemRepo::new();
    let mut store = store(&disk);
    store.write(7, &snapshot()).unwrap();
    // A newer program wrote an image of another format: checksums hold, the magic number differs.
    let (head, image) = super::file::decode(&store.piece(7, 0).unwrap().0, 7).unwrap();
    let mut other = Vec::new();
    let mut sink = |piece: &[u8]| {
        other.extend_from_slice(piece);
        Ok::<(), std::convert::Infallible>(())
    };
    let mut writer = super::file::FileWriter::begin(&head, &mut sink).unwrap();
    writer.write(b"gesmas\x00\xff").unwrap();
    writer.write(&image[8..]).unwrap();
    writer.end().unwrap();
    disk.alter(7, |bytes| *bytes = other);
    let refused = store.newest().map(drop).unwrap_err();
    assert!(matches!(refused, SnapshotError::Image { index: 7, .. }), "{refused}");
    assert_eq!(disk.whole(), [7]);
}

#[test]
fn evidence_is_no_snapshot_and_there_is_only_so_much_of_it() {
    let disk = MemRepo::new();
    let mut store = store(&disk);
    for step in 1..=8 {
        assert!(store.write_evidence(1_000 * step, &snapshot()).unwrap());
    }
    assert!(!store.write_evidence(9_000, &snapshot()).unwrap(), "there is enough");
    assert!(store.write_evidence(8_000, &snapshot()).unwrap(), "the same again needs no room");
    assert!(store.list().unwrap().is_empty());
    assert!(store.newest().unwrap().0.is_none());
}

#[test]
fn evidence_is_read_by_whoever_looks_for_what_differs() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::new(Box::new(FsRepo::open(folder.path()).unwrap()), OWNER);
    assert!(store.write_evidence(5_000, &snapshot()).unwrap());
    let path = folder.path().join("0000000000005000.snapshot.evidence");
    let mut bytes = std::fs::read(&path).unwrap();
    let found = inspect(&bytes).unwrap();
    assert_eq!((found.head.index, found.head.owner), (5_000, OWNER));
    assert!(found.unsound.is_none());
    assert_eq!(found.snapshot.differences(&snapshot(), 9), []);
    *bytes.last_mut().unwrap() ^= 1;
    assert!(matches!(inspect(&bytes), Err(SnapshotError::Damaged { index: 5_000, .. })));
    inspect(b"short").unwrap_err();
}

/// A snapshot after so many steps.
fn after(steps: u64) -> gesmas_machine::Snapshot {
    use gesmas_machine::{Ballot, Batch, Command, Genesis, Limits, LogEntry, SessionId, Time};
    let mut machine = Machine::new(ScriptedEngine::new(), Settings::default());
    let genesis = Genesis {
        cluster: OWNER.cluster,
        state_machine_version: gesmas_machine::STATE_MACHINE_VERSION,
        seed: [0; 32],
        replicas: vec![1],
        engine: ScriptedEngine::own_identity(),
        limits: Limits::default(),
        reserved: Default::default(),
    };
    let nothing = Command::ExpireSession { session: SessionId(0) };
    let commands = vec![nothing; usize::try_from(steps).unwrap()];
    let batch = Batch { ballot: Ballot::default(), stamp: Time(1), commands };
    for entry in [LogEntry::Genesis(Box::new(genesis)), LogEntry::Batch(batch)] {
        machine.handle_entry(entry).unwrap();
    }
    while machine.run(100) != gesmas_machine::Progress::Idle {}
    machine.snapshot()
}

#[test]
fn snapshots_of_a_state_that_is_not_the_groups_are_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Store::new(Box::new(FsRepo::open(folder.path()).unwrap()), OWNER);
    for index in [10, 20, 30] {
        open().write(index, &after(index)).unwrap();
    }
    open().set_aside_after(20, false).unwrap();
    assert_eq!(open().list().unwrap(), [10]);
    assert!(folder.path().join("0000000000000020.snapshot.diverged").is_file());
    assert!(folder.path().join("0000000000000030.snapshot.diverged").is_file());
    open().set_aside_after(0, true).unwrap();
    assert_eq!(open().list().unwrap(), [10], "nothing else is left");
    open().set_aside_after(0, false).unwrap();
    assert!(open().list().unwrap().is_empty());
}
