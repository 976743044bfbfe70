//! Questions of operators that wait for a recent enough state.
//!
//! Invariants: they are bounded in number and in bytes, so that a cluster without a majority collects no
//! heap of them; one whose asker has given up by now is not answered.
//! Not here: the answers (`admin.rs`), and questions that are answered at once.

use std::collections::BTreeMap;

use gesmas_protocol::AdminRequest;

use super::input::ConnectionId;
use crate::replica::ReadId;

/// Most questions that wait.
const QUESTIONS_MAX: usize = 256;
/// Most bytes of them: some modules that are to be tried.
const BYTES_MAX: usize = 64 << 20;
/// How long a question waits, nanoseconds; clients do not wait for longer.
const PATIENCE: u64 = 10_000_000_000;

/// A question, and who is told.
pub(super) struct Question {
    pub(super) connection: ConnectionId,
    pub(super) correlation: u64,
    pub(super) request: AdminRequest,
}

/// See the file's head.
#[derive(Default)]
pub(super) struct Questions {
    /// With the time by which each is dropped, and its length.
    open: BTreeMap<ReadId, (Question, u64, usize)>,
    bytes: usize,
}

impl Questions {
    /// Whether there is room for another.
    pub(super) fn has_room(&self, request: &AdminRequest) -> bool {
        self.open.len() < QUESTIONS_MAX && self.bytes.saturating_add(length(request)) <= BYTES_MAX
    }

    /// One waits from now on.
    pub(super) fn add(&mut self, id: ReadId, question: Question, now: u64) {
        let bytes = length(&question.request);
        self.bytes += bytes;
        self.open.insert(id, (question, now.saturating_add(PATIENCE), bytes));
    }

    /// The state is recent enough for one.
    pub(super) fn take(&mut self, id: ReadId) -> Option<Question> {
        let (question, _, bytes) = self.open.remove(&id)?;
        self.bytes -= bytes;
        Some(question)
    }

    /// Drops those of a connection, and says which they were.
    pub(super) fn forget_of(&mut self, connection: ConnectionId) -> Vec<ReadId> {
        self.drop_if(|question, _| question.connection == connection)
    }

    /// Drops those that nobody waits for any more, and says which they were.
    pub(super) fn expire(&mut self, now: u64) -> Vec<ReadId> {
        self.drop_if(|_, until| until <= now)
    }

    fn drop_if(&mut self, wanted: impl Fn(&Question, u64) -> bool) -> Vec<ReadId> {
        let found = self.open.iter().filter(|(_, (question, until, _))| wanted(question, *until));
        let found: Vec<_> = found.map(|(id, _)| *id).collect();
        for id in &found {
            self.take(*id);
        }
        found
    }
}

/// Bytes that a question holds, about.
fn length(request: &AdminRequest) -> usize {
    match request {
        AdminRequest::TryClass { class, module, .. } => class.len() + module.len(),
        AdminRequest::ShowClass { class } | AdminRequest::GetClass { class } => class.len(),
        AdminRequest::ShowObject { class, object, .. } => class.len() + object.len(),
        AdminRequest::ListObjects { class, after, .. }
        | AdminRequest::ListFaults { class, after, .. } => {
            let after = after.as_ref().map_or(0, |(class, object)| class.len() + object.len());
            class.as_ref().map_or(0, String::len) + after
        }
        AdminRequest::ListInvocations { class, object, .. } => {
            class.as_ref().map_or(0, String::len) + object.as_ref().map_or(0, String::len)
        }
        AdminRequest::ListClasses
        | AdminRequest::ListSessions { .. }
        | AdminRequest::ListLimits
        | AdminRequest::ClusterStatus
        | AdminRequest::Counters
        | AdminRequest::TakeSnapshot
        | AdminRequest::TakeLead
        | AdminRequest::SnapshotPiece { .. } => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(module: usize) -> Question {
        let module = vec![0; module].into();
        let request =
            AdminRequest::TryClass { class: "C".into(), module, replace: Default::default() };
        Question { connection: ConnectionId(7), correlation: 1, request }
    }

    #[test]
    fn there_is_room_for_so_many_and_so_long_questions() {
        let mut questions = Questions::default();
        let long = question(BYTES_MAX - 1);
        assert!(questions.has_room(&long.request));
        questions.add(ReadId(0), long, 0);
        assert!(!questions.has_room(&question(1).request), "the bytes are used up");
        assert!(questions.has_room(&AdminRequest::ListClasses));
        assert!(questions.take(ReadId(0)).is_some());
        for id in 1..=QUESTIONS_MAX as u64 {
            assert!(questions.has_room(&question(1).request));
            questions.add(ReadId(id), question(1), id);
        }
        assert!(!questions.has_room(&AdminRequest::ListClasses), "there are too many");
        assert_eq!(questions.expire(PATIENCE + 1), [ReadId(1)], "its asker has given up");
        assert!(questions.has_room(&AdminRequest::ListClasses));
        assert_eq!(questions.forget_of(ConnectionId(8)), []);
        assert_eq!(questions.forget_of(ConnectionId(7)).len(), QUESTIONS_MAX - 1);
        assert_eq!(questions.bytes, 0);
    }
}
