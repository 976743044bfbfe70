//! The native engine: classes compiled into this program, run as coroutines on pooled stacks.
//!
//! It serves tests of classes, simulations, and servers that embed classes they trust: a native
//! body that loops for ever, overflows its stack or corrupts memory takes the process with it.
//! A class is named by the text `native/NAME/VERSION`, which stands for its module: the hash of
//! that text is its code's hash, and only a binary that embeds the class can run it.
//! Fuel: the charges of host calls alone, since native instructions are not counted.
//! Never is wasmtime called on a stack of this engine: its activations must nest per thread, and
//! coroutines interleave.

mod engine;
mod line;

pub use self::engine::{NativeEngine, native_module};
