//! `gesmas cluster status`: what every endpoint says of itself and of its group.

use std::{collections::BTreeMap, time::Duration};

use gesmas_client::protocol::ClusterStatus;
use serde_json::{Value, json};

use crate::{
    cli::{
        connect::{self, Context},
        output::Table,
    },
    failure::{Failure, exit::Exit},
    view,
};

/// How long each endpoint may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The endpoints' answers, in the order in which the endpoints are named.
pub(super) async fn ask_all(context: &Context) -> Vec<Answer> {
    let mut questions = tokio::task::JoinSet::new();
    for (place, endpoint) in context.target.endpoints.iter().cloned().enumerate() {
        questions.spawn(async move { (place, endpoint.clone(), ask(endpoint).await) });
    }
    let mut answers = questions.join_all().await;
    answers.sort_by_key(|(place, ..)| *place);
    answers.into_iter().map(|(_, endpoint, answer)| Answer { endpoint, answer }).collect()
}

pub(super) async fn run(context: &Context) -> Result<(), Failure> {
    let answers = ask_all(context).await;
    let diverged = diverged(&answers);
    if context.output.json {
        let replicas: Vec<_> = answers.iter().map(Answer::json).collect();
        let value = json!({ "replicas": replicas, "diverged": diverged });
        context.output.line(&value.to_string());
    } else {
        context.output.line(&render(&answers));
    }
    verdict(&answers, diverged)
}

/// What one endpoint answers.
pub(super) struct Answer {
    pub(super) endpoint: String,
    pub(super) answer: Result<ClusterStatus, Failure>,
}

async fn ask(endpoint: String) -> Result<ClusterStatus, Failure> {
    let client = connect::connect(vec![endpoint], PATIENCE).await?;
    Ok(client.cluster_status().await?)
}

impl Answer {
    fn json(&self) -> Value {
        match &self.answer {
            Err(failure) => json!({ "endpoint": self.endpoint, "unreachable": failure.message }),
            Ok(status) => view::cluster::as_json(&self.endpoint, status),
        }
    }
}

/// Whether two replicas at the same step have different states, which must never be.
fn diverged(answers: &[Answer]) -> bool {
    let mut hashes = BTreeMap::new();
    answers.iter().filter_map(|answer| answer.answer.as_ref().ok()).any(|status| {
        let place = (status.cluster, status.position.epoch, status.position.step);
        let first = hashes.entry(place).or_insert_with(|| status.state_hash.clone());
        *first != status.state_hash
    })
}

fn render(answers: &[Answer]) -> String {
    let statuses = || answers.iter().filter_map(|answer| answer.answer.as_ref().ok());
    let furthest = statuses().map(|status| status.position.step).max().unwrap_or(0);
    let mut table =
        Table::new(&["ENDPOINT", "REPLICA", "ROLE", "STEP", "BEHIND", "APPLIED", "STATE", "PEERS"]);
    for Answer { endpoint, answer } in answers {
        let Ok(status) = answer else {
            let dash = || "-".to_owned();
            let cells = [dash(), "no answer".into(), dash(), dash(), dash(), dash(), dash()];
            let [replica, role, step, behind, applied, state, peers] = cells;
            table.row([endpoint.clone(), replica, role, step, behind, applied, state, peers]);
            continue;
        };
        let role = match status.leader {
            Some(leader) if leader == status.replica => "leader".into(),
            Some(leader) => format!("follows {leader}"),
            None => "no leader".to_owned(),
        };
        let behind = furthest - status.position.step;
        table.row([
            endpoint.clone(),
            status.replica.to_string(),
            role,
            status.position.step.to_string(),
            if behind == 0 { "-".into() } else { format!("{behind} steps") },
            format!("{}/{}", status.log_applied, status.log_decided),
            status.state_hash.chars().take(8).collect(),
            format!("{} of {}", status.connected.len(), status.members.len() - 1),
        ]);
    }
    let mut text = table.render().trim_end().to_owned();
    if let Some(status) = statuses().next() {
        text += &format!(
            "\n\ncluster {:032x} of {} replicas, {}",
            status.cluster,
            status.members.len(),
            status.server
        );
    }
    text
}

fn verdict(answers: &[Answer], diverged: bool) -> Result<(), Failure> {
    if diverged {
        let message = "replicas at the same step have different states";
        return Err(Failure::new(Exit::Failed, "diverged", message)
            .advise("stop the cluster, keep its folders, and report it"));
    }
    let silent: Vec<_> = answers
        .iter()
        .filter(|answer| answer.answer.is_err())
        .map(|answer| answer.endpoint.as_str())
        .collect();
    if silent.is_empty() {
        return Ok(());
    }
    let message = format!("no answer from {}", silent.join(", "));
    Err(Failure::new(Exit::Unreachable, "unreachable", message)
        .advise("--endpoints or GESMAS_ENDPOINTS say where the replicas are"))
}
