//! Connections that a server could not take: since it had as many files open as it may, or the queue of a listener was full.
//!
//! Open files are the size of `/proc/PID/fd` (since Linux 6.2), their limit is in `/proc/PID/limits`; `ListenOverflows` in
//! `/proc/PID/net/netstat` counts connections that no queue had room for, in all of a network namespace (proc(5)).

use std::collections::HashMap;
use std::fs;

/// Samples from one look at open files to the next: a full table stays full.
const EVERY: u32 = 10;

/// How close processes come to the limit on open files.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    samples: u32,
    /// By thread; those of a process have one table.
    limits: HashMap<u32, Option<u64>>,
    full: Option<u64>,
}

impl OpenFiles {
    /// Looks at the tables of these threads, now and then.
    pub(super) fn look(&mut self, threads: &[u32]) {
        let is_time = self.samples.is_multiple_of(EVERY);
        self.samples += 1;
        if !is_time || self.full.is_some() {
            return;
        }
        for thread in threads {
            let limit = self.limits.entry(*thread).or_insert_with(|| {
                let limits = fs::read_to_string(format!("/proc/{thread}/limits"));
                most_files(&limits.ok()?)
            });
            let open = fs::metadata(format!("/proc/{thread}/fd"));
            let open = open.map_or(0, |folder| folder.len());
            if let Some(limit) = limit.filter(|limit| open >= *limit) {
                self.full = Some(limit);
            }
        }
    }

    /// The limit that was reached, if one was.
    pub(super) fn full(&self) -> Option<u64> {
        self.full
    }
}

/// The limit that is in force, of the row `Max open files`; `None` without one.
fn most_files(limits: &str) -> Option<u64> {
    let row = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    row.split_whitespace().next()?.parse().ok()
}

/// The queues of listeners in the network namespace of a process.
#[derive(Debug)]
pub(super) struct Listeners {
    pid: u32,
    before: u64,
}

impl Listeners {
    /// `None` where the kernel does not count.
    pub(super) fn find(pid: u32) -> Option<Self> {
        let before = counted(pid)?;
        Some(Self { pid, before })
    }

    /// Connections since then that no queue had room for.
    pub(super) fn overflows(self) -> u64 {
        counted(self.pid).map_or(0, |now| now.saturating_sub(self.before))
    }
}

fn counted(pid: u32) -> Option<u64> {
    let counters = fs::read_to_string(format!("/proc/{pid}/net/netstat")).ok()?;
    overflows(&counters)
}

/// A row of names, and below it one of counts.
fn overflows(counters: &str) -> Option<u64> {
    let mut rows = counters.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, counts) = (rows.next()?, rows.next()?);
    let mut pairs = names.split(' ').zip(counts.split(' '));
    let (_, count) = pairs.find(|(name, _)| *name == "ListenOverflows")?;
    count.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_and_counters_are_read() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
            Max open files            1024                 1048576              files     \n";
        assert_eq!(most_files(limits), Some(1024));
        assert_eq!(
            most_files("Max open files   unlimited   unlimited   files\n"),
            None
        );
        let counters = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 1 23 45\nIpExt: A\nIpExt: 1\n";
        assert_eq!(overflows(counters), Some(23));
        assert_eq!(overflows("TcpExt: A\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_with_as_many_files_as_it_may_have_is_seen() {
        use std::io::{BufRead as _, BufReader};
        use std::process::{Command, Stdio};

        let script = "import os, resource, sys\n\
            resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))\n\
            try:\n    while True: os.dup(0)\nexcept OSError: print('full', flush=True)\n\
            sys.stdin.read()\n";
        let mut child = Command::new("python3")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is installed");
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let mut files = OpenFiles::default();
        files.look(&[child.id()]);
        // Kernels before 6.2 say nothing.
        let is_counted = fs::metadata("/proc/self/fd").unwrap().len() > 0;
        assert_eq!(files.full(), is_counted.then_some(40));
        let mut own = OpenFiles::default();
        own.look(&[std::process::id()]);
        assert_eq!(own.full(), None);
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
