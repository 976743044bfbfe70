//! Every limit of the machine, named, with its unit and the reason for its default.
//!
//! Limits are replicated state: all replicas decide by the same ones. A host call that grows what
//! is over its limit traps with the limit's name; one that does not grow never does, so that
//! removing always works.
//! Not here: limits of connections and queues of one process, which are settings of the server.

mod change;

use serde::{Deserialize, Serialize};

pub use self::change::{Limit, LimitChangeError};

use crate::outcome::LimitExceeded;

/// The limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Fuel of one segment. About one unit an instruction: some tens of milliseconds.
    pub fuel_per_segment: u64,
    /// Fuel of one invocation in one step, over all its segments in it.
    pub fuel_per_step: u64,
    /// Fuel of the clean-up of a cancelled invocation.
    pub fuel_per_cleanup: u64,
    /// Segments of one invocation in one step: coroutines that wake each other for ever end here.
    pub segments_per_step: u64,
    /// Memory of an instance, bytes.
    pub memory_bytes: u64,
    /// Journal of one frame, bytes; `continue_with` starts it over. Holds the largest value, which
    /// a method could not read otherwise.
    pub journal_bytes: u64,
    /// Keys and values of one object, bytes.
    pub object_bytes: u64,
    /// Keys and values of all objects, bytes.
    pub state_bytes: u64,
    /// Objects.
    pub objects: u64,
    /// Key of an object's store, bytes, with the name of its collection. A zero byte of a caller's key takes
    /// two here, so that a key of a kibibyte fits whatever is in it.
    pub key_bytes: u64,
    /// Value in an object's store, bytes. The largest argument fits, with what a class keeps beside it.
    pub value_bytes: u64,
    /// Entries that one scan lists.
    pub scan_entries: u64,
    /// Bytes that one scan lists; it stops after the entry that reaches them.
    pub scan_bytes: u64,
    /// Semaphores of one object that are not as a fresh one is.
    pub semaphores_per_object: u64,
    /// Name of a semaphore, bytes.
    pub semaphore_name_bytes: u64,
    /// Greatest count of a semaphore.
    pub semaphore_count: u64,
    /// Waiters of one object.
    pub waiters_per_object: u64,
    /// Owned permits of one object.
    pub permits_per_object: u64,
    /// Timers and watches of one object.
    pub alarms_per_object: u64,
    /// Least time until a timer, a timed wait or a deadline that is set now is due, nanoseconds: what
    /// sets itself again at once costs the cluster a batch each time.
    pub least_delay: u64,
    /// Fuel of what is due in one batch, with a charge of 10,000 for each alarm: some milliseconds. The
    /// rest waits for the next batch, so that commands get their turn.
    pub alarm_fuel: u64,
    /// Faults that an object keeps of its handlers; the oldest make way.
    pub faults_per_object: u64,
    /// Events that a session keeps; the oldest make way, and the client is told of the gap.
    pub events_per_session: u64,
    /// Payload of an event, bytes.
    pub event_bytes: u64,
    /// Sessions.
    pub sessions: u64,
    /// Requests of one session that are open.
    pub requests_per_session: u64,
    /// Replies of one session that are stored until it acknowledges them.
    pub replies_per_session: u64,
    /// Arguments of one call, bytes.
    pub argument_bytes: u64,
    /// Result of one call, bytes. The largest argument fits, with what a class says of it.
    pub reply_bytes: u64,
    /// Line that a method logs, bytes; the rest is cut off.
    pub log_bytes: u64,
    /// Name of a principal, bytes.
    pub principal_bytes: u64,
    /// Longest timeout of a session, nanoseconds.
    pub session_timeout: u64,
    /// Steps from one comparison of the replicas' states to the next, at most 1,000. Each costs a step
    /// for every replica, so it must be far greater than their number.
    pub checkpoint_steps: u64,
    /// Classes.
    pub classes: u64,
    /// Size and shape of a module.
    pub module: ModuleLimits,
}

/// Limits on the size and shape of a module: a bound on what compiling it can cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleLimits {
    /// The module, bytes.
    pub bytes: u64,
    /// Functions.
    pub functions: u64,
    /// Body of one function, bytes.
    pub function_bytes: u64,
    /// Parameters of one function.
    pub parameters: u64,
    /// Locals of one function.
    pub locals: u64,
    /// Globals.
    pub globals: u64,
    /// Elements of a table.
    pub table_elements: u64,
    /// Memory it starts with, pages of 64 KiB.
    pub memory_pages: u64,
    /// Data segments.
    pub data_segments: u64,
    /// Exports.
    pub exports: u64,
    /// Methods, handlers and `init` of its interface.
    pub methods: u64,
    /// Its interface section, bytes.
    pub interface_bytes: u64,
    /// Loops of a function inside of each other: compiling costs more than their product with what
    /// they change. Sources nest a few, inlining some more.
    pub loop_depth: u64,
    /// Sum of the squares of what the compiler has to follow in each function (its operators, and
    /// the locals that may differ where branches meet), and 20,000 for each loop. A unit takes some
    /// nanoseconds, so what is allowed compiles in some seconds; the standard classes need a
    /// hundredth each.
    pub effort: u64,
}

/// One kibibyte.
const KIB: u64 = 1 << 10;
/// One mebibyte.
const MIB: u64 = 1 << 20;
/// Room for what classes put around the arguments of their callers.
const AROUND: u64 = 64 * KIB;

impl Default for Limits {
    fn default() -> Self {
        Self {
            fuel_per_segment: 50_000_000,
            fuel_per_step: 200_000_000,
            fuel_per_cleanup: 10_000_000,
            segments_per_step: 1_000,
            memory_bytes: 4 * MIB,
            journal_bytes: 4 * MIB,
            object_bytes: 64 * MIB,
            state_bytes: 2_048 * MIB,
            objects: 4_000_000,
            key_bytes: 4 * KIB,
            value_bytes: MIB + AROUND,
            scan_entries: 1_000,
            scan_bytes: 256 * KIB,
            semaphores_per_object: 100_000,
            semaphore_name_bytes: 255,
            semaphore_count: 1 << 40,
            waiters_per_object: 2_000_000,
            permits_per_object: 1_000_000,
            alarms_per_object: 100_000,
            least_delay: 1_000_000,
            alarm_fuel: 5_000_000,
            faults_per_object: 16,
            events_per_session: 1_000,
            event_bytes: 64 * KIB,
            sessions: 100_000,
            requests_per_session: 20_000,
            replies_per_session: 20_000,
            argument_bytes: MIB,
            reply_bytes: MIB + AROUND,
            log_bytes: 4 * KIB,
            principal_bytes: 255,
            session_timeout: 24 * 3_600 * 1_000_000_000,
            checkpoint_steps: 1_000,
            classes: 10_000,
            module: ModuleLimits::default(),
        }
    }
}

impl Default for ModuleLimits {
    fn default() -> Self {
        Self {
            bytes: MIB,
            functions: 10_000,
            function_bytes: 128 * KIB,
            parameters: 64,
            locals: 2_000,
            globals: 1_000,
            table_elements: 10_000,
            memory_pages: 64,
            data_segments: 1_000,
            exports: 1_000,
            methods: 256,
            interface_bytes: 64 * KIB,
            loop_depth: 16,
            effort: 1_000_000_000,
        }
    }
}

/// Whether `value` is within `limit`; the error names the limit.
///
/// # Errors
/// [`LimitExceeded`] when `value` is greater.
pub fn within(name: &str, limit: u64, value: u64) -> Result<(), LimitExceeded> {
    if value <= limit { Ok(()) } else { Err(LimitExceeded::new(name, limit)) }
}
