//! The program `loadtest`.

use std::process::ExitCode;

fn main() -> ExitCode {
    plimsoll::loadtest()
}
