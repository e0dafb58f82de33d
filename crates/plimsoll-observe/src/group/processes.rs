//! What the processes of a group hold, from proc(5).

use std::fs;
use std::path::Path;

use plimsoll_model::Memory;

use crate::machine::Machine;

/// The sum over processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Held {
    pub(super) memory: Memory,
    pub(super) fds: u64,
    pub(super) threads: u64,
    pub(super) processes: u64,
}

/// What `pids` hold; those that have ended meanwhile are left out. Descriptors of a process that may not be read count
/// as none before Linux 6.2.
pub(super) fn held(machine: &Machine, pids: &[u32]) -> Held {
    let mut held = Held::default();
    for pid in pids {
        let process = machine.process(*pid);
        let Some(threads) = threads(&process) else {
            continue;
        };
        held.processes += 1;
        held.threads += threads;
        held.memory = held.memory + memory(&process).unwrap_or_default();
        held.fds += descriptors(&process);
    }
    held
}

/// Open descriptors. Who may not list them learns their number from the size of the folder since Linux 6.2, where it was
/// zero before.
fn descriptors(process: &Path) -> u64 {
    let folder = process.join("fd");
    match fs::read_dir(&folder) {
        Ok(descriptors) => descriptors.count() as u64,
        Err(_) => fs::metadata(&folder).map_or(0, |metadata| metadata.len()),
    }
}

/// The number of threads of a line of `stat`; the name before may have blanks and parentheses in it. `None` of a process
/// that has ended.
fn threads(process: &Path) -> Option<u64> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    let (_, behind) = stat.rsplit_once(')')?;
    let mut fields = behind.split_whitespace();
    let state = fields.next()?;
    let threads = fields.nth(16)?.parse().ok()?;
    (!matches!(state, "Z" | "X" | "x")).then_some(threads)
}

/// Resident pages of `statm`, those of files apart.
fn memory(process: &Path) -> Option<Memory> {
    let statm = fs::read_to_string(process.join("statm")).ok()?;
    let mut pages = statm.split_whitespace().skip(1).map(str::parse::<u64>);
    let (resident, shared) = (pages.next()?.ok()?, pages.next()?.ok()?);
    Some(Memory {
        anonymous_bytes: resident.saturating_sub(shared) * page_bytes(),
        file_bytes: shared * page_bytes(),
    })
}

#[cfg(target_os = "linux")]
fn page_bytes() -> u64 {
    procfs::page_size()
}

#[cfg(not(target_os = "linux"))]
fn page_bytes() -> u64 {
    4096
}
