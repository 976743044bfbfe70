//! The command line against a real cluster: `gesmas dev` in a folder of its own, and the binary run
//! as users run it.

mod process;

use std::{fs, path::Path, process::Command};

use serde_json::json;

use process::{Dev, End, Running};

#[test]
fn a_day_at_the_terminal() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let dev = Dev::start(&folder.path().join("data"));

    loading_and_calling(&dev);
    blocked_calls(&dev);
    owner_of_a_lock(&dev);
    limits(&dev);
    errors(&dev);
    foreign_class(&dev, folder.path());
    new_class(&dev, folder.path());
    cluster(&dev);

    states_of_files(&dev, &folder.path().join("data/replica-1/snapshots"));
    backup(&dev, folder.path());

    dev.run(&["call", "Counter/kept", "add", "41"]).json();
    assert_eq!(dev.stop(), Some(0));
    let again = Dev::start(&folder.path().join("data"));
    assert_eq!(again.run(&["call", "Counter/kept", "increment"]).json(), 42);
    assert_eq!(again.stop(), Some(0));
}

fn loading_and_calling(dev: &Dev) {
    assert_eq!(dev.run(&["class", "put", "Queue", "--json"]).json()["class"], "Queue");
    let classes = dev.run(&["class", "ls", "--json"]).json();
    let names: Vec<_> = classes.as_array().expect("it is a list").iter().collect();
    assert!(names.iter().any(|class| class["class"] == "Queue" && class["state"] == "ready"));

    let create = ["object", "create", "Queue/jobs", "2", "--json"];
    assert_eq!(dev.run(&create).json(), json!({ "object": "Queue/jobs" }));
    assert_eq!(dev.run(&create).json(), json!({ "object": "Queue/jobs" }));
    let silent = dev.run(&["call", "Queue/jobs", "produce", "resize cat.png"]);
    assert_eq!((silent.code, silent.stdout.as_str()), (Some(0), ""), "{silent:?}");
    let produce = ["call", "Queue/jobs", "produce", r#"{"base64": "/wA="}"#, "--json"];
    assert_eq!(dev.run(&produce).json(), json!(null));
    assert_eq!(dev.run(&["call", "Queue/jobs", "length"]).json(), 2);

    let shown = dev.run(&["object", "show", "Queue/jobs", "--json"]).json();
    assert_eq!(
        shown["entries"],
        json!([
            { "path": "items/000", "value": { "text": "resize cat.png" } },
            { "path": "items/001", "value": { "base64": "/wA=" } },
        ])
    );
    let filled = json!({ "path": "filled", "count": 2, "waiters": [], "owners": [] });
    assert!(shown["semaphores"].as_array().expect("it is a list").contains(&filled), "{shown}");
    let text = dev.run(&["object", "show", "/Queue/jobs"]).stdout;
    assert!(text.contains(r#"/Queue/jobs/items/000  {"text":"resize cat.png"}"#), "{text}");

    let consumed = dev.run(&["call", "Queue/jobs", "consume"]).json();
    assert_eq!(consumed, json!({ "text": "resize cat.png" }));
    assert_eq!(dev.run(&["call", "Counter/visits", "add", "-3"]).json(), -3);
    let objects = dev.run(&["object", "ls", "Queue", "--json"]).json();
    assert_eq!(objects[0]["object"], "Queue/jobs");

    let help = dev.run(&["class", "show", "Queue"]).stdout;
    assert!(help.contains("    produce(item: bytes)"), "{help}");
}

fn blocked_calls(dev: &Dev) {
    dev.run(&["object", "create", "Queue/empty", "1", "--json"]).json();
    let consume = ["call", "Queue/empty", "consume", "--timeout", "100s", "--json"];

    let blocked = dev.start_command(&consume);
    let id = dev.blocked("Queue/empty");
    let listed = dev.run(&["invocation", "ls", "--json"]).json();
    assert_eq!(listed[0]["semaphore"], "filled");
    let why = dev.run(&["why-blocked", "Queue/empty", "--json"]).json();
    let link = &why["links"][0];
    assert_eq!((&link["invocation"], &link["place"]), (&json!(id), &json!(1)), "{why}");
    assert_eq!((&link["owners"], &why["cycle"]), (&json!([]), &json!([])), "{why}");
    let text = dev.run(&["why-blocked", &id.to_string()]).stdout;
    assert!(text.contains("nobody owns a permit"), "{text}");
    let looks = dev.run(&["top", "--looks", "2", "--every", "10ms", "--json"]).stdout;
    let last = looks.lines().last().expect("there are two looks");
    let last: serde_json::Value = serde_json::from_str(last).expect("each is a line of JSON");
    assert_eq!(last["replicas"][0]["blocked_now"], 1, "{last}");
    assert!(last["replicas"][0]["reads_per_second"].is_string(), "{last}");
    let sessions = dev.run(&["session", "ls", "--json"]).json();
    assert_eq!(sessions[0]["open_requests"], 1, "{sessions}");
    let shown = dev.run(&["object", "show", "Queue/empty"]).stdout;
    assert!(shown.contains(&format!("semaphore, count 0, waiting: {id}")), "{shown}");
    assert!(listed[0]["deadline"].is_string(), "{listed}");
    let killed = dev.run(&["invocation", "kill", &id.to_string(), "--json"]);
    assert_eq!(killed.json(), json!({ "killed": id }));
    assert_eq!(blocked.end().error(), (1, "cancelled".into()));

    let endless = ["call", "Queue/empty", "consume", "--timeout", "none", "--json"];
    let blocked = dev.start_command(&endless);
    let id = dev.blocked("Queue/empty");
    let listed = dev.run(&["invocation", "ls", "--json"]).json();
    assert_eq!((&listed[0]["invocation"], &listed[0]["deadline"]), (&json!(id), &json!(null)));
    dev.run(&["invocation", "kill", &id.to_string(), "--json"]).json();
    assert_eq!(blocked.end().error(), (1, "cancelled".into()));

    let interrupted = dev.start_command(&consume);
    dev.blocked("Queue/empty");
    interrupted.signal("-INT");
    assert_eq!(interrupted.end().error(), (130, "interrupted".into()));
    // The interrupted call was cancelled before its process ended; this replica may hear it later.
    let removed = dev.run(&["object", "rm", "Queue/empty", "--json"]);
    assert_eq!(removed.json(), json!({ "removed": "Queue/empty" }));
    assert_eq!(dev.run(&["invocation", "ls", "--json"]).json(), json!([]));

    dev.run(&["object", "create", "Queue/empty", "1", "--json"]).json();
    let lost = dev.start_command(&consume);
    dev.blocked("Queue/empty");
    let session = dev.run(&["session", "ls", "--json"]).json()[0]["session"].to_string();
    dev.run(&["session", "kill", &session, "--json"]).json();
    let (code, word) = lost.end().error();
    assert!([(1, "cancelled"), (4, "unknown")].contains(&(code, word.as_str())), "{word}");

    let removed = dev.start_command(&consume);
    dev.blocked("Queue/empty");
    dev.run(&["object", "rm", "Queue/empty", "--json"]).json();
    assert_eq!(removed.end().error(), (1, "object-removed".into()));
}

/// Whoever waits for a lock is told who has it.
fn owner_of_a_lock(dev: &Dev) {
    let lock = ["call", "Lock/a", "lock", "1", "--hold", "--timeout", "100s", "--json"];
    let (one, other) = (dev.start_command(&lock), dev.start_command(&lock));
    dev.blocked("Lock/a");
    let why = dev.run(&["why-blocked", "Lock/a", "--json"]).json();
    let owner = why["links"][0]["owners"][0].as_str().expect("somebody has it");
    assert!(owner.starts_with("session "), "{why}");
    assert_eq!(why["cycle"], json!([]), "{why}");
    // The lock may pass from one to the other at this moment, so neither is asked to end by itself.
    for process in [one, other] {
        process.signal("-TERM");
        process.end();
    }
}

fn limits(dev: &Dev) {
    let limit = |name: &str| {
        let limits = dev.run(&["limits", "show", "--json"]).json();
        let limits = limits.as_array().expect("it is a list").clone();
        let found = limits.into_iter().find(|limit| limit["limit"] == name);
        found.unwrap_or_else(|| panic!("there is no limit {name}"))["value"].clone()
    };
    assert_eq!(limit("argument_bytes"), 1 << 20);
    dev.run(&["limits", "set", "argument_bytes", "20", "--json"]).json();
    let long = "x".repeat(30);
    let refused = dev.run(&["call", "Queue/jobs", "try_produce", &long, "--json"]).error();
    assert_eq!(refused, (6, "limit".into()));
    dev.run(&["limits", "set", "argument_bytes", "1048576", "--json"]).json();
    for (name, value) in [("argument_bytes", "1"), ("nothing", "100")] {
        let refused = dev.run(&["limits", "set", name, value, "--json"]).error();
        assert_eq!(refused, (6, "limit-not-changed".into()));
    }
}

fn errors(dev: &Dev) {
    let cases: &[(&[&str], i32, &str)] = &[
        (&["call", "Lock/l", "unlock", "7"], 1, "failed"),
        (&["call", "Counter/visits", "add", "9223372036854775808"], 2, "argument"),
        (&["call", "Queue/jobs", "produce"], 2, "argument"),
        (&["call", "Queue", "produce"], 2, "usage"),
        (&["class", "put", "no-such-file"], 2, "file"),
        (&["call", "Queue/jobs", "consume", "--timeout", "100ms"], 4, "cancelled"),
        (&["call", "Nothing/x", "y"], 5, "class-unknown"),
        (&["call", "Queue/jobs", "steal"], 5, "method-unknown"),
        (&["call", "Lock/l", "session_over", "1"], 5, "not-callable"),
        (&["call", "Queue/none", "consume"], 5, "object-unknown"),
        (&["object", "show", "Queue/none"], 5, "object-unknown"),
        (&["object", "rm", "Queue/none"], 5, "object-unknown"),
        (&["invocation", "kill", "4000000000"], 5, "invocation-unknown"),
        (&["session", "kill", "4000000000"], 5, "session-unknown"),
        (&["object", "create", "Queue/jobs", "3"], 6, "object-exists"),
        (&["class", "ls", "--endpoints", "127.0.0.1:1"], 3, "unreachable"),
    ];
    // Leaves the queue empty, so that the consumer above is blocked until its time is up.
    dev.run(&["call", "Queue/jobs", "consume"]).json();
    for (words, exit, code) in cases {
        let words: Vec<_> = words.iter().copied().chain(["--json"]).collect();
        let end = dev.run(&words);
        assert_eq!(end.error(), (*exit, (*code).into()), "{words:?}: {end:?}");
        assert_eq!(end.stdout, "", "{words:?}");
    }
    let class_error = dev.run(&["call", "Lock/l", "unlock", "7"]);
    assert_eq!(class_error.stderr, "error: unlock of Lock/l returned NotHeld\n");
}

/// The class that docs/abi.md writes by hand, with an interface from a file.
fn foreign_class(dev: &Dev, folder: &Path) {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/abi.md");
    let docs = fs::read_to_string(docs).expect("the documentation is in the repository");
    let (_, rest) = docs.split_once("```wat\n").expect("it has an example");
    let (source, _) = rest.split_once("```").expect("the example ends");
    let interface = json!({
        "class": "Tally",
        "fields": [{ "name": "count", "kind": "value", "value": "i64" }],
        "methods": [{
            "name": "add",
            "parameters": [{ "name": "number", "type": "i64" }],
            "result": "i64",
        }],
    });
    let path = |name: &str| folder.join(name).to_str().expect("it is UTF-8").to_owned();
    let build = |source: &str, name: &str| {
        fs::write(path("bare.wasm"), wat::parse_str(source).expect("the example assembles"))
            .expect("the folder can be written");
        let (bare, file, out) = (path("bare.wasm"), path("tally.json"), path(name));
        let words = ["class", "build", &bare, "--interface", &file, "-o", &out, "--json"];
        assert_eq!(dev.run(&words).json()["class"], "Tally");
    };
    fs::write(path("tally.json"), interface.to_string()).expect("the folder can be written");
    build(source, "Tally.wasm");
    build(&source.replacen("(memory", "(global i32 (i32.const 1)) (memory", 1), "other.wasm");

    dev.run(&["class", "put", &path("Tally.wasm"), "--json"]).json();
    assert_eq!(dev.run(&["call", "Tally/t", "add", "5"]).json(), 5);
    assert_eq!(dev.run(&["call", "Tally/t", "add", "-7"]).json(), -2);
    let other = dev.run(&["class", "put", &path("other.wasm"), "--json"]);
    assert_eq!(other.error(), (6, "class-exists".into()));
    dev.run(&["class", "get", "Tally", "-o", &path("got.wasm"), "--json"]).json();
    let read = |name: &str| fs::read(path(name)).expect("the file was written");
    assert!(read("got.wasm") == read("Tally.wasm"));
    let shown = dev.run(&["class", "show", "Tally", "--json"]).json();
    assert_eq!(shown["methods"][0]["result"], "i64");
}

/// A class as `class new` makes it is shipped as it is.
fn new_class(dev: &Dev, folder: &Path) {
    let path = |name: &str| folder.join(name).to_str().expect("it is UTF-8").to_owned();
    let new = ["class", "new", "TicketBooth", "--in", &path(""), "--json"];
    let made = dev.run(&new).json();
    assert_eq!(
        (&made["class"], &made["folder"]),
        (&json!("TicketBooth"), &json!(path("ticket-booth")))
    );
    assert_eq!(dev.run(&new).error(), (2, "usage".into()));
    assert_eq!(dev.run(&["class", "new", "Queue", "--json"]).error(), (2, "usage".into()));

    let put = dev.run(&["class", "put", &path("ticket-booth"), "--json"]).json();
    assert_eq!(put["class"], "TicketBooth");
    dev.run(&["call", "TicketBooth/one", "put", "hello", "--json"]).json();
    let taken = dev.run(&["call", "TicketBooth/one", "take"]).json();
    assert_eq!(taken, json!({ "text": "hello" }));
}

/// Two snapshots of one replica differ in what was called between them.
fn states_of_files(dev: &Dev, folder: &Path) {
    let snapshot = || {
        let words = ["snapshot", "now", "--json"];
        let index = dev.start_command(&words).end().json()["snapshots"][0]["index"].clone();
        let index = index.as_u64().expect("it is a number");
        let path = folder.join(format!("{index:016}.snapshot"));
        path.to_str().expect("it is UTF-8").to_owned()
    };
    dev.run(&["call", "Counter/kept", "add", "7"]).json();
    let one = snapshot();
    dev.run(&["call", "Counter/kept", "add", "1"]).json();
    let another = snapshot();
    dev.run(&["call", "Counter/kept", "add", "-8"]).json();
    let same = dev.run(&["debug", "diff", &one, &one, "--json"]).json();
    assert_eq!(same["differences"], json!([]));
    let end = dev.run(&["debug", "diff", &one, &another, "--json"]);
    assert_eq!(end.error(), (1, "different".into()));
    let found: serde_json::Value = serde_json::from_str(&end.stdout).expect("it is JSON");
    let first = &found["differences"][0];
    assert_eq!(first["record"], "object Counter/kept", "{found}");
    assert_eq!(first["left"], r"\x07\x00\x00\x00\x00\x00\x00\x00", "{found}");
    let words = dev.run(&["debug", "diff", &one, &another, "--limit", "1"]);
    assert!(words.stderr.contains("at least 1 places"), "{words:?}");
    assert!(words.stdout.contains("object Counter/kept\n  entry "), "{words:?}");
    assert_eq!(dev.run(&["debug", "diff", &one, "nothing", "--json"]).code, Some(2));
}

/// A backup holds what was acknowledged before, and a replica can begin with it.
fn backup(dev: &Dev, folder: &Path) {
    dev.run(&["call", "Counter/kept", "add", "5"]).json();
    let place = folder.join("backup");
    let words = ["backup", place.to_str().expect("it is UTF-8"), "--json"];
    let made = dev.run(&words).json();
    let file = made["file"].as_str().expect("it is a path").to_owned();
    assert!(Path::new(&file).starts_with(&place), "{made}");
    assert_eq!(fs::read_dir(&place).expect("it is a folder").count(), 1, "no other file is left");
    let length = fs::metadata(&file).expect("the file is there").len();
    assert_eq!(made["bytes"], length);
    dev.run(&["call", "Counter/kept", "add", "-5"]).json();

    let cluster = fs::read_to_string(folder.join("data/cluster")).expect("dev keeps its number");
    let verify = ["snapshot", "verify", place.to_str().expect("it is UTF-8"), "--json"];
    let words: Vec<_> = verify.into_iter().chain(["--cluster", cluster.trim()]).collect();
    let verified = dev.run(&words).json();
    assert_eq!(verified["snapshots"][0]["state_hash"], made["state_hash"]);

    let config = folder.join("replica.toml");
    let members: Vec<_> = (1..=3)
        .map(|replica| format!("{{ replica = {replica}, peers = \"127.0.0.1:{replica}\" }}"))
        .collect();
    let text = format!(
        "cluster = \"{}\"\nreplica = 1\ndata = \"restored\"\nlisten = \"127.0.0.1:9\"\n\
         members = [{}]\n",
        cluster.trim(),
        members.join(", ")
    );
    fs::write(&config, text).expect("the folder can be written");
    let words = ["restore", &file, "--config", config.to_str().expect("it is UTF-8"), "--json"];
    let restored = dev.run(&words).json();
    assert_eq!((&restored["step"], &restored["epoch"]), (&made["step"], &json!(1)), "{restored}");
    assert_eq!(dev.run(&words).error(), (1, "occupied".into()));
}

fn cluster(dev: &Dev) {
    let end = dev.start_command(&["cluster", "status", "--json"]).end();
    let status = end.json();
    let replicas = status["replicas"].as_array().expect("it is a list");
    assert_eq!(replicas.len(), 3);
    assert!(replicas.iter().all(|replica| replica["members"] == json!([1, 2, 3])), "{status}");
    assert_eq!(status["diverged"], false);

    let endpoints = format!("{},127.0.0.1:1", dev.endpoints);
    let partly = Running::start(&["cluster", "status"], &endpoints).end();
    assert_eq!(partly.code, Some(3));
    assert!(partly.stdout.contains("no answer"), "{partly:?}");
}

#[test]
fn completions_and_help_need_no_cluster() {
    let run = |words: &[&str]| Running::start(words, "127.0.0.1:1").end();
    for shell in ["bash", "zsh", "fish"] {
        let end = run(&["completions", shell]);
        assert_eq!(end.code, Some(0));
        assert!(end.stdout.contains("gesmas"), "{shell}");
    }
    manual_pages(&run);
    let table = run(&["help", "exit-codes"]);
    assert_eq!(table.code, Some(0));
    assert!(table.stdout.contains("  130    Interrupted."), "{table:?}");
    assert_eq!(run(&["call", "--help"]).code, Some(0));
    assert_eq!(run(&["frobnicate"]).code, Some(2));
}

/// Each command that the help lists has a page, which a reader of manuals takes without complaint if
/// one is installed.
fn manual_pages(run: &dyn Fn(&[&str]) -> End) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let place = folder.path().join("man1");
    let words = ["man", "--out", place.to_str().expect("it is UTF-8"), "--json"];
    let made = run(&words).json();
    let pages = made["pages"].as_array().expect("it is a list");
    for page in ["gesmas.1", "gesmas-call.1", "gesmas-object-create.1", "gesmas-man.1"] {
        assert!(pages.contains(&json!(page)), "{page} is missing in {pages:?}");
    }
    assert_eq!(fs::read_dir(&place).expect("it is a folder").count(), pages.len());
    for page in pages.iter().filter_map(serde_json::Value::as_str) {
        let text = fs::read_to_string(place.join(page)).expect("the page was written");
        assert!(text.contains("\n.SH SYNOPSIS\n"), "{page}");
        let reader = Command::new("groff")
            .args(["-man", "-Tutf8", "-ww", "-z"])
            .arg(place.join(page))
            .output();
        // Where there is none, what can be said without one has been said.
        let Ok(read) = reader else { continue };
        let complaints = String::from_utf8_lossy(&read.stderr);
        assert!(read.status.success() && complaints.is_empty(), "{page}: {complaints}");
    }
    let one = run(&["man"]);
    let page = fs::read_to_string(place.join("gesmas.1")).expect("the page was written");
    assert_eq!((one.code, one.stdout.trim_end()), (Some(0), page.trim_end()));
}

#[test]
fn a_configuration_is_checked_before_it_is_served() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("bad.toml");
    fs::write(&path, "cluster = \"x\"").expect("the folder can be written");
    let path = path.to_str().expect("it is UTF-8");
    for words in [["config", "check", path, "--json"], ["serve", "--config", path, "--json"]] {
        let end = Running::start(&words, "127.0.0.1:1").end();
        assert_eq!(end.error(), (2, "configuration".into()), "{end:?}");
    }
}
