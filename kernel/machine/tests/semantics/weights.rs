//! What a command weighs is what its encoding weighs, of every variant and any content.

use gesmas_machine::{
    Acknowledged, AlarmId, Ballot, Batch, ClassName, CodeHash, Command, InvocationId, LogEntry,
    MethodName, ObjectName, OnBehalf, Place, Replace, Request, RequestBody, SessionId, Step, Time,
};

use crate::model::Dice;

/// Variants of commands, and of what a request asks for, in the order of their numbers below.
const COMMANDS: u64 = 9;
const BODIES: u64 = 9;

/// A new variant does not compile without a number here, and is then demanded below.
fn number_of(command: &Command) -> u64 {
    match command {
        Command::OpenSession { .. } => 0,
        Command::CloseSession { .. } => 1,
        Command::ExpireSession { .. } => 2,
        Command::Cancel { .. } => 3,
        Command::Acknowledge { .. } => 4,
        Command::Compiled { .. } => 5,
        Command::Vote { .. } => 6,
        Command::Migrate { .. } => 7,
        Command::Request(request) => COMMANDS - 1 + number_of_body(&request.body),
    }
}

fn number_of_body(body: &RequestBody) -> u64 {
    match body {
        RequestBody::Call { .. } => 0,
        RequestBody::CreateObject { .. } => 1,
        RequestBody::RemoveObject { .. } => 2,
        RequestBody::PutClass { .. } => 3,
        RequestBody::Kill { .. } => 4,
        RequestBody::KillSession { .. } => 5,
        RequestBody::RemoveClass { .. } => 6,
        RequestBody::SetLimit { .. } => 7,
        RequestBody::EndFault { .. } => 8,
    }
}

/// A number of any length in the encoding.
fn number(dice: &mut Dice) -> u64 {
    let bits = dice.below(65);
    if bits == 64 { u64::MAX - dice.below(9) } else { dice.below(1 << bits) }
}

fn text(dice: &mut Dice) -> String {
    let length = if dice.below(6) == 0 { dice.below(70_000) } else { dice.below(300) };
    "x".repeat(usize::try_from(length).expect("it is short"))
}

fn acknowledged(dice: &mut Dice) -> Acknowledged {
    let ranges = if dice.below(3) == 0 { dice.below(1_100) } else { dice.below(4) };
    let replies = (0..ranges).map(|_| (number(dice), number(dice))).collect();
    Acknowledged { replies, events: number(dice) }
}

fn object(dice: &mut Dice) -> ObjectName {
    let name = "n".repeat(1 + dice.below(255) as usize);
    ObjectName::new("Class", &name).expect("it is a name")
}

fn class(dice: &mut Dice) -> ClassName {
    ClassName::new(&"C".repeat(1 + dice.below(64) as usize)).expect("it is a name")
}

fn place(dice: &mut Dice) -> Place {
    Place { session: SessionId(number(dice)), number: number(dice), previous: number(dice) }
}

fn body(dice: &mut Dice, variant: u64) -> RequestBody {
    match variant {
        0 => RequestBody::Call {
            object: object(dice),
            method: MethodName::new(&"m".repeat(1 + dice.below(64) as usize)).expect("a name"),
            signature: number(dice),
            arguments: text(dice).into_bytes(),
            on_behalf: match dice.below(3) {
                0 => OnBehalf::Requester,
                1 => OnBehalf::Nobody,
                _ => OnBehalf::Session(SessionId(number(dice))),
            },
        },
        1 => RequestBody::CreateObject {
            object: object(dice),
            signature: number(dice),
            arguments: text(dice).into_bytes(),
        },
        2 => RequestBody::RemoveObject { object: object(dice) },
        3 => RequestBody::PutClass {
            class: class(dice),
            module: text(dice).into_bytes(),
            replace: (dice.below(2) == 0).then(|| Replace { cancel_pinned: dice.below(2) == 0 }),
        },
        4 => RequestBody::Kill { invocation: InvocationId(number(dice)) },
        5 => RequestBody::KillSession { session: SessionId(number(dice)) },
        6 => RequestBody::RemoveClass { class: class(dice) },
        7 => RequestBody::SetLimit { name: text(dice), value: number(dice) },
        _ => RequestBody::EndFault {
            object: object(dice),
            fault: AlarmId(number(dice)),
            retry: dice.below(2) == 0,
        },
    }
}

fn command(dice: &mut Dice, variant: u64) -> Command {
    let code = CodeHash::of(&number(dice).to_le_bytes());
    match variant {
        0 => Command::OpenSession {
            nonce: u128::from(number(dice)) << 64 | u128::from(number(dice)),
            principal: text(dice),
            timeout: number(dice),
        },
        1 => Command::CloseSession { session: SessionId(number(dice)) },
        2 => Command::ExpireSession { session: SessionId(number(dice)) },
        3 => Command::Cancel { place: place(dice), acknowledged: acknowledged(dice) },
        4 => Command::Acknowledge {
            session: SessionId(number(dice)),
            acknowledged: acknowledged(dice),
        },
        5 => Command::Compiled {
            replica: number(dice),
            code,
            failure: (dice.below(2) == 0).then(|| text(dice)),
        },
        6 => Command::Vote {
            replica: number(dice),
            step: Step(number(dice)),
            hash: Default::default(),
        },
        7 => Command::Migrate { object: object(dice) },
        other => Command::Request(Request {
            place: place(dice),
            acknowledged: acknowledged(dice),
            time_left: (dice.below(2) == 0).then(|| number(dice)),
            body: body(dice, other - (COMMANDS - 1)),
        }),
    }
}

fn entry_bytes(dice: &mut Dice, commands: Vec<Command>) -> usize {
    let ballot = Ballot {
        configuration: u32::MAX,
        number: u32::MAX,
        priority: u32::MAX,
        replica: number(dice),
    };
    LogEntry::Batch(Batch { ballot, stamp: Time(number(dice)), commands }).encode().len()
}

#[test]
fn a_command_weighs_what_its_encoding_weighs() {
    for seed in 0..400 {
        let mut dice = Dice(seed);
        for variant in 0..COMMANDS - 1 + BODIES {
            let one = command(&mut dice, variant);
            assert_eq!(number_of(&one), variant, "every variant is drawn");
            let weight = one.encoded_bytes();
            // An entry has nothing besides its commands that depends on them, but their number.
            let ballot = Ballot::default();
            let batch = |commands| Batch { ballot, stamp: Time(0), commands };
            let empty = LogEntry::Batch(batch(Vec::new())).encode().len();
            let full = LogEntry::Batch(batch(vec![one.clone(), one.clone(), one])).encode().len();
            assert_eq!(full - empty, 3 * weight, "variant {variant} of seed {seed}");
        }
    }
}

#[test]
fn a_batch_has_little_besides_its_commands() {
    for seed in 0..200 {
        let mut dice = Dice(seed);
        let number = if dice.below(4) == 0 { dice.below(400) } else { dice.below(4) };
        let commands: Vec<_> = (0..number)
            .map(|_| {
                let variant = dice.below(COMMANDS - 1 + BODIES);
                command(&mut dice, variant)
            })
            .collect();
        let weight: usize = commands.iter().map(Command::encoded_bytes).sum();
        let bytes = entry_bytes(&mut dice, commands);
        // `server/src/replica` leaves 128 bytes for it.
        assert!((weight..=weight + 64).contains(&bytes), "{bytes} for {weight}, seed {seed}");
    }
}
