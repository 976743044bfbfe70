//! Runners: processes that have the cases in a language.
//!
//! Invariant: a runner that is not there, ends early or says nothing for [`SILENCE`] fails the test with a
//! sentence that says so; its process ends with this value.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::OnceCell,
};

/// How long a runner may say nothing: longer than any case may take.
const SILENCE: Duration = Duration::from_secs(120);

/// A face of a client library: what its users program against.
#[derive(Clone, Copy, Debug)]
pub struct Face {
    /// Its name.
    pub name: &'static str,
    program: &'static str,
    script: &'static str,
    /// Which face the runner is to use.
    argument: &'static str,
    missing: &'static str,
}

const PYTHON_MISSING: &str = "python3 cannot be started: install Python 3.10 or later, which the tests of \
                              the Python client need";

/// Python, blocking.
pub const PYTHON: Face = Face {
    name: "python",
    program: "python3",
    script: "runners/python/run.py",
    argument: "plain",
    missing: PYTHON_MISSING,
};
/// Python, asyncio.
pub const PYTHON_ASYNCIO: Face = Face { name: "python-asyncio", argument: "asyncio", ..PYTHON };
/// TypeScript, on Node.
pub const TYPESCRIPT: Face = Face {
    name: "typescript",
    program: "node",
    script: "../../target/conformance/typescript/runners/run.js",
    argument: "typescript",
    missing: "node cannot be started: install Node.js 20 or later with npm, which the tests of the \
              TypeScript client need",
};

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Compiles what needs compiling, once a process: the TypeScript client, its runner and the examples of its
/// README.
///
/// # Panics
/// When npm is missing or the code does not compile.
pub async fn prepare() {
    static PREPARED: OnceCell<()> = OnceCell::const_new();
    PREPARED.get_or_init(|| succeeds(Command::new(folder().join("prepare")))).await;
}

async fn succeeds(mut command: Command) {
    let output = command.stdin(Stdio::null()).output().await;
    let output = output.unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed:\n{said}{complained}");
}

/// Runs the unit tests of the clients, which need no replicas.
///
/// # Panics
/// When one fails.
pub async fn run_unit_tests() {
    let root = folder().join("../..");
    let mut python = Command::new(PYTHON.program);
    python.args(["-m", "unittest", "discover", "-s"]).arg(root.join("client-sdk/python/tests"));
    python.env("PYTHONPATH", root.join("client-sdk/python/src"));
    python.env("PYTHONDONTWRITEBYTECODE", "1");
    succeeds(python).await;
    let mut node = Command::new(TYPESCRIPT.program);
    let compiled = root.join("target/conformance/typescript/runners");
    node.arg("--test").args(["values.test.js", "clock.test.js"].map(|test| compiled.join(test)));
    succeeds(node).await;
}

/// A runner.
pub(crate) struct Runner {
    name: &'static str,
    _child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Runner {
    /// Starts it with these arguments after the name of its face.
    pub(crate) fn start(face: &Face, arguments: &[String]) -> Self {
        let root = folder().join("../..");
        let python: PathBuf = root.join("client-sdk/python/src");
        let child = Command::new(face.program)
            .arg(folder().join(face.script))
            .arg(face.argument)
            .args(arguments)
            .env("PYTHONPATH", python)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let mut child = child.unwrap_or_else(|error| panic!("{} ({error})", face.missing));
        let input = child.stdin.take().expect("it is piped");
        let output = child.stdout.take().expect("it is piped");
        let output = BufReader::new(output).lines();
        Self { name: face.name, _child: child, input, output }
    }

    /// What it says next.
    pub(crate) async fn hear(&mut self) -> Value {
        let line = tokio::time::timeout(SILENCE, self.output.next_line()).await;
        let line = line.unwrap_or_else(|_| panic!("{} said nothing for {SILENCE:?}", self.name));
        let line = line.expect("the output of a runner is text");
        let line = line.unwrap_or_else(|| panic!("the runner of {} ended early", self.name));
        serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("{} said {line:?}: {error}", self.name))
    }

    /// Tells it something.
    pub(crate) async fn tell(&mut self, what: &Value) {
        let line = format!("{what}\n");
        let told = self.input.write_all(line.as_bytes()).await;
        told.unwrap_or_else(|error| panic!("the runner of {} does not listen: {error}", self.name));
    }
}
