//! `gesmas serve`: one replica in this process, until a signal or a failure ends it.

use std::path::PathBuf;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use super::{
    exit::Exit,
    failure::Failure,
    logging::{self, LogFormat},
};
use crate::{
    gateway,
    shell::{self, Config},
};

/// `gesmas serve`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesmas config check replica-1.toml
  gesmas serve --config replica-1.toml
  RUST_LOG=debug gesmas serve --config replica-1.toml --log-format json

SIGINT and SIGTERM stop it in good order: clients are told to go elsewhere, and the exit code is 0.
A replica that has to stop by itself (a broken disk, another engine than its group) says why and
exits with code 7; do not restart it blindly.")]
pub(crate) struct ServeArgs {
    /// The configuration; docs/gesmas.toml explains every setting.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Form of the log, which goes to stderr.
    #[arg(long, value_enum, default_value = "text")]
    log_format: LogFormat,
    /// Has the standard classes in this program run natively: for benchmarks, which put them by the
    /// text that stands for a native class. All replicas must do alike.
    #[arg(long, hide = true)]
    native: bool,
}

pub(super) async fn run(args: &ServeArgs) -> Result<(), Failure> {
    logging::start(args.log_format, "info");
    let config = Config::load(&args.config)?;
    let signal = Stop::listen()?;
    let classes = if args.native { gesmas_classes::native().to_vec() } else { Vec::new() };
    let server = shell::start_with(&config, &classes).await?;
    let http = match &config.http {
        Some(http) => Some(gateway::start(http, &server).await?),
        None => None,
    };
    tracing::info!(
        replica = config.replica,
        clients = %server.clients(),
        peers = %config.own_peers(),
        http = http.as_ref().map(|http| http.address().to_string()),
        data = %config.data.display(),
        "the replica serves"
    );
    tokio::select! {
        () = server.ended() => {
            server.stop().await?;
            Err(Failure::new(Exit::Stopped, "replica-stopped", "the replica stopped by itself"))
        }
        name = signal.received() => {
            tracing::info!(signal = name, "the replica stops");
            Ok(server.stop().await?)
        }
    }
}

/// The signals that ask a server to stop.
pub(super) struct Stop {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Stop {
    /// From here on the signals no longer end the process.
    pub(super) fn listen() -> Result<Self, Failure> {
        let failure = |error: std::io::Error| {
            Failure::new(Exit::Stopped, "signals", format!("signals cannot be heard: {error}"))
        };
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(failure)?,
            terminate: signal(SignalKind::terminate()).map_err(failure)?,
        })
    }

    /// Waits for one of them and tells which.
    pub(super) async fn received(mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}
