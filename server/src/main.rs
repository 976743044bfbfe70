//! The `gesmas` binary: everything it does is in `cli/`.

use std::process::ExitCode;

fn main() -> ExitCode {
    gesmas::cli::main()
}
