//! `gesmas compile-child`: what a replica starts to compile one module within bounds. Not for
//! people: it reads a module from its input and writes machine code to its output.

use crate::failure::{Failure, exit::Exit};

pub(super) fn run() -> Result<(), Failure> {
    gesmas_coroutine::compile_child_main(std::io::stdin().lock(), std::io::stdout().lock())
        .map_err(|error| Failure::new(Exit::Failed, "compile-child", error.to_string()))
}
