//! A class from a crate that knows nothing of this workspace but where the SDK lies.

use std::{fs, future::IntoFuture as _, path::Path, time::Duration};

use gesmas_abi::value::{Bytes, from_bytes};
use gesmas_client::{Session, protocol};
use gesmas_cluster_tests::{Class, Cluster, arguments, wait};

/// A crate in a temporary folder. What it depends on is what this workspace has locked, and is
/// compiled into a folder that is kept from one run to the next.
fn write_crate() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().expect("the workspace");
    let manifest = format!(
        "[package]\nname = \"rendezvous\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [dependencies]\ngesmas-sdk = {{ path = {:?} }}\n",
        root.join("objects/sdk")
    );
    let target = root.join("target/tests/outside");
    let path = folder.path();
    fs::create_dir_all(path.join("src")).expect("src");
    fs::create_dir_all(path.join(".cargo")).expect(".cargo");
    let config = format!("[build]\ntarget-dir = {target:?}\n");
    fs::write(path.join(".cargo/config.toml"), config).expect("config");
    fs::write(path.join("Cargo.toml"), manifest).expect("manifest");
    fs::write(path.join("src/lib.rs"), include_str!("outside/rendezvous.rs")).expect("library");
    fs::copy(root.join("Cargo.lock"), path.join("Cargo.lock")).expect("lock file");
    folder
}

fn swapped(result: &protocol::Bytes) -> Bytes {
    from_bytes(result).expect("it is a value of a party")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_class_of_a_crate_outside_is_compiled_shipped_and_used() {
    let folder = write_crate();
    let module = gesmas_build::compile(folder.path()).expect("the crate compiles");
    let class = Class::of(&module);
    let cluster = Cluster::start().await;
    let mut sessions = Vec::new();
    for index in cluster.indices() {
        sessions.push(cluster.session_of(index).await);
    }
    // One client has the code and ships it with its first call; the others need only the name.
    sessions[0].add_class(class.name(), module.clone());
    let swap = |session: &Session, value: &str| {
        class.call(session, "bridge", "swap", arguments((Bytes::from(value),)))
    };
    let is_waiting = async |session: &Session, expected: bool| {
        wait::until("that a party waits, or nobody", || async {
            let read = class.read(session, "bridge", "is_waiting", Vec::new()).await;
            read.ok().and_then(|read| from_bytes(&read).ok()) == Some(expected)
        })
        .await;
    };
    for (first, second) in [(0, 1), (1, 2), (2, 0)] {
        let waiting = swap(&sessions[first], "from the first").without_deadline().send();
        is_waiting(&sessions[second], true).await;
        let second = swap(&sessions[second], "from the second").into_future();
        let second = wait::bounded("the second party", second).await.expect("they meet");
        let first = wait::bounded("the first party", waiting).await.expect("they meet");
        assert_eq!(swapped(&first), "from the second".into());
        assert_eq!(swapped(&second), "from the first".into());
    }
    // A party that gives up withdraws its offer.
    let alone = swap(&sessions[0], "never taken").deadline(Duration::from_millis(200));
    let end = wait::bounded("a deadline", alone.into_future()).await;
    assert_eq!(end.expect_err("nobody came").code(), "cancelled");
    let waiting = swap(&sessions[1], "taken").without_deadline().send();
    is_waiting(&sessions[2], true).await;
    let met = swap(&sessions[2], "late").await.expect("they meet");
    assert_eq!(swapped(&met), "taken".into());
    let met = wait::bounded("the first party", waiting).await.expect("they meet");
    assert_eq!(swapped(&met), "late".into());
    cluster.assert_equal().await;
}
