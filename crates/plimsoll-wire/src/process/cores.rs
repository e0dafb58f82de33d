//! Which cores this process may use, and binding threads and processes to some of them.
//!
//! Only Linux binds; elsewhere [`available`] counts and binding fails with
//! [`PinError::Unsupported`].

#[cfg(target_os = "linux")]
#[path = "cores/linux.rs"]
mod platform;
#[cfg(not(target_os = "linux"))]
#[path = "cores/other.rs"]
mod platform;

use std::io;

pub(crate) use platform::Rebound;

/// Why a thread or a process could not be bound to a core.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The core does not exist, or this process may not use it.
    #[error(
        "core {core} is not available; this process may use {}",
        listed(available)
    )]
    Unavailable {
        /// The requested core.
        core: usize,
        /// The cores that would do.
        available: Vec<usize>,
    },
    /// The system refused.
    #[error("bind {what} to cores {}", listed(cores))]
    Refused {
        /// The thread or process that was to be bound.
        what: String,
        /// The requested cores.
        cores: Vec<usize>,
        /// The error of the system.
        source: io::Error,
    },
    /// This platform does not bind.
    #[error("binding to cores is not supported on this platform")]
    Unsupported,
}

/// Why a text is no list of cores.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CoresError {
    /// Not a number.
    #[error("`{0}` is not a core number")]
    Number(String),
    /// No machine has it.
    #[error("core {0} is out of range")]
    Range(usize),
    /// The first of a range is behind the last.
    #[error("`{0}` goes backwards")]
    Backwards(String),
}

/// The cores of a list: `1`, `0,2`, `0-3` or a mix.
pub fn parse(text: &str) -> Result<Vec<usize>, CoresError> {
    const MOST: usize = 1024;

    let number = |text: &str| {
        let core: usize = text
            .trim()
            .parse()
            .map_err(|_| CoresError::Number(text.to_owned()))?;
        (core < MOST).then_some(core).ok_or(CoresError::Range(core))
    };
    let mut cores = Vec::new();
    for part in text.split(',') {
        match part.split_once('-') {
            None => cores.push(number(part)?),
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                if first > last {
                    return Err(CoresError::Backwards(part.to_owned()));
                }
                cores.extend(first..=last);
            }
        }
    }
    Ok(cores)
}

/// The cores that this process may use, ascending: those its main thread was started with.
///
/// A thread that was bound afterwards does not make the list shorter, unless it is the main thread.
pub fn available() -> Vec<usize> {
    platform::available()
}

/// The cores that the main thread of the process `pid` may use, ascending; `None` if that
/// cannot be read.
pub fn of_process(pid: u32) -> Option<Vec<usize>> {
    platform::of_process(pid)
}

/// Binds the calling thread to `core`; threads and processes that it starts inherit this.
pub fn pin_thread(core: usize) -> Result<(), PinError> {
    platform::pin_thread(&[core])
}

/// Binds every thread that the process `pid` has now to `cores`; later threads inherit it.
pub fn pin_process(pid: u32, cores: &[usize]) -> Result<(), PinError> {
    platform::pin_process(pid, cores)
}

/// `0, 1, 4` or `none`.
fn listed(cores: &[usize]) -> String {
    if cores.is_empty() {
        return "none".to_owned();
    }
    cores
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn cores_are_lists_and_ranges() {
        assert_eq!(parse("1"), Ok(vec![1]));
        assert_eq!(parse("0,2-4"), Ok(vec![0, 2, 3, 4]));
        for text in ["", "a", "3-1", "1-", "-1", "0,,1", "0-99999999"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_bound_thread_leaves_the_process_its_cores() {
        let cores = available();
        assert!(!cores.is_empty());
        let last = *cores.last().unwrap();
        std::thread::spawn(move || {
            pin_thread(last).unwrap();
            let bound = rustix::thread::sched_getaffinity(None).unwrap();
            assert_eq!((bound.count(), bound.is_set(last)), (1, true));
        })
        .join()
        .unwrap();
        assert_eq!(available(), cores);
    }

    #[test]
    fn a_missing_core_is_named_together_with_those_there_are() {
        let error = pin_thread(100_000).unwrap_err().to_string();
        assert!(error.starts_with("core 100000 is not available; this process may use 0"));
    }
}
