//! The program `plimsoll-packed`: of all that `plimsoll` does, it only serves the site in its own file, so it is small.

use std::process::ExitCode;

fn main() -> ExitCode {
    plimsoll::packed_main()
}
