//! The program `plimsoll`.

use std::process::ExitCode;

/// musl's own allocator is slow (docs/decisions.md, "Packages are made with musl and mimalloc").
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    plimsoll::main()
}
