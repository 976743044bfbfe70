//! The gateway: HTTP and JSON for clients without a library, and for people.
//!
//! ```text
//! HTTP clients ──► gateway ──► client library ──► this replica's own port for clients
//! ```
//!
//! Each replica can serve it. A gateway is a client like others: it has no part in the replica, and
//! whatever it promises is what the cluster promises. Its clients count no requests: their calls
//! travel in sessions of the gateway (`requesters.rs`) on behalf of theirs (`lenders.rs`), so that
//! the next call of a session may come through any gateway; a call with a key of its own is a
//! session with one request (`keyed.rs`).
//! Invariant: nothing that outlives a request is known only to one gateway, besides connections.
//! Not here: what names, types and values mean (`interface/`, `json/`), what failures mean
//! (`failure/`).

mod admittance;
mod calls;
mod consistency;
mod errors;
mod events;
mod faults;
mod health;
mod interfaces;
mod keyed;
mod lenders;
mod listener;
mod metrics;
mod objects;
mod openapi;
mod operators;
mod page;
mod problem;
mod requesters;
mod sessions;
mod spans;
mod watch;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router, middleware,
    routing::{delete, get, post},
};
use gesmas_client::{Client, ConnectError};
use tokio::{net::TcpListener, task::JoinHandle};

use self::{
    admittance::Admittance, errors::Errors, interfaces::Interfaces, keyed::KeyedRuns,
    lenders::Lenders, listener::Limits, requesters::Requesters, spans::HttpSpans, watch::Times,
};
use crate::shell::{self, HttpConfig};

/// How long the replica may take until it accepts the gateway's connection.
const PATIENCE: Duration = Duration::from_secs(30);
/// What the gateway is to its replica: not to be changed, since keyed outcomes are found again by it.
const NAME: &str = "gesmas-http";
/// Greatest body of a request, bytes: a module and what is around it.
const BODY_MAX: usize = 16 << 20;

/// Why a gateway cannot start.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// Its address cannot be listened on.
    #[error("{address}: {error}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// It cannot connect to its replica.
    #[error("the gateway cannot connect to its replica: {0}")]
    Connect(#[from] ConnectError),
}

/// What all handlers share.
pub(crate) struct Gateway {
    client: Client,
    requesters: Requesters,
    lenders: Lenders,
    keyed: KeyedRuns,
    interfaces: Interfaces,
    admittance: Admittance,
    errors: Errors,
    times: Times,
    /// None if no traces are exported.
    spans: Option<HttpSpans>,
    /// Where the replica's clients connect, for people.
    replica: SocketAddr,
}

type Shared = Arc<Gateway>;

/// A gateway that serves until it is dropped.
pub struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    /// Where it is served.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves HTTP for a replica of this process, with spans of its requests if it has a tracer: the replica
/// finds there what spans are its calls' parents.
///
/// # Errors
/// [`GatewayError`] when the address is taken or the replica does not answer.
pub async fn start(config: &HttpConfig, served: &shell::Server) -> Result<Server, GatewayError> {
    let (replica, tracer) = (served.clients(), served.tracer());
    let bind = |error| GatewayError::Bind { address: config.listen, error };
    let listener = TcpListener::bind(config.listen).await.map_err(bind)?;
    let address = listener.local_addr().map_err(bind)?;
    let builder = Client::builder().endpoints([replica.to_string()]).name(NAME);
    let client = builder.patience(PATIENCE).connect().await?;
    let gateway = Arc::new(Gateway {
        requesters: Requesters::new(client.clone()),
        lenders: Lenders::new(client.clone()),
        keyed: KeyedRuns::default(),
        interfaces: Interfaces::new(client.clone()),
        admittance: Admittance::new(config, address),
        errors: Errors::default(),
        times: watch::times(),
        spans: tracer.map(HttpSpans::new),
        client,
        replica,
    });
    let router = router(gateway);
    let limits = Limits {
        connections: served.http_connections(),
        idle: Duration::from_millis(config.idle_ms),
    };
    let task = tokio::spawn(listener::serve(listener, router, limits));
    Ok(Server { address, task })
}

fn router(gateway: Shared) -> Router {
    let v1 = Router::new()
        .route("/objects", get(objects::list))
        .route("/objects/{class}", get(objects::list_of_class))
        .route(
            "/objects/{class}/{object}",
            get(objects::show).put(objects::create).delete(objects::remove),
        )
        .route("/objects/{class}/{object}/{method}", post(calls::call).get(calls::read))
        .route("/sessions", post(sessions::open).get(sessions::list))
        .route("/sessions/{session}", get(sessions::show).delete(sessions::close))
        .route("/sessions/{session}/keep-alive", post(sessions::keep_alive))
        .route("/sessions/{session}/events", get(events::stream))
        .route("/classes", get(operators::classes))
        .route(
            "/classes/{class}",
            get(operators::class).put(operators::put_class).delete(operators::remove_class),
        )
        .route("/invocations", get(operators::invocations))
        .route("/invocations/{invocation}", delete(operators::kill_invocation))
        .route("/invocations/{invocation}/why", get(operators::why_blocked))
        .route("/faults", get(faults::list))
        .route("/faults/{class}/{object}/{fault}", delete(faults::drop_one))
        .route("/faults/{class}/{object}/{fault}/retry", post(faults::retry))
        .route("/cluster", get(operators::cluster))
        .route("/errors", get(errors::list))
        .route("/openapi.json", get(openapi::document));
    Router::new()
        .nest("/v1", v1)
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(metrics::metrics))
        .route("/", get(page::index))
        .route("/page/{part}", get(page::part))
        .fallback(problem::not_found)
        .method_not_allowed_fallback(problem::method_not_allowed)
        .layer(axum::extract::DefaultBodyLimit::max(BODY_MAX))
        .layer(middleware::from_fn_with_state(gateway.clone(), admittance::check))
        .layer(middleware::from_fn_with_state(gateway.clone(), spans::trace))
        .layer(middleware::from_fn_with_state(gateway.clone(), watch::watch))
        .with_state(gateway)
}
