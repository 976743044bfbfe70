//! What no replicated system can beat on this machine: the time of a sync, and of a message there and
//! back.

use std::{
    fmt,
    fs::File,
    io::{self, Read as _, Seek as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    thread,
    time::Instant,
};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Serialize;

/// Bytes that are written before each sync.
const WRITTEN: usize = 4 << 10;
/// Syncs that are measured.
const SYNCS: usize = 400;
/// Messages that are measured.
const MESSAGES: usize = 4_000;

/// Medians, microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Floor {
    /// Writing 4 KiB over zeros of a file and syncing it.
    pub(crate) sync_us: f64,
    /// The same on three files at once, each by a thread of its own.
    pub(crate) three_syncs_us: f64,
    /// A small message to a thread on another processor and back, through TCP on loopback.
    pub(crate) round_trip_us: f64,
}

impl fmt::Display for Floor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sync_us, three_syncs_us, round_trip_us } = self;
        write!(
            f,
            "a sync takes {sync_us:.0} µs, of three files at once {three_syncs_us:.0} µs, a round \
             trip {round_trip_us:.0} µs"
        )
    }
}

/// Measures.
pub(crate) fn measure() -> io::Result<Floor> {
    let folder = tempfile::tempdir()?;
    let sync_us = median(syncs(&folder.path().join("one"))?);
    let threads: Vec<_> = (0..3)
        .map(|number| folder.path().join(format!("three-{number}")))
        .map(|path| thread::spawn(move || syncs(&path)))
        .collect();
    let mut all = Vec::new();
    for thread in threads {
        all.extend(thread.join().map_err(|_| io::Error::other("a thread failed"))??);
    }
    Ok(Floor { sync_us, three_syncs_us: median(all), round_trip_us: median(round_trips()?) })
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[(times.len() - 1) / 2]
}

fn microseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}

fn syncs(path: &Path) -> io::Result<Vec<f64>> {
    let mut file = File::create(path)?;
    let bytes = [0x5a; WRITTEN];
    // The file has its size and its blocks already, so that a sync need not write where they are.
    for _ in 0..SYNCS {
        file.write_all(&[0; WRITTEN])?;
    }
    file.rewind()?;
    file.sync_all()?;
    let once = |_| {
        let begin = Instant::now();
        file.write_all(&bytes)?;
        file.sync_data()?;
        Ok(microseconds(begin))
    };
    (0..SYNCS).map(once).collect()
}

fn round_trips() -> io::Result<Vec<f64>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let echo = thread::spawn(move || {
        stay_on(0)?;
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut byte = [0; 1];
        for _ in 0..MESSAGES {
            stream.read_exact(&mut byte)?;
            stream.write_all(&byte)?;
        }
        io::Result::Ok(())
    });
    let ask = thread::spawn(move || {
        stay_on(1)?;
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut byte = [7; 1];
        let once = |_| {
            let begin = Instant::now();
            stream.write_all(&byte)?;
            stream.read_exact(&mut byte)?;
            Ok(microseconds(begin))
        };
        (0..MESSAGES).map(once).collect::<io::Result<Vec<_>>>()
    });
    let failed = |_| io::Error::other("a thread failed");
    let times = ask.join().map_err(failed)?;
    echo.join().map_err(failed)??;
    times
}

/// Keeps this thread on one of the processors that the program may use.
fn stay_on(number: usize) -> io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let mut all = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).cycle();
    let mut own = CpuSet::new();
    own.set(all.nth(number).ok_or(io::ErrorKind::NotFound)?);
    Ok(sched_setaffinity(None, &own)?)
}
