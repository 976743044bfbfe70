//! `gesmas cluster transfer-leader`: another replica takes the lead.
//!
//! Invariant: it ends well only when every endpoint that answers names the new leader, itself included.
//! Not here: what a replica does to take the lead (`replica/takeover.rs`).

use std::time::Duration;

use clap::Args;
use gesmas_client::protocol::ClusterStatus;
use serde_json::json;
use tokio::time::Instant;

use super::status::{Answer, ask_all};
use crate::{
    cli::connect::{self, Context},
    failure::{Failure, exit::Exit},
};

/// How long the replica may take to lead.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it may take to answer.
const ANSWER: Duration = Duration::from_secs(2);
/// After how long it is asked again.
const AGAIN: Duration = Duration::from_secs(1);
/// Between two looks at who leads.
const LOOK: Duration = Duration::from_millis(50);

/// `gesmas cluster transfer-leader`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesmas cluster transfer-leader --to 2
  gesmas cluster transfer-leader

All replicas have to be among the endpoints. Calls go on: those that are under way when the lead
changes are sent again by the replicas. Nothing is lost, and nothing takes effect twice.")]
pub(crate) struct TransferLeaderArgs {
    /// Number of the replica that is to lead. If not said, that which has applied most of those that
    /// follow.
    #[arg(long, value_name = "REPLICA")]
    to: Option<u64>,
}

pub(super) async fn run(args: &TransferLeaderArgs, context: &Context) -> Result<(), Failure> {
    let answers = ask_all(context).await;
    let (endpoint, replica) = choose(&answers, args.to)?;
    let old = leader(&answers);
    let begun = Instant::now();
    let client = connect::connect(vec![endpoint], ANSWER).await?;
    // An election that is under way may give the lead to another: then it is asked for again.
    let mut asked = None::<Instant>;
    let mut refused = None;
    while begun.elapsed() < PATIENCE {
        if asked.is_none_or(|asked| asked.elapsed() > AGAIN) {
            refused = client.take_lead().await.err();
            asked = Some(Instant::now());
        }
        let answers = ask_all(context).await;
        let answers_itself = statuses(&answers).any(|status| status.replica == replica);
        if answers_itself && statuses(&answers).all(|status| status.leader == Some(replica)) {
            let value = json!({ "leader": replica, "before": old });
            context.output.value(&value, || format!("replica {replica} leads"));
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
    if let Some(refused) = refused {
        return Err(refused.into());
    }
    let message = format!("replica {replica} does not lead after {PATIENCE:?}");
    Err(Failure::new(Exit::Failed, "not-transferred", message)
        .advise("`gesmas cluster status` shows who does; nothing is lost, try again"))
}

fn statuses(answers: &[Answer]) -> impl Iterator<Item = &ClusterStatus> {
    answers.iter().filter_map(|answer| answer.answer.as_ref().ok())
}

fn leader(answers: &[Answer]) -> Option<u64> {
    statuses(answers).find_map(|status| status.leader)
}

/// The endpoint of the replica that is to lead, and its number.
fn choose(answers: &[Answer], to: Option<u64>) -> Result<(String, u64), Failure> {
    let known = answers.iter().filter_map(|answer| {
        answer.answer.as_ref().ok().map(|status| (answer.endpoint.clone(), status))
    });
    let fits = |status: &ClusterStatus| match to {
        Some(replica) => status.replica == replica,
        None => status.leader.is_some_and(|leader| leader != status.replica),
    };
    let best =
        known.filter(|(_, status)| fits(status)).max_by_key(|(_, status)| status.log_applied);
    best.map(|(endpoint, status)| (endpoint, status.replica)).ok_or_else(|| {
        let message = match to {
            Some(replica) => format!("no endpoint is that of replica {replica}"),
            None => "no endpoint is that of a replica which follows".into(),
        };
        Failure::new(Exit::NotFound, "replica-unknown", message)
            .advise("all replicas have to be among --endpoints, or in GESMAS_ENDPOINTS")
    })
}
