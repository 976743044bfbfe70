//! Exit codes: what a script can tell apart without reading a message.
//!
//! Invariant: the meaning of a code never changes; [`TABLE`] is what users are told about them.

use std::process::ExitCode;

/// How the program ends when it does not end well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The call was made and failed.
    Failed = 1,
    /// The command line, a file or an argument is wrong; nothing was sent.
    Usage = 2,
    /// No replica could be reached, or none that serves.
    Unreachable = 3,
    /// The time was up, or nobody can tell whether the call took effect.
    TimedOut = 4,
    /// What was named does not exist.
    NotFound = 5,
    /// The cluster turned it away: a limit, a rule, a name that is taken.
    Refused = 6,
    /// A replica could not start, or had to stop by itself.
    Stopped = 7,
    /// The user interrupted it.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The table that `gesmas help exit-codes` prints.
pub(crate) const TABLE: &str = "\
What the exit codes of gesmas mean.

    0    Done. For `serve` and `dev`: stopped by a signal, in good order.
    1    The call was made and failed: an error of the class, a trap, a cancellation by an operator,
         an object that was removed meanwhile. For `cluster status`: states have diverged.
    2    The command line, a configuration, a file or an argument is wrong. Nothing was sent.
    3    No replica could be reached, or no leader is known. Nothing took effect.
         For `cluster status`: an endpoint did not answer.
    4    The time was up, or the outcome is unknown: error codes `cancelled` (the call is certain to
         have ended, after its clean-up) and `unknown` (it may or may not have taken effect).
    5    A class, method, object, invocation or session of that name does not exist.
    6    The cluster refused: a limit, a busy server, a name that is taken by something else.
    7    A replica could not start, or had to stop by itself. The message says why; its log more.
  101    A fault of this program. Please report it.
  130    Interrupted. A call that was blocked has been cancelled.

With --json, an error is one line on stderr: {\"error\": {\"code\": …, \"message\": …, \"id\": …}}.
The codes are stable words, finer than the exit codes; the id, if there is one, finds the details in
the server's log.";
