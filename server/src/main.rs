//! The `gesmas` binary: everything it does is in `cli/`.

use std::process::ExitCode;

/// A tenth of the kernel's time went to the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    gesmas::cli::main()
}
