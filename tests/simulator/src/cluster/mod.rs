//! A simulated cluster: replicas, disks, network, clients and the faults that befall them, in one
//! thread and in virtual time.
//!
//! ```text
//! faults: everything happens ─► drain: a majority is in order, faults stop, everything pending
//! ends ─► converge: all replicas come back and become equal ─► the books are closed
//! ```
//!
//! Invariant: everything is drawn from one generator, and nothing depends on addresses, real time or
//! the order of a hash map; so a seed replays exactly.

mod divergence;
mod host;
mod leader_times;
mod nemesis;
mod process;
mod profile;
mod quiet;
mod router;
mod stage;
mod transport;

use gesmas::{
    log::repo::Lack,
    replica::ReplicaError,
    snapshot::{Done, Job, Worker},
};
use gesmas_machine::Effect;

pub(crate) use self::leader_times::LeaderTimes;
use self::{
    host::Host,
    process::{Input, Stop, Turn},
    profile::Profile,
    router::Connection,
    stage::Stage,
};
use crate::{
    catalog::Catalog,
    checkers::{History, Replies, Sessions},
    clients::{Client, Surroundings},
    messages::{Ask, Tell},
    network::Link,
    options::{Options, Plant},
    prng::Prng,
    schedule::{MICROSECOND, MILLISECOND, SECOND, Schedule},
    trace::Trace,
    verdict::{Checked, Counts, Violation, demand},
    workloads::{self, Facts, Workload},
};

/// Time between two ticks of a replica.
const TICK: u64 = 50 * MILLISECOND;
/// Ticks after which a leader is missed, about.
const ELECTION_TICKS: u64 = 4;

/// What happens.
enum Event {
    Tick(usize),
    Turn(usize),
    Start(usize),
    Crash { host: usize, life: u64 },
    Dial { from: usize, to: usize },
    Deliver { from: usize, to: usize },
    Release { from: usize, to: usize, forbidden: bool },
    Job { host: usize, life: u64, job: Job },
    Compiled { host: usize, life: u64, code: gesmas_machine::CodeHash },
    ToReplica { replica: usize, connection: Connection, ask: Ask },
    ToClient { connection: Connection, tell: Tell },
    Wake(usize),
    TakeLead(usize),
    Room(usize),
    Fault,
    Audit,
    Check,
}

/// See the file's head.
pub(crate) struct Cluster {
    options: Options,
    prng: Prng,
    schedule: Schedule<Event>,
    trace: Trace,
    catalog: Catalog,
    profile: Profile,
    hosts: Vec<Host>,
    /// Links by sender and receiver.
    links: Vec<Vec<Link>>,
    next_connection: u64,
    clients: Vec<Client>,
    workloads: [Box<dyn Workload>; workloads::NUMBER],
    history: History,
    replies: Replies,
    sessions: Sessions,
    counts: Counts,
    stage: Stage,
    planted: bool,
    /// When a replica in order last fetched a snapshot.
    behind: u64,
    /// Until when a stop of all replicas may be felt.
    disturbed: u64,
    /// When a client last got an answer to a call.
    replied: u64,
    /// Whether it was looked whether calls wait that must not.
    looked_for_stuck: bool,
    /// Until when clients ask for nothing.
    hush_until: u64,
    leader_times: LeaderTimes,
    /// When the lead last passed to another replica though the cluster was in order.
    lead_passed: u64,
    /// Since when nothing is pending, and how long the log was then.
    rest: Option<(u64, u64)>,
}

impl Cluster {
    /// A cluster of a seed, before anything has happened.
    pub(crate) fn new(options: Options) -> Self {
        let mut prng = Prng::new(options.seed);
        // A part of the clusters runs WebAssembly, which takes longer.
        let webassembly = prng.permille(40);
        let catalog = Catalog::new(webassembly, options.plant.and_then(Plant::twin));
        let profile = Profile::draw(&mut prng, &catalog);
        let hosts: Vec<_> =
            (1..=profile.replicas as u64).map(|id| Host::new(id, &profile, &options)).collect();
        let links = (0..profile.replicas)
            .map(|_| (0..profile.replicas).map(|_| Link::default()).collect())
            .collect();
        let clients = (0..profile.clients)
            .map(|index| Client::new(index, prng.index(profile.replicas), &mut prng))
            .collect();
        let workloads = workloads::all(&mut prng, &catalog, options.wanted());
        let stage = Stage::Faults { until: profile.faults };
        let mut cluster = Self {
            options,
            prng,
            schedule: Schedule::new(),
            trace: Trace::new(options.in_words),
            catalog,
            profile,
            hosts,
            links,
            next_connection: 0,
            clients,
            workloads,
            history: History::new(!options.outside),
            replies: Replies::default(),
            sessions: Sessions::default(),
            counts: Counts { webassembly: u64::from(webassembly), ..Counts::default() },
            stage,
            planted: false,
            behind: 0,
            disturbed: 0,
            replied: 0,
            looked_for_stuck: false,
            hush_until: 0,
            leader_times: LeaderTimes::default(),
            lead_passed: 0,
            rest: None,
        };
        cluster.schedule_first();
        cluster
    }

    fn schedule_first(&mut self) {
        for host in 0..self.hosts.len() {
            let first = self.prng.below(TICK);
            self.schedule.at(0, Event::Start(host));
            self.schedule.at(first, Event::Tick(host));
            for to in (0..self.hosts.len()).filter(|to| *to != host) {
                let first = self.prng.below(20 * MILLISECOND);
                self.schedule.at(first, Event::Dial { from: host, to });
            }
        }
        for client in 0..self.clients.len() {
            let first = self.prng.below(SECOND);
            self.schedule.at(first, Event::Wake(client));
        }
        // Some clusters are disturbed while they are being founded.
        let first = if self.prng.permille(300) { 2 * MILLISECOND } else { SECOND / 2 };
        let first = self.prng.below(first);
        self.schedule.at(first, Event::Fault);
        self.schedule.at(SECOND, Event::Audit);
        self.schedule.at(self.profile.faults, Event::Check);
    }

    /// Runs to the end.
    pub(crate) fn run(&mut self) -> Checked {
        while !matches!(self.stage, Stage::Done) {
            let event = self.schedule.pop().expect("ticks never end");
            self.happen(event)?;
        }
        self.finish()
    }

    /// Digest, numbers and words of the run so far.
    pub(crate) fn result(&mut self) -> (u64, Counts, Vec<String>) {
        let mut counts = self.counts;
        self.history.count(&mut counts);
        counts.virtual_ms = self.schedule.now() / MILLISECOND;
        (self.trace.value(), counts, self.trace.words())
    }

    fn happen(&mut self, event: Event) -> Checked {
        match event {
            Event::Tick(host) => self.tick(host),
            Event::Turn(host) => self.turn(host)?,
            Event::Start(host) => self.start(host)?,
            Event::Crash { host, life } => {
                if self.hosts[host].life == life {
                    self.crash(host);
                }
            }
            Event::Dial { from, to } => self.dial(from, to),
            Event::Deliver { from, to } => self.deliver(from, to),
            Event::Release { from, to, forbidden } => self.release(from, to, forbidden),
            Event::Compiled { host, life, code } => {
                if self.hosts[host].life == life {
                    self.input(host, Input::Compiled(code));
                }
            }
            Event::Job { host, life, job } => self.job(host, life, job),
            Event::ToReplica { replica, connection, ask } => {
                self.trace.digest(&[2, self.schedule.now(), connection.0 as u64]);
                self.trace.tell(self.schedule.now(), || {
                    format!("client {} -> {}: {ask:?}", connection.0, replica + 1)
                });
                self.input(replica, Input::Client(connection, ask));
            }
            Event::ToClient { connection, tell } => self.hear(connection, tell)?,
            Event::Wake(client) => self.wake(client)?,
            Event::TakeLead(host) => self.take_lead(host),
            Event::Room(host) => self.hosts[host].set_lack(None),
            Event::Fault => self.fault()?,
            Event::Audit => self.audit()?,
            Event::Check => self.check()?,
        }
        Ok(())
    }

    /// Something reaches a replica, if it runs.
    fn input(&mut self, host: usize, input: Input) {
        let Some(process) = &mut self.hosts[host].process else { return };
        process.inbox.push_back(input);
        self.schedule_turn(host);
    }

    fn schedule_turn(&mut self, host: usize) {
        if !self.hosts[host].turn_scheduled {
            self.hosts[host].turn_scheduled = true;
            // A turn takes a while: above all for its sync.
            let delay = self.prng.between(20, 1_500) * MICROSECOND;
            let ready = self.hosts[host].paused_until.max(self.schedule.now() + delay);
            self.schedule.at(ready, Event::Turn(host));
        }
    }

    fn tick(&mut self, host: usize) {
        let jitter = self.prng.below(TICK / 5);
        self.schedule.after(TICK - TICK / 10 + jitter, Event::Tick(host));
        if self.hosts[host].paused_until <= self.schedule.now() {
            self.input(host, Input::Tick);
        }
    }

    fn turn(&mut self, host: usize) -> Checked {
        let now = self.schedule.now();
        let at = &mut self.hosts[host];
        at.turn_scheduled = false;
        if at.process.is_none() {
            return Ok(());
        }
        if at.paused_until > now {
            at.turn_scheduled = true;
            self.schedule.at(at.paused_until, Event::Turn(host));
            return Ok(());
        }
        let moment = at.moment(now);
        let process = at.process.as_mut().expect("just looked");
        process.faulty = matches!(self.stage, Stage::Faults { .. });
        // What an earlier turn said is durable by now, if that is over.
        at.admitted |= !process.is_closing() && process.replica.is_admitted();
        let mut out = Turn::default();
        let outcome = process.turn(moment, &mut self.history, &mut out);
        let more = out.more;
        self.put_out(host, out)?;
        self.check_wrong(host)?;
        match outcome {
            Ok(()) if more => self.schedule_turn(host),
            Ok(()) => {}
            Err(Stop::Broken(violation)) => return Err(violation),
            Err(Stop::Failed(_)) if self.hosts[host].doomed => {
                self.counts.crashes_in_turn += 1;
                self.crash(host);
            }
            Err(Stop::Failed(ReplicaError::Log(_) | ReplicaError::Node(_)))
                if std::mem::take(&mut self.hosts[host].read_badly) =>
            {
                // It may have stopped for another reason, and read nothing.
                self.hosts[host].disk.take_fails();
                self.crash(host);
            }
            Err(Stop::Failed(ReplicaError::Log(_) | ReplicaError::Node(_)))
                if std::mem::take(&mut self.hosts[host].syncs_badly) =>
            {
                self.counts.failed_syncs += 1;
                // The next life sees in the system's memory what the disk does not have.
                self.end(host, false);
            }
            Err(Stop::Failed(ReplicaError::LostDisk { .. })) if self.hosts[host].wiped => {
                self.hosts[host].refused = true;
                self.crash(host);
            }
            Err(Stop::Failed(ReplicaError::Diverged(known))) => self.stopped_wrong(host, &known)?,
            Err(Stop::Failed(error)) => {
                let message = format!("replica {} stopped: {error}", host + 1);
                return Err(Violation::new("availability", message));
            }
        }
        Ok(())
    }

    /// What a turn put out is on its way.
    fn put_out(&mut self, host: usize, out: Turn) -> Checked {
        let now = self.schedule.now();
        for (peer, connection, frame) in out.frames {
            let to = usize::try_from(peer).expect("ids are small") - 1;
            self.counts.frames += 1;
            self.trace.digest(&[1, now, host as u64, peer]);
            self.trace.digest_bytes(&frame);
            if self.options.plant == Some(Plant::SilentLoss) && self.prng.permille(20) {
                continue;
            }
            let arrival = now + self.frame_delay();
            self.links[host][to].send(connection, frame, arrival);
            if self.options.plant == Some(Plant::Overtaking) && self.prng.permille(500) {
                self.links[host][to].overtake();
            }
            self.pump(host, to);
        }
        self.trace.tell(now, || format!("turn of {}: {}", host + 1, self.hosts[host].standing()));
        self.counts.takeovers += out.takeovers;
        self.counts.transfers += out.transfers;
        self.counts.settled += out.settled;
        self.counts.trials += out.trials;
        if out.reconnect {
            self.counts.standstills += 1;
            let descriptor = self.hosts[host].lacked == Some(Lack::Descriptor);
            self.counts.standstills_for_descriptors += u64::from(descriptor);
            for other in 0..self.hosts.len() {
                self.links[other][host].break_off(&mut self.prng);
                self.links[host][other].break_off(&mut self.prng);
            }
        }
        // What another state says is nothing to learn from, but which sessions ended.
        let right = self.hosts[host].wrong.is_none();
        for effect in &out.effects {
            if right || matches!(effect, Effect::SessionOver { .. }) {
                self.check_effect(host, effect)?;
            }
        }
        if right {
            let known = |tell: &(Connection, Tell)| tell.0.0 < self.clients.len();
            let tells: Vec<_> = out.tells.into_iter().filter(known).collect();
            for (connection, tell) in tells {
                self.send_to_client(connection, &tell);
            }
        }
        for job in out.jobs {
            self.check_job(host, &job)?;
            let at = &mut self.hosts[host];
            at.jobs_until = at.jobs_until.max(now) + self.prng.between(1, 60) * MILLISECOND;
            let (at, life) = (at.jobs_until, at.life);
            self.schedule.at(at, Event::Job { host, life, job });
        }
        for code in out.compile {
            let life = self.hosts[host].life;
            let delay = self.prng.between(1, 300) * MILLISECOND;
            self.schedule.after(delay, Event::Compiled { host, life, code });
        }
        Ok(())
    }

    /// A job with a snapshot's file is done. After a crash of its replica it may have been, but not
    /// beside the next life.
    fn job(&mut self, host: usize, life: u64, job: Job) {
        let lives = self.hosts[host].life == life;
        if !lives && (self.hosts[host].process.is_some() || self.prng.permille(500)) {
            return;
        }
        if self.hosts[host].wrong.is_some() && matches!(job, Job::Read { .. }) {
            // A majority of wrong states would be right.
            return;
        }
        if let Job::Write { snapshot, .. } = &job {
            self.counts.snapshots += 1;
            self.counts.snapshots_with_waiters += u64::from(snapshot.blocked() > 0);
        }
        let done = Worker::new(self.hosts[host].disk.snapshots()).work(job);
        if let Done::Piece { result: Ok(_), .. } = &done {
            self.counts.snapshot_pieces += 1;
        }
        if let Done::Finished { result: Ok(loaded), .. } = &done {
            self.counts.installed_snapshots += 1;
            self.counts.installed_with_waiters += u64::from(loaded.snapshot.blocked() > 0);
        }
        if lives {
            self.input(host, Input::SnapshotDone(done));
        }
    }

    fn check_effect(&mut self, host: usize, effect: &Effect) -> Checked {
        let replica = host as u64 + 1;
        match effect {
            // Seen by clients alone, it is checked when a client hears of it.
            Effect::Reply { session, number, position, outcome } if !self.options.outside => {
                self.replies.said(replica, (*session, *number), position.step, outcome)?;
            }
            Effect::SessionOver { session, reason } => {
                let now = self.schedule.now();
                self.trace.tell(now, || format!("{replica}: session {session} is {reason:?}"));
                let said = self.sessions.said_over(replica, *session, *reason);
                if self.options.outside {
                    return Ok(());
                }
                if said? {
                    self.session_over(*session, *reason)?;
                }
            }
            Effect::HandlerFailed { object, text } if !self.options.outside => {
                return Err(Violation::new("classes", format!("{object}: {text}")));
            }
            _ => {}
        }
        Ok(())
    }

    fn session_over(
        &mut self,
        session: gesmas_machine::SessionId,
        reason: gesmas_machine::SessionEnd,
    ) -> Checked {
        if reason != gesmas_machine::SessionEnd::Expired {
            self.counts.closed_sessions += 1;
            return Ok(());
        }
        self.counts.expired_sessions += 1;
        let lives = self.clients.iter().any(|client| client.session() == Some(session));
        demand(!(lives && self.is_in_order()), "sessions", || {
            format!("session {session} of a living client expired, and the cluster is in order")
        })
    }

    fn hear(&mut self, (client, connection): Connection, tell: Tell) -> Checked {
        let now = self.schedule.now();
        self.trace.digest(&[3, now, client as u64]);
        if self.clients[client].connection != connection {
            return Ok(());
        }
        self.trace.tell(now, || format!("-> client {client}: {tell:?}"));
        // Refusals, too: what is out of order shows that something before it was lost on the way.
        if matches!(tell, Tell::Reply { .. } | Tell::Refused { .. } | Tell::Busy) {
            self.replied = now;
        }
        if let Tell::Over { session, reason: None } = &tell {
            // Replicas that find no agreement say nothing any more, and the end may be among it.
            let said = self.hosts.iter().any(|host| host.miscomputed)
                || self.sessions.over().contains_key(session);
            demand(said, "sessions", || {
                format!("session {session} is unknown, and it never ended")
            })?;
        }
        if let (true, Tell::Reply { session, number, step, outcome }) =
            (self.options.outside, &tell)
        {
            self.replies.said(0, (*session, *number), *step, outcome)?;
        }
        self.with_client(client, |client, around| client.hear(tell, around))
    }

    fn wake(&mut self, client: usize) -> Checked {
        let next = self.prng.between(10, 60) * MILLISECOND;
        self.schedule.after(next, Event::Wake(client));
        let asks = self.with_client(client, Client::wake);
        for ask in asks {
            self.send_to_replica(client, &ask);
        }
        Ok(())
    }

    fn with_client<T>(
        &mut self,
        client: usize,
        act: impl FnOnce(&mut Client, &mut Surroundings<'_>) -> T,
    ) -> T {
        let replicas = self.replicas_for_clients();
        let now = self.schedule.now();
        let number = self.workloads.len();
        let (in_order, in_order_since) = (self.is_in_order(), self.in_order_since());
        let mut around = Surroundings {
            prng: &mut self.prng,
            catalog: &self.catalog,
            workload: &mut *self.workloads[client % number],
            facts: Facts {
                now,
                in_order_since,
                over: self.sessions.over(),
                leader_times: &self.leader_times,
            },
            counts: &mut self.counts,
            replicas: &replicas,
            draining: self.stage.is_draining(),
            giving_up: self.stage.gives_up(now),
            plant: self.options.plant,
            in_order,
            hushed: now < self.hush_until,
            outside: self.options.outside,
        };
        act(&mut self.clients[client], &mut around)
    }

    /// Recomputes the state of every replica that is between entries.
    fn audit(&mut self) -> Checked {
        self.schedule.after(2 * SECOND, Event::Audit);
        if self.options.outside {
            return Ok(());
        }
        for host in &self.hosts {
            let Some(process) = &host.process else { continue };
            let machine = process.replica.machine();
            if machine.is_idle() {
                machine.check_state().map_err(|error| {
                    Violation::new("sound state", format!("replica {}: {error}", host.id))
                })?;
            }
        }
        Ok(())
    }
}
