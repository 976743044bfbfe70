//! Damage of any kind: an error that names the place, or a clean shorter log; never wrong data.

use super::super::repo::{Fault, FaultyRepo};
use super::super::{Tail, verify};
use super::*;

/// A log of some turns over several files, its contents after each turn, and where its last record
/// begins and ends: in the last file that is not all zeros.
fn damaged_soon() -> (MemDisk, Vec<[Contents; 2]>, u64, std::ops::Range<usize>) {
    let disk = MemDisk::new();
    let mut log = create(&disk);
    let mut after = run_turns(&mut log, 60);
    let last = |disk: &MemDisk| {
        let files = report(disk).files;
        files.into_iter().rfind(|file| file.records > 0).unwrap()
    };
    let (file, start) = (last(&disk).file, last(&disk).end);
    log.record(FIRST, &Call::Promise(ballot(99))).unwrap();
    log.record(FIRST, &Call::Append(vec![entry(99, 100)])).unwrap();
    log.sync().unwrap();
    after.push(both(&mut log));
    drop(log);
    let end = last(&disk).end;
    assert_eq!(last(&disk).file, file, "the last record is in the same file");
    let place = |offset| usize::try_from(offset).unwrap();
    (disk, after, file, place(start)..place(end))
}

/// What verification finds, also while a log has the disk open.
fn report(disk: &MemDisk) -> super::super::Report {
    let copy = copy(disk);
    verify(&mut copy.open().unwrap(), Some(IDENTITY))
}

fn copy(disk: &MemDisk) -> MemDisk {
    let copied = MemDisk::new();
    let mut repo = copied.open().unwrap();
    for file in disk.files() {
        let bytes = disk.bytes(file);
        repo.create(file, bytes.len() as u64, &bytes).unwrap();
    }
    copied
}

/// Every bit of every file: a record is mended, whatever else counts is refused, and what does not
/// count is ignored. Nothing else is ever read than what was written, and nothing of it is forgotten.
#[test]
fn a_flipped_bit_anywhere_is_mended_refused_or_does_not_matter() {
    let (disk, after, _, _) = damaged_soon();
    let whole = after.last().unwrap();
    let (mut refused, mut mended, mut unharmed) = (0, 0, 0);
    for file in disk.files() {
        let bytes = disk.bytes(file);
        let end = report(&disk).files.iter().find(|of| of.file == file).unwrap().end;
        let end = usize::try_from(end).unwrap();
        for bit in 0..(end + 40).min(bytes.len()) * 8 {
            disk.alter(file, |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
            match open(&disk) {
                Err(error) => {
                    refused += 1;
                    let named = error.to_string().contains(&format!("file {file} "));
                    assert!(named && bit < 64 * 8, "file {file}, bit {bit}: {error}");
                }
                Ok(mut log) => {
                    assert_eq!(&both(&mut log), whole, "file {file}, bit {bit}");
                    drop(log);
                    assert_eq!(disk.bytes(file)[..end], bytes[..end], "it was mended on the disk");
                    if bit < end * 8 { mended += 1 } else { unharmed += 1 }
                }
            }
            disk.alter(file, |altered| altered.clone_from(&bytes));
        }
    }
    assert!(mended >= 10_000, "{refused} refused, {mended} mended, {unharmed} unharmed");
    assert!(refused > 500 && unharmed > 100, "{refused} refused, {unharmed} unharmed");
}

/// Two bits are not mended: a record in the middle is refused, the last one is a torn turn.
#[test]
fn two_flipped_bits_are_not_mended() {
    let (disk, after, last_file, last_record) = damaged_soon();
    let whole = [disk.bytes(1), disk.bytes(last_file)];
    let flip = |file: u64, at: usize, other: usize| {
        disk.alter(file, |bytes| {
            bytes.clone_from(&whole[usize::from(file != 1)]);
            bytes[at] ^= 0x10;
            bytes[other] ^= 0x02;
        });
    };
    let middle = 64 + 32 + 40;
    for other in middle + 1..middle + 50 {
        flip(1, middle, other);
        let error = open(&disk).err().unwrap();
        assert!(matches!(error, LogError::CorruptMiddle { .. }), "{other}: {error}");
    }
    disk.alter(1, |bytes| bytes.clone_from(&whole[0]));
    for other in last_record.start + 33..last_record.end {
        flip(last_file, last_record.start + 32, other);
        assert_eq!(both(&mut open(&disk).unwrap()), after[after.len() - 2], "{other}");
    }
}

#[test]
fn a_last_record_cut_short_anywhere_is_as_if_never_written() {
    let (disk, after, file, last_record) = damaged_soon();
    let whole = disk.bytes(file);
    // The last byte of the record may be a zero of its padding, which is then not lost.
    let written = whole[..last_record.end].iter().rposition(|byte| *byte != 0).unwrap() + 1;
    for at in last_record.start..last_record.end {
        disk.alter(file, |bytes| bytes[at..].fill(0));
        let mut log = open(&disk).unwrap();
        let expected = if at < written { after.len() - 2 } else { after.len() - 1 };
        assert_eq!(both(&mut log), after[expected], "cut at {at}");
        drop(log);
        // A file that is shorter than it was made is no crash's work.
        disk.alter(file, |bytes| bytes.truncate(at));
        let error = open(&disk).err().unwrap();
        assert!(matches!(error, LogError::WrongLength { file: f, .. } if f == file), "{error}");
        disk.alter(file, |bytes| bytes.clone_from(&whole));
    }
}

#[test]
fn a_corrupt_middle_is_refused_with_its_place() {
    let (disk, _, _, _) = damaged_soon();
    let second = 64 + 32 + 128;
    disk.alter(1, |bytes| bytes[second] ^= 3);
    let error = open(&disk).err().unwrap();
    assert!(
        matches!(error, LogError::CorruptMiddle { file: 1, offset, later_file: 1, later_offset }
            if offset <= second as u64 && later_offset > second as u64),
        "{error}"
    );
    let report = report(&disk);
    assert_eq!(report.problem.unwrap().to_string(), error.to_string());
    assert_eq!(report.files, []);
}

#[test]
fn a_file_whose_end_was_zeroed_is_refused_because_of_the_next() {
    let (disk, _, _, _) = damaged_soon();
    let end = usize::try_from(report(&disk).files[0].end).unwrap();
    disk.alter(1, |bytes| bytes[end - 300..].fill(0));
    let error = open(&disk).err().unwrap();
    assert!(matches!(error, LogError::CorruptMiddle { file: 1, later_file: 2, .. }), "{error}");
}

#[test]
fn missing_and_foreign_files_are_refused() {
    let (disk, _, _, _) = damaged_soon();
    let gone = copy(&disk);
    gone.remove(2);
    assert!(matches!(open(&gone), Err(LogError::FileMissing { file: 2, later: 3 })));
    let gone = copy(&disk);
    gone.remove(1);
    assert!(matches!(open(&gone), Err(LogError::FileMissing { file: 1, later: 2 })));
    let identity = Identity { replica: 3, ..IDENTITY };
    let opened = Log::open(Box::new(disk.open().unwrap()), LogSettings { identity, ..SETTINGS });
    assert!(matches!(opened, Err(LogError::WrongOwner { file: 1, found_replica: 2, .. })));
    // A file under another number is not that file, whatever is in it.
    let moved = copy(&disk);
    moved.alter(2, |bytes| *bytes = disk.bytes(1));
    assert!(matches!(open(&moved), Err(LogError::HeaderCorrupt { file: 2, .. })));
}

#[test]
fn an_unknown_version_is_refused() {
    let (disk, _, _, _) = damaged_soon();
    disk.alter(1, |bytes| {
        bytes[8] = 9;
        let sum = crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..64]);
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    });
    let error = open(&disk).err().unwrap();
    assert!(matches!(error, LogError::UnknownVersion { file: 1, found: 9, known: 3 }), "{error}");
}

#[test]
fn an_entry_cannot_pass_for_a_record() {
    // The bytes of a whole log file, as an entry of another one, torn so that only they are left.
    let (disk, _, _, _) = damaged_soon();
    let planted = Bytes::from(disk.bytes(1));
    let settings = LogSettings { salt: 1, file_bytes: 32 << 10, ..SETTINGS };
    let victim = MemDisk::new();
    let mut log = Log::create(Box::new(victim.open().unwrap()), settings).unwrap();
    log.record(FIRST, &Call::Append(vec![planted])).unwrap();
    log.sync().unwrap();
    drop(log);
    victim.alter(1, |bytes| bytes[64] ^= 3);
    let log = Log::open(Box::new(victim.open().unwrap()), settings).unwrap();
    assert_eq!(log.end(FIRST), 0);
}

#[test]
fn an_entry_that_is_read_back_corrupt_is_an_error() {
    let disk = MemDisk::new();
    let settings = LogSettings { cache_bytes: 0, ..SETTINGS };
    let mut log = Log::create(Box::new(disk.open().unwrap()), settings).unwrap();
    log.record(FIRST, &Call::Append(vec![entry(1, 100), entry(2, 100)])).unwrap();
    log.sync().unwrap();
    drop(log);
    let mut reads = 0;
    let faulty = FaultyRepo::new(disk.open().unwrap(), move |operation| {
        reads += u64::from(operation.length == 100);
        if operation.length == 100 && reads == 2 { Fault::FlipBit(333) } else { Fault::None }
    });
    let mut log = Log::open(Box::new(faulty), settings).unwrap();
    assert_eq!(log.entries(FIRST, 0, 1, u64::MAX).unwrap(), [entry(1, 100)]);
    let error = log.entries(FIRST, 1, 2, u64::MAX).err().unwrap();
    assert!(matches!(error, LogError::EntryCorrupt { file: 1, .. }), "{error}");
}

#[test]
fn verification_reports_every_file_and_a_torn_end() {
    let (disk, _, file, last_record) = damaged_soon();
    let healthy = report(&disk);
    assert!(healthy.problem.is_none());
    assert_eq!(healthy.records, 61);
    assert_eq!(healthy.entries, 121);
    assert!(healthy.files.iter().all(|file| file.tail == Tail::Zeros));
    disk.alter(file, |bytes| bytes[last_record.start + 40] ^= 1);
    let mended = report(&disk);
    let of_file = |report: &super::super::Report| {
        report.files.iter().find(|of| of.file == file).unwrap().clone()
    };
    assert_eq!((mended.records, of_file(&mended).mended), (61, 1));
    disk.alter(file, |bytes| bytes[last_record.start + 41] ^= 1);
    let torn = report(&disk);
    assert!(torn.problem.is_none());
    assert_eq!(torn.records, 60);
    assert_eq!(of_file(&torn).tail, Tail::Torn);
}
