//! What differs from seed to seed besides the course of events.

use gesmas::replica::ReplicaSettings;
use gesmas_machine::{Engine as _, Genesis, Limits, STATE_MACHINE_VERSION};

use crate::{
    catalog::Catalog,
    disk::CLUSTER,
    prng::Prng,
    schedule::{MILLISECOND, SECOND},
};

/// Settings of one run.
#[derive(Clone, Debug)]
pub(super) struct Profile {
    pub(super) replicas: usize,
    pub(super) clients: usize,
    /// How long faults happen.
    pub(super) faults: u64,
    /// Longest time between two faults.
    pub(super) pace: u64,
    /// Messages between clients and replicas that are lost, in a thousand.
    pub(super) lost: u64,
    /// And that come twice.
    pub(super) doubled: u64,
    pub(super) file_bytes: u64,
    /// Bytes of a snapshot that travel in one piece.
    pub(super) piece_bytes: u64,
    /// The host whose snapshots rot, if there is one.
    pub(super) rotten: Option<usize>,
    /// The host whose disk is lost, if there is one.
    pub(super) loses_disk: Option<usize>,
    /// The host whose processor computes wrongly now and then, if there is one.
    pub(super) miscomputes: Option<usize>,
    /// The host whose wall clock nobody has set, if there is one: it began in 1970.
    pub(super) unset_clock: Option<usize>,
    /// Bodies that each replica keeps: none, all, or some; results must not depend on it.
    pub(super) live_activations: Vec<usize>,
    /// Pieces of work that a kernel does in one turn.
    pub(super) slice: usize,
    /// Longest delay of a frame between replicas. A round trip must fit between two ticks.
    pub(super) delay: u64,
    settings: ReplicaSettings,
}

fn pick(prng: &mut Prng, choices: &[u64]) -> u64 {
    choices[prng.index(choices.len())]
}

fn size(number: u64) -> usize {
    usize::try_from(number).expect("settings are small")
}

impl Profile {
    /// Draws one.
    pub(super) fn draw(prng: &mut Prng, catalog: &Catalog) -> Self {
        let replicas = if prng.permille(200) { 5 } else { 3 };
        let genesis = Genesis {
            cluster: CLUSTER,
            state_machine_version: STATE_MACHINE_VERSION,
            seed: [0; 32],
            replicas: (1..=replicas).collect(),
            engine: catalog.engine(1).identity(),
            limits: Limits {
                checkpoint_steps: pick(prng, &[20, 100, 400, 1_000]),
                alarm_fuel: pick(prng, &[200_000, 1_000_000, 100_000_000]),
                ..Limits::default()
            },
            reserved: catalog.reserved(),
        };
        let settings = ReplicaSettings {
            outstanding: size(pick(prng, &[6, 50, 10_000, 10_000])),
            outstanding_bytes: size(pick(prng, &[400, 10_000, 1 << 20, 1 << 20])),
            queue: size(pick(prng, &[8, 100, 10_000, 10_000])),
            queue_bytes: size(pick(prng, &[400, 10_000, 1 << 20, 1 << 20])),
            batch_commands: size(pick(prng, &[1, 7, 1_000, 10_000])),
            batch_bytes: size(pick(prng, &[300, 1 << 16, 200 << 10])),
            entry_bytes: size(pick(prng, &[256 << 10, 1 << 20, 16 << 20])),
            in_flight: pick(prng, &[1, 4, 64]),
            snapshot_bytes: pick(prng, &[2 << 10, 10 << 10, 50 << 10, 1 << 40]),
            fetch_bytes: pick(prng, &[5_000, 1 << 20]),
            disk: 0,
            resend_after: prng.between(150, 600) * MILLISECOND,
            genesis,
        };
        let profile = Self {
            replicas: size(replicas),
            clients: size(prng.between(14, 21)),
            faults: prng.between(6, 16) * SECOND,
            pace: pick(prng, &[200, 600, 1_500, 3_000]) * MILLISECOND,
            lost: pick(prng, &[0, 10, 100, 300]),
            doubled: pick(prng, &[0, 50, 300]),
            file_bytes: pick(prng, &[16, 64, 256]) << 10,
            piece_bytes: pick(prng, &[1_000, 30_000, 1 << 20]),
            rotten: prng.permille(500).then(|| prng.index(size(replicas))),
            loses_disk: prng.permille(100).then(|| prng.index(size(replicas))),
            miscomputes: prng.permille(250).then(|| prng.index(size(replicas))),
            unset_clock: prng.permille(100).then(|| prng.index(size(replicas))),
            live_activations: (0..replicas).map(|_| size(pick(prng, &[0, 1, 20, 1_000]))).collect(),
            slice: size(pick(prng, &[20, 200, 10_000])),
            delay: pick(prng, &[1, 5, 14]) * MILLISECOND,
            settings,
        };
        // A minority of three is one: who lacks everything cannot help who lacks its snapshots, nor
        // who has to do without those of a wrong state.
        if profile.miscomputes.is_some() {
            let rotten = profile.rotten.and(profile.miscomputes);
            return Self { rotten, loses_disk: None, ..profile };
        }
        let both = profile.loses_disk.is_some() && profile.loses_disk != profile.rotten;
        Self { rotten: profile.rotten.filter(|_| !(both && replicas == 3)), ..profile }
    }

    /// The settings of a replica. Each would give the group a seed of its own.
    pub(super) fn settings(&self, replica: u64) -> ReplicaSettings {
        let mut settings = self.settings.clone();
        settings.genesis.seed[0] = u8::try_from(replica).expect("ids are small");
        settings
    }

    /// How many make a majority.
    pub(super) fn majority(&self) -> usize {
        self.replicas / 2 + 1
    }
}
