//! A `chromedriver` process.
//!
//! Invariant: the process ends with this value, by its own id.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

/// See the file's head.
#[derive(Debug)]
pub struct Driver {
    child: Child,
    port: u16,
}

impl Driver {
    /// Starts one on a free port of loopback.
    ///
    /// # Panics
    /// When there is none, or it does not start.
    #[must_use]
    pub fn start() -> Self {
        prepare();
        let mut child = Command::new("chromedriver")
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver starts");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        // It says where it listens once it does; its output ends when it does.
        let mut lines = output.lines().map_while(Result::ok);
        let port = lines.find_map(|line| {
            let rest = line.split("started successfully on port ").nth(1)?;
            rest.trim_end_matches('.').parse().ok()
        });
        let driver = Self { child, port: port.unwrap_or_default() };
        assert_ne!(driver.port, 0, "chromedriver says on which port it listens");
        driver
    }

    pub(crate) fn base(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // One that has ended by itself cannot be killed, and need not.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Has the packages installed if they are not there.
fn prepare() {
    static PREPARED: OnceLock<Result<(), String>> = OnceLock::new();
    let prepared = PREPARED.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("prepare");
        let output = Command::new(script).output().expect("the script can be run");
        let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.success() { Ok(()) } else { Err(complaint) }
    });
    if let Err(complaint) = prepared {
        panic!("{complaint}");
    }
}
