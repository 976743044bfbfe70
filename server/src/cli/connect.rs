//! Reaching a cluster: endpoints, a client, a session for one call.
//!
//! Invariant: a session that a command opens is closed before the command ends, also when the user
//! interrupts it: what was blocked is cancelled, and what the session owned is given back.

use std::{future::IntoFuture, time::Duration};

use clap::Args;
use gesmas_client::{AdminFailure, CallFailure, Client, Page, Session, protocol::Bytes};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use super::output::Output;
use crate::failure::{Failure, exit::Exit};

/// How long a command looks for a replica.
const PATIENCE: Duration = Duration::from_secs(5);
/// Rows asked for at once.
const PAGE: u32 = 1_000;

/// Where the cluster is.
#[derive(Clone, Debug, Args)]
pub(super) struct Target {
    /// Replicas to ask; the first that answers is used.
    #[arg(
        long,
        global = true,
        env = "GESMAS_ENDPOINTS",
        value_delimiter = ',',
        default_value = "127.0.0.1:7100",
        value_name = "HOST:PORT,…"
    )]
    pub(super) endpoints: Vec<String>,
}

/// What commands that talk to a cluster get.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(super) output: Output,
    pub(super) target: Target,
}

impl Context {
    /// A client that is connected.
    pub(super) async fn connect(&self) -> Result<Client, Failure> {
        connect(self.target.endpoints.clone(), PATIENCE).await
    }

    /// A client that is connected, whose answers are as fresh as is wanted.
    pub(super) async fn ask(&self, freshness: Freshness) -> Result<Client, Failure> {
        let client = self.connect().await?;
        Ok(if freshness.stale { client.stale() } else { client })
    }

    /// A client and a session of its own.
    pub(super) async fn open(&self) -> Result<Link, Failure> {
        let interrupted = interruption()?;
        let opening = async {
            let client = self.connect().await?;
            let session = client.session().open().await?;
            Ok((client, session))
        };
        let mut interruption = interrupted.clone();
        let opened = tokio::select! {
            opened = opening => opened,
            _ = interruption.wait_for(|interrupted| *interrupted) => {
                Err(Failure::interrupted("interrupted; nothing was called"))
            }
        };
        let (client, session) = opened?;
        Ok(Link { client, session, interrupted })
    }
}

/// Connects to one of these.
pub(super) async fn connect(endpoints: Vec<String>, patience: Duration) -> Result<Client, Failure> {
    Ok(Client::builder()
        .endpoints(endpoints)
        .name("gesmas-cli")
        .patience(patience)
        .connect()
        .await?)
}

/// Becomes true when the user interrupts the program, from now on: between two waits as well.
fn interruption() -> Result<watch::Receiver<bool>, Failure> {
    let signals = signal(SignalKind::interrupt());
    let mut signals = signals.map_err(|error| {
        Failure::new(Exit::Failed, "signal", format!("signals cannot be listened for: {error}"))
    })?;
    let (sender, interrupted) = watch::channel(false);
    tokio::spawn(async move {
        if signals.recv().await.is_some() {
            sender.send_replace(true);
        }
        // The value stays, and who waits for it is not told that nobody can change it any more.
        sender.closed().await;
    });
    Ok(interrupted)
}

/// A connection with a session.
pub(super) struct Link {
    pub(super) client: Client,
    pub(super) session: Session,
    interrupted: watch::Receiver<bool>,
}

impl Link {
    /// Waits for the end of a call, or for the user to interrupt it, which cancels it.
    pub(super) async fn wait<C>(&self, call: C) -> Result<Bytes, WaitFailure>
    where
        C: IntoFuture<Output = Result<Bytes, CallFailure>>,
    {
        tokio::select! {
            result = call.into_future() => result.map_err(WaitFailure::Call),
            () = self.interrupted() => Err(WaitFailure::Interrupted),
        }
    }

    /// Waits until the user has interrupted the program.
    pub(super) async fn interrupted(&self) {
        let mut interrupted = self.interrupted.clone();
        interrupted.wait_for(|interrupted| *interrupted).await.expect("its sender waits for us");
    }

    /// Closes the session and the connection.
    pub(super) async fn close(self) {
        self.session.close().await;
        self.client.shutdown().await;
    }

    /// Makes one call and closes.
    pub(super) async fn finish<C>(self, call: C) -> Result<Bytes, Failure>
    where
        C: IntoFuture<Output = Result<Bytes, CallFailure>>,
    {
        let result = self.wait(call).await;
        self.close().await;
        Ok(result?)
    }
}

/// Why a call that was waited for has no result.
pub(super) enum WaitFailure {
    Call(CallFailure),
    Interrupted,
}

impl From<WaitFailure> for Failure {
    fn from(failure: WaitFailure) -> Self {
        match failure {
            WaitFailure::Call(failure) => failure.into(),
            WaitFailure::Interrupted => Self::interrupted("interrupted; the call was cancelled"),
        }
    }
}

/// Whether answers show everything that was acknowledged before they were asked for.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Freshness {
    /// Takes what the replica has, which may be old, and which needs no majority.
    #[arg(long)]
    stale: bool,
}

/// How much of a list is wanted.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Limit {
    /// Lists at most so many.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) limit: u32,
}

impl Limit {
    /// Asks for page after page until there are no more, or enough.
    pub(super) async fn gather<T>(
        self,
        mut page: impl AsyncFnMut(Option<&T>, u32) -> Result<Page<T>, AdminFailure>,
    ) -> Result<Page<T>, Failure> {
        let mut items = Vec::new();
        loop {
            let left = self.limit - u32::try_from(items.len()).unwrap_or(self.limit);
            let next = page(items.last(), left.min(PAGE)).await?;
            let nothing = next.items.is_empty();
            items.extend(next.items);
            if !next.more || nothing || items.len() as u64 >= u64::from(self.limit) {
                return Ok(Page { items, more: next.more });
            }
        }
    }

    /// Says that there is more than was listed.
    pub(super) fn note(self, more: bool, output: Output) {
        if more {
            output.note(&format!("there are more than {}: see --limit", self.limit));
        }
    }
}
