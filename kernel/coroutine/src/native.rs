//! The native engine: classes compiled into this program, run as coroutines on pooled stacks.
//!
//! It serves tests of classes, simulations, and servers that embed classes they trust. Native
//! classes are trusted as the rest of the program is: a body that loops for ever holds up its
//! replica, one that overflows its stack or corrupts memory takes the process with it.
//! A class is named by the text `native/NAME/VERSION`, which stands for its module: the hash of
//! that text is its code's hash, and only a binary that embeds the class can run it.
//! Fuel: what a module is charged for its activation, its arguments, its host calls and its end,
//! but not its instructions, which are not counted here, nor the second call by which a module
//! fetches a long response.
//! Never is wasmtime called on a stack of this engine: its activations must nest per thread, and
//! coroutines interleave.

mod engine;
mod line;

pub use self::engine::{NativeEngine, native_module};
