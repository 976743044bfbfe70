//! Tests of classes, for their authors.
//!
//! A [`World`] is one replica's kernel without a network: the machine that orders and runs calls in
//! production, the engine and the validator of production or the native engine, and a clock that
//! moves when the test says so. Tests are written with the class's own stub and as many
//! [`Client`]s as they need:
//!
//! ```no_run
//! use gesmas_testkit::{Class, World, call};
//! # use gesmas_sdk::prelude::*;
//! # /// A gate.
//! # #[class]
//! # pub struct Gate { open: Semaphore }
//! # #[methods]
//! # impl Gate {
//! #     /// Blocks until the gate opens.
//! #     pub fn pass(&mut self) -> Result<()> { self.open.p() }
//! #     /// Lets one pass.
//! #     pub fn open(&mut self) -> Result<()> { self.open.v(); Ok(()) }
//! # }
//!
//! /// The class of this crate, natively and as the module that is shipped.
//! fn class() -> Class {
//!     Class::of_crate(Gate::native(), env!("CARGO_MANIFEST_DIR"))
//! }
//!
//! fn one_call_passes_for_each_opening(world: &mut World) {
//!     let (ann, bob) = (world.client(), world.client());
//!     let (of_ann, of_bob) = (GateStub::new(ann.clone(), "north"), GateStub::new(bob, "north"));
//!     let first = world.start(call!(of_ann.pass()));
//!     assert_eq!(world.blocked(), ["pass at open"]);
//!     world.run(call!(of_bob.open())).expect("it does not block");
//!     first.result().expect("the gate was opened once");
//! }
//!
//! // Two tests of each function: `native::…` and `wasm::…`.
//! gesmas_testkit::on_both_engines!(class(); one_call_passes_for_each_opening);
//! # fn main() {}
//! ```
//!
//! Calls are ordered as they are made, each a step of its own; [`World::shuffle`] draws the order
//! among clients from a seed instead, so that interleavings can be searched and come again.
//! Invariants: equal tests and seeds run equally, whatever the machine does; a world that ends finds
//! its state sound, and nobody but the test made its time pass.
//! Not here: more than one replica, lost messages and crashes, which no class can tell from a call that
//! takes longer. [`World::restart`] shows that blocked calls survive what they must, and
//! [`World::replace`] what becomes of them and of the state when there is a new version of the class.

mod class;
mod client;
mod order;
mod tasks;
mod world;

pub use gesmas_machine::Replace;

pub use crate::{
    class::Class,
    client::{Client, Ended},
    tasks::Pending,
    world::World,
};

/// Runs test functions, `fn name(world: &mut World)`, on both engines: gives a test `native::name` and a
/// test `wasm::name` for each.
///
/// The first argument gives the [`Class`] under test.
#[macro_export]
macro_rules! on_both_engines {
    ($class:expr; $($name:ident),+ $(,)?) => {
        mod native {
            use super::*;

            $(
                #[test]
                fn $name() {
                    super::$name(&mut $crate::World::native(&$class));
                }
            )+
        }

        mod wasm {
            use super::*;

            $(
                #[test]
                fn $name() {
                    super::$name(&mut $crate::World::wasm(&$class));
                }
            )+
        }
    };
}

/// A task that makes one call: `call!(stub.method(arguments))`, for [`World::start`] and its like.
#[macro_export]
macro_rules! call {
    ($stub:ident.$method:ident($($argument:expr),* $(,)?)) => {{
        let stub = $stub.clone();
        async move { stub.$method($($argument),*).await }
    }};
}
