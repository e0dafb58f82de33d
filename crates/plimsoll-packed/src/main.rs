//! The program `plimsoll-packed`: of all that `plimsoll` does, it only serves the site in its own file, so it is small.

use std::process::ExitCode;

/// As in `plimsoll`.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    plimsoll::packed_main()
}
