//! Starting and stopping one replica in this process.
//!
//! Order: the engine is made, the folder locked and the log recovered, the sockets bound, the driver
//! started; a failure of any ends what was started before it.

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc, thread::JoinHandle, time::Duration};

use gesmas_coroutine::{BothEngines, CacheError, EngineUnavailable, NativeEngine, WasmEngine};
use gesmas_machine::Limits;
use gesmas_protocol::{BODY_MAX, VERSION, Welcome};
use gesmas_sdk::host::NativeClass;
use tokio::{
    net::TcpListener,
    runtime::{Builder, Runtime},
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
};

use super::{
    clients::{self, Clients},
    compiler::CompilerQueue,
    config::{Config, ConfigError},
    descriptors::{Bounds, Descriptors},
    driver::{Driver, Pace},
    input::{HostClock, Input},
    keeper::Keeper,
    peers,
    recover::{folder, make_engine, make_replica, open_snapshots},
    standard::standard_classes,
    syncer::Syncer,
};
use crate::{
    log::LogError,
    paxos::NodeError,
    replica::ReplicaError,
    snapshot::{SnapshotError, Worker},
    trace::{Exporting, TraceError, Tracer},
};

/// Why a replica could not start, or had to stop.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The configuration cannot be served.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The data folder cannot be used.
    #[error("{}: {error}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The log cannot be used.
    #[error("the log: {0}")]
    Log(#[from] LogError),
    /// The snapshots cannot be used.
    #[error("the snapshots: {0}")]
    Snapshots(#[from] SnapshotError),
    /// The node cannot start.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The engine cannot start.
    #[error(transparent)]
    Engine(#[from] EngineUnavailable),
    /// The cache of compiled code cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// Traces cannot be exported.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// An address cannot be listened on.
    #[error("{address}: {error}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// The replica had to stop.
    #[error("the replica stopped: {0}")]
    Replica(#[from] ReplicaError),
    /// The driver panicked: an invariant of the replica is broken.
    #[error("the replica stopped because an invariant is broken; its log has the place")]
    Broken,
}

/// How long the last words to clients may take when a replica stops.
const FAREWELL: Duration = Duration::from_secs(1);

/// Tasks that run before the driver does, if so many are ready.
const EVENTS: u32 = 256;

/// Why a listener can be handed to the runtime.
const LISTENS: &str = "a socket that listens can be watched";

/// A replica that runs.
pub struct Server {
    inputs: mpsc::Sender<Input>,
    driver: JoinHandle<Result<(), ReplicaError>>,
    ended: watch::Receiver<bool>,
    clients: SocketAddr,
    http_connections: usize,
    leading: watch::Receiver<bool>,
    trace: Option<(Tracer, Exporting)>,
}

impl Server {
    /// Where clients connect.
    #[must_use]
    pub fn clients(&self) -> SocketAddr {
        self.clients
    }

    /// How many connections over HTTP there are file descriptors for.
    #[must_use]
    pub const fn http_connections(&self) -> usize {
        self.http_connections
    }

    /// Whether the replica leads, as it changes.
    #[must_use]
    pub fn leading(&self) -> watch::Receiver<bool> {
        self.leading.clone()
    }

    /// Takes spans for the collector; none if the configuration has no collector.
    #[must_use]
    pub fn tracer(&self) -> Option<Tracer> {
        self.trace.as_ref().map(|(tracer, _)| tracer.clone())
    }

    /// Waits until the replica has to stop.
    pub async fn ended(&self) {
        let mut ended = self.ended.clone();
        // An error means that the driver is gone, which is the same.
        let _gone = ended.wait_for(|ended| *ended).await;
    }

    /// Stops the replica: its clients are told to go elsewhere, and its last spans are exported.
    ///
    /// # Errors
    /// Why it had stopped by itself.
    pub async fn stop(self) -> Result<(), ServeError> {
        // Should the driver be gone already, its result says why.
        let _gone = self.inputs.send(Input::Stop).await;
        let driver = self.driver;
        let joined = tokio::task::spawn_blocking(move || driver.join()).await;
        if let Some((_, exporting)) = self.trace {
            exporting.stop().await;
        }
        match joined.map_err(|_| ServeError::Broken)? {
            Ok(result) => result.map_err(ServeError::from),
            Err(_) => Err(ServeError::Broken),
        }
    }
}

/// Starts a replica on a thread of its own.
///
/// # Errors
/// [`ServeError`] says what stands in the way.
pub async fn start(config: &Config) -> Result<Server, ServeError> {
    start_with(config, &[]).await
}

/// The same for a program that has classes of its own in it, which it trusts: they run natively, without
/// the sandbox. A client puts one under its name with the text that [`gesmas_coroutine::native_module`] gives.
///
/// All replicas of a group have to be programs with the same classes: one that has none refuses to join
/// a group that has some, and a replica stops at a call of a class that it lacks.
///
/// # Errors
/// [`ServeError`] says what stands in the way.
///
/// # Panics
/// When two classes have one name and version.
pub async fn start_with(config: &Config, classes: &[NativeClass]) -> Result<Server, ServeError> {
    start_among(config, classes, Descriptors::raise()).await
}

/// The same for a program in which several replicas run, each with its share of the file descriptors.
///
/// # Errors
/// [`ServeError`] says what stands in the way.
///
/// # Panics
/// When two classes have one name and version.
pub async fn start_among(
    config: &Config,
    classes: &[NativeClass],
    descriptors: Descriptors,
) -> Result<Server, ServeError> {
    config.check()?;
    let bounds = descriptors.bounds(config)?;
    if bounds.lowered {
        let (limit, Bounds { clients, http, .. }) = (descriptors.limit(), bounds);
        tracing::warn!(
            limit,
            clients,
            http,
            "the limit on open files is too low for as many connections as are configured: fewer are let in"
        );
    }
    let (sender, receiver) = mpsc::channel(config.queues.inputs);
    let clock = HostClock::start();
    let wasm = make_engine(config)?;
    let compiler = CompilerQueue::start(
        wasm.compiler(),
        &folder(&config.data, "code")?,
        &config.compile,
        sender.clone(),
    )?;
    let trace = Tracer::start(config)?;
    let (leading_sender, leading) = watch::channel(false);
    let (ended_sender, ended) = watch::channel(false);
    let parts = Parts {
        config: config.clone(),
        classes: classes.to_vec(),
        wasm,
        compiler,
        clock,
        inputs: sender.clone(),
        leading: leading_sender,
        tracer: trace.as_ref().map(|(tracer, _)| tracer.clone()),
    };
    let (made, is_made) = oneshot::channel();
    let (go, sockets) = oneshot::channel::<Sockets>();
    let failed = |error| ServeError::Folder { path: config.data.clone(), error };
    let runtime = runtime().map_err(failed)?;
    let driver = std::thread::Builder::new()
        .name("driver".into())
        .spawn(move || {
            // Dropped on every way out, a panic included: whoever waits sees that it is over.
            let _ended = ended_sender;
            // Made here, since bodies of native classes stay on one thread.
            let driver = match parts.make_driver() {
                Ok(driver) => driver,
                Err(error) => {
                    let _gone = made.send(Err(error));
                    return Ok(());
                }
            };
            let _gone = made.send(Ok(()));
            // None where they could not be bound.
            let Ok(sockets) = sockets.blocking_recv() else { return Ok(()) };
            runtime.block_on(sockets.serve(driver, receiver))
        })
        .map_err(failed)?;
    is_made.await.map_err(|_| ServeError::Broken)??;
    match Sockets::bind(config, bounds, sender.clone()).await {
        Ok(bound) => {
            let clients = bound.address;
            let _gone = go.send(bound);
            let http_connections = bounds.http;
            Ok(Server { inputs: sender, driver, ended, clients, http_connections, leading, trace })
        }
        Err(error) => {
            drop(go);
            // The folder is free again when this returns.
            let joined = tokio::task::spawn_blocking(move || driver.join()).await;
            joined.map_err(|_| ServeError::Broken)?.map_err(|_| ServeError::Broken)??;
            Err(error)
        }
    }
}

/// What the driver is made of, on its own thread.
struct Parts {
    config: Config,
    classes: Vec<NativeClass>,
    wasm: WasmEngine,
    compiler: CompilerQueue,
    clock: HostClock,
    inputs: mpsc::Sender<Input>,
    leading: watch::Sender<bool>,
    tracer: Option<Tracer>,
}

impl Parts {
    fn make_driver(self) -> Result<Driver, ServeError> {
        let Self { config, classes, wasm, compiler, clock, inputs, leading, tracer } = self;
        let engine = BothEngines { native: NativeEngine::new(classes), wasm };
        let mut store = open_snapshots(&config)?;
        let replica = make_replica(&config, engine, &mut store, &clock)?;
        let failed = |error| ServeError::Folder { path: config.data.clone(), error };
        let keeper = Keeper::start(Worker::new(store), inputs).map_err(failed)?;
        let syncer = Syncer::start().map_err(failed)?;
        let pace = Pace { slice: config.kernel.slice, idle: config.queues.idle_ms * 1_000_000 };
        let driver = Driver::new(replica, clock, compiler, keeper, syncer, pace, leading);
        Ok(driver.traced(tracer))
    }
}

/// The sockets of a replica, and what their tasks know.
struct Sockets {
    clients: std::net::TcpListener,
    peers: std::net::TcpListener,
    /// Where clients connect.
    address: SocketAddr,
    client_tasks: Clients,
    /// Says when the last client's writer is gone.
    writers: mpsc::Receiver<()>,
    identity: peers::Identity,
    others: Vec<(u64, SocketAddr)>,
    tick: Duration,
    inputs: mpsc::Sender<Input>,
}

impl Sockets {
    async fn bind(
        config: &Config,
        bounds: Bounds,
        inputs: mpsc::Sender<Input>,
    ) -> Result<Self, ServeError> {
        let clients = bind(config.listen).await?;
        let peers = bind(config.own_peers()).await?;
        let address = clients
            .local_addr()
            .map_err(|error| ServeError::Bind { address: config.listen, error })?;
        let queues = &config.queues;
        let (writing, writers) = mpsc::channel(1);
        let output_bytes = queues.client_output_kib << 10;
        let welcome = welcome(config, &Limits::default())?;
        let client_tasks =
            Clients::new(inputs.clone(), welcome, output_bytes, bounds.clients, writing);
        let identity = peers::Identity {
            cluster: config.cluster_id()?,
            replica: config.replica,
            members: config.members.clone(),
            secret: config.peer_secret()?,
            output_bytes: queues.peer_output_mib << 20,
            inputs: inputs.clone(),
        };
        let others = config.members.iter().filter(|member| member.replica != config.replica);
        let others = others.map(|member| (member.replica, member.peers)).collect();
        let tick = config.tick();
        Ok(Self { clients, peers, address, client_tasks, writers, identity, others, tick, inputs })
    }

    /// Runs the driver, and the tasks of the sockets beside it, until it stops.
    async fn serve(
        mut self,
        mut driver: Driver,
        receiver: mpsc::Receiver<Input>,
    ) -> Result<(), ReplicaError> {
        let clients = TcpListener::from_std(self.clients).expect(LISTENS);
        let peers = TcpListener::from_std(self.peers).expect(LISTENS);
        let mut tasks = JoinSet::new();
        tasks.spawn(clients::accept(clients, Arc::new(self.client_tasks)));
        tasks.spawn(peers::accept(peers, self.identity.clone()));
        for (peer, address) in self.others {
            tasks.spawn(peers::dial(self.identity.clone(), peer, address));
        }
        let (standard, loader) = standard_classes();
        tasks.spawn(loader.run(self.address));
        driver.load_standard_classes(standard);
        tasks.spawn(tick(self.tick, self.inputs));
        let result = driver.run(receiver).await;
        if let Err(error) = &result {
            tracing::error!(%error, "the replica stops");
        }
        tasks.shutdown().await;
        // Clients that do not read are not waited for.
        let _late = tokio::time::timeout(FAREWELL, self.writers.recv()).await;
        result
    }
}

/// The runtime of the driver's thread.
fn runtime() -> io::Result<Runtime> {
    // All sockets that are ready are read before the driver has its turn.
    Builder::new_current_thread().enable_all().event_interval(EVENTS).build()
}

/// Listens on an address, for whichever runtime takes the socket.
async fn bind(address: SocketAddr) -> Result<std::net::TcpListener, ServeError> {
    let listener = TcpListener::bind(address).await.and_then(TcpListener::into_std);
    listener.map_err(|error| ServeError::Bind { address, error })
}

/// Sends ticks; one that finds the queue full is left out, since the driver is busy anyway.
async fn tick(period: Duration, inputs: mpsc::Sender<Input>) {
    let mut interval = tokio::time::interval(period);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        interval.tick().await;
        if matches!(inputs.try_send(Input::Tick), Err(mpsc::error::TrySendError::Closed(_))) {
            return;
        }
    }
}

fn welcome(config: &Config, limits: &Limits) -> Result<Welcome, ServeError> {
    Ok(Welcome {
        version: VERSION,
        replica: config.replica,
        cluster: config.cluster_id()?,
        frame_bytes: BODY_MAX,
        argument_bytes: limits.argument_bytes,
        module_bytes: limits.module.bytes,
        requests_per_session: limits.requests_per_session,
        session_timeout_max_ns: limits.session_timeout,
        server: concat!("gesmas ", env!("CARGO_PKG_VERSION")).into(),
    })
}
