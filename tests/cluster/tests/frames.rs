//! Bytes that are no frames, frames that are no messages, messages that come out of turn, clients
//! that do not read: each ends its own connection, with a typed error and an id, and nothing else.

use std::time::Duration;

use gesmas_client::protocol::{
    Admin, AdminRequest, BODY_MAX, ClientMessage, ErrorCode, Hello, KeepAlive, OnBehalf, Refusal,
    Request, RequestBody, ServerMessage, VERSION,
};
use gesmas_cluster_tests::{Bystander, Class, Cluster, Wire, arguments, frame, wait};
use gesmas_queue::QueueStub;
use tokio::io::AsyncWriteExt as _;

fn bytes_of(message: impl Into<ClientMessage>) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.into().append_to(&mut bytes).expect("the tests' messages fit");
    bytes
}

fn hello(versions: &[u16]) -> Hello {
    Hello { versions: versions.to_vec(), token: None, client: "hostile".into() }
}

const BODY: usize = 12;

/// Bytes, what they are, whether they come after a greeting, and the error that they must get.
fn bad_bytes() -> Vec<(&'static str, Vec<u8>, bool, ErrorCode)> {
    use ErrorCode::{Malformed, TooLarge, Unexpected, VersionUnsupported};
    let good = bytes_of(hello(&[VERSION]));
    let keep_alive = bytes_of(KeepAlive { session: 1, correlation: 2 });
    let mut bad_checksum = good.clone();
    *bad_checksum.last_mut().expect("it has bytes") ^= 1;
    let mut trailing = good[BODY..].to_vec();
    trailing.push(0);
    let mut huge = (BODY_MAX + 1).to_le_bytes().to_vec();
    huge.extend(VERSION.to_le_bytes());
    huge.extend([1, 0, 0, 0, 0, 0]);
    let overstated = [vec![251], vec![255; 6]].concat();
    vec![
        ("another protocol", b"GET / HTTP/1.1\r\n\r\n".to_vec(), false, VersionUnsupported),
        ("a body that is no message", frame(VERSION, 1, &[0xff; 40]), false, Malformed),
        ("an empty body", frame(VERSION, 1, &[]), false, Malformed),
        ("a length that lies", frame(VERSION, 1, &overstated), false, Malformed),
        ("bytes after the message", frame(VERSION, 1, &trailing), false, Malformed),
        ("a wrong checksum", bad_checksum.clone(), false, Malformed),
        ("a wrong checksum, later", bad_checksum, true, Malformed),
        ("an announced length over the cap", huge.clone(), false, TooLarge),
        ("an announced length over the cap, later", huge, true, TooLarge),
        ("an unknown version", frame(99, 1, &good[BODY..]), false, VersionUnsupported),
        ("an unknown version, later", frame(0, 5, &[]), true, VersionUnsupported),
        ("an unknown kind", frame(VERSION, 77, &[]), true, Malformed),
        ("a message of a server", frame(VERSION, 106, &[1, 2, 3]), true, Malformed),
        ("no Hello", keep_alive, false, Unexpected),
        ("a second Hello", good, true, Unexpected),
        ("no version in common", bytes_of(hello(&[7, 8])), false, VersionUnsupported),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_bytes_get_a_typed_error_with_an_id_and_end_their_connection_only() {
    let cluster = Cluster::start().await;
    let mut bystander = Bystander::start(&cluster).await;
    for (number, (what, bytes, greeted, code)) in bad_bytes().into_iter().enumerate() {
        let replica = number % 3;
        let address = cluster.address(replica);
        let mut wire =
            if greeted { Wire::greet(address).await.0 } else { Wire::connect(address).await };
        wire.send_bytes(&bytes).await;
        let error = match wire.receive().await {
            Some(ServerMessage::Error(error)) => error,
            other => panic!("{what} is answered by {other:?}"),
        };
        assert_eq!(error.code, code, "{what}: {error}");
        assert!(error.id != 0 && error.message.len() > 10, "{what}: {error}");
        let id = format!("{:016x}", error.id);
        wait::until("that the log has the error", || async {
            cluster.logged(replica).contains(&id)
        })
        .await;
        assert_eq!(wire.receive().await, None, "{what} ends the connection");
        bystander.check().await;
    }
    bystander.finish(&cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn halves_of_frames_do_no_harm() {
    let cluster = Cluster::start().await;
    let mut bystander = Bystander::start(&cluster).await;
    let good = bytes_of(hello(&[VERSION]));
    let mut left_open = Vec::new();
    for length in 0..good.len() {
        let mut wire = Wire::connect(cluster.address(length % 3)).await;
        wire.send_bytes(&good[..length]).await;
        if length % 2 == 0 {
            left_open.push(wire);
        }
    }
    bystander.check().await;
    // A frame that comes byte by byte is a frame.
    let mut wire = Wire::connect(cluster.address(0)).await;
    for byte in &good {
        wire.send_bytes(&[*byte]).await;
        wire.stream.flush().await.expect("the connection stands");
    }
    assert!(matches!(wire.receive().await, Some(ServerMessage::Welcome(_))));
    bystander.finish(&cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_never_reads_is_cut_off_alone() {
    let cluster = Cluster::start_with("[queues]\nclient_output_kib = 32").await;
    let mut bystander = Bystander::start(&cluster).await;
    let near = cluster.session_of(0).await;
    let (mut wire, _) = Wire::greet(cluster.address(0)).await;
    let mut bytes = Vec::new();
    for correlation in 0..6_000 {
        let request = AdminRequest::GetClass { class: "Queue".into() };
        bytes.extend(bytes_of(Admin { correlation, request, stale: false }));
    }
    wire.send_bytes(&bytes).await;
    wait::until("that it is cut off", || async {
        cluster.look(0).await.counter("clients_cut_off") >= 1
    })
    .await;
    bystander.check().await;
    let queue = QueueStub::new(near, "near");
    queue.create(1).await.expect("others at the same replica go on");
    // What was written to the socket before may still be read; then the connection is at its end.
    wait::bounded("the end of the connection", async { while wire.receive().await.is_some() {} })
        .await;
    bystander.finish(&cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_at_the_peers_port_does_no_harm() {
    let cluster = Cluster::start().await;
    let mut bystander = Bystander::start(&cluster).await;
    let greeting = |format: u32, cluster: u128, from: u64, to: u64| {
        let mut bytes = b"gesmaspr".to_vec();
        bytes.extend(format.to_le_bytes());
        bytes.extend(cluster.to_le_bytes());
        bytes.extend(from.to_le_bytes());
        bytes.extend(to.to_le_bytes());
        // A nonce, if the format has one.
        bytes.extend([7; 32].iter().filter(|_| format == 2));
        bytes
    };
    let mut noise = 0x9e37_79b9_u32;
    let garbage: Vec<u8> = std::iter::repeat_with(|| {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        noise.to_be_bytes()[0]
    })
    .take(100_000)
    .collect();
    let bad = [
        garbage,
        b"GET / HTTP/1.1\r\n\r\n".repeat(100),
        vec![0; 4_096],
        greeting(2, 0xbad, 2, 1).repeat(3),
        greeting(2, 0x7e57, 9, 1).repeat(3),
        // What a replica of the format before would say, which proved nothing.
        greeting(1, 0x7e57, 2, 1).repeat(3),
        bytes_of(hello(&[VERSION])).repeat(10),
        // All that a client can know; a proof and a frame that are made up.
        [greeting(2, 0x7e57, 2, 1), vec![9; 32], vec![8; 4_096]].concat(),
    ];
    for (number, bytes) in bad.into_iter().enumerate() {
        // Those that greet do so as a peer of the first.
        let address =
            cluster.peer_address(if bytes.starts_with(b"gesmaspr") { 0 } else { number % 3 });
        let mut wire = Wire::connect(address).await;
        // The replica may hang up in the middle of it.
        let _broken = wire.stream.write_all(&bytes).await;
        bystander.check().await;
    }
    assert!(cluster.logged(0).contains("a connection to the peers' port is refused"));
    assert!(!cluster.logged(0).contains("a peer's connection broke"), "no frame was read");
    let leader = cluster.leader().await;
    assert_eq!(cluster.look(leader).await.status.connected.len(), 2);
    bystander.finish(&cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_requests_are_refused_by_the_limits_name() {
    let cluster = Cluster::start().await;
    let mut bystander = Bystander::start(&cluster).await;
    let session = cluster.session().await;
    let queue = QueueStub::new(session, "crowded");
    queue.create(1).await.expect("the queue is created");
    let (mut wire, welcome) = Wire::greet(cluster.address(0)).await;
    let id = wire.open_session(77, 60_000_000_000).await;
    let signature = Class::standard("Queue").signature("consume");
    let most = welcome.requests_per_session;
    let mut bytes = Vec::new();
    for number in 1..=most + 1 {
        bytes.extend(bytes_of(Request {
            session: id,
            number,
            previous: number - 1,
            time_left_ns: None,
            acknowledged: Default::default(),
            body: RequestBody::Call {
                class: "Queue".into(),
                object: "crowded".into(),
                method: "consume".into(),
                signature,
                arguments: Vec::new().into(),
                on_behalf: OnBehalf::Requester,
            },
        }));
    }
    wire.send_bytes(&bytes).await;
    let refused = wire.receive_until(|message| match message {
        ServerMessage::Refused(refused) => Some(refused),
        _ => None,
    });
    let refused = refused.await;
    assert_eq!(refused.number, most + 1);
    let Refusal::Limit(limit) = &refused.refusal else { panic!("{refused:?}") };
    assert_eq!((limit.name.as_str(), limit.limit), ("requests_per_session", most));
    bystander.check().await;
    // One of them ends, and there is room for one.
    queue.produce(gesmas_abi::value::Bytes(arguments((1_u8,)))).await.expect("it is produced");
    let reply = wire.receive_until(|message| match message {
        ServerMessage::Reply(reply) => Some(reply),
        _ => None,
    });
    assert_eq!(wait::bounded("a reply", reply).await.number, 1);
    bystander.finish(&cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_of_sessions_that_never_were_are_refused() {
    let cluster = Cluster::start().await;
    let mut bystander = Bystander::start(&cluster).await;
    let (mut wire, _) = Wire::greet(cluster.address(1)).await;
    let request = |session, number, previous| Request {
        session,
        number,
        previous,
        time_left_ns: Some(u64::try_from(Duration::from_secs(5).as_nanos()).expect("it fits")),
        acknowledged: Default::default(),
        body: RequestBody::RemoveObject { class: "Queue".into(), object: "bystander".into() },
    };
    let mut refusal_of = async |request: Request| {
        let number = request.number;
        wire.send(request).await;
        wire.receive_until(|message| match message {
            ServerMessage::Refused(refused) if refused.number == number => Some(refused.refusal),
            _ => None,
        })
        .await
    };
    assert_eq!(refusal_of(request(u64::MAX, 1, 0)).await, Refusal::SessionUnknown);
    bystander.check().await;
    bystander.finish(&cluster).await;
}
