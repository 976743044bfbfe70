//! Events of sessions over HTTP.

use gesmas_cluster_tests::{Cluster, Http, wait};
use reqwest::Method;
use serde_json::{Value, json};

use crate::clients;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_come_again_until_they_are_acknowledged() {
    let cluster = Cluster::start().await;
    let [http, other, _] = &clients(&cluster)[..] else { panic!("there are three replicas") };
    let session = http.session("20s").await;
    let own = http.with("gesmas-session", &*session);
    assert_eq!(own.call("Membership/m/subscribe", json!({})).await.status, 200);
    let mut stream = Stream::open(http, &session, None).await;
    for name in ["a", "b", "c"] {
        let join = json!({ "name": name, "metadata": "" });
        assert_eq!(own.call("Membership/m/join", join).await.status, 200);
    }
    let first = stream.next().await;
    assert_eq!((first.id.as_str(), first.kind.as_str()), ("1", "event"));
    assert!(first.data["payload"].is_object(), "{first:?}");
    let second = stream.next().await;
    drop(stream);
    let mut again = Stream::open(other, &session, None).await;
    assert_eq!(again.next().await, first, "nothing was acknowledged");
    assert_eq!(again.next().await, second);
    drop(again);
    let mut later = Stream::open(http, &session, Some("2")).await;
    assert_eq!(later.next().await.id, "3");
    let path = format!("/v1/sessions/{session}/keep-alive");
    let kept = http.send(Method::POST, &path, json!({ "events": "3" })).await;
    assert_eq!(kept.status, 204);
    wait::until("that nothing is kept", || async {
        let shown = http.send(Method::GET, &format!("/v1/sessions/{session}"), Value::Null).await;
        shown.body["events"] == "0"
    })
    .await;
    http.send(Method::DELETE, &format!("/v1/sessions/{session}"), Value::Null).await;
    assert_eq!(later.next().await.kind, "over");
}

/// A session that is opened again under its key is left to the stream that it has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retried_opening_leaves_the_stream_of_the_first() {
    let cluster = Cluster::start().await;
    let http = Http::new(cluster.http_address(0));
    let open = || async {
        let keyed = http.with("idempotency-key", "mine");
        let opened = keyed.send(Method::POST, "/v1/sessions", json!({ "timeout": "20s" })).await;
        opened.body["session"].as_str().expect("it is opened").to_owned()
    };
    let session = open().await;
    let own = http.with("gesmas-session", &*session);
    assert_eq!(own.call("Membership/m/subscribe", json!({})).await.status, 200);
    let mut stream = Stream::open(&http, &session, None).await;
    for (name, number) in [("a", "1"), ("b", "2")] {
        assert_eq!(open().await, session);
        let join = json!({ "name": name, "metadata": "" });
        assert_eq!(own.call("Membership/m/join", join).await.status, 200);
        assert_eq!(stream.next().await.id, number);
    }
}

/// One server-sent event.
#[derive(Debug, PartialEq)]
struct Sent {
    id: String,
    kind: String,
    data: Value,
}

/// A stream of them.
struct Stream {
    response: reqwest::Response,
    text: String,
}

impl Stream {
    async fn open(http: &Http, session: &str, last: Option<&str>) -> Self {
        let path = format!("/v1/sessions/{session}/events");
        let request = http.request(Method::GET, &path);
        let request = match last {
            Some(last) => request.header("last-event-id", last),
            None => request,
        };
        let response = request.send().await.expect("it answers");
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new() }
    }

    async fn next(&mut self) -> Sent {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                if let Some(sent) = parse(&block) {
                    return sent;
                }
                continue;
            }
            let piece = wait::bounded("an event", self.response.chunk()).await;
            let piece = piece.expect("the stream goes on").expect("it has not ended");
            self.text += std::str::from_utf8(&piece).expect("events are text");
        }
    }
}

/// None for a comment.
fn parse(block: &str) -> Option<Sent> {
    let field = |name: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.unwrap_or_default().to_owned()
    };
    let kind = field("event");
    let data = field("data");
    (!kind.is_empty()).then(|| Sent {
        id: field("id"),
        kind,
        data: serde_json::from_str(&data).expect("data is JSON"),
    })
}
