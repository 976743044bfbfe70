//! Starting and stopping one replica in this process.
//!
//! Order: the folder is locked and the log recovered, the engine made, the sockets bound, the
//! driver started; a failure of any ends what was started before it.

use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};

use gesmas_coroutine::{CacheError, EngineUnavailable, WasmEngine};
use gesmas_machine::{
    ClassName, CodeHash, Engine as _, Genesis, InvocationId, Limits, Machine, Override,
    STATE_MACHINE_VERSION, Step,
};
use gesmas_protocol::{BODY_MAX, VERSION, Welcome};
use tokio::{
    net::TcpListener,
    runtime::{Builder, Runtime},
    sync::{mpsc, watch},
    task::JoinSet,
};

use super::{
    clients::{self, Clients},
    compiler::CompilerQueue,
    config::{Config, ConfigError},
    driver::Driver,
    input::{HostClock, Input},
    keeper::Keeper,
    peers,
    syncer::Syncer,
};
use crate::{
    log::{
        Identity, Log, LogError, LogSettings,
        repo::{FsRepo, Repo as _},
    },
    paxos::{self, Node, NodeConfig, NodeError},
    replica::{Held, Replica, ReplicaError, ReplicaSettings},
    snapshot::{self, Loaded, SnapshotError, Store, Worker},
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

/// The one group there is.
const GROUP: u32 = 1;
/// Its one configuration.
const FIRST: u32 = 1;

/// A replica that runs.
pub struct Server {
    inputs: mpsc::Sender<Input>,
    driver: JoinHandle<Result<(), ReplicaError>>,
    ended: watch::Receiver<bool>,
    clients: SocketAddr,
    leading: watch::Receiver<bool>,
}

impl Server {
    /// Where clients connect.
    #[must_use]
    pub fn clients(&self) -> SocketAddr {
        self.clients
    }

    /// Whether the replica leads, as it changes.
    #[must_use]
    pub fn leading(&self) -> watch::Receiver<bool> {
        self.leading.clone()
    }

    /// Waits until the replica has to stop.
    pub async fn ended(&self) {
        let mut ended = self.ended.clone();
        // An error means that the driver is gone, which is the same.
        let _gone = ended.wait_for(|ended| *ended).await;
    }

    /// Stops the replica: its clients are told to go elsewhere.
    ///
    /// # Errors
    /// Why it had stopped by itself.
    pub async fn stop(self) -> Result<(), ServeError> {
        // Should the driver be gone already, its result says why.
        let _gone = self.inputs.send(Input::Stop).await;
        let driver = self.driver;
        let joined = tokio::task::spawn_blocking(move || driver.join()).await;
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
    config.check()?;
    let (sender, receiver) = mpsc::channel(config.queues.inputs);
    let clock = HostClock::start();
    let engine = make_engine(config)?;
    let compiler = CompilerQueue::start(
        engine.compiler(),
        &folder(&config.data, "code")?,
        &config.compile,
        sender.clone(),
    )?;
    let mut store = open_snapshots(config)?;
    let replica = make_replica(config, engine, &mut store, &clock)?;
    let keeper = Keeper::start(Worker::new(store), sender.clone())
        .map_err(|error| ServeError::Folder { path: config.data.clone(), error })?;
    let limits = Limits::default();

    let client_listener = bind(config.listen).await?;
    let peer_listener = bind(config.own_peers()).await?;
    let own_address = client_listener
        .local_addr()
        .map_err(|error| ServeError::Bind { address: config.listen, error })?;
    let queues = &config.queues;
    let (writing, mut writers) = mpsc::channel(1);
    let output_bytes = queues.client_output_kib << 10;
    let welcome = welcome(config, &limits)?;
    let clients = Clients::new(sender.clone(), welcome, output_bytes, queues.connections, writing);
    let identity = peers::Identity {
        cluster: config.cluster_id()?,
        replica: config.replica,
        members: config.members.iter().map(|member| member.replica).collect(),
        output_bytes: queues.peer_output_mib << 20,
        inputs: sender.clone(),
    };
    let others = config.members.iter().filter(|member| member.replica != config.replica);
    let others: Vec<_> = others.map(|member| (member.replica, member.peers)).collect();

    let (leading_sender, leading) = watch::channel(false);
    let syncer =
        Syncer::start().map_err(|error| ServeError::Folder { path: config.data.clone(), error })?;
    let slice = config.kernel.slice;
    let driver = Driver::new(replica, clock, compiler, keeper, syncer, slice, leading_sender);
    let (ended_sender, ended) = watch::channel(false);
    let (period, ticks) = (config.tick(), sender.clone());
    let run = async move {
        let client_listener = TcpListener::from_std(client_listener).expect(LISTENS);
        let peer_listener = TcpListener::from_std(peer_listener).expect(LISTENS);
        let mut tasks = JoinSet::new();
        tasks.spawn(clients::accept(client_listener, Arc::new(clients)));
        tasks.spawn(peers::accept(peer_listener, identity.clone()));
        for (peer, address) in others {
            tasks.spawn(peers::dial(identity.clone(), peer, address));
        }
        tasks.spawn(tick(period, ticks));
        let result = driver.run(receiver).await;
        if let Err(error) = &result {
            tracing::error!(%error, "the replica stops");
        }
        tasks.shutdown().await;
        // Clients that do not read are not waited for.
        let _late = tokio::time::timeout(FAREWELL, writers.recv()).await;
        result
    };
    let failed = |error| ServeError::Folder { path: config.data.clone(), error };
    let runtime = runtime().map_err(failed)?;
    let driver = std::thread::Builder::new()
        .name("driver".into())
        .spawn(move || {
            // Dropped on every way out, a panic included: whoever waits sees that it is over.
            let _ended = ended_sender;
            runtime.block_on(run)
        })
        .map_err(failed)?;
    Ok(Server { inputs: sender, driver, ended, clients: own_address, leading })
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

fn make_engine(config: &Config) -> Result<WasmEngine, ServeError> {
    let live = u32::try_from(config.kernel.live_activations).unwrap_or(u32::MAX);
    let settings = gesmas_coroutine::Settings {
        // One runs, one may be parked while its successor is started, and a read may run.
        slots: live.saturating_add(8),
        ..gesmas_coroutine::Settings::default()
    };
    Ok(WasmEngine::new(settings)?)
}

fn make_replica(
    config: &Config,
    engine: WasmEngine,
    store: &mut Store,
    clock: &HostClock,
) -> Result<Replica<WasmEngine>, ServeError> {
    let settings = ReplicaSettings {
        outstanding: config.queues.outstanding,
        queue: config.queues.leader,
        batch_commands: 10_000,
        batch_bytes: 1 << 20,
        in_flight: 64,
        resend_after: config.timing.forward_again_ms * 1_000_000,
        snapshot_bytes: config.snapshots.every_mib << 20,
        fetch_bytes: (config.snapshots.fetch_mib_per_second << 20) * config.timing.tick_ms / 1_000,
        disk: u128::from_le_bytes(*random(config)?.first_chunk().expect("a seed has 32 bytes")),
        genesis: genesis(config, &engine)?,
    };
    let log = paxos::share(open_log(config)?);
    let members = config.members.iter().map(|member| member.replica).collect();
    let node_config = NodeConfig {
        election_ticks: config.timing.heartbeat_ticks,
        resend_ticks: config.timing.resend_ticks,
        ..NodeConfig::new(GROUP, FIRST, config.replica, members)
    };
    let node = Node::recover(node_config, &log)?;
    let machine_settings =
        gesmas_machine::Settings { live_activations: config.kernel.live_activations };
    let (loaded, held) = load_newest(store)?;
    let mut machine = match loaded {
        None => Machine::new(engine, machine_settings),
        Some(loaded) => Machine::from_snapshot(loaded.snapshot, engine, machine_settings)
            .map_err(ReplicaError::from)?,
    };
    machine.set_overrides(overrides(config, machine.step()));
    Ok(Replica::new(settings, node, log, machine, held, clock.now())?)
}

/// What the operators want to end, told in the replica's log.
fn overrides(config: &Config, at: Step) -> Vec<Override> {
    let all = config.overrides.iter().map(|found| Override {
        step: Step(found.step),
        invocation: InvocationId(found.invocation),
    });
    all.inspect(|found| {
        let Override { step, invocation } = found;
        if *step > at {
            tracing::warn!(%step, %invocation, "an invocation will end at a step instead of running");
        } else {
            tracing::warn!(%step, %invocation, %at, "an override comes too late: its step is over");
        }
    })
    .collect()
}

fn open_snapshots(config: &Config) -> Result<Store, ServeError> {
    let owner =
        snapshot::Owner { cluster: config.cluster_id()?, group: GROUP, configuration: FIRST };
    let repo =
        snapshot::repo::FsRepo::open(config.data.join("snapshots")).map_err(SnapshotError::from)?;
    Ok(Store::new(Box::new(repo), owner))
}

/// The newest good snapshot, if there is one.
fn load_newest(store: &mut Store) -> Result<(Option<Loaded>, Held), ServeError> {
    let (loaded, refused) = store.newest()?;
    for error in refused {
        tracing::error!(%error, "a damaged snapshot is set aside; an older one and the log serve");
    }
    let newest = loaded.as_ref().map(|loaded| loaded.head.index);
    let all = store.list().map_err(SnapshotError::from)?;
    let previous = all.into_iter().rfind(|index| newest.is_some_and(|newest| *index < newest));
    if let Some(loaded) = &loaded {
        let (index, step) = (loaded.head.index, loaded.head.step);
        tracing::info!(index, step, bytes = loaded.bytes, "a snapshot is loaded");
    }
    Ok((loaded, Held { newest, previous }))
}

/// What the group becomes, should this replica be its first leader.
fn genesis(config: &Config, engine: &WasmEngine) -> Result<Genesis, ServeError> {
    let reserved = gesmas_classes::ALL.iter().map(|standard| {
        let name = ClassName::new(standard.name).expect("standard classes have good names");
        (name, CodeHash::of(standard.module))
    });
    Ok(Genesis {
        cluster: config.cluster_id()?,
        state_machine_version: STATE_MACHINE_VERSION,
        seed: random(config)?,
        replicas: config.members.iter().map(|member| member.replica).collect(),
        engine: engine.identity(),
        limits: Limits::default(),
        reserved: reserved.collect(),
    })
}

/// Opens the log, or makes one in a folder that has none.
fn open_log(config: &Config) -> Result<Log, ServeError> {
    let path = folder(&config.data, "log")?;
    let seed = random(config)?;
    let settings = LogSettings {
        identity: Identity { cluster: config.cluster_id()?, replica: config.replica },
        file_bytes: config.log.file_mib << 20,
        cache_bytes: config.log.cache_mib << 20,
        salt: u64::from_le_bytes(*seed.first_chunk().expect("a seed has 32 bytes")),
    };
    let mut repo = Box::new(FsRepo::open(&path).map_err(LogError::from)?);
    let fresh = repo.list().map_err(LogError::from)?.is_empty();
    Ok(if fresh { Log::create(repo, settings)? } else { Log::open(repo, settings)? })
}

fn folder(data: &Path, name: &str) -> Result<PathBuf, ServeError> {
    let path = data.join(name);
    fs::create_dir_all(&path).map_err(|error| ServeError::Folder { path: path.clone(), error })?;
    Ok(path)
}

/// Bytes that nobody can foresee.
fn random(config: &Config) -> Result<[u8; 32], ServeError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| ServeError::Folder {
        path: config.data.clone(),
        error: io::Error::other(error.to_string()),
    })?;
    Ok(bytes)
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
