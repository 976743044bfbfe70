//! What people build from etcd's keys: queue, counter, barrier, election.
//!
//! After etcd 3.4's own Go packages: the queue and the barrier of `contrib/recipes`, the election of
//! `clientv3/concurrency`; the counter is read and written back if nobody wrote meanwhile, as its
//! software transactions do.
//! Leases last longer than any measurement, so they are not kept alive.

use std::cell::Cell;

use super::{
    client::{Connection, EtcdError, Result},
    wire::{
        ASCEND, BY_CHANGE, BY_CREATION, CHANGE, CREATION, Compare, DESCEND, DeleteRequest,
        KeyValue, NO_DELETE, NO_PUT, Operation, PutRequest, RangeRequest, RangeResponse,
        WatchCreate, end_of,
    },
};
use crate::systems::{self, Client};

/// Seconds that a lease lasts.
const LEASE: i64 = 3_600;

/// One connection.
pub(crate) struct EtcdClient {
    connection: Connection,
    number: usize,
    /// Keys of its own that it has made: no two are equal.
    made: Cell<u64>,
    lease: Cell<i64>,
}

/// What a leader has.
pub(crate) struct Term {
    key: Vec<u8>,
    revision: i64,
}

impl EtcdClient {
    /// The client of this number.
    pub(super) fn new(connection: Connection, number: usize) -> Self {
        Self { connection, number, made: Cell::new(0), lease: Cell::new(0) }
    }

    /// A key under this prefix that nobody else makes.
    fn own_key(&self, prefix: &str) -> Vec<u8> {
        self.made.set(self.made.get() + 1);
        format!("{prefix}{:08}-{:04}", self.made.get(), self.number).into_bytes()
    }

    async fn lease(&self) -> Result<i64> {
        if self.lease.get() == 0 {
            self.lease.set(self.connection.grant(LEASE).await?);
        }
        Ok(self.lease.get())
    }

    async fn one(&self, key: &str) -> Result<KeyValue> {
        let request = RangeRequest { key: key.into(), ..RangeRequest::default() };
        let found = self.connection.range(request).await?.kvs.pop();
        found.ok_or(EtcdError::Lacks("the key"))
    }

    /// Keys of a prefix in some order, at most so many.
    async fn sorted(
        &self,
        prefix: &str,
        (order, target): (i32, i32),
        limit: i64,
        max_create_revision: i64,
    ) -> Result<RangeResponse> {
        let request = RangeRequest {
            key: prefix.into(),
            range_end: end_of(prefix.as_bytes()),
            limit,
            sort_order: order,
            sort_target: target,
            max_create_revision,
            count_only: false,
        };
        self.connection.range(request).await
    }

    /// Puts a key that is not there, and returns the revision.
    async fn put_new(&self, key: &[u8], value: &[u8], lease: i64) -> Result<i64> {
        let absent = Compare {
            target: CREATION,
            key: key.to_vec(),
            create_revision: Some(0),
            mod_revision: None,
        };
        let put = PutRequest { key: key.to_vec(), value: value.to_vec(), lease };
        let operation = Operation { put: Some(put), delete: None };
        match self.connection.put_if(absent, operation).await? {
            (true, revision) => Ok(revision),
            (false, _) => Err(EtcdError::Lacks("a key of its own")),
        }
    }

    /// Takes an item if it is still as it was seen.
    async fn claim(&self, item: &KeyValue) -> Result<bool> {
        let same = Compare {
            target: CHANGE,
            key: item.key.clone(),
            create_revision: None,
            mod_revision: Some(item.mod_revision),
        };
        let delete = DeleteRequest { key: item.key.clone() };
        let operation = Operation { put: None, delete: Some(delete) };
        Ok(self.connection.put_if(same, operation).await?.0)
    }

    async fn take(&self, queue: &str) -> Result<Vec<u8>> {
        let prefix = format!("{queue}/");
        loop {
            let found = self.sorted(&prefix, (ASCEND, BY_CHANGE), 1, 0).await?;
            let item = match found.kvs.into_iter().next() {
                Some(item) => item,
                None => {
                    let seen = found.header.ok_or(EtcdError::Lacks("a header"))?.revision;
                    let watch = WatchCreate {
                        range_end: end_of(prefix.as_bytes()),
                        key: prefix.clone().into(),
                        start_revision: seen + 1,
                        filters: vec![NO_DELETE],
                    };
                    let event = self.connection.wait_for(watch).await?;
                    event.kv.ok_or(EtcdError::Lacks("a key"))?
                }
            };
            if self.claim(&item).await? {
                return Ok(item.value);
            }
        }
    }

    async fn enter(&self, barrier: &str, parties: usize) -> Result<()> {
        let waiters = format!("{barrier}/waiters/");
        let ready = format!("{barrier}/ready");
        let lease = self.lease().await?;
        let revision = self.put_new(&self.own_key(&waiters), b"", lease).await?;
        let here = RangeRequest {
            key: waiters.clone().into(),
            range_end: end_of(waiters.as_bytes()),
            count_only: true,
            ..RangeRequest::default()
        };
        let count = self.connection.range(here).await?.count;
        if usize::try_from(count).is_ok_and(|count| count >= parties) {
            self.connection.put(ready.as_bytes(), b"", 0).await?;
            return Ok(());
        }
        let watch = WatchCreate {
            key: ready.into(),
            range_end: Vec::new(),
            start_revision: revision,
            filters: vec![NO_DELETE],
        };
        self.connection.wait_for(watch).await.map(drop)
    }

    async fn run(&self, election: &str) -> Result<Term> {
        let prefix = format!("{election}/");
        let lease = self.lease().await?;
        let key = self.own_key(&prefix);
        let revision = self.put_new(&key, b"candidate", lease).await?;
        loop {
            let before = self.sorted(&prefix, (DESCEND, BY_CREATION), 1, revision - 1).await?;
            let seen = before.header.ok_or(EtcdError::Lacks("a header"))?.revision;
            let Some(before) = before.kvs.into_iter().next() else {
                return Ok(Term { key, revision });
            };
            let watch = WatchCreate {
                key: before.key,
                range_end: Vec::new(),
                start_revision: seen + 1,
                filters: vec![NO_PUT],
            };
            self.connection.wait_for(watch).await?;
        }
    }

    async fn step_down(&self, term: Term) -> Result<()> {
        let own = Compare {
            target: CREATION,
            key: term.key.clone(),
            create_revision: Some(term.revision),
            mod_revision: None,
        };
        let delete = DeleteRequest { key: term.key };
        let operation = Operation { put: None, delete: Some(delete) };
        self.connection.put_if(own, operation).await.map(drop)
    }

    async fn add_one(&self, counter: &str) -> Result<u64> {
        for attempts in 1.. {
            let found = self.one(counter).await?;
            let count = number(&found.value) + 1;
            let same = Compare {
                target: CHANGE,
                key: counter.into(),
                create_revision: None,
                mod_revision: Some(found.mod_revision),
            };
            let value = count.to_le_bytes().to_vec();
            let put = PutRequest { key: counter.into(), value, lease: 0 };
            let operation = Operation { put: Some(put), delete: None };
            if self.connection.put_if(same, operation).await?.0 {
                return Ok(attempts);
            }
        }
        unreachable!("attempts do not end by themselves")
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

impl Client for EtcdClient {
    type Term = Term;

    async fn make_register(&self, key: &str) -> systems::Result<()> {
        self.update(key, b"").await
    }

    async fn make_counter(&self, name: &str) -> systems::Result<()> {
        self.update(name, &0_u64.to_le_bytes()).await
    }

    async fn make_queue(&self, _name: &str) -> systems::Result<()> {
        Ok(())
    }

    async fn make_barrier(&self, _: &str, _parties: usize, _rounds: usize) -> systems::Result<()> {
        Ok(())
    }

    async fn make_election(&self, _name: &str) -> systems::Result<()> {
        Ok(())
    }

    async fn update(&self, key: &str, value: &[u8]) -> systems::Result<()> {
        self.connection.put(key.as_bytes(), value, 0).await?;
        Ok(())
    }

    async fn read(&self, key: &str) -> systems::Result<Vec<u8>> {
        Ok(self.one(key).await?.value)
    }

    async fn increment(&self, counter: &str) -> systems::Result<u64> {
        Ok(self.add_one(counter).await?)
    }

    async fn count(&self, counter: &str) -> systems::Result<u64> {
        Ok(number(&self.one(counter).await?.value))
    }

    async fn produce(&self, queue: &str, item: &[u8]) -> systems::Result<()> {
        let key = self.own_key(&format!("{queue}/"));
        self.put_new(&key, item, 0).await?;
        Ok(())
    }

    async fn consume(&self, queue: &str) -> systems::Result<Vec<u8>> {
        Ok(self.take(queue).await?)
    }

    async fn pass(&self, barrier: &str, parties: usize, round: usize) -> systems::Result<()> {
        Ok(self.enter(&format!("{barrier}/{round}"), parties).await?)
    }

    async fn campaign(&self, election: &str) -> systems::Result<Term> {
        Ok(self.run(election).await?)
    }

    async fn resign(&self, _election: &str, term: Term) -> systems::Result<()> {
        Ok(self.step_down(term).await?)
    }

    fn bytes_sent(&self) -> u64 {
        self.connection.sent()
    }
}
