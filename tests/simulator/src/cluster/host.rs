//! A computer: a disk that outlives crashes, clocks, and a replica that runs on it or does not.

use gesmas::{log::repo::Lack, replica::Moment};

use super::{Cluster, Event, divergence::Wrong, process::Process, profile::Profile};
use crate::{
    disk::Disk,
    options::Options,
    schedule::SECOND,
    verdict::{Checked, Violation},
};

/// What every wall clock says in the beginning, about.
const EPOCH: u64 = 1_800_000_000_000_000_000;

/// See the file's head.
pub(super) struct Host {
    pub(super) id: u64,
    pub(super) disk: Disk,
    pub(super) process: Option<Process>,
    /// Which life of the replica this is.
    pub(super) life: u64,
    /// When this life began.
    born: u64,
    /// The wall clock is this much ahead of virtual time.
    pub(super) wall: u64,
    pub(super) paused_until: u64,
    /// When the jobs with snapshots that are known are done.
    pub(super) jobs_until: u64,
    pub(super) turn_scheduled: bool,
    /// The power fails during a turn to come.
    pub(super) doomed: bool,
    /// It was allowed to vote once, durably.
    pub(super) admitted: bool,
    /// Another disk was put in.
    pub(super) wiped: bool,
    /// It was refused for that, and stays down for good.
    pub(super) refused: bool,
    /// It stays down until it is allowed to start again.
    pub(super) kept_down: bool,
    /// What is lacking for another file there.
    pub(super) lack: Option<Lack>,
    /// What was lacking last.
    pub(super) lacked: Option<Lack>,
    /// A sync of its log is to fail.
    pub(super) syncs_badly: bool,
    /// The next read of its log fails.
    pub(super) read_badly: bool,
    /// Its processor has computed wrongly.
    pub(super) miscomputed: bool,
    /// The life in which it last set aside what may be wrong.
    pub(super) set_aside: Option<u64>,
    /// Since when its state, or that of its snapshots, may be wrong.
    pub(super) wrong: Option<Wrong>,
}

impl Host {
    pub(super) fn new(id: u64, profile: &Profile, options: &Options) -> Self {
        let unset = profile.unset_clock.is_some_and(|host| host as u64 + 1 == id);
        Self {
            id,
            disk: Disk::new(id, profile.file_bytes, profile.piece_bytes, options.plant),
            jobs_until: 0,
            process: None,
            life: 0,
            born: 0,
            wall: if unset { 0 } else { EPOCH },
            paused_until: 0,
            turn_scheduled: false,
            doomed: false,
            admitted: false,
            wiped: false,
            refused: false,
            kept_down: false,
            lack: None,
            lacked: None,
            syncs_badly: false,
            read_badly: false,
            miscomputed: false,
            set_aside: None,
            wrong: None,
        }
    }

    /// How its replica stands, in words.
    pub(super) fn standing(&self) -> String {
        let Some(process) = &self.process else {
            return format!("replica {} does not run", self.id);
        };
        let (replica, node) = (&process.replica, process.replica.node());
        format!(
            "replica {}: may vote {}, follows {:?}, promised {:?}, machine's ballot {:?}, {} applied, {} decided, \
             {} accepted",
            self.id,
            replica.is_admitted(),
            node.leader(),
            node.promised_ballot(),
            replica.machine().ballot(),
            replica.applied(),
            node.decided_index(),
            node.accepted_index()
        )
    }

    /// What is lacking for another file there from now on.
    pub(super) fn set_lack(&mut self, lack: Option<Lack>) {
        self.lack = lack;
        self.lacked = lack.or(self.lacked);
        self.disk.set_lack(lack);
    }

    /// Whether the next sync of its log fails.
    pub(super) fn fail_sync(&mut self, fails: bool) {
        self.syncs_badly = fails;
        self.disk.fail_sync(fails);
    }

    /// What its clocks say.
    pub(super) fn moment(&self, now: u64) -> Moment {
        Moment { monotonic: now - self.born, wall: self.wall + now }
    }
}

impl Cluster {
    pub(super) fn start(&mut self, host: usize) -> Checked {
        let now = self.schedule.now();
        let at = &mut self.hosts[host];
        if at.process.is_some() || at.kept_down || at.refused {
            return Ok(());
        }
        if at.lack == Some(Lack::Descriptor) {
            // It cannot open a file, ends, and is started again.
            self.schedule.after(SECOND, Event::Start(host));
            return Ok(());
        }
        at.born = now;
        let moment = at.moment(now);
        let plant = self.options.plant;
        let engine = self.catalog.engine(self.profile.live_activations[host]);
        let life = (moment, &self.history);
        let started = Process::start(at.id, &at.disk, &self.profile, engine, plant, life);
        if (self.hosts[host].lack.is_some() || self.hosts[host].syncs_badly) && started.is_err() {
            // It cannot even make a log, or make durable what it has read of it.
            self.hosts[host].fail_sync(false);
            self.schedule.after(SECOND, Event::Start(host));
            return Ok(());
        }
        if started.is_err() && self.is_out_for_its_log(host) {
            return Ok(());
        }
        let mut process = started.map_err(|error| {
            Violation::new("recovery", format!("replica {} cannot start: {error}", host + 1))
        })?;
        self.begin_right_or_wrong(host, &mut process);
        self.counts.damaged_snapshots += process.damaged_snapshots;
        self.counts.starts_from_snapshot += u64::from(process.replica.applied() > 0);
        let waits = process.replica.machine().statistics().blocked_now > 0;
        self.counts.restored_with_waiters += u64::from(waits);
        self.counts.starts_starving += u64::from(process.replica.is_behind());
        self.hosts[host].process = Some(process);
        self.trace.digest(&[4, now, host as u64]);
        self.trace.tell(now, || format!("replica {} starts", host + 1));
        self.schedule_turn(host);
        Ok(())
    }

    /// What is on the disk of a host that is down changes.
    fn rot(&mut self, host: usize) {
        if self.prng.permille(300) {
            self.hosts[host].disk.rot(&mut self.prng);
        }
        let founded = self.hosts.iter().all(|host| host.admitted);
        let flips = founded && self.prng.permille(200);
        if flips {
            self.counts.flipped_bits += 1;
            self.hosts[host].disk.flip(&mut self.prng);
        }
        // Both at once could take the last record away, which nothing would tell from a torn end.
        let misdirects = founded && self.prng.permille(10) && !flips;
        if misdirects && self.hosts[host].disk.misdirect(&mut self.prng) {
            self.counts.misdirected_writes += 1;
        }
    }

    /// Whether the log of a host could not be opened for what happened to it. One that was read badly is
    /// opened again; one with more damage than can be mended is as lost as a disk that is gone.
    fn is_out_for_its_log(&mut self, host: usize) -> bool {
        let now = self.schedule.now();
        let at = &mut self.hosts[host];
        if std::mem::take(&mut at.read_badly) {
            at.disk.take_fails();
            self.schedule.after(SECOND, Event::Start(host));
            return true;
        }
        // Bits that flip one after the other may come to lie in one record.
        if self.profile.rotten == Some(host) {
            at.wiped = true;
            at.refused = true;
            self.counts.refused_logs += 1;
            self.trace.tell(now, || format!("the log of {} is refused", host + 1));
            return true;
        }
        false
    }

    /// A host loses its disk, once. Until all may vote, that can be the end of the cluster: nobody
    /// else is allowed to without it.
    pub(super) fn lose_disk(&mut self, host: usize) {
        let founded = self.hosts.iter().all(|host| host.admitted);
        if self.hosts[host].wiped || !founded {
            return;
        }
        self.counts.lost_disks += 1;
        self.crash(host);
        self.hosts[host].disk.wipe();
        self.hosts[host].wiped = true;
    }

    /// The power of a host fails; it comes back after a while.
    pub(super) fn crash(&mut self, host: usize) {
        self.end(host, true);
    }

    /// The replica of a host ends, with the power or without; it comes back after a while.
    pub(super) fn end(&mut self, host: usize, power: bool) {
        let now = self.schedule.now();
        let at = &mut self.hosts[host];
        at.doomed = false;
        at.life += 1;
        at.paused_until = 0;
        at.turn_scheduled = false;
        if let Some(process) = &at.process {
            let waits = process.replica.machine().statistics().blocked_now > 0;
            let leads = process.replica.is_leading();
            self.counts.leaders_lost_with_waiters += u64::from(leads && waits);
            if power {
                at.disk.cut_power(&mut self.prng);
                at.fail_sync(false);
            }
            self.counts.crashes += 1;
            self.hosts[host].process = None;
            if power && self.profile.rotten == Some(host) {
                self.rot(host);
            }
        }
        self.trace.digest(&[5, now, host as u64]);
        self.trace.tell(now, || format!("replica {} crashes", host + 1));
        for other in 0..self.hosts.len() {
            self.links[other][host].clear();
            self.links[host][other].break_off(&mut self.prng);
        }
        let down = self.prng.between(10, 2_500) * crate::schedule::MILLISECOND;
        self.schedule.after(down, Event::Start(host));
    }
}
