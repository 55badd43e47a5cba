//! The command `acked`: is what was acknowledged still there?

mod base64url;
mod campaign;
mod cli;
mod exit;
mod mutations;
mod nearest;
mod output;
mod scenario;
mod stopwatch;
mod token;

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(cli::main().code())
}
