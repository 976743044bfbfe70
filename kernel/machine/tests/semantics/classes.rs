//! How classes come to be callable.

use expect_test::expect;
use gesmas_machine::{
    CodeHash, Limits, LogEntry, Machine, ModuleLimits, Progress, Settings, Time,
    scripted::ScriptedEngine,
};

use crate::{
    lab::{self, Lab},
    standard::{LOCK, PIECES, QUEUE},
};

fn empty() -> Lab {
    let mut genesis = lab::genesis(Limits { classes: 2, ..Limits::default() });
    let reserved = gesmas_machine::ClassName::new("Lock").expect("a name");
    genesis.reserved.insert(reserved, CodeHash::of(LOCK.trim().as_bytes()));
    Lab::empty(&[QUEUE, PIECES, LOCK], genesis)
}

#[test]
fn a_class_is_put_compiled_by_a_majority_and_then_called() {
    let trace = empty().play(
        "
        open ann
        open bob
        ann calls Queue/q consume
        bob creates Queue/q 1
        ",
    );
    expect![[r#"
        > open ann
          ann is session 1
        > open bob
          bob is session 2
        > ann calls Queue/q consume
          ann#1 refused: class Queue is not loaded
        > bob creates Queue/q 1
          bob#1 refused: class Queue is not loaded
    "#]]
    .assert_eq(&trace);
    let trace = empty().play(
        "
        open ann
        open bob
        ann puts Queue
        bob calls Queue/q consume
        replica 1 compiled Queue
        replica 1 compiled Queue
        replica 9 compiled Queue
        replica 3 failed Queue out of memory
        replica 2 compiled Queue
        replica 3 compiled Queue
        ann puts Queue
        ann puts Queue # changed
        bob cancels 1
        ",
    );
    expect![[r#"
        > open ann
          ann is session 1
        > open bob
          bob is session 2
        > ann puts Queue
          compile Queue
        > bob calls Queue/q consume
          bob#1 refused: class Queue is being compiled
        > replica 1 compiled Queue
        > replica 1 compiled Queue
        > replica 9 compiled Queue
        > replica 3 failed Queue out of memory
        > replica 2 compiled Queue
          ann#1 ok 32 bytes
        > replica 3 compiled Queue
        > ann puts Queue
          ann#2 ok 32 bytes
        > ann puts Queue # changed
          ann#3 error: class Queue exists with other code: d4888a092d50f880d1e1d776a12bd7c9e7a2a84df1178d6f14feaf66aad3bacc
        > bob cancels 1
          bob#1 error: the call was cancelled: its caller gave it up
    "#]].assert_eq(&trace);
}

#[test]
fn whoever_puts_the_same_class_while_it_is_compiled_waits_with_the_first() {
    let trace = empty().play(
        "
        open ann
        open bob
        open eve
        ann puts Queue
        bob puts Queue
        eve puts Queue
        bob cancels 1
        expire eve
        replica 2 compiled Queue; replica 3 compiled Queue
        ",
    );
    expect![[r#"
        > open ann
          ann is session 1
        > open bob
          bob is session 2
        > open eve
          eve is session 3
        > ann puts Queue
          compile Queue
        > bob puts Queue
        > eve puts Queue
        > bob cancels 1
          bob#1 error: the call was cancelled: its caller gave it up
        > expire eve
          eve is expired
        > replica 2 compiled Queue; replica 3 compiled Queue
          ann#1 ok 32 bytes
    "#]]
    .assert_eq(&trace);
}

#[test]
fn a_class_that_a_majority_cannot_compile_may_be_put_again() {
    let trace = empty().play(
        "
        open ann
        ann puts Queue
        replica 1 failed Queue too deep
        replica 2 failed Queue too wide
        ann calls Queue/q consume
        replica 3 failed Queue too late
        ann cancels 2
        ann puts Queue
        replica 1 compiled Queue; replica 2 compiled Queue
        ",
    );
    expect![[r#"
        > open ann
          ann is session 1
        > ann puts Queue
          compile Queue
        > replica 1 failed Queue too deep
        > replica 2 failed Queue too wide
          ann#1 error: the module could not be compiled: too deep
        > ann calls Queue/q consume
          ann#2 refused: class Queue is not loaded
        > replica 3 failed Queue too late
        > ann cancels 2
          ann#2 error: the call was cancelled: its caller gave it up
        > ann puts Queue
          compile Queue
        > replica 1 compiled Queue; replica 2 compiled Queue
          ann#3 ok 32 bytes
    "#]]
    .assert_eq(&trace);
}

#[test]
fn standard_names_are_reserved_and_modules_are_inspected() {
    let trace = empty().play(
        "
        open ann
        ann puts Lock # changed
        ann puts Lock
        ann puts Queue init Bad 0
        ann puts Queue class Other
        ann puts Pieces
        ann puts Queue
        ",
    );
    expect![[r#"
        > open ann
          ann is session 1
        > ann puts Lock # changed
          ann#1 error: class Lock exists with other code: 3006ee65fa4204ccc567d0002fde8d47ae00fd96f7593e765a6813b6072a870d
        > ann puts Lock
          compile Lock
        > ann puts Queue init Bad 0
          ann#3 error: the module is refused: it is not a valid WebAssembly module: not a method's name: init Bad 0
        > ann puts Queue class Other
          ann#4 error: the module is refused: its interface names class Other
        > ann puts Pieces
          compile Pieces
        > ann puts Queue
          ann#6 error: limit classes is 2
    "#]].assert_eq(&trace);
}

#[test]
fn a_method_is_called_as_what_it_is() {
    const KINDS: &str = "
class Kinds
init create 0
update write 3
  write a b
read look 0
  read a -> x
  return $x
read writes 0
  write a b
read removes 0
  remove a -> x
read waits 0
  P s
read tries 0
  try s -> x
read draws 0
  token -> x
read rolls 0
  random -> x
read gives 0
  V s
read notifies 0
  notify 1 hello
read watches 0
  watch 1 handle -> x
read continues 0
  continue look
read aborts 0
  abort no
read fails 0
  fail no
read gathers 0
  length d -> a
  at d 0 -> b
  lookup m k -> c
  scan m -> d
  value s -> e
  waiters s -> f
  owners s -> g
  now -> h
  principal -> i
  object -> j
  session -> k
  log not heard
  return $a
handler handle 0
";
    let mut lab = Lab::new(&[KINDS]);
    let trace = lab.play(
        "
        open ann
        read ann Kinds/k look
        ann calls Kinds/k look
        ann calls Kinds/k handle
        ann calls Kinds/k create
        ann calls Kinds/k missing
        ann calls Kinds/k write
        read ann Kinds/k write
        read ann Kinds/k look
        read ann Kinds/k writes
        read ann Kinds/k removes
        read ann Kinds/k waits
        read ann Kinds/k tries
        read ann Kinds/k draws
        read ann Kinds/k rolls
        read ann Kinds/k gives
        read ann Kinds/k notifies
        read ann Kinds/k watches
        read ann Kinds/k continues
        read ann Kinds/k aborts
        read ann Kinds/k fails
        read ann Kinds/k gathers
        read ann Nothing/k look
        ann loses calls Kinds/k write
        read ann Kinds/k look
        ",
    );
    expect![[r#"
        > open ann
          ann is session 2
        > read ann Kinds/k look
          error: the object does not exist, and it is not for this to create it
        > ann calls Kinds/k look
          ann#1 error: look is a read: send it as a read
        > ann calls Kinds/k handle
          ann#2 error: handle is not a method that clients can call
        > ann calls Kinds/k create
          ann#3 error: create is not a method that clients can call
        > ann calls Kinds/k missing
          ann#4 error: class Kinds has no method missing
        > ann calls Kinds/k write
          ann#5 ok
        > read ann Kinds/k write
          error: write is an update: send it as a call
        > read ann Kinds/k look
          ok b
        > read ann Kinds/k writes
          error: the method failed: it may not write in a read
        > read ann Kinds/k removes
          error: the method failed: it may not write in a read
        > read ann Kinds/k waits
          error: the method failed: it may not block in a read
        > read ann Kinds/k tries
          error: the method failed: it may not block in a read
        > read ann Kinds/k draws
          error: the method failed: it may not draw tokens or randomness in a read
        > read ann Kinds/k rolls
          error: the method failed: it may not draw tokens or randomness in a read
        > read ann Kinds/k gives
          error: the method failed: it may not write in a read
        > read ann Kinds/k notifies
          error: the method failed: it may not write in a read
        > read ann Kinds/k watches
          error: the method failed: it may not write in a read
        > read ann Kinds/k continues
          error: the method failed: it may not continue with another method in init, migrate or a read
        > read ann Kinds/k aborts
          aborted: no
        > read ann Kinds/k fails
          failed: no
        > read ann Kinds/k gathers
          ok 0
        > read ann Nothing/k look
          refused: class Nothing is not loaded
        > ann loses calls Kinds/k write
        > read ann Kinds/k look
          refused: it is out of order: the last request admitted is 5
    "#]]
    .assert_eq(&trace);
    // A caller that knows another signature.
    let now = lab.machine().now();
    lab.play("open bob");
    let request = gesmas_machine::Request {
        place: gesmas_machine::Place { session: lab.session("bob"), number: 1, previous: 0 },
        acknowledged: gesmas_machine::Acknowledged::default(),
        time_left: None,
        body: gesmas_machine::RequestBody::Call {
            object: gesmas_machine::ObjectName::new("Kinds", "new").expect("a name"),
            method: gesmas_machine::MethodName::new("write").expect("a name"),
            signature: 77,
            arguments: Vec::new(),
            on_behalf: gesmas_machine::OnBehalf::Requester,
        },
    };
    let effects = lab.batch(now.after(9), vec![gesmas_machine::Command::Request(request)]);
    expect![[r#"
        [
            Reply {
                session: SessionId(
                    3,
                ),
                number: 1,
                position: Position {
                    epoch: 0,
                    step: Step(
                        12,
                    ),
                },
                outcome: Err(
                    ClassMismatch {
                        method: write,
                        have: 3,
                        want: 77,
                    },
                ),
            },
        ]
    "#]]
    .assert_debug_eq(&effects);
    let object = gesmas_machine::ObjectName::new("Kinds", "new").expect("a name");
    assert!(lab.machine().object(&object, 1).is_none(), "a call that is refused creates nothing");
}

#[test]
fn a_replica_pauses_until_it_has_the_code_of_a_class_that_is_ready() {
    let mut lab = empty();
    lab.play("open ann\nann puts Queue\nreplica 1 compiled Queue");
    let code = CodeHash::of(QUEUE.trim().as_bytes());
    let image = lab.machine().encode_image();
    let late = Machine::from_image(&image, ScriptedEngine::new(), Settings::default());
    let mut late = late.expect("a class that is not ready need not be compiled");
    let compiled = gesmas_machine::Command::Compiled { replica: 2, code, failure: None };
    let stamp = late.now().after(1);
    let batch = gesmas_machine::Batch { ballot: lab.ballot, stamp, commands: vec![compiled] };
    late.handle_entry(LogEntry::Batch(batch)).expect("it runs");
    late.handle_entry(LogEntry::Batch(gesmas_machine::Batch {
        ballot: lab.ballot,
        stamp: Time(1_000_000),
        commands: Vec::new(),
    }))
    .expect("it runs");
    assert_eq!(late.waits_for_code(), None, "it does not know yet");
    assert_eq!(late.run(100), Progress::Paused(code));
    assert_eq!(late.run(100), Progress::Paused(code));
    assert_eq!(late.waits_for_code(), Some(code));
    assert_eq!(late.now(), stamp, "nothing goes on while it is paused");
    assert!(late.poll_effect().is_some(), "the step that made the class ready is over");
    late.engine_mut().compile(QUEUE.trim().as_bytes()).expect("a script");
    assert_eq!(late.waits_for_code(), None);
    assert_eq!(late.run(100), Progress::Idle);
    assert_eq!(late.now(), Time(1_000_000));
    let image = late.encode_image();
    let mut loaded = Machine::from_image(&image, ScriptedEngine::new(), Settings::default())
        .expect("an image is sound");
    assert_eq!(loaded.run(1), Progress::Paused(code), "so does one that loads an image");
}

#[test]
fn another_engine_is_refused() {
    #[derive(Debug)]
    struct Other(ScriptedEngine);
    impl gesmas_machine::Engine for Other {
        fn identity(&self) -> gesmas_machine::EngineIdentity {
            gesmas_machine::EngineIdentity { description: "another".into(), hash: [2; 32] }
        }
        fn inspect(
            &self,
            class: &str,
            module: &[u8],
            rules: u32,
            limits: &ModuleLimits,
        ) -> Result<gesmas_machine::ClassInterface, gesmas_machine::ModuleError> {
            self.0.inspect(class, module, rules, limits)
        }
        fn is_compiled(&self, code: CodeHash) -> bool {
            self.0.is_compiled(code)
        }
        fn start(
            &mut self,
            id: gesmas_machine::ActivationId,
            entry: gesmas_machine::Entry<'_>,
            fuel: u64,
        ) -> gesmas_machine::Turn {
            self.0.start(id, entry, fuel)
        }
        fn resume(
            &mut self,
            id: gesmas_machine::ActivationId,
            answer: &gesmas_machine::Answer,
            fuel: u64,
        ) -> gesmas_machine::Turn {
            self.0.resume(id, answer, fuel)
        }
        fn discard(&mut self, id: gesmas_machine::ActivationId) {
            self.0.discard(id);
        }
    }
    let genesis = lab::genesis(Limits::default());
    let mut machine = Machine::new(Other(ScriptedEngine::new()), Settings::default());
    let refused = machine.handle_entry(LogEntry::Genesis(Box::new(genesis)));
    expect!["the group runs state machine version 2 on scripts, version 1, this replica has version 2 on another: run the same release on every replica"].assert_eq(&refused.expect_err("it is another engine").to_string());
    let image = empty().machine().encode_image();
    let refused = Machine::from_image(&image, Other(ScriptedEngine::new()), Settings::default());
    expect!["the image is of another engine or version: scripts, version 1"]
        .assert_eq(&refused.expect_err("it is another engine").to_string());
}
