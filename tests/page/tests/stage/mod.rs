//! A cluster in which something goes on: takers wait, a lock is fought for, two sessions wait for
//! each other, a class misbehaves.
//!
//! Invariant: every call that is to be blocked is before the next begins, so their order is known.

use gesmas_cluster_tests::{Cluster, Http, hostile_class, wait};
use reqwest::Method;
use serde_json::{Value, json};

/// The views, and where they are.
pub(crate) const VIEWS: [(&str, &str); 10] = [
    ("overview", "#/"),
    ("objects", "#/objects"),
    ("queue", "#/objects/Queue/full"),
    ("lock", "#/objects/Lock/mail"),
    ("faults", "#/objects/Hostile/bad"),
    ("waits", "#/waits"),
    ("sessions", "#/sessions"),
    ("classes", "#/classes"),
    ("class", "#/classes/TupleSpace"),
    ("errors", "#/errors"),
];

/// See the file's head.
pub(crate) struct Stage {
    http: Http,
    base: String,
    /// Calls that wait for an item of `Queue/jobs`.
    pub(crate) takers: Vec<String>,
    /// The session that has `Lock/mail`, and leads `Election/boss`.
    pub(crate) holder: String,
    /// The sessions that wait for it.
    pub(crate) rivals: Vec<String>,
    /// Two sessions, the first of which has `Lock/one`, and each waits for what the other has.
    pub(crate) entangled: [String; 2],
    /// The id of a failure.
    pub(crate) error: String,
}

impl Stage {
    /// Sets it, through the first replica.
    pub(crate) async fn set(cluster: &Cluster) -> Self {
        let address = cluster.http_address(0);
        let http = Http::new(address);
        let mut sessions = Vec::new();
        for _ in 0..5 {
            sessions.push(http.session("5m").await);
        }
        let [holder, rival, other, one, two] = sessions.try_into().expect("there are five");
        let mut stage = Self {
            http,
            base: format!("http://{address}"),
            takers: Vec::new(),
            holder,
            rivals: vec![rival, other],
            entangled: [one, two],
            error: String::new(),
        };
        stage.fill_queues().await;
        stage.fight_for_locks().await;
        stage.elect().await;
        stage.misbehave().await;
        stage
    }

    /// The address of the page.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    async fn create(&self, object: &str, arguments: Value) {
        let answer = self.http.send(Method::PUT, &format!("/v1/objects/{object}"), arguments).await;
        assert_eq!(answer.status, 204, "{answer:?}");
    }

    async fn call(&self, session: &str, path: &str, arguments: Value) -> Value {
        let http = self.http.with("gesmas-session", session);
        http.call(path, arguments).await.result().clone()
    }

    /// Begins a call that runs on by itself.
    async fn begin(&self, session: Option<&str>, path: &str, arguments: Value, key: &str) {
        let mut http = self.http.with("idempotency-key", key).with("prefer", "wait=0");
        http = http.with("gesmas-deadline", "10m");
        if let Some(session) = session {
            http = http.with("gesmas-session", session);
        }
        assert_eq!(http.call(path, arguments).await.status, 202, "{path} blocks");
    }

    /// Waits until so many calls on an object are blocked, and gives their numbers.
    pub(crate) async fn blocked(&self, class: &str, object: &str, count: usize) -> Vec<String> {
        let path = format!("/v1/invocations?class={class}&object={object}");
        wait::until_some("that calls are blocked", || async {
            let answer = self.http.send(Method::GET, &path, Value::Null).await;
            let calls = answer.body["invocations"].as_array()?;
            let number = |call: &Value| call["invocation"].as_str().map(Into::into);
            (calls.len() == count).then(|| calls.iter().filter_map(number).collect())
        })
        .await
    }

    async fn fill_queues(&mut self) {
        self.create("Queue/jobs", json!({ "capacity": 8 })).await;
        self.create("Queue/full", json!({ "capacity": 3 })).await;
        for item in ["resize cat.png", "<img src=x onerror=alert(1)>", &"long ".repeat(40)] {
            let produced = self.http.call("Queue/full/produce", json!({ "item": item })).await;
            assert_eq!(produced.status, 200, "{produced:?}");
        }
        for taker in 1..=3 {
            self.begin(None, "Queue/jobs/consume", Value::Null, &format!("taker-{taker}")).await;
            self.takers = self.blocked("Queue", "jobs", taker).await;
        }
    }

    async fn fight_for_locks(&self) {
        let lock = json!({ "owner": 1 });
        self.call(&self.holder, "Lock/mail/lock", lock.clone()).await;
        for (count, rival) in (1..).zip(&self.rivals) {
            let key = format!("rival-{count}");
            self.begin(Some(rival), "Lock/mail/lock", lock.clone(), &key).await;
            self.blocked("Lock", "mail", count).await;
        }
        let [one, two] = &self.entangled;
        self.call(one, "Lock/one/lock", lock.clone()).await;
        self.call(two, "Lock/two/lock", lock.clone()).await;
        self.begin(Some(one), "Lock/two/lock", lock.clone(), "one").await;
        self.blocked("Lock", "two", 1).await;
        self.begin(Some(two), "Lock/one/lock", lock, "two").await;
        self.blocked("Lock", "one", 1).await;
    }

    /// One leads, one waits to; and one has an event of its own.
    async fn elect(&self) {
        let (holder, rival) = (&self.holder, &self.rivals[0]);
        self.call(holder, "Election/boss/campaign", json!({ "candidate": "ann" })).await;
        let candidate = json!({ "candidate": "bob" });
        self.begin(Some(rival), "Election/boss/campaign", candidate, "bob").await;
        self.blocked("Election", "boss", 1).await;
        self.call(holder, "Membership/room/subscribe", Value::Null).await;
        let member = json!({ "name": "bob", "metadata": "" });
        self.call(rival, "Membership/room/join", member).await;
    }

    async fn misbehave(&mut self) {
        let put =
            self.http.request(Method::PUT, "/v1/classes/Hostile").body(hostile_class().module);
        let put = put.send().await.expect("there is an answer");
        assert_eq!(put.status().as_u16(), 204, "{put:?}");
        self.create("Hostile/bad", json!({ "mark": 1 })).await;
        assert_eq!(self.http.call("Hostile/bad/arm", Value::Null).await.status, 200);
        // Two handlers fail.
        for expected in ["7", "8"] {
            let soon = json!({ "expected": expected });
            assert_eq!(self.http.call("Hostile/bad/check_soon", soon).await.status, 200);
        }
        wait::until("that the handlers fail", || async {
            let faults = self.http.send(Method::GET, "/v1/faults", Value::Null).await;
            faults.body["faults"].as_array().is_some_and(|faults| faults.len() == 2)
        })
        .await;
        let failed = self.http.call("Hostile/bad/panic_now", Value::Null).await;
        assert_eq!(failed.status, 500, "{failed:?}");
        self.error = failed.body["id"].as_str().expect("it has an id").into();
    }
}
