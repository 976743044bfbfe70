//! Compiling a stranger's module in a process of its own, bounded in time and memory.
//!
//! The child is this program again, started with a hidden subcommand that calls
//! [`compile_child_main`]. Into its input go the memory limit (`u64`), and the module to the end;
//! out of it come the hash of its engine's identity (32 bytes), a byte 0 and the code, or a byte 1
//! and a message, led by their length (`u64`). It limits its own memory before it reads the module.
//! Invariants: what a module can make the compiler do ends with the child; the child is killed by
//! its handle and always reaped; an artifact is trusted only when it is whole and comes from the
//! same version of this program.

use std::{
    io::{self, Read, Write},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use rustix::process::{Resource, Rlimit, setrlimit};

use super::{Artifact, CompileError, compile::precompile, settings};
use crate::identity;

/// Bounds of one compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildLimits {
    /// Longest time, by the wall clock.
    pub time: Duration,
    /// Address space of the child, bytes.
    pub memory_bytes: u64,
    /// Greatest size of the code, bytes.
    pub artifact_bytes: u64,
}

impl Default for ChildLimits {
    fn default() -> Self {
        Self { time: Duration::from_secs(10), memory_bytes: 1 << 30, artifact_bytes: 64 << 20 }
    }
}

/// Longest message of a child, bytes.
const MESSAGE: u64 = 64 << 10;

/// What the child process does: limits its memory, compiles what it reads, writes the code.
///
/// # Errors
/// Those of the two streams. A module that does not compile is an answer, not an error.
pub fn compile_child_main(mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    let mut memory = [0; 8];
    input.read_exact(&mut memory)?;
    let memory = u64::from_le_bytes(memory);
    limit(Resource::As, memory)?;
    limit(Resource::Core, 0)?;
    let mut module = Vec::new();
    input.take(memory).read_to_end(&mut module)?;
    let compiled = settings::compiling()
        .map_err(|error| error.to_string())
        .and_then(|engine| precompile(&engine, &module).map_err(refusal));
    let (tag, payload) = match &compiled {
        Ok(artifact) => (0, artifact.as_bytes()),
        Err(message) => (1, message.as_bytes()),
    };
    output.write_all(&identity::wasm().hash)?;
    output.write_all(&[tag])?;
    output.write_all(&(payload.len() as u64).to_le_bytes())?;
    output.write_all(payload)?;
    output.flush()
}

fn limit(resource: Resource, value: u64) -> io::Result<()> {
    let value = Some(value);
    Ok(setrlimit(resource, Rlimit { current: value, maximum: value })?)
}

fn refusal(error: CompileError) -> String {
    match error {
        CompileError::Refused(message) => message,
        other => other.to_string(),
    }
}

/// Compiles a module in the child process that `command` starts, which must end up in
/// [`compile_child_main`]. Blocks for at most the limit's time.
///
/// # Errors
/// [`CompileError`]: the module does not compile, or the child ran into one of its bounds.
pub fn compile_in_child(
    command: &mut Command,
    module: &[u8],
    limits: ChildLimits,
) -> Result<Artifact, CompileError> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let exchanged = exchange(&mut child, module, limits);
    // A child that has answered has nothing left to do; one that has not is given up.
    let killed = child.kill();
    let status = child.wait()?;
    let reply = exchanged.ok_or(CompileError::TimedOut(limits.time))?;
    killed?;
    artifact(&reply, status, limits)
}

/// Writes the module and reads the reply, or nothing when the time is up.
fn exchange(child: &mut Child, module: &[u8], limits: ChildLimits) -> Option<Vec<u8>> {
    let mut input = child.stdin.take().expect("the input is piped");
    let output = child.stdout.take().expect("the output is piped");
    let module = module.to_vec();
    // The threads outlive this function only until the child is killed, which breaks their pipes.
    thread::spawn(move || {
        let written = input
            .write_all(&limits.memory_bytes.to_le_bytes())
            .and_then(|()| input.write_all(&module));
        // A child that died early is seen by the lack of its reply.
        drop(written);
    });
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let cap = limits.artifact_bytes.max(MESSAGE) + 64;
        let mut reply = Vec::new();
        let read = output.take(cap).read_to_end(&mut reply);
        // Nobody listens any more when the time was up.
        drop(sender.send(read.map(|_| reply).unwrap_or_default()));
    });
    receiver.recv_timeout(limits.time).ok()
}

/// The code in a child's reply.
fn artifact(
    reply: &[u8],
    status: ExitStatus,
    limits: ChildLimits,
) -> Result<Artifact, CompileError> {
    let died =
        || CompileError::Died { status: status.to_string(), memory_bytes: limits.memory_bytes };
    let (identity, rest) = reply.split_first_chunk::<32>().ok_or_else(died)?;
    let (&[tag], rest) = rest.split_first_chunk::<1>().ok_or_else(died)?;
    let (length, payload) = rest.split_first_chunk::<8>().ok_or_else(died)?;
    let length = u64::from_le_bytes(*length);
    if identity != &identity::wasm().hash {
        return Err(CompileError::OtherVersion);
    }
    if tag == 0 && length > limits.artifact_bytes {
        return Err(CompileError::TooLarge(limits.artifact_bytes));
    }
    if payload.len() as u64 != length {
        return Err(died());
    }
    match tag {
        0 => Ok(Artifact::trusted(payload.to_vec())),
        _ => Err(CompileError::Refused(String::from_utf8_lossy(payload).into_owned())),
    }
}
