//! The protocol, byte by byte: golden frames, malformed frames, and noise.
//!
//! The golden frames are the promise to clients in other languages: when one of them changes, the
//! message needs a new kind or the protocol a new version.

use gesmas_protocol::{
    Acknowledge, Acknowledged, BODY_MAX, Bytes, CallError, CancelReason, ClientMessage, Frame,
    FrameDecoder, FrameError, Hello, KeepAlive, OnBehalf, Position, Refusal, Refused, Reply,
    Request, RequestBody, ServerMessage, VERSION,
};

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn encoded(message: &ClientMessage) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.append_to(&mut bytes).expect("the message fits");
    bytes
}

fn first_frame(bytes: &[u8]) -> Result<Option<Frame>, FrameError> {
    let mut decoder = FrameDecoder::new(BODY_MAX);
    decoder.push(bytes);
    decoder.poll()
}

/// A frame with a right checksum around any body.
fn frame_of(version: u16, kind: u16, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("bodies of tests are short");
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend(kind.to_le_bytes());
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&bytes), body);
    bytes.extend(checksum.to_le_bytes());
    bytes.extend(body);
    bytes
}

fn call() -> ClientMessage {
    ClientMessage::Request(Request {
        session: 7,
        number: 2,
        previous: 1,
        time_left_ns: Some(1_000_000_000),
        acknowledged: Acknowledged { replies: vec![(1, 1)], events: 0 },
        body: RequestBody::Call {
            class: "Queue".into(),
            object: "jobs".into(),
            method: "produce".into(),
            signature: 0x0123_4567_89ab_cdef,
            arguments: Bytes::from_static(&[1, 2, 3]),
            on_behalf: OnBehalf::Requester,
        },
    })
}

#[test]
fn golden_frames_of_clients_stay_as_they_are() {
    let hello =
        ClientMessage::Hello(Hello { versions: vec![VERSION], token: None, client: "test".into() });
    assert_eq!(hexadecimal(&encoded(&hello)), "080000000100010000cc0f3e0101000474657374");
    assert_eq!(
        hexadecimal(&encoded(&call())),
        "2f00000001000b0088be8f4c07020101fc00ca9a3b0101010000055175657565046a6f62730770726f64756365fdefcdab89674523010301020300"
    );
    let keep_alive = ClientMessage::KeepAlive(KeepAlive { session: 7, correlation: 300 });
    assert_eq!(hexadecimal(&encoded(&keep_alive)), "0400000001000500c931fbb207fb2c01");
}

#[test]
fn golden_frames_of_servers_stay_as_they_are() {
    let replies: [(ServerMessage, &str); 3] = [
        (
            ServerMessage::Reply(Reply {
                session: 7,
                number: 2,
                position: Position { epoch: 0, step: 9 },
                outcome: Ok(Bytes::from_static(b"ok")),
            }),
            "0800000001006b00b0624cc00702000900026f6b",
        ),
        (
            ServerMessage::Reply(Reply {
                session: 7,
                number: 2,
                position: Position { epoch: 0, step: 9 },
                outcome: Err(CallError::Cancelled(CancelReason::Deadline)),
            }),
            "0700000001006b002e3d5e0207020009010200",
        ),
        (
            ServerMessage::Refused(Refused {
                session: 7,
                number: 3,
                refusal: Refusal::OutOfOrder { last: 1 },
                id: None,
            }),
            "0500000001006c00120928ce0703000100",
        ),
    ];
    for (message, golden) in replies {
        let mut bytes = Vec::new();
        message.append_to(&mut bytes).expect("the message fits");
        assert_eq!(hexadecimal(&bytes), golden);
        let frame = first_frame(&bytes).expect("a frame").expect("a whole frame");
        assert_eq!(ServerMessage::from_frame(&frame), Ok(message));
    }
}

#[test]
fn frames_are_cut_wherever_the_stream_breaks() {
    let mut stream = encoded(&call());
    call().append_to(&mut stream).expect("the message fits");
    for piece in 1..=stream.len() {
        let mut decoder = FrameDecoder::new(BODY_MAX);
        let mut messages = Vec::new();
        for part in stream.chunks(piece) {
            decoder.push(part);
            while let Some(frame) = decoder.poll().expect("frames are well-formed") {
                messages.push(ClientMessage::from_frame(&frame).expect("a message"));
            }
        }
        assert_eq!(messages, [call(), call()], "pieces of {piece} bytes");
    }
}

#[test]
fn an_oversized_frame_is_refused_from_its_header_alone() {
    let mut header = frame_of(VERSION, 6, &[]);
    header[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut decoder = FrameDecoder::new(1_024);
    decoder.push(&header);
    let error = FrameError::TooLarge { length: u32::MAX.into(), limit: 1_024 };
    assert_eq!(decoder.poll(), Err(error.clone()));
    assert!(decoder.buffer_mut().capacity() < 1_024, "no room was made for the body");
    decoder.push(&encoded(&call()));
    assert_eq!(decoder.poll(), Err(error), "the stream has lost its frames for good");
}

#[test]
fn a_lie_about_a_length_within_a_body_is_refused() {
    // Hello, whose client's name claims to have 2^32 - 1 bytes.
    let body = [0, 0, 252, 255, 255, 255, 255];
    let frame = first_frame(&frame_of(VERSION, 1, &body)).expect("a frame").expect("whole");
    assert_eq!(ClientMessage::from_frame(&frame), Err(FrameError::Overstated));
}

#[test]
fn every_flipped_bit_is_noticed() {
    let bytes = encoded(&call());
    for bit in 0..bytes.len() * 8 {
        let mut broken = bytes.clone();
        broken[bit / 8] ^= 1 << (bit % 8);
        match first_frame(&broken) {
            // A longer length waits for bytes that never come; all else is an error.
            Ok(None) => assert!(bit < 32, "bit {bit}"),
            Ok(Some(frame)) => panic!("bit {bit} went unnoticed: {frame:?}"),
            Err(_) => {}
        }
    }
}

#[test]
fn unknown_versions_kinds_and_left_over_bytes_are_refused() {
    assert_eq!(first_frame(&frame_of(2, 6, &[])), Err(FrameError::UnknownVersion { version: 2 }));
    let unknown = first_frame(&frame_of(VERSION, 99, &[])).expect("a frame").expect("whole");
    assert_eq!(ClientMessage::from_frame(&unknown), Err(FrameError::UnknownKind { kind: 99 }));
    assert_eq!(ServerMessage::from_frame(&unknown), Err(FrameError::UnknownKind { kind: 99 }));
    let longer = first_frame(&frame_of(VERSION, 5, &[7, 1, 0])).expect("a frame").expect("whole");
    assert_eq!(ClientMessage::from_frame(&longer), Err(FrameError::TrailingBytes { trailing: 1 }));
    let shorter = first_frame(&frame_of(VERSION, 5, &[7])).expect("a frame").expect("whole");
    assert_eq!(ClientMessage::from_frame(&shorter), Err(FrameError::Truncated));
}

#[test]
fn a_message_that_does_not_fit_leaves_the_output_as_it_was() {
    let module = Bytes::from(vec![0; BODY_MAX as usize]);
    let message = ClientMessage::Request(Request {
        session: 1,
        number: 1,
        previous: 0,
        time_left_ns: None,
        acknowledged: Acknowledged::default(),
        body: RequestBody::PutClass { class: "Large".into(), module, replace: None },
    });
    let mut output = encoded(&call());
    let before = output.clone();
    assert!(matches!(message.append_to(&mut output), Err(FrameError::TooLarge { .. })));
    assert_eq!(output, before);
}

/// A small generator with a fixed seed, so that every run sees the same noise.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> usize {
        usize::try_from(self.next() % end).expect("small numbers")
    }
}

#[test]
fn noise_never_panics_and_what_decodes_encodes_to_itself() {
    let mut noise = Noise(0x5eed);
    let acknowledge = ClientMessage::Acknowledge(Acknowledge {
        session: 1,
        acknowledged: Acknowledged { replies: vec![(1, 5), (9, 9)], events: 3 },
    });
    let seeds = [encoded(&call()), encoded(&acknowledge)];
    let mut decoded = 0;
    for _ in 0..200_000 {
        let seed = &seeds[noise.below(2)];
        let mut body = seed[12..].to_vec();
        for _ in 0..noise.below(4) {
            let place = noise.below(body.len() as u64);
            body[place] = noise.next().to_le_bytes()[0];
        }
        body.truncate(body.len() - noise.below(3));
        let kind = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 101, 107, 108, 109, 112, 113][noise.below(16)];
        let frame = first_frame(&frame_of(VERSION, kind, &body)).expect("a frame").expect("whole");
        if let Ok(message) = ClientMessage::from_frame(&frame) {
            let again = first_frame(&encoded(&message)).expect("a frame").expect("whole");
            assert_eq!(ClientMessage::from_frame(&again), Ok(message));
            decoded += 1;
        }
        drop(ServerMessage::from_frame(&frame));
        let raw: Vec<u8> = (0..noise.below(64)).map(|_| noise.next().to_le_bytes()[0]).collect();
        drop(first_frame(&raw));
    }
    assert!(decoded > 1_000, "the noise must reach past the first check, {decoded} did");
}
