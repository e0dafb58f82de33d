//! Cores that a child process may run on.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Runs `start` while the calling thread is bound to `cores`, so that a process started in it
/// inherits the binding from its first instruction on; no cores means no binding.
///
/// Source: `sched_setaffinity(2)`, "a child created via `fork(2)` inherits its parent's CPU affinity
/// mask. The affinity mask is preserved across an `execve(2)`".
pub(super) fn pinned<T>(cores: &[usize], start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    if cores.is_empty() {
        return start();
    }
    let before = sched_getaffinity(None)?;
    let mut wanted = CpuSet::new();
    for &core in cores {
        if core >= CpuSet::MAX_CPU || !before.is_set(core) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("core {core} is not among those this process may use"),
            ));
        }
        wanted.set(core);
    }
    sched_setaffinity(None, &wanted)?;
    let started = start();
    sched_setaffinity(None, &before)?;
    started
}
