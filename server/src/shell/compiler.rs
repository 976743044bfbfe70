//! Compiling modules: off the driver's thread, in a bounded child process, cached on disk.
//!
//! One thread works through a bounded queue. Compiled code of earlier runs is taken from the cache
//! when its tag verifies; everything else is compiled in a child process that has limits on time
//! and memory, so that no module can stall or exhaust the replica.

use std::{
    collections::VecDeque,
    path::Path,
    process::Command,
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};

use gesmas_coroutine::{Cache, CacheError, ChildLimits, Compiled, Compiler, compile_in_child};
use gesmas_machine::CodeHash;
use tokio::sync::mpsc;

use super::{
    config::CompileConfig,
    input::{CompileDone, CompileReason, Input},
};

/// The hidden subcommand that a child process runs.
pub(crate) const CHILD_COMMAND: &str = "compile-child";

/// A module to compile.
pub(super) struct Job {
    pub(super) code: CodeHash,
    pub(super) module: Arc<[u8]>,
    pub(super) reason: CompileReason,
}

/// What the driver hands jobs to.
pub(super) struct CompilerQueue(Arc<Shared>);

struct Shared {
    jobs: Mutex<(VecDeque<Job>, bool)>,
    changed: Condvar,
}

impl CompilerQueue {
    /// Starts the compiler's thread.
    pub(super) fn start(
        compiler: Compiler,
        folder: &Path,
        config: &CompileConfig,
        done: mpsc::Sender<Input>,
    ) -> Result<Self, CacheError> {
        let cache = Cache::open(folder)?;
        let limits = ChildLimits {
            time: Duration::from_millis(config.time_ms),
            memory_bytes: config.memory_mib << 20,
            ..ChildLimits::default()
        };
        let shared =
            Arc::new(Shared { jobs: Mutex::new((VecDeque::new(), true)), changed: Condvar::new() });
        let worker = Worker { compiler, cache, limits };
        let queue = shared.clone();
        std::thread::Builder::new()
            .name("compiler".into())
            .spawn(move || {
                while let Some(job) = queue.take() {
                    let result = worker.compile(job.code, &job.module);
                    let end = CompileDone { code: job.code, result, reason: job.reason };
                    if done.blocking_send(Input::Compiled(end)).is_err() {
                        return;
                    }
                }
            })
            .expect("a thread can be started when the process starts");
        Ok(Self(shared))
    }

    /// Adds a job. The number of jobs is bounded by the classes and by the requests outstanding.
    pub(super) fn add(&self, job: Job) {
        let mut jobs = self.0.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.0.push_back(job);
        self.0.changed.notify_one();
    }
}

impl Drop for CompilerQueue {
    fn drop(&mut self) {
        let mut jobs = self.0.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.1 = false;
        self.0.changed.notify_one();
    }
}

impl Shared {
    /// The next job; none when the driver is gone.
    fn take(&self) -> Option<Job> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if !jobs.1 {
                return None;
            }
            if let Some(job) = jobs.0.pop_front() {
                return Some(job);
            }
            jobs = self.changed.wait(jobs).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

struct Worker {
    compiler: Compiler,
    cache: Cache,
    limits: ChildLimits,
}

impl Worker {
    fn compile(&self, code: CodeHash, module: &[u8]) -> Result<Compiled, String> {
        match self.cache.load(code) {
            Ok(Some(artifact)) => match self.compiler.load(&artifact) {
                Ok(compiled) => return Ok(compiled),
                Err(error) => tracing::warn!(%code, %error, "cached code is not usable"),
            },
            Ok(None) => {}
            Err(error) => tracing::warn!(%code, %error, "cached code cannot be read"),
        }
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        // Its address space is limited, so the allocator must not reserve any in advance.
        command.arg(CHILD_COMMAND).env_clear().env("MIMALLOC_ARENA_RESERVE", "0");
        let artifact = compile_in_child(&mut command, module, self.limits)
            .map_err(|error| error.to_string())?;
        if let Err(error) = self.cache.store(code, &artifact) {
            tracing::warn!(%code, %error, "compiled code cannot be cached");
        }
        self.compiler.load(&artifact).map_err(|error| error.to_string())
    }
}
