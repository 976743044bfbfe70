//! The bytes of messages, good and bad. Every message of every simulation passes through them too.

use ::bytes::Bytes;
use omnipaxos::ballot_leader_election::Ballot as PaxosBallot;
use omnipaxos::messages::Message;
use omnipaxos::messages::sequence_paxos::{AcceptDecide, PaxosMessage, PaxosMsg};
use omnipaxos::util::SequenceNumber;

use super::super::{
    DecodeError, EncodeError, LogEntry, MAX_ENTRY_BYTES, PeerPaxosMessage, decode, encode,
};

fn accept_decide(entries: Vec<LogEntry>) -> PeerPaxosMessage {
    let n = PaxosBallot { config_id: 2, n: 7, priority: 1, pid: 3 };
    let seq_num = SequenceNumber { session: 1, counter: 300 };
    let msg = PaxosMsg::AcceptDecide(AcceptDecide { n, seq_num, decided_idx: 70_000, entries });
    let message = Message::SequencePaxos(PaxosMessage { from: 3, to: 1, msg });
    PeerPaxosMessage { group: 9, configuration: 2, message }
}

fn encoded(message: PeerPaxosMessage) -> Vec<u8> {
    let mut out = Vec::new();
    encode(message, &mut out).unwrap();
    out
}

fn sample() -> Vec<u8> {
    let entries = [&b"first"[..], b"", b"third"].map(|entry| LogEntry(Bytes::from_static(entry)));
    encoded(accept_decide(entries.to_vec()))
}

#[test]
fn the_layout_is_fixed() {
    let expected: Vec<u8> = [
        &[1, 1][..],
        &[9, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 15, 0, 0, 0],
        &[4, 2, 7, 1, 3, 1, 251, 44, 1, 252, 112, 17, 1, 0, 0],
        &[3, 0, 0, 0, 5, 0, 0, 0],
        b"first",
        &[0, 0, 0, 0, 5, 0, 0, 0],
        b"third",
    ]
    .concat();
    assert_eq!(sample(), expected);
}

#[test]
fn received_entries_are_slices_of_the_frame() {
    let frame = Bytes::from(sample());
    let range = frame.as_ptr_range();
    let message = decode(frame.clone()).unwrap();
    let Message::SequencePaxos(inner) = message.message else { panic!("not a Paxos message") };
    let PaxosMsg::AcceptDecide(accept) = inner.msg else { panic!("not an AcceptDecide") };
    assert_eq!(accept.entries[2], LogEntry(Bytes::from_static(b"third")));
    assert!(range.contains(&accept.entries[2].0.as_ptr()));
}

#[test]
fn every_truncation_is_refused() {
    let whole = Bytes::from(sample());
    for length in 0..whole.len() {
        decode(whole.slice(..length)).expect_err("a part is not a message");
    }
    let mut longer = whole.to_vec();
    longer.push(0);
    assert_eq!(decode(longer.into()).unwrap_err(), DecodeError::Trailing { bytes: 1 });
}

#[test]
fn flipped_bits_never_panic() {
    let whole = sample();
    for bit in 0..whole.len() * 8 {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        if let Ok(message) = decode(flipped.into()) {
            // The checksum of the frame catches this; here it only has to be harmless.
            encoded(message);
        }
    }
}

#[test]
fn unknown_versions_and_kinds_are_refused() {
    let mut bytes = sample();
    bytes[0] = 2;
    assert_eq!(decode(bytes.clone().into()).unwrap_err(), DecodeError::Version { found: 2 });
    bytes[..2].copy_from_slice(&[1, 3]);
    assert_eq!(decode(bytes.into()).unwrap_err(), DecodeError::Kind { found: 3 });
}

#[test]
fn a_claim_of_many_entries_allocates_nothing() {
    let mut bytes = sample();
    let count = bytes.len() - (4 + 4 + 5 + 4 + 4 + 5);
    bytes[count..count + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(decode(bytes.into()).unwrap_err(), DecodeError::Short);
}

#[test]
fn a_message_that_exceeds_a_frame_is_not_sent() {
    let entry = LogEntry(Bytes::from(vec![0; MAX_ENTRY_BYTES]));
    let mut out = b"kept".to_vec();
    encode(accept_decide(vec![entry.clone(); 3]), &mut out).unwrap();
    out.truncate(4);
    let error = encode(accept_decide(vec![entry; 4]), &mut out).unwrap_err();
    assert!(matches!(error, EncodeError::TooLarge { to: 1, .. }), "{error}");
    assert_eq!(out, b"kept");
}
