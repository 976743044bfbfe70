//! HTTP without a library: what clients send when they send it wrong, or again.
//!
//! Not here: answers in chunks; what is asked for here has none.

use std::net::SocketAddr;

use gesmas_cluster_tests::wait;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its headers, in small letters.
    pub head: String,
    /// Its body; null if it is no JSON.
    pub body: Value,
}

impl Answer {
    /// A header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The stable word of a problem.
    #[must_use]
    pub fn code(&self) -> &str {
        self.body["type"].as_str().and_then(|kind| kind.rsplit(':').next()).unwrap_or_default()
    }
}

/// Sends a POST on a connection of its own.
///
/// # Panics
/// When there is no whole answer in time.
pub async fn post(
    address: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> Answer {
    let body = body.to_string();
    let headers: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{headers}content-length: \
         {}\r\n\r\n{body}",
        body.len()
    );
    let mut answer = String::new();
    wait::bounded("an answer", async {
        let mut stream = TcpStream::connect(address).await.expect("a replica listens");
        stream.write_all(request.as_bytes()).await.expect("it takes a request");
        stream.read_to_string(&mut answer).await.expect("it answers by text");
    })
    .await;
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Answer {
        status: status.expect("an answer has a status"),
        head: head.to_ascii_lowercase(),
        body: serde_json::from_str(body).unwrap_or_default(),
    }
}
