//! Objects and sessions that have nothing to do with what a test does, and must not notice it.

use gesmas_client::{CallFailure, PendingCall, Session, protocol::Bytes};
use gesmas_counter::CounterStub;

use crate::{
    class::{Class, arguments},
    cluster::Cluster,
    wait,
};

/// A counter with its session, and a call that is blocked in another session.
pub struct Bystander {
    session: Session,
    count: i64,
    blocked: PendingCall,
    queue: Class,
    _blocked_session: Session,
}

const OBJECT: &str = "bystander";

impl Bystander {
    /// Begins to stand by.
    ///
    /// # Panics
    /// When calls fail.
    pub async fn start(cluster: &Cluster) -> Self {
        let queue = Class::standard("Queue");
        let session = cluster.session().await;
        let created =
            session.create_object("Queue", OBJECT, queue.signature("init"), arguments((1_u32,)));
        created.await.expect("the queue is created");
        let blocked_session = cluster.session().await;
        let consume = queue.call(&blocked_session, OBJECT, "consume", Vec::new());
        let blocked = consume.without_deadline().send();
        Self { session, count: 0, blocked, queue, _blocked_session: blocked_session }
    }

    /// Checks that other objects and sessions work.
    ///
    /// # Panics
    /// When they do not.
    pub async fn check(&mut self) {
        let counter = CounterStub::new(self.session.clone(), OBJECT);
        self.count += 1;
        let count = wait::bounded("a call of a bystander", counter.increment()).await;
        assert_eq!(count.expect("a bystander's call works"), self.count);
    }

    /// Checks that the blocked call still waits and gets its item, and that all replicas are equal.
    ///
    /// # Panics
    /// When that is not so.
    pub async fn finish(mut self, cluster: &Cluster) {
        self.check().await;
        let item = b"for the one who waited".to_vec();
        let produce = arguments((gesmas_abi::value::Bytes(item.clone()),));
        let produced = self.queue.call(&self.session, OBJECT, "produce", produce).await;
        produced.expect("a bystander's queue works");
        let consumed: Result<Bytes, CallFailure> =
            wait::bounded("the blocked call of a bystander", self.blocked).await;
        let consumed = consumed.expect("the blocked call ends well");
        assert!(consumed.ends_with(&item), "the blocked call got something else");
        cluster.assert_equal().await;
    }
}
