//! What a method can learn and do beyond its object's state.
//!
//! Everything here is the same on every replica: time is the ordered time of the step, randomness
//! is drawn from the cluster's seed. Sources of the process (clocks, threads, files) do not exist.

use std::{marker::PhantomData, time::Duration};

use gesmas_abi::{
    Malformed, Reader,
    call::Request,
    key::Key,
    value::{Time, Type, Value, nanoseconds, to_bytes},
};

use crate::{failure::MethodError, host};

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl Value for $name {
            const TYPE: Type = Type::U64;

            fn encode(&self, out: &mut Vec<u8>) {
                self.0.encode(out);
            }

            fn encoded_len(&self) -> usize {
                self.0.encoded_len()
            }

            fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
                reader.u64().map(Self)
            }
        }

        impl Key for $name {
            fn encode_key(&self, out: &mut Vec<u8>) {
                self.0.encode_key(out);
            }

            fn decode_key(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
                u64::decode_key(reader).map(Self)
            }
        }
    };
}

identifier!(
    /// A client's session. Never reused.
    Session
);
identifier!(
    /// A timer or watch that has not fired. Never reused.
    Alarm
);
identifier!(
    /// A permit that an invocation or a session owns. Never reused.
    ///
    /// It is only a name: dropping it does nothing, storing it in state is fine, and
    /// [`Semaphore::release`](crate::state::Semaphore::release) gives the permit back.
    Permit
);

/// A handler of a class and the types of its arguments: a constant named like the handler, in
/// capitals.
pub struct Handler<A> {
    name: &'static str,
    arguments: PhantomData<fn(A)>,
}

impl<A> Handler<A> {
    #[doc(hidden)]
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name, arguments: PhantomData }
    }
}

/// A method of a class and the types of its arguments: a constant named like the method, in
/// capitals.
pub struct Method<A> {
    name: &'static str,
    arguments: PhantomData<fn(A)>,
}

/// A method can continue in a handler as it can in a method.
impl<A> From<Handler<A>> for Method<A> {
    fn from(handler: Handler<A>) -> Self {
        Self::new(handler.name)
    }
}

impl<A> Method<A> {
    #[doc(hidden)]
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name, arguments: PhantomData }
    }
}

/// How much a line in the operators' log matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Level {
    /// Something is wrong.
    Error = 1,
    /// Something may be wrong.
    Warning = 2,
    /// Something happened.
    Information = 3,
    /// Something for whoever writes the class.
    Debugging = 4,
}

/// Ordered time. It does not change within a step, never goes back, and is the same on every
/// replica.
#[must_use]
pub fn now() -> Time {
    Time(host::number(&Request::Now))
}

/// A number that clients cannot predict, the same on every replica.
#[must_use]
pub fn random() -> u64 {
    host::number(&Request::Random)
}

/// The caller's session; none in a handler, or in a call on nobody's behalf.
#[must_use]
pub fn session() -> Option<Session> {
    host::ask(&Request::Session, None, |reader| {
        Ok(if reader.flag()? { Some(Session(reader.u64()?)) } else { None })
    })
}

/// Who calls.
#[must_use]
pub fn principal() -> String {
    host::text(&Request::Principal)
}

/// Name of the object within its class.
#[must_use]
pub fn object() -> String {
    host::text(&Request::Object)
}

/// A number greater than every one drawn before, by any object of the partition. A resource that
/// remembers the greatest it has seen can turn away whoever comes late with a smaller one.
#[must_use]
pub fn fencing_token() -> u64 {
    host::number(&Request::Token)
}

/// Writes a line of information to the operators' log.
pub fn log(text: &str) {
    log_at(Level::Information, text);
}

/// Writes a line to the operators' log.
pub fn log_at(level: Level, text: &str) {
    host::tell(&Request::Log { level: level as u8, text });
}

/// Undoes the segment and ends the call with an error of the class. Segments before stand.
pub fn abort<E: MethodError>(error: E) -> ! {
    host::finish(&Request::Abort { payload: &error.into_payload() })
}

/// Starts over in another method, a handler, or the same, with an empty journal, under the same request:
/// for loops that block again and again. What was done stands, and the caller waits on.
///
/// A handler whose work can fail (a limit stands against it, say) first sets a timer that calls it again,
/// and then goes on in another handler that does the work and cancels the timer. Should the work fail, it
/// is undone as a segment of its own, and the timer stands.
///
/// ```
/// use gesmas_sdk::prelude::*;
///
/// /// Counts the hours.
/// #[class]
/// pub struct Clock { hours: Value<u64>, next: Value<Alarm> }
///
/// #[methods]
/// impl Clock {
///     /// Begins to count.
///     pub fn begin(&mut self) -> Result<()> {
///         self.next.set(ctx::after(Duration::from_secs(3_600), Self::STRIKE, ()));
///         Ok(())
///     }
///
///     #[handler]
///     fn strike(&mut self) {
///         self.next.set(ctx::after(Duration::from_secs(30), Self::STRIKE, ()));
///         ctx::continue_with(Self::COUNT, ())
///     }
///
///     #[handler]
///     fn count(&mut self) {
///         self.hours.set(self.hours.get() + 1);
///         let again = ctx::after(Duration::from_secs(3_600), Self::STRIKE, ());
///         if let Some(alarm) = self.next.take() {
///             ctx::cancel(alarm);
///         }
///         self.next.set(again);
///     }
/// }
/// # fn main() {}
/// ```
pub fn continue_with<A: Value>(method: impl Into<Method<A>>, arguments: A) -> ! {
    let arguments = to_bytes(&arguments);
    host::finish(&Request::Continue { method: method.into().name, arguments: &arguments })
}

/// Invokes a handler of this object once when a session is over.
pub fn watch_session<A: Value>(session: Session, handler: Handler<A>, arguments: A) -> Alarm {
    let request =
        Request::WatchSession { session: session.0, handler: handler.name, arguments: &[] };
    Alarm(host::ask_with(&request, arguments, 0, |reader| reader.u64()))
}

/// Invokes a handler of this object once after a while.
pub fn after<A: Value>(duration: Duration, handler: Handler<A>, arguments: A) -> Alarm {
    let duration = nanoseconds(duration);
    let request = Request::After { duration, handler: handler.name, arguments: &[] };
    Alarm(host::ask_with(&request, arguments, 0, |reader| reader.u64()))
}

/// Cancels a timer or watch of this object; false when it has fired or was cancelled before.
pub fn cancel(alarm: Alarm) -> bool {
    host::flag(&Request::CancelAlarm { alarm: alarm.0 })
}

/// Sends an event to a session; false when the session is over.
pub fn notify(session: Session, payload: &[u8]) -> bool {
    host::flag(&Request::Notify { session: session.0, payload })
}

/// A field of the layout before, by its name, in `#[migrate]`: what is taken from it goes into fields
/// of the layout that the class has now.
///
/// ```
/// use gesmas_sdk::prelude::*;
///
/// /// Counts; it had a `Value<u32>` once.
/// #[class]
/// pub struct Visits { total: Value<u64> }
///
/// #[methods]
/// impl Visits {
///     #[migrate]
///     fn migrate(&mut self) {
///         let mut count: Value<u32> = ctx::former("count");
///         self.total.set(count.take().unwrap_or(0).into());
///     }
/// }
/// # fn main() {}
/// ```
#[must_use]
pub fn former<H: crate::state::Handle>(name: &'static str) -> H {
    H::open(name)
}
