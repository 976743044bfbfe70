//! One connection to etcd: questions, transactions, watches.
//!
//! Not here: what is built of them (`recipes.rs`).

use std::net::SocketAddr;

use hyper_util::rt::TokioIo;
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Request, Status, Streaming,
    client::Grpc,
    codegen::http::{Uri, uri::PathAndQuery},
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;

use super::wire::{
    Compare, Event, GrantRequest, GrantResponse, Operation, PutRequest, PutResponse, RangeRequest,
    RangeResponse, TransactionRequest, TransactionResponse, WatchCreate, WatchRequest,
    WatchResponse,
};
use crate::systems::counted::{Count, Counted};

/// Why etcd gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EtcdError {
    #[error("{0}")]
    Transport(#[from] tonic::transport::Error),
    #[error("{0}")]
    Status(Box<Status>),
    #[error("a watch ended before what it waited for")]
    WatchEnded,
    #[error("an answer lacks {0}")]
    Lacks(&'static str),
}

impl From<Status> for EtcdError {
    fn from(status: Status) -> Self {
        Self::Status(Box::new(status))
    }
}

pub(super) type Result<T> = std::result::Result<T, EtcdError>;

/// See the file's head.
pub(super) struct Connection {
    channel: Channel,
    sent: Count,
}

impl Connection {
    /// Connects.
    pub(super) async fn open(address: SocketAddr) -> Result<Self> {
        let sent = Count::default();
        let count = sent.clone();
        let connector = tower::service_fn(move |_: Uri| {
            let count = count.clone();
            async move { Counted::connect(address, count).await.map(TokioIo::new) }
        });
        let endpoint = Endpoint::from_shared(format!("http://{address}"))?;
        let channel = endpoint.connect_with_connector(connector).await?;
        Ok(Self { channel, sent })
    }

    /// Bytes written so far.
    pub(super) fn sent(&self) -> u64 {
        self.sent.get()
    }

    async fn ask<Q, A>(&self, path: &'static str, question: Q) -> Result<A>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        let mut grpc = Grpc::new(self.channel.clone());
        grpc.ready().await?;
        let path = PathAndQuery::from_static(path);
        let codec = ProstCodec::<Q, A>::default();
        Ok(grpc.unary(Request::new(question), path, codec).await?.into_inner())
    }

    /// Keys and their values; linearizable.
    pub(super) async fn range(&self, request: RangeRequest) -> Result<RangeResponse> {
        self.ask("/etcdserverpb.KV/Range", request).await
    }

    /// Writes a key.
    pub(super) async fn put(&self, key: &[u8], value: &[u8], lease: i64) -> Result<i64> {
        let request = PutRequest { key: key.to_vec(), value: value.to_vec(), lease };
        let response: PutResponse = self.ask("/etcdserverpb.KV/Put", request).await?;
        Ok(response.header.ok_or(EtcdError::Lacks("a header"))?.revision)
    }

    /// Does something if a comparison holds, and says whether it did, and the revision.
    pub(super) async fn put_if(
        &self,
        compare: Compare,
        operation: Operation,
    ) -> Result<(bool, i64)> {
        let request = TransactionRequest { compare: vec![compare], success: vec![operation] };
        let response: TransactionResponse = self.ask("/etcdserverpb.KV/Txn", request).await?;
        let header = response.header.ok_or(EtcdError::Lacks("a header"))?;
        Ok((response.succeeded, header.revision))
    }

    /// A lease of so many seconds.
    pub(super) async fn grant(&self, seconds: i64) -> Result<i64> {
        let request = GrantRequest { ttl: seconds };
        let response: GrantResponse = self.ask("/etcdserverpb.Lease/LeaseGrant", request).await?;
        Ok(response.id)
    }

    /// Waits for an event.
    pub(super) async fn wait_for(&self, watch: WatchCreate) -> Result<Event> {
        let mut grpc = Grpc::new(self.channel.clone());
        grpc.ready().await?;
        // The watch lasts as long as its questions may come.
        let (questions, stream) = mpsc::channel(1);
        let question = WatchRequest { create: Some(watch) };
        questions.send(question).await.map_err(|_| EtcdError::WatchEnded)?;
        let request = Request::new(ReceiverStream::new(stream));
        let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
        let codec = ProstCodec::<WatchRequest, WatchResponse>::default();
        let mut answers: Streaming<WatchResponse> =
            grpc.streaming(request, path, codec).await?.into_inner();
        while let Some(answer) = answers.message().await? {
            if answer.canceled {
                break;
            }
            if let Some(event) = answer.events.into_iter().next() {
                return Ok(event);
            }
        }
        Err(EtcdError::WatchEnded)
    }
}
