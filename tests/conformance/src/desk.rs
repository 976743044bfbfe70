//! The desk: what a runner is told, what it may ask for, and what became of its cases.
//!
//! A runner says one line of JSON at a time: `{"case": NAME, "passed": BOOL, "why": TEXT}` when it is through
//! with a case, `{"done": true}` at the end, or `{"ask": WHAT, …}`, which is answered by `{"answer": …}`:
//!
//! | ask | what is done |
//! |---|---|
//! | `kill`, `endpoint` | SIGKILL to the replica that serves there |
//! | `kill-leader` | SIGKILL to the leader |
//! | `kill-majority` | SIGKILL to two replicas, of which one leads |
//! | `freeze`, `endpoint` | SIGSTOP to the replica that serves there |
//! | `thaw`, `endpoint` | SIGCONT to it; answered when it has caught up |
//! | `restart` | all that are down are started; answered when they have caught up |
//! | `end-session`, `session` | an operator ends it |
//! | `sessions` | how many are open |
//! | `peer`, `target`, `method`, `arguments` | the runner of another language makes the call |

use std::collections::BTreeMap;

use gesmas_client::{Client, Session};
use gesmas_cluster_tests::{Cluster, wait};
use serde_json::{Value, json};

use crate::{
    echo_module,
    list::cases,
    runner::{Face, Runner},
};

/// See the file's head.
pub struct Desk {
    cluster: Cluster,
    client: Client,
    session: Session,
    down: Vec<usize>,
    peer_face: Face,
    peer: Option<Runner>,
}

impl Desk {
    /// Starts a cluster that has the class of the cases.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn open(peer: Face) -> Self {
        let cluster = Cluster::start().await;
        let client = cluster.client().await;
        let session = client.session().open().await.expect("a session is opened");
        session.put_class("Echo", echo_module()).await.expect("the class is loaded");
        Self { cluster, client, session, down: Vec::new(), peer_face: peer, peer: None }
    }

    /// Runs all cases in a language.
    ///
    /// # Panics
    /// When a case is missing, unknown, or has failed.
    pub async fn run(mut self, face: Face) {
        let listed: Vec<_> = cases().into_iter().map(|case| case.name).collect();
        let mut arguments = vec![self.endpoints().join(",")];
        arguments.extend(std::env::var("GESMAS_CASE"));
        let mut runner = Runner::start(&face, &arguments);
        let mut results = BTreeMap::new();
        loop {
            let said = runner.hear().await;
            if said["done"] == true {
                break;
            }
            if let Some(name) = said["case"].as_str() {
                let why = (said["passed"] != true).then(|| said["why"].to_string());
                if let Some(why) = &why {
                    let why = why.replace("\\n", "\n");
                    eprintln!("{}: {name} failed: {why}", face.name);
                }
                assert!(results.insert(name.to_owned(), why).is_none(), "{name} was run twice");
            } else {
                let answer = self.answer(&said).await;
                runner.tell(&json!({ "answer": answer })).await;
            }
        }
        let failed: Vec<_> = results.iter().filter(|(_, why)| why.is_some()).collect();
        assert!(failed.is_empty(), "{}: {} cases failed: {failed:#?}", face.name, failed.len());
        if std::env::var_os("GESMAS_CASE").is_none() {
            let mut listed = listed;
            listed.sort();
            let ran: Vec<_> = results.into_keys().collect();
            assert_eq!(ran, listed, "{} must have every case of the list and no other", face.name);
        }
    }

    fn endpoints(&self) -> Vec<String> {
        let address = |index| format!("http://{}", self.cluster.http_address(index));
        self.cluster.indices().map(address).collect()
    }

    /// Index of the replica that serves at an endpoint.
    fn place(&self, said: &Value) -> usize {
        let place = self.endpoints().iter().position(|address| said["endpoint"] == **address);
        place.expect("a replica serves there")
    }

    async fn answer(&mut self, said: &Value) -> Value {
        match said["ask"].as_str() {
            Some("kill") => self.kill(self.place(said)),
            Some("freeze") => {
                self.cluster.freeze(self.place(said));
                Value::Null
            }
            Some("thaw") => {
                let place = self.place(said);
                self.cluster.thaw(place);
                self.cluster.caught_up(place).await;
                Value::Null
            }
            Some("kill-leader") => {
                let leader = self.cluster.leader().await;
                self.kill(leader)
            }
            Some("kill-majority") => {
                let leader = self.cluster.leader().await;
                let other = self.cluster.indices().find(|index| *index != leader);
                self.kill(other.expect("there are three"));
                self.kill(leader)
            }
            Some("restart") => self.restart().await,
            Some("end-session") => {
                let session = said["session"].as_str().and_then(|session| session.parse().ok());
                let ended = self.session.kill_session(session.expect("a number")).await;
                ended.expect("the session is ended");
                Value::Null
            }
            Some("sessions") => {
                let page = self.client.list_sessions(0, 1_000).await.expect("a list of sessions");
                page.items.len().into()
            }
            Some("peer") => self.ask_peer(said).await,
            _ => panic!("a runner says {said}, which nobody understands"),
        }
    }

    fn kill(&mut self, index: usize) -> Value {
        self.cluster.kill(index);
        self.down.push(index);
        Value::Null
    }

    async fn restart(&mut self) -> Value {
        let down = std::mem::take(&mut self.down);
        for index in &down {
            self.cluster.restart(*index);
        }
        for index in down {
            self.cluster.caught_up(index).await;
            let address = self.cluster.http_address(index);
            wait::until("that a replica serves HTTP", || async {
                tokio::net::TcpStream::connect(address).await.is_ok()
            })
            .await;
        }
        Value::Null
    }

    async fn ask_peer(&mut self, said: &Value) -> Value {
        let endpoints = self.endpoints().join(",");
        let face = self.peer_face;
        let peer =
            self.peer.get_or_insert_with(|| Runner::start(&face, &[endpoints, "peer".into()]));
        peer.tell(said).await;
        peer.hear().await["answer"].take()
    }
}
