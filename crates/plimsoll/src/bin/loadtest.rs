//! The program `loadtest`: `plimsoll` beside it under another name, so that it is linked only once.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// The exit code of what could not be run.
const COULD_NOT_RUN: u8 = 3;

#[expect(
    clippy::print_stderr,
    reason = "nothing of plimsoll is here to print it"
)]
fn main() -> ExitCode {
    let error = match std::env::current_exe() {
        Ok(own) => Command::new(own.with_file_name("plimsoll"))
            .arg0("loadtest")
            .args(std::env::args_os().skip(1))
            .exec(),
        Err(error) => error,
    };
    eprintln!("loadtest: cannot start `plimsoll`, which must be in the same folder: {error}");
    ExitCode::from(COULD_NOT_RUN)
}
