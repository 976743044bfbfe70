//! Runs the binary: a cluster in a folder, and commands against it. Everything is bounded in time,
//! and every process is ended by its own handle.

use std::{
    io::{BufRead as _, BufReader, Read},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

/// Longest time of anything: the machine may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// What a command came to.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl End {
    /// The one JSON document on stdout.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The error on stderr: exit code and stable word.
    #[track_caller]
    pub(crate) fn error(&self) -> (i32, String) {
        let line = self.stderr.lines().last().unwrap_or_default();
        let value: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        let word = value["error"]["code"].as_str().unwrap_or_default();
        (self.code.unwrap_or(-1), word.to_owned())
    }
}

/// A command that runs.
pub(crate) struct Running {
    child: Child,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
}

impl Running {
    pub(crate) fn start(words: &[&str], endpoints: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_gesmas"))
            .args(words)
            .env("GESMAS_ENDPOINTS", endpoints)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let stdout = collect(child.stdout.take().expect("it is piped"));
        let stderr = collect(child.stderr.take().expect("it is piped"));
        Self { child, stdout, stderr }
    }

    /// Sends a signal by its name, as a terminal or a supervisor would.
    pub(crate) fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> End {
        let stdout = self.stdout.recv_timeout(PATIENCE).expect("it ends in time");
        let stderr = self.stderr.recv_timeout(PATIENCE).expect("it ends in time");
        let code = self.child.wait().expect("it has ended").code();
        End { code, stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended already cannot be ended again.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(status.expect("there is a kill command").success());
}

/// Reads a stream to its end, which is the end of the process.
fn collect(mut stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("the output is text");
        // Nobody may wait for it any more.
        let _dropped = sender.send(text);
    });
    receiver
}

/// A cluster of `gesmas dev`.
pub(crate) struct Dev {
    child: Child,
    pub(crate) endpoints: String,
    end_of_output: Receiver<()>,
}

impl Dev {
    /// Starts it on free ports and waits until it is ready.
    pub(crate) fn start(folder: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_gesmas"))
            .args(["dev", "--json", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data"])
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let stdout = child.stdout.take().expect("it is piped");
        let (line_sender, line) = channel();
        let (end_sender, end_of_output) = channel();
        thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            let mut line = String::new();
            stdout.read_line(&mut line).expect("the output is text");
            let _dropped = line_sender.send(line);
            // The rest is nothing, up to the end of the process.
            let _rest = stdout.read_to_end(&mut Vec::new());
            let _dropped = end_sender.send(());
        });
        let line = line.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            let _ended = child.kill();
            panic!("the cluster is not ready in time");
        });
        let ready: Value = serde_json::from_str(&line).expect("it says where it is");
        let endpoints: Vec<_> = ready["endpoints"]
            .as_array()
            .expect("it says where it is")
            .iter()
            .map(|endpoint| endpoint.as_str().expect("an endpoint is a text"))
            .collect();
        assert_eq!(endpoints.len(), 3);
        let endpoints = endpoints.join(",");
        Self { child, endpoints, end_of_output }
    }

    /// Starts a command against it.
    pub(crate) fn start_command(&self, words: &[&str]) -> Running {
        Running::start(words, &self.endpoints)
    }

    /// Runs a command against its first replica, so that each sees what the one before did.
    pub(crate) fn run(&self, words: &[&str]) -> End {
        let first = self.endpoints.split(',').next().expect("there are three");
        Running::start(words, first).end()
    }

    /// Waits until the one blocked call on an object is listed, and tells its number.
    pub(crate) fn blocked(&self, object: &str) -> u64 {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let listed = self.run(&["invocation", "ls", object, "--json"]).json();
            if let Some(id) = listed[0]["invocation"].as_u64() {
                return id;
            }
        }
        panic!("no call on {object} is blocked");
    }

    /// Stops it as a supervisor would.
    pub(crate) fn stop(mut self) -> Option<i32> {
        signal(&self.child, "-TERM");
        self.end_of_output.recv_timeout(PATIENCE).expect("it ends in time");
        self.child.wait().expect("it has ended").code()
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // One that has ended already cannot be ended again.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}
