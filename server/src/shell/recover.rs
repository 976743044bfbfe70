//! What a replica is made of when its process starts: its engine, what its folder holds, its core.
//!
//! The newest good snapshot is loaded and the log recovered; a folder that has neither becomes a
//! replica's. Invariant: nothing is written but what makes a folder a replica's.
//! Not here: threads and sockets (`serve.rs`).

use std::{
    io,
    path::{Path, PathBuf},
};

use gesmas_coroutine::{BothEngines, WasmEngine, native_module};
use gesmas_machine::{
    ClassName, CodeHash, Engine as _, Genesis, InvocationId, Limits, Machine, Override,
    STATE_MACHINE_VERSION, Step,
};

use super::{config::Config, input::HostClock, serve::ServeError};
use crate::{
    folder as folders,
    log::{
        Identity, Log, LogError, LogSettings,
        repo::{FsRepo, Repo as _},
    },
    paxos::{self, Node, NodeConfig},
    replica::{Held, Replica, ReplicaError, ReplicaSettings},
    snapshot::{self, Loaded, SnapshotError, Store},
};

/// The one group there is.
const GROUP: u32 = 1;
/// Its one configuration.
const FIRST: u32 = 1;

pub(super) fn make_engine(config: &Config) -> Result<WasmEngine, ServeError> {
    let live = u32::try_from(config.kernel.live_activations).unwrap_or(u32::MAX);
    let settings = gesmas_coroutine::Settings {
        // One runs, one may be parked while its successor is started, and a read may run.
        slots: live.saturating_add(8),
        ..gesmas_coroutine::Settings::default()
    };
    Ok(WasmEngine::new(settings)?)
}

pub(super) fn make_replica(
    config: &Config,
    engine: BothEngines,
    store: &mut Store,
    clock: &HostClock,
) -> Result<Replica<BothEngines>, ServeError> {
    let settings = ReplicaSettings {
        outstanding: config.queues.outstanding,
        outstanding_bytes: config.queues.outstanding_mib << 20,
        queue: config.queues.leader,
        queue_bytes: config.queues.leader_mib << 20,
        batch_commands: 10_000,
        batch_bytes: 1 << 20,
        entry_bytes: paxos::MAX_ENTRY_BYTES,
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

pub(super) fn open_snapshots(config: &Config) -> Result<Store, ServeError> {
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
fn genesis(config: &Config, engine: &BothEngines) -> Result<Genesis, ServeError> {
    let standard = gesmas_classes::ALL.iter().map(|class| (class.name, class.module.to_vec()));
    // A native class takes the place of the standard one of its name.
    let native = engine.native.classes().map(|class| (class.name, native_module(class)));
    let reserved = standard.chain(native).map(|(name, module)| {
        let name = ClassName::new(name).expect("classes that are built in have good names");
        (name, CodeHash::of(&module))
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

pub(super) fn folder(data: &Path, name: &str) -> Result<PathBuf, ServeError> {
    let path = data.join(name);
    folders::make(data)
        .and_then(|()| folders::make(&path))
        .map_err(|error| ServeError::Folder { path: path.clone(), error })?;
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
