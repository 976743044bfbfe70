//! Whoever kills, stops and splits, round after round.
//!
//! Invariants: when it is done, all replicas run and nothing is cut; every wait has a bound, and one
//! that is not met is a violation and ends the rounds.
//! Not here: what comes next (`schedule.rs`), what it does to the calls (`checkers/`).

use std::{
    collections::BTreeMap,
    io,
    process::ExitStatus,
    sync::Arc,
    time::{Duration, Instant},
};

use gesmas_client::Client;
use tokio::time::{sleep, timeout};

use crate::{
    cluster::Cluster,
    load::Desk,
    schedule::{Deed, Round, Schedule, Victims},
    splits::Split,
};

/// Calls that must be acknowledged before calls are said to go on.
const GOES_ON: u64 = 8;
/// How long they may take. Splits are noticed by clients only when keep-alives stay unanswered.
const PATIENCE: Duration = Duration::from_secs(45);
/// How long frames may be on their way when everything is cut.
const IN_FLIGHT: Duration = Duration::from_millis(200);
/// How long nothing may be acknowledged then.
const CANARY: Duration = Duration::from_secs(2);
/// How long a replica may take to say who leads.
const LEADER_PATIENCE: Duration = Duration::from_millis(500);

/// What happened in all rounds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    /// Rounds.
    pub(crate) rounds: u64,
    /// Splits by kind, and the longest time until calls went on.
    pub(crate) splits: BTreeMap<Split, (u64, Duration)>,
    /// How long calls took to go on after everything had been cut for a while.
    pub(crate) after_outage: Option<Duration>,
}

/// See the file's head.
pub(crate) struct Nemesis<'a> {
    cluster: &'a mut Cluster,
    desk: Arc<Desk>,
    eyes: Client,
    end: Instant,
    done: Done,
}

/// Why there are no more rounds.
enum Over {
    /// A violation is noted.
    Noted,
    /// The system refused.
    System(io::Error),
}

impl From<io::Error> for Over {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl<'a> Nemesis<'a> {
    /// One that is through at that time, whatever happens.
    pub(crate) const fn new(
        cluster: &'a mut Cluster,
        desk: Arc<Desk>,
        eyes: Client,
        end: Instant,
    ) -> Self {
        let done = Done { rounds: 0, splits: BTreeMap::new(), after_outage: None };
        Self { cluster, desk, eyes, end, done }
    }

    /// Goes on until there were so many kills.
    ///
    /// # Errors
    /// When the system refuses; a broken promise is noted at the desk.
    pub(crate) async fn run(
        mut self,
        schedule: &mut Schedule,
        kills: u64,
        tell: impl Fn(u64, u64),
    ) -> io::Result<Done> {
        let over = self.rounds(schedule, kills, tell).await;
        self.cluster.restore()?;
        match over {
            Ok(()) | Err(Over::Noted) => Ok(self.done),
            Err(Over::System(error)) => Err(error),
        }
    }

    async fn rounds(
        &mut self,
        schedule: &mut Schedule,
        kills: u64,
        tell: impl Fn(u64, u64),
    ) -> Result<(), Over> {
        if self.cluster.network().is_split() {
            self.prove_that_cuts_cut().await?;
        }
        while self.cluster.deeds.kills < kills {
            if self.desk.has_violations() {
                return Err(Over::Noted);
            }
            if Instant::now() > self.end {
                self.desk.violation("run: the rounds took longer than they may".into());
                return Err(Over::Noted);
            }
            let left = kills - self.cluster.deeds.kills;
            let round = schedule.next(left);
            self.play(&round, left).await?;
            self.done.rounds += 1;
            tell(self.done.rounds, self.cluster.deeds.kills);
        }
        self.goes_on("the last round").await
    }

    async fn play(&mut self, round: &Round, kills_left: u64) -> Result<(), Over> {
        let ended = self.cluster.ended_by_themselves()?;
        self.none_ended(&ended)?;
        match &round.deed {
            Deed::Kill { victims, down, again } => {
                let victims = self.who(victims).await;
                self.kill(&victims, down).await?;
                if let Some(again) = again
                    && kills_left > victims.len() as u64
                {
                    sleep(*again).await;
                    self.kill(&victims[..1], &[Duration::ZERO]).await?;
                }
            }
            Deed::Stop { victims, pause } => {
                let victims = self.who(victims).await;
                self.cluster.stop(&victims)?;
                sleep(*pause).await;
                self.cluster.resume(&victims)?;
            }
            Deed::StopAndKill { pair: [frozen, killed], waits } => {
                self.cluster.stop(&[*frozen])?;
                sleep(waits[0]).await;
                self.kill(&[*killed], &waits[1..2]).await?;
                sleep(waits[2]).await;
                self.cluster.resume(&[*frozen])?;
            }
            Deed::Split { split, order, stays } => self.split(*split, order, *stays).await?,
        }
        if round.settle { self.goes_on(&format!("{round:?}")).await } else { Ok(()) }
    }

    /// A split that cuts nothing would pass every check: with everything cut, calls must not go on.
    async fn prove_that_cuts_cut(&mut self) -> Result<(), Over> {
        let network = self.cluster.disturb();
        for from in 0..network.len() {
            for to in (0..network.len()).filter(|to| *to != from) {
                network.cut(from, to)?;
            }
        }
        // What was on its way may still arrive.
        sleep(IN_FLIGHT).await;
        if timeout(CANARY, self.desk.goes_on(1)).await.is_ok() {
            self.desk
                .violation("splits: a call was made although no replica reached another".into());
        }
        self.cluster.heal()?;
        let healed = Instant::now();
        self.goes_on("everything was cut").await?;
        self.done.after_outage = Some(healed.elapsed());
        Ok(())
    }

    async fn who(&mut self, victims: &Victims) -> Vec<usize> {
        match victims {
            Victims::These(these) => these.clone(),
            Victims::Leader => vec![self.leader().await],
        }
    }

    /// Whom some replica takes for the leader; the first one when none says so in time.
    async fn leader(&self) -> usize {
        let status = timeout(LEADER_PATIENCE, self.eyes.cluster_status()).await;
        let leader = status.ok().and_then(Result::ok).and_then(|status| status.leader);
        let index = leader.and_then(|leader| usize::try_from(leader).ok()?.checked_sub(1));
        index.filter(|index| *index < self.cluster.len()).unwrap_or(0)
    }

    async fn kill(&mut self, victims: &[usize], down: &[Duration]) -> Result<(), Over> {
        let gone = self.cluster.kill(victims)?;
        self.none_ended(&gone)?;
        let mut order: Vec<_> = down.iter().copied().zip(victims.iter().copied()).collect();
        order.sort_unstable();
        let mut waited = Duration::ZERO;
        for (down, index) in order {
            sleep(down.saturating_sub(waited)).await;
            waited = down;
            self.cluster.restart(index)?;
        }
        Ok(())
    }

    /// A replica that ends without a SIGKILL of ours has broken.
    fn none_ended(&self, ended: &[(usize, ExitStatus)]) -> Result<(), Over> {
        for (index, status) in ended {
            let (number, logged) = (index + 1, self.cluster.logged(*index));
            self.desk.violation(format!(
                "process: replica {number} ended by itself ({status}); its log ends:\n{logged}"
            ));
        }
        if ended.is_empty() { Ok(()) } else { Err(Over::Noted) }
    }

    async fn split(&mut self, split: Split, order: &[usize], stays: Duration) -> Result<(), Over> {
        // A split has a leader at its heart, so there must be one.
        self.goes_on("the time before a split").await?;
        let leader = self.leader().await;
        let mut order: Vec<_> = order.iter().copied().filter(|index| *index != leader).collect();
        order.insert(0, leader);
        let before = split.before(&order);
        let network = self.cluster.disturb();
        for (from, to) in &before {
            network.cut(*from, *to)?;
        }
        if !before.is_empty() {
            self.goes_on(split.name()).await?;
            // Only what is cut in the split proper stays cut.
            self.cluster.heal()?;
        }
        let network = self.cluster.disturb();
        for (from, to) in split.directions(&order) {
            network.cut(from, to)?;
        }
        let began = Instant::now();
        let went_on = self.goes_on(split.name()).await;
        let took = began.elapsed();
        if went_on.is_ok() {
            sleep(stays).await;
        }
        self.cluster.heal()?;
        let (count, longest) = self.done.splits.entry(split).or_default();
        *count += 1;
        *longest = took.max(*longest);
        went_on
    }

    /// Waits until calls are acknowledged that began now or later.
    async fn goes_on(&self, after: &str) -> Result<(), Over> {
        if timeout(PATIENCE, self.desk.goes_on(GOES_ON)).await.is_ok() {
            return Ok(());
        }
        self.desk.violation(format!(
            "liveness: no {GOES_ON} calls were made and acknowledged within {PATIENCE:?} after {after}"
        ));
        Err(Over::Noted)
    }
}
