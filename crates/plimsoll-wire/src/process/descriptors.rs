//! Limit of open files of this process: each connection is one of them.

use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Behind standard input, output and error.
const FIRST_INHERITED: i32 = 3;

/// `RLIMIT_NOFILE` of this process; an absent limit is `u64::MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescriptorLimit {
    /// The limit in force.
    pub soft: u64,
    /// The highest limit that an unprivileged process may set.
    pub hard: u64,
}

/// More descriptors are needed than the process may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "needs {needed} open files, but the limit is {} (hard limit {}): raise it with `ulimit -n {needed}`, as root \
     beyond the hard limit",
    Limit(limit.soft),
    Limit(limit.hard)
)]
pub struct TooFewDescriptors {
    /// Number needed.
    pub needed: u64,
    /// The limits that hold.
    pub limit: DescriptorLimit,
}

/// The limits that hold now.
pub fn limit() -> DescriptorLimit {
    let limit = getrlimit(Resource::Nofile);
    DescriptorLimit {
        soft: limit.current.unwrap_or(u64::MAX),
        hard: limit.maximum.unwrap_or(u64::MAX),
    }
}

/// Raises the soft limit to the hard one and returns what holds then.
pub fn raise() -> io::Result<DescriptorLimit> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: limit.maximum,
                maximum: limit.maximum,
            },
        )?;
    }
    Ok(self::limit())
}

/// Makes sure that `needed` files can be open at once, raising the soft limit if that helps.
pub fn ensure(needed: u64) -> Result<DescriptorLimit, TooFewDescriptors> {
    let mut limit = limit();
    if limit.soft < needed {
        // A system that will not raise it leaves the limit that the error then names.
        limit = raise().unwrap_or(limit);
    }
    if limit.soft < needed {
        return Err(TooFewDescriptors { needed, limit });
    }
    Ok(limit)
}

/// Most descriptors that are set aside for files.
const MOST_RESERVED: u64 = 1024;

/// How many connections can be open beside what this process has open now, with a reserve for the files that they ask
/// for: half of what is free, and at most 1,024. `None` if there is no limit, or if it is not known what is open.
///
/// - `more`: descriptors that are still to be opened for other things.
pub fn room_for_connections(more: u64) -> Option<u64> {
    let soft = limit().soft;
    let open = std::fs::read_dir("/dev/fd").ok()?.count() as u64;
    (soft < u64::MAX).then(|| room(soft, open + more))
}

fn room(limit: u64, taken: u64) -> u64 {
    let free = limit.saturating_sub(taken);
    // A server without a place for one connection would be of no use.
    (free - (free / 2).min(MOST_RESERVED)).max(1)
}

/// Takes the descriptors that follow the three that every program has, as they are handed over by systemd and its like
/// (`sd_listen_fds(3)`); programs started from here do not get them.
///
/// Must be called once, before the program opens anything: what it takes must have no other owner. Descriptors that are
/// not open are an error.
pub fn inherited(count: usize) -> io::Result<Vec<OwnedFd>> {
    (0..count)
        .map(|number| {
            let number = FIRST_INHERITED + i32::try_from(number).map_err(io::Error::other)?;
            #[expect(unsafe_code, reason = "descriptors are handed over by their number")]
            // SAFETY: it is used only for the next two calls, which fail where it is not open.
            let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
            let flags = fcntl_getfd(descriptor)?;
            fcntl_setfd(descriptor, flags | FdFlags::CLOEXEC)?;
            #[expect(unsafe_code, reason = "descriptors are handed over by their number")]
            // SAFETY: it is open, and the caller makes sure that it has no other owner.
            Ok(unsafe { OwnedFd::from_raw_fd(number) })
        })
        .collect()
}

struct Limit(u64);

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            u64::MAX => f.write_str("none"),
            limit => write!(f, "{limit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_can_be_raised_to_the_hard_one() {
        let before = limit();
        let after = raise().unwrap();
        assert_eq!(after.hard, before.hard);
        assert_eq!(after.soft, after.hard);
        assert_eq!(ensure(3), Ok(after));
    }

    #[test]
    fn files_keep_a_reserve() {
        for (limit, taken, expected) in [
            (64, 24, 20),
            (4_096, 96, 2_976),
            (1_048_576, 76, 1_047_476),
            (16, 24, 1),
        ] {
            assert_eq!(room(limit, taken), expected);
        }
        assert!(room_for_connections(0).is_some_and(|room| room > 0));
    }

    #[test]
    fn the_error_says_which_limit_and_how_to_raise_it() {
        let error = TooFewDescriptors {
            needed: 10_100,
            limit: DescriptorLimit {
                soft: 4_096,
                hard: 4_096,
            },
        };
        assert_eq!(
            error.to_string(),
            "needs 10100 open files, but the limit is 4096 (hard limit 4096): raise it with \
             `ulimit -n 10100`, as root beyond the hard limit"
        );
    }
}
