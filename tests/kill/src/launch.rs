//! Replicas that do not outlive this program, however it ends.
//!
//! A replica is started through this program itself: the child asks the system for SIGKILL at the
//! death of its parent and then becomes the replica, under the same process id.
//! Invariant: a child whose parent was gone before it could ask does not become a replica.
//! Not here: anything for systems without that request (all but Linux).

use std::{
    convert::Infallible,
    env,
    ffi::OsString,
    io,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Command, Stdio},
};

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

/// The hidden first argument of the child.
pub(crate) const LAUNCH: &str = "launch-under-death-signal";

/// A command that becomes `program`, perhaps through a prefix such as `ip netns exec NAME`.
///
/// It must be spawned by a thread that lives as long as this program: its death is what counts.
pub(crate) fn command(prefix: &[String], program: &Path) -> io::Result<Command> {
    let this = env::current_exe()?;
    let mut command = match prefix.split_first() {
        Some((first, rest)) => {
            let mut command = Command::new(first);
            command.args(rest).arg(this);
            command
        }
        None => Command::new(this),
    };
    command.arg(LAUNCH).arg(getpid().to_string()).arg(program);
    // A terminal's Ctrl-C is for this program alone, which then ends the replicas.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
    Ok(command)
}

/// What the child does. It returns only when it fails.
pub(crate) fn become_replica(mut arguments: impl Iterator<Item = OsString>) -> io::Error {
    let missing = || io::Error::other("a parent and a program are needed");
    let become_it = || -> io::Result<Infallible> {
        let parent = arguments.next().ok_or_else(missing)?;
        let program = arguments.next().ok_or_else(missing)?;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        let lives = getppid().is_some_and(|pid| *pid.to_string() == *parent);
        if !lives {
            return Err(io::Error::other("the parent is gone"));
        }
        Err(Command::new(program).args(arguments).exec())
    };
    match become_it() {
        Err(error) => error,
        Ok(never) => match never {},
    }
}
