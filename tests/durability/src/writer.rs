//! Writes a log: what several clients of one class do, each command an entry unless said otherwise.
//!
//! The writer remembers the numbers of requests and the replies, so that a script can say who waits
//! and how each call ends; one that is wrong about it is no test of anything and fails.
//! Invariant: a log that is finished leaves nobody waiting, so every call that was suspended ends in
//! it.

use std::collections::{BTreeMap, BTreeSet};

use gesmas_abi::value::{Value, from_bytes, to_bytes};
use gesmas_machine::{
    Acknowledged, Ballot, Batch, CallError, ClassName, CodeHash, Command, Effect, EngineIdentity,
    Genesis, InvocationView, Limits, LogEntry, MethodName, ObjectName, OnBehalf, Outcome, Place,
    Request, RequestBody, STATE_MACHINE_VERSION, SessionId, Time,
};

/// Where a log goes, entry by entry.
pub(crate) trait Log {
    /// The class under test and its module.
    fn class(&self) -> (ClassName, &[u8]);
    /// What runs it.
    fn engine(&self) -> EngineIdentity;
    /// The signature of one of its methods.
    fn signature(&self, method: &str) -> u64;
    /// Applies an entry.
    fn append(&mut self, entry: LogEntry) -> Vec<Effect>;
    /// The calls that are blocked, oldest first.
    fn blocked(&self) -> Vec<InvocationView>;
}

/// The one replica.
const REPLICA: u64 = 1;
/// Silence after which sessions expire, nanoseconds; scripts say when.
const TIMEOUT: u64 = 1_000_000_000;

/// A request that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    session: SessionId,
    number: u64,
}

/// See the file's head.
pub struct Writer<'a> {
    log: &'a mut dyn Log,
    ballot: Ballot,
    now: Time,
    opened: u128,
    /// Requests by session, in the order of their numbers.
    sent: BTreeMap<SessionId, Vec<Request>>,
    replies: BTreeMap<Call, Outcome>,
    called: BTreeSet<String>,
    /// The commands of an entry that is not finished.
    together: Option<Vec<Command>>,
}

impl<'a> Writer<'a> {
    /// Founds the group and loads the class.
    pub(crate) fn begin(log: &'a mut dyn Log, limits: Limits) -> Self {
        let (class, module) = log.class();
        let (code, module) = (CodeHash::of(module), module.to_vec());
        let genesis = Genesis {
            cluster: 7,
            state_machine_version: STATE_MACHINE_VERSION,
            seed: [5; 32],
            replicas: vec![REPLICA],
            engine: log.engine(),
            // Scripts count single nanoseconds.
            limits: Limits { least_delay: 1, ..limits },
            reserved: BTreeMap::from([(class.clone(), code)]),
        };
        let mut writer = Self {
            log,
            ballot: Ballot { configuration: 0, number: 0, priority: 0, replica: REPLICA },
            now: Time(1_000_000),
            opened: 0,
            sent: BTreeMap::new(),
            replies: BTreeMap::new(),
            called: BTreeSet::new(),
            together: None,
        };
        writer.log.append(LogEntry::Genesis(Box::new(genesis)));
        writer.elect();
        let [operator] = writer.open();
        let put =
            writer.request(operator, None, RequestBody::PutClass { class, module, replace: None });
        writer.order(Command::Compiled { replica: REPLICA, code, failure: None });
        assert!(writer.replies[&put].is_ok(), "the class is loaded");
        writer
    }

    /// Checks that nobody waits any more, and gives the methods that were called.
    pub(crate) fn finish(self) -> BTreeSet<String> {
        self.blocked(&[]);
        self.called
    }

    /// Another leader begins, and a batch of the last one comes too late.
    pub fn elect(&mut self) {
        let late = Batch { ballot: self.ballot, stamp: self.now.after(1), commands: Vec::new() };
        self.ballot.number += 1;
        self.log.append(LogEntry::LeaderStart { ballot: self.ballot, now: self.now });
        let effects = self.log.append(LogEntry::Batch(late));
        assert_eq!(effects, [Effect::BatchVoid]);
    }

    /// Opens sessions.
    pub fn open<const N: usize>(&mut self) -> [SessionId; N] {
        [(); N].map(|()| {
            self.opened += 1;
            let (nonce, principal) = (self.opened, format!("client {}", self.opened));
            let effects = self.order(Command::OpenSession { nonce, principal, timeout: TIMEOUT });
            let session = effects.iter().find_map(|effect| match effect {
                Effect::SessionOpened { session, .. } => session.clone().ok(),
                _ => None,
            });
            let session = session.expect("there is room for a session");
            self.sent.insert(session, Vec::new());
            session
        })
    }

    /// Creates an object.
    pub fn create(&mut self, by: SessionId, name: &str, arguments: &impl Value) {
        let (object, signature) = (self.object(name), self.log.signature("init"));
        let arguments = to_bytes(arguments);
        let body = RequestBody::CreateObject { object, signature, arguments };
        let created = self.request(by, None, body);
        assert_eq!(self.replies[&created], Ok(Vec::new()));
    }

    /// Removes an object.
    pub fn remove(&mut self, by: SessionId, name: &str) {
        let object = self.object(name);
        let removed = self.request(by, None, RequestBody::RemoveObject { object });
        assert_eq!(self.replies[&removed], Ok(Vec::new()));
    }

    /// Calls a method.
    pub fn call(
        &mut self,
        by: SessionId,
        name: &str,
        method: &str,
        arguments: &impl Value,
    ) -> Call {
        self.call_with(by, None, name, method, arguments)
    }

    /// Calls a method with a deadline, nanoseconds.
    pub fn call_within(
        &mut self,
        time_left: u64,
        by: SessionId,
        name: &str,
        method: &str,
        arguments: &impl Value,
    ) -> Call {
        self.call_with(by, Some(time_left), name, method, arguments)
    }

    fn call_with(
        &mut self,
        by: SessionId,
        time_left: Option<u64>,
        name: &str,
        method: &str,
        arguments: &impl Value,
    ) -> Call {
        self.called.insert(method.into());
        let body = RequestBody::Call {
            object: self.object(name),
            method: MethodName::new(method).expect("scripts use names"),
            signature: self.log.signature(method),
            arguments: to_bytes(arguments),
            on_behalf: OnBehalf::Requester,
        };
        self.request(by, time_left, body)
    }

    fn object(&self, name: &str) -> ObjectName {
        ObjectName::new(self.log.class().0.as_str(), name).expect("scripts use names")
    }

    fn request(&mut self, by: SessionId, time_left: Option<u64>, body: RequestBody) -> Call {
        let sent = self.sent.get_mut(&by).expect("it is open");
        let number = sent.len() as u64 + 1;
        let place = Place { session: by, number, previous: number - 1 };
        let request = Request { place, acknowledged: Acknowledged::default(), time_left, body };
        sent.push(request.clone());
        self.order(Command::Request(request));
        Call { session: by, number }
    }

    /// The client sends a request again.
    pub fn again(&mut self, call: Call) {
        let request = self.sent(call).clone();
        self.order(Command::Request(request));
    }

    /// The caller gives a call up.
    pub fn cancel(&mut self, call: Call) {
        let place = self.sent(call).place;
        self.order(Command::Cancel { place, acknowledged: Acknowledged::default() });
    }

    /// An operator ends a call that is blocked.
    pub fn kill(&mut self, by: SessionId, call: Call) {
        let request = Some((call.session, call.number));
        let blocked = self.log.blocked().into_iter().find(|view| view.request == request);
        let invocation = blocked.expect("the call is blocked").id;
        self.request(by, None, RequestBody::Kill { invocation });
    }

    /// The client tells that it has all replies of its session up to this one.
    pub fn acknowledge(&mut self, last: Call) {
        let acknowledged = Acknowledged { replies: vec![(1, last.number)], events: 0 };
        self.order(Command::Acknowledge { session: last.session, acknowledged });
    }

    /// The leader has not heard of a session for its timeout.
    pub fn expire(&mut self, session: SessionId) {
        self.order(Command::ExpireSession { session });
    }

    /// A client closes its session.
    pub fn close(&mut self, session: SessionId) {
        self.order(Command::CloseSession { session });
    }

    /// Time passes, nanoseconds.
    pub fn pass(&mut self, nanoseconds: u64) {
        self.append(nanoseconds, Vec::new());
    }

    /// All that `write` does becomes one entry.
    pub fn together<T>(&mut self, write: impl FnOnce(&mut Self) -> T) -> T {
        assert!(self.together.is_none(), "an entry is not part of another");
        self.together = Some(Vec::new());
        let made = write(self);
        let commands = self.together.take().expect("it was just put there");
        self.append(1, commands);
        made
    }

    fn order(&mut self, command: Command) -> Vec<Effect> {
        match &mut self.together {
            Some(commands) => {
                commands.push(command);
                Vec::new()
            }
            None => self.append(1, vec![command]),
        }
    }

    fn append(&mut self, later: u64, commands: Vec<Command>) -> Vec<Effect> {
        self.now = self.now.after(later);
        let batch = Batch { ballot: self.ballot, stamp: self.now, commands };
        let effects = self.log.append(LogEntry::Batch(batch));
        for effect in &effects {
            match effect {
                Effect::Reply { session, number, outcome, .. } => {
                    let call = Call { session: *session, number: *number };
                    let before = self.replies.insert(call, outcome.clone());
                    assert!(before.is_none_or(|before| before == *outcome), "one call, one end");
                }
                Effect::Refused { refusal, .. } => panic!("scripts keep to the order: {refusal}"),
                _ => {}
            }
        }
        effects
    }

    fn sent(&self, call: Call) -> &Request {
        let place = usize::try_from(call.number - 1).expect("numbers are small");
        &self.sent[&call.session][place]
    }

    /// Demands that these calls are blocked and no others. Order: that in which they began.
    pub fn blocked(&self, calls: &[Call]) {
        let view = |view: &InvocationView| {
            let (session, number) = view.request.expect("handlers of these classes do not block");
            Call { session, number }
        };
        let blocked: Vec<_> = self.log.blocked().iter().map(view).collect();
        assert_eq!(blocked, calls, "who is blocked");
    }

    /// What a call returned. It must have.
    pub fn result<T: Value>(&self, call: Call) -> T {
        match self.replies.get(&call) {
            Some(Ok(bytes)) => from_bytes(bytes).expect("it is of this type"),
            other => panic!("{call:?} has not returned: {other:?}"),
        }
    }

    /// Why a call returned nothing. It must have ended so.
    pub fn error(&self, call: Call) -> &CallError {
        match self.replies.get(&call) {
            Some(Err(error)) => error,
            other => panic!("{call:?} has not failed: {other:?}"),
        }
    }

    /// Whether nobody was told how a call ended, because its session was over.
    #[must_use]
    pub fn is_untold(&self, call: Call) -> bool {
        !self.replies.contains_key(&call)
    }
}
