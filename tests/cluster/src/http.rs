//! An HTTP client of one replica, for tests.
//!
//! Invariant: every answer that is no success is checked to be a problem with the status that it
//! says it has.

use std::{net::SocketAddr, time::Duration};

use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use crate::wait::PATIENCE;

/// What came back.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The body, `null` if there is none.
    pub body: Value,
}

impl Answer {
    /// The result of a call that has one.
    ///
    /// # Panics
    /// When it has none.
    #[must_use]
    pub fn result(&self) -> &Value {
        assert_eq!(self.status, 200, "the call failed: {self:?}");
        &self.body["result"]
    }

    /// Status and stable word of a failure.
    ///
    /// # Panics
    /// When it is no failure.
    #[must_use]
    pub fn problem(&self) -> (u16, &str) {
        let word = self.body["type"].as_str().and_then(|text| text.strip_prefix("urn:gesmas:"));
        (self.status, word.unwrap_or_else(|| panic!("it is no problem: {self:?}")))
    }
}

/// See the file's head.
#[derive(Clone, Debug)]
pub struct Http {
    client: reqwest::Client,
    base: String,
    headers: Vec<(&'static str, String)>,
}

impl Http {
    /// A client of one replica.
    ///
    /// # Panics
    /// When it cannot be made.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        let client =
            reqwest::Client::builder().timeout(PATIENCE).connect_timeout(Duration::from_secs(2));
        let client = client.build().expect("a client can be made");
        Self { client, base: format!("http://{address}"), headers: Vec::new() }
    }

    /// The same with one more header on every request.
    #[must_use]
    pub fn with(&self, header: &'static str, value: impl Into<String>) -> Self {
        let mut other = self.clone();
        other.headers.push((header, value.into()));
        other
    }

    /// A request that is not sent yet.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.base));
        self.headers.iter().fold(request, |request, (name, value)| request.header(*name, value))
    }

    /// Sends a request; none when there is no answer.
    pub async fn try_send(&self, method: Method, path: &str, body: &Value) -> Option<Answer> {
        let request = self.request(method, path);
        let request = if body.is_null() { request } else { request.json(body) };
        let response = request.send().await.ok()?;
        let status = response.status().as_u16();
        let kind = response.headers().get("content-type").cloned();
        let bytes = response.bytes().await.ok()?;
        let body = if bytes.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&bytes).expect("bodies are JSON")
        };
        if status >= 400 {
            assert_eq!(kind.expect("a problem has a type"), "application/problem+json");
            assert_eq!(body["status"], status, "{body}");
        }
        Some(Answer { status, body })
    }

    /// Sends a request.
    ///
    /// # Panics
    /// When there is no answer.
    pub async fn send(&self, method: Method, path: &str, body: Value) -> Answer {
        let answer = self.try_send(method.clone(), path, &body).await;
        answer.unwrap_or_else(|| panic!("{method} {path} has no answer"))
    }

    /// Calls a method of an object, `Queue/jobs/consume`.
    pub async fn call(&self, path: &str, arguments: Value) -> Answer {
        self.send(Method::POST, &format!("/v1/objects/{path}"), arguments).await
    }

    /// Opens a session and gives its number.
    ///
    /// # Panics
    /// When it is not opened.
    pub async fn session(&self, timeout: &str) -> String {
        let body = serde_json::json!({ "timeout": timeout });
        let answer = self.send(Method::POST, "/v1/sessions", body).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.body["session"].as_str().expect("a session has a number").into()
    }
}
