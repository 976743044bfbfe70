//! A class in another language is shipped and called as the READMEs of `objects/languages` say, in a
//! cluster of real processes.
//!
//! Not here: what the class does then, which histories show without a cluster.

use std::{path::Path, process::Command};

use gesmas_cluster_tests::{Cluster, gesmas_binary};
use gesmas_languages::Language;

/// Runs the command line, which must succeed.
fn gesmas(endpoint: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(gesmas_binary());
    let output = command.args(arguments).env("GESMAS_ENDPOINTS", endpoint).output();
    let output = output.expect("the binary is there");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "gesmas {arguments:?}: {complaint}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn ship_and_call(endpoint: &str, class: &str, module: &Path) {
    let object = format!("{class}/jobs");
    gesmas(endpoint, &["class", "put", module.to_str().expect("our folders have plain names")]);
    gesmas(endpoint, &["object", "create", &object, "16"]);
    gesmas(endpoint, &["call", &object, "produce", "resize cat.png"]);
    let consumed = gesmas(endpoint, &["call", &object, "consume"]);
    assert_eq!(consumed, r#"{"text":"resize cat.png"}"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_are_shipped_and_called() {
    let languages = [Language::AssemblyScript, Language::C, Language::Zig];
    let wanted = languages.into_iter().filter(|language| language.is_wanted());
    let shipped = wanted.map(|language| {
        let class = format!("QueueIn{language:?}");
        let module = language.shipped_queue(&class);
        (class, module)
    });
    let shipped: Vec<_> = shipped.collect();
    let cluster = Cluster::start().await;
    let endpoint = cluster.address(0).to_string();
    for (class, module) in &shipped {
        ship_and_call(&endpoint, class, module);
    }
}
