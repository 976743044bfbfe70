//! Which state says what a class is, against a replica whose every word is scripted.
//!
//! A replica of a cluster is behind for moments that a test cannot hold: here its own state and the
//! cluster's are two answers, told apart by what the question asks for.

use gesmas_client::protocol::{
    AdminAnswer, AdminError, AdminReply, AdminRequest, BODY_MAX, ClassDetail, ClassState,
    ClassSummary, ClientMessage, CodeHash, FrameDecoder, ServerMessage, VERSION, Welcome,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::*;

const CLASS: &str = "Jobs";

/// What a state says of the class: nothing if it does not know it.
type Known = Option<ClassState>;

fn answer(known: Known) -> Result<AdminReply, AdminError> {
    let state = known.ok_or_else(|| AdminError::ClassUnknown { class: CLASS.into() })?;
    let module = gesmas_classes::find("Queue").expect("it is a standard class").module;
    let interface = gesmas_build::interface_of(module).expect("it has one").encode().into();
    let (code, module_bytes) = (CodeHash([7; 32]), module.len() as u64);
    let summary = ClassSummary { class: CLASS.into(), code, state, module_bytes, objects: 0 };
    Ok(AdminReply::Class(ClassDetail { summary, interface, pinned: Vec::new(), replacing: None }))
}

async fn say(stream: &mut TcpStream, message: impl Into<ServerMessage>) {
    let mut bytes = Vec::new();
    message.into().append_to(&mut bytes).expect("it fits");
    stream.write_all(&bytes).await.expect("the client is there");
}

/// A replica that answers until its client is gone; `stale` is what its own state says.
async fn play(listener: TcpListener, stale: Known, fresh: Known) {
    let (mut stream, _) = listener.accept().await.expect("the client connects");
    let mut decoder = FrameDecoder::new(BODY_MAX);
    let mut bytes = [0; 4_096];
    loop {
        while let Some(frame) = decoder.poll().expect("the client sends frames") {
            match ClientMessage::from_frame(&frame).expect("the client sends messages") {
                ClientMessage::Hello(_) => say(&mut stream, welcome()).await,
                ClientMessage::Admin(question) => {
                    assert_eq!(question.request, AdminRequest::ShowClass { class: CLASS.into() });
                    let result = answer(if question.stale { stale } else { fresh });
                    let correlation = question.correlation;
                    say(&mut stream, AdminAnswer { correlation, result }).await;
                }
                _ => {}
            }
        }
        match stream.read(&mut bytes).await {
            Ok(0) | Err(_) => return,
            Ok(count) => decoder.push(&bytes[..count]),
        }
    }
}

fn welcome() -> Welcome {
    Welcome {
        version: VERSION,
        replica: 1,
        cluster: 9,
        frame_bytes: BODY_MAX,
        argument_bytes: 1 << 20,
        module_bytes: 1 << 20,
        requests_per_session: 100,
        session_timeout_max_ns: 1_000_000_000_000,
        server: "script".into(),
    }
}

#[tokio::test]
async fn a_replica_that_is_behind_does_not_decide() {
    let (pending, ready) = (Some(ClassState::Pending), Some(ClassState::Ready));
    for (stale, fresh, refused) in [
        (ready, None, None),
        (pending, ready, None),
        (None, ready, None),
        (pending, pending, Some("class-pending")),
        (None, pending, Some("class-pending")),
        (None, None, Some("class-unknown")),
        (pending, None, Some("class-unknown")),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound").to_string();
        let replica = tokio::spawn(play(listener, stale, fresh));
        let client = Client::builder().endpoints([address]).connect().await.expect("it answers");
        let found = Interfaces::new(client).of(CLASS).await;
        let code = found.err().map(|failure| failure.code);
        assert_eq!(code.as_deref(), refused, "{stale:?} and {fresh:?}");
        replica.await.expect("the replica ends with its client");
    }
}
