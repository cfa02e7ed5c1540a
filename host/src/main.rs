//! The `holdfast` program: server and operator's tool.

use std::process::ExitCode;

fn main() -> ExitCode {
    holdfast::cli::main()
}
