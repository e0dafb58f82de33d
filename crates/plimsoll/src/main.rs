//! The program `plimsoll`.

use std::process::ExitCode;

fn main() -> ExitCode {
    plimsoll::main()
}
