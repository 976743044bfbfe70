//! `Echo`: a class that gives back what it is given and fails in every way, for the tests of client
//! libraries.
//!
//! Invariant: every type that an interface can name is in one of its parameters.
//! Not here: blocking, which the standard classes do well enough.

use gesmas_sdk::prelude::*;

/// Gives back what it is given.
#[class]
pub struct Echo {
    mark: Value<u64>,
}

/// All integers.
#[derive(Value)]
pub struct Numbers {
    a: u8,
    b: u16,
    c: u32,
    d: u64,
    e: u128,
    f: i8,
    g: i16,
    h: i32,
    i: i64,
    j: i128,
}

/// What is no number.
#[derive(Value)]
pub struct Plain {
    flag: bool,
    text: String,
    bytes: Bytes,
    four: [u8; 4],
    duration: Duration,
    time: Time,
    nothing: (),
}

/// What has other values in it.
#[derive(Value)]
pub struct Nested {
    option: Option<u32>,
    deep: Option<Option<u32>>,
    list: Vec<Bytes>,
    set: BTreeSet<String>,
    numbers: BTreeSet<u64>,
    tuple: (u8, String),
    by_text: BTreeMap<String, u64>,
    by_number: BTreeMap<u64, String>,
    by_bytes: BTreeMap<Bytes, u8>,
    by_pair: BTreeMap<(u8, bool), Time>,
}

/// A record whose one field has no name.
#[derive(Value)]
pub struct Metres(u64);

/// A record whose fields have no names.
#[derive(Value)]
pub struct Pair(u8, String);

/// A choice of every kind of variant.
#[derive(Value)]
pub enum Shape {
    /// Without fields.
    Dot,
    /// One without a name.
    Circle(Metres),
    /// Several without names.
    Line(Pair, Pair),
    /// With names.
    Box {
        /// One.
        width: u64,
        /// Another, which may be missing.
        height: Option<u64>,
    },
}

/// Why a method fails.
#[error]
pub enum EchoError {
    /// it was asked to
    Asked,
    /// it was asked to, and to say more
    Told {
        /// A number that JSON cannot hold.
        number: u64,
        /// Bytes.
        bytes: Bytes,
    },
    /// the call has no session
    NoSession,
}

#[methods]
impl Echo {
    /// Takes an argument, so that no call creates an object by itself.
    #[init]
    fn init(&mut self, mark: u64) {
        self.mark.set(mark);
    }

    /// The mark.
    #[read]
    pub fn mark(&self) -> Result<u64> {
        Ok(self.mark.get())
    }

    /// Gives back integers.
    #[read]
    pub fn numbers(&self, value: Numbers) -> Result<Numbers> {
        Ok(value)
    }

    /// Gives back what is no number.
    #[read]
    pub fn plain(&self, value: Plain) -> Result<Plain> {
        Ok(value)
    }

    /// Gives back what has other values in it.
    pub fn nested(&mut self, value: Nested) -> Result<Nested> {
        Ok(value)
    }

    /// Gives back choices.
    pub fn shapes(&mut self, value: Vec<Shape>) -> Result<Vec<Shape>> {
        Ok(value)
    }

    /// Gives back a number that may be left out.
    #[read]
    pub fn maybe(&self, number: Option<u64>) -> Result<Option<u64>> {
        Ok(number)
    }

    /// Writes a mark and fails; the mark stands.
    pub fn fail(&mut self, mark: u64) -> Result<(), EchoError> {
        self.mark.set(mark);
        Err(EchoError::Asked)
    }

    /// Fails and says more.
    pub fn tell(&mut self, number: u64, bytes: Bytes) -> Result<(), EchoError> {
        Err(EchoError::Told { number, bytes })
    }

    /// Writes a mark and aborts; the mark is undone.
    pub fn abort(&mut self, mark: u64) -> Result<(), EchoError> {
        self.mark.set(mark);
        ctx::abort(EchoError::Asked)
    }

    /// Writes a mark and panics; the mark is undone.
    pub fn panic(&mut self, mark: u64) -> Result<()> {
        self.mark.set(mark);
        panic!("on purpose")
    }

    /// Sends so many events to the caller's session, numbered from a number in their payload.
    pub fn emit(&mut self, from: u32, count: u32) -> Result<(), EchoError> {
        let session = ctx::session().ok_or(EchoError::NoSession)?;
        for number in from..from + count {
            ctx::notify(session, number.to_string().as_bytes());
        }
        Ok(())
    }
}
