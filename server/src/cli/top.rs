//! `gesmas top`: what the replicas do at the moment, look after look.
//!
//! Rates are differences of the replicas' counters between two looks, so the first look has none.

use std::{collections::BTreeMap, io::IsTerminal as _, time::Duration};

use clap::Args;
use gesmas_client::{Client, protocol::ClusterStatus};
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior};

use super::{
    connect::{self, Context},
    output::Table,
};
use crate::{failure::Failure, json::parse_duration};

/// How long each endpoint may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Puts the cursor to the upper left and clears what is below.
const CLEAR: &str = "\x1b[H\x1b[J";
/// Counters that are shown as rates, with their headings.
const RATES: [(&str, &str); 4] = [
    ("invocations", "CALLS/S"),
    ("resumptions", "RESUMED/S"),
    ("reads", "READS/S"),
    ("log_syncs", "SYNCS/S"),
];
/// Counters that are shown as they are.
const LEVELS: [(&str, &str); 3] =
    [("blocked_now", "BLOCKED"), ("connections", "CLIENTS"), ("sessions_attached", "SESSIONS")];

/// `gesmas top`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesmas top
  gesmas top --every 5s --looks 12
  gesmas top --json --looks 2

Shows each endpoint: who leads, how many calls begin, go on and read in a second, what is blocked.
Ctrl-C ends it.")]
pub(crate) struct TopArgs {
    /// Time between two looks.
    #[arg(long, default_value = "1s", value_parser = span, value_name = "DURATION")]
    every: Duration,
    /// Ends after so many looks; goes on for ever if not said.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    looks: Option<u32>,
}

fn span(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Some(nanoseconds) if nanoseconds > 0 => Ok(Duration::from_nanos(nanoseconds)),
        _ => Err(r#"a duration is written as "1s" or "500ms""#.into()),
    }
}

/// What an endpoint said.
struct Look {
    at: Instant,
    status: ClusterStatus,
    counters: BTreeMap<String, u64>,
}

/// An endpoint, a connection to it while there is one, and the last look at it.
struct Watched {
    endpoint: String,
    client: Option<Client>,
    last: Option<Look>,
}

pub(super) async fn run(args: &TopArgs, context: &Context) -> Result<(), Failure> {
    let endpoints = context.target.endpoints.iter().cloned();
    let mut watched: Vec<_> =
        endpoints.map(|endpoint| Watched { endpoint, client: None, last: None }).collect();
    let mut ticks = tokio::time::interval(args.every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut looks = 0;
    while args.looks.is_none_or(|wanted| looks < wanted) {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = tokio::signal::ctrl_c() => return Ok(()),
        }
        let rows = look(&mut watched).await;
        if !context.output.try_line(&show(&rows, context)) {
            return Ok(());
        }
        looks += 1;
    }
    Ok(())
}

/// Asks all endpoints at the same time.
async fn look(watched: &mut Vec<Watched>) -> Vec<Row> {
    let mut questions = tokio::task::JoinSet::new();
    for (place, mut one) in watched.drain(..).enumerate() {
        questions.spawn(async move {
            let row = one.look().await;
            (place, one, row)
        });
    }
    let mut answers = questions.join_all().await;
    answers.sort_by_key(|(place, ..)| *place);
    let (again, rows) = answers.into_iter().map(|(_, one, row)| (one, row)).unzip();
    *watched = again;
    rows
}

impl Watched {
    async fn look(&mut self) -> Row {
        let asked = tokio::time::timeout(PATIENCE, self.ask()).await;
        let Ok(Some(look)) = asked else {
            (self.client, self.last) = (None, None);
            return Row { endpoint: self.endpoint.clone(), seen: None };
        };
        let rates = self.last.as_ref().map(|last| look.rates_since(last));
        let levels = LEVELS.map(|(name, _)| look.counters.get(name).copied().unwrap_or(0));
        let seen = Seen { status: look.status.clone(), rates, levels };
        self.last = Some(look);
        Row { endpoint: self.endpoint.clone(), seen: Some(seen) }
    }

    async fn ask(&mut self) -> Option<Look> {
        if self.client.is_none() {
            self.client = connect::connect(vec![self.endpoint.clone()], PATIENCE).await.ok();
        }
        let client = self.client.as_ref()?;
        let status = client.cluster_status().await.ok()?;
        let counters = client.counters().await.ok()?.into_iter().collect();
        Some(Look { at: Instant::now(), status, counters })
    }
}

impl Look {
    /// In a second, to the tenth of one: whole numbers of tenths.
    fn rates_since(&self, last: &Self) -> [u64; RATES.len()] {
        let passed = self.at.duration_since(last.at).as_millis().max(1);
        RATES.map(|(name, _)| {
            let count = |look: &Self| look.counters.get(name).copied().unwrap_or(0);
            // A replica that was started anew counts from 0.
            let more = u128::from(count(self).saturating_sub(count(last)));
            u64::try_from(more * 10_000 / passed).unwrap_or(u64::MAX)
        })
    }
}

/// What is shown of an endpoint.
struct Row {
    endpoint: String,
    /// None when it does not answer.
    seen: Option<Seen>,
}

struct Seen {
    status: ClusterStatus,
    /// Tenths; none at the first look.
    rates: Option<[u64; RATES.len()]>,
    levels: [u64; LEVELS.len()],
}

impl Row {
    fn as_json(&self) -> Value {
        let Some(Seen { status, rates, levels }) = &self.seen else {
            return json!({ "endpoint": self.endpoint, "answers": false });
        };
        let mut value = json!({
            "endpoint": self.endpoint,
            "answers": true,
            "replica": status.replica,
            "leader": status.leader,
            "step": status.position.step,
            "behind": status.log_decided.saturating_sub(status.log_applied),
        });
        for (place, (name, _)) in RATES.iter().enumerate() {
            value[format!("{name}_per_second")] =
                rates.map_or(Value::Null, |rates| tenths(rates[place]).into());
        }
        for (place, (name, _)) in LEVELS.iter().enumerate() {
            value[*name] = levels[place].into();
        }
        value
    }

    fn cells(&self) -> [String; 5 + RATES.len() + LEVELS.len()] {
        let dash = || "-".to_owned();
        let mut cells = std::array::from_fn(|_| dash());
        cells[0].clone_from(&self.endpoint);
        let Some(Seen { status, rates, levels }) = &self.seen else {
            cells[1] = "no answer".into();
            return cells;
        };
        cells[1] = status.replica.to_string();
        cells[2] = match status.leader {
            Some(leader) if leader == status.replica => "leader".into(),
            Some(leader) => format!("follows {leader}"),
            None => "no leader".into(),
        };
        cells[3] = status.position.step.to_string();
        cells[4] = status.log_decided.saturating_sub(status.log_applied).to_string();
        for (place, rate) in rates.iter().flatten().enumerate() {
            cells[5 + place] = tenths(*rate);
        }
        for (place, level) in levels.iter().enumerate() {
            cells[5 + RATES.len() + place] = level.to_string();
        }
        cells
    }
}

fn tenths(rate: u64) -> String {
    format!("{}.{}", rate / 10, rate % 10)
}

fn show(rows: &[Row], context: &Context) -> String {
    if context.output.json {
        let rows: Vec<_> = rows.iter().map(Row::as_json).collect();
        return json!({ "replicas": rows }).to_string();
    }
    let fixed = ["ENDPOINT", "REPLICA", "ROLE", "STEP", "BEHIND"];
    let moving = RATES.iter().chain(&LEVELS).map(|(_, heading)| *heading);
    let headings: Vec<_> = fixed.into_iter().chain(moving).collect();
    let mut table = Table::new(&headings);
    for row in rows {
        table.row(row.cells());
    }
    let clear = if std::io::stdout().is_terminal() { CLEAR } else { "" };
    format!("{clear}{}", table.render().trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_differences_by_time() {
        let status = ClusterStatus {
            replica: 1,
            cluster: 7,
            leader: Some(1),
            ballot: String::new(),
            log_first: 0,
            log_decided: 9,
            log_applied: 7,
            position: Default::default(),
            now: 0,
            state_hash: String::new(),
            members: vec![1, 2, 3],
            connected: vec![2],
            engine: String::new(),
            server: String::new(),
        };
        let start = Instant::now();
        let look = |milliseconds, calls| Look {
            at: start + Duration::from_millis(milliseconds),
            status: status.clone(),
            counters: BTreeMap::from([("invocations".to_owned(), calls)]),
        };
        let (first, second) = (look(0, 100), look(500, 175));
        assert_eq!(second.rates_since(&first)[0], 1_500, "75 in half a second");
        assert_eq!(look(900, 3).rates_since(&second)[0], 0, "it was started anew");
        let rates = Some(second.rates_since(&first));
        let seen = Some(Seen { status, rates, levels: [1, 2, 3] });
        let row = Row { endpoint: "here".into(), seen };
        assert_eq!(row.cells()[..6], ["here", "1", "leader", "0", "2", "150.0"]);
        assert_eq!(row.as_json()["invocations_per_second"], "150.0");
    }
}
