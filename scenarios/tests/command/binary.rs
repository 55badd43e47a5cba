//! Runs the built binary as a user does.

use std::process::{Command, Output, Stdio};

/// The command with these arguments, in an environment without flags' twins.
pub fn acked(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acked"));
    command.args(arguments).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.stdin(Stdio::null());
    command
}

/// What it wrote, and its exit code.
pub struct Ended {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Ended {
        Ended {
            code: output.status.code().expect("it ends by itself"),
            stdout: String::from_utf8(output.stdout).expect("it writes UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("it writes UTF-8"),
        }
    }
}

pub fn run(arguments: &[&str]) -> Ended {
    acked(arguments).output().expect("the binary starts").into()
}
