//! `sched_setaffinity(2)`.

use std::fs;
use std::io;

use rustix::process::{Pid, getpid};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::PinError;

pub(super) fn available() -> Vec<usize> {
    sched_getaffinity(Some(getpid()))
        .map(|set| members(&set))
        .unwrap_or_default()
}

pub(super) fn of_process(pid: u32) -> Option<Vec<usize>> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    Some(members(&sched_getaffinity(Some(pid)).ok()?))
}

pub(super) fn pin_thread(cores: &[usize]) -> Result<(), PinError> {
    let set = set_of(cores)?;
    sched_setaffinity(None, &set).map_err(|source| refused("this thread", cores, source.into()))
}

pub(super) fn pin_process(pid: u32, cores: &[usize]) -> Result<(), PinError> {
    let set = set_of(cores)?;
    let what = || format!("process {pid}");
    let threads = fs::read_dir(format!("/proc/{pid}/task"))
        .map_err(|source| refused(&what(), cores, source))?;
    for thread in threads {
        let thread = thread.map_err(|source| refused(&what(), cores, source))?;
        let id = thread
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
            .and_then(Pid::from_raw);
        match sched_setaffinity(id, &set) {
            // The thread ended since the directory was read.
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(source) => return Err(refused(&what(), cores, source.into())),
        }
    }
    Ok(())
}

/// The calling thread, bound elsewhere until this is dropped, so that what it starts meanwhile
/// inherits the binding.
#[derive(Debug)]
pub(crate) struct Rebound {
    before: CpuSet,
}

impl Rebound {
    pub(crate) fn to(cores: &[usize]) -> Result<Self, PinError> {
        let before = sched_getaffinity(None)
            .map_err(|source| refused("this thread", cores, source.into()))?;
        pin_thread(cores)?;
        Ok(Self { before })
    }
}

impl Drop for Rebound {
    fn drop(&mut self) {
        // It was this thread's own set a moment ago; if a core went offline since, staying bound
        // is all that is left.
        sched_setaffinity(None, &self.before).ok();
    }
}

fn members(set: &CpuSet) -> Vec<usize> {
    (0..CpuSet::MAX_CPU)
        .filter(|core| set.is_set(*core))
        .collect()
}

fn set_of(cores: &[usize]) -> Result<CpuSet, PinError> {
    let available = available();
    let mut set = CpuSet::new();
    for core in cores {
        if *core >= CpuSet::MAX_CPU || !available.contains(core) {
            return Err(PinError::Unavailable {
                core: *core,
                available,
            });
        }
        set.set(*core);
    }
    Ok(set)
}

fn refused(what: &str, cores: &[usize], source: io::Error) -> PinError {
    PinError::Refused {
        what: what.to_owned(),
        cores: cores.to_vec(),
        source,
    }
}
