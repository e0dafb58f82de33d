//! The functions of Python programs, which the kernel sees only as the interpreter's own.
//!
//! py-spy, where it is installed, reads the interpreter's stacks from outside while the kernel counts the samples. A
//! thread keeps the number of its samples, which is its processor time; its stacks become those of py-spy, in their
//! proportion. Functions of libraries in C, and of the kernel, are then part of the function in Python that called them.
//!
//! Programs that were started with `-X perf` write a perf map and need none of this.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_wire::process::{Output, Process, ProcessSpec, SpawnError};

use super::result::{Frame, Profile};

/// Stacks per second that py-spy reads: it stops the program for each, which 997 would slow down.
const RATE: u64 = 199;

/// Bytes of folded stacks that are read, the last ones.
const MOST: usize = 16 * 1024 * 1024;

/// Until py-spy has written what it read.
const GRACE: Duration = Duration::from_secs(10);

/// The readers of a profile's Python processes.
pub(super) struct PythonStacks {
    readers: Vec<(u32, Process)>,
    /// Why there are none for a process.
    missing: BTreeMap<u32, String>,
}

impl PythonStacks {
    /// Starts to read the stacks of those of `pids` that run Python.
    pub(super) fn start(pids: impl IntoIterator<Item = u32>) -> Self {
        let mut readers = Vec::new();
        let mut missing = BTreeMap::new();
        for pid in pids.into_iter().filter(|pid| is_nameless_python(*pid)) {
            match reader(pid) {
                Ok(reader) => readers.push((pid, reader)),
                Err(SpawnError::NotFound { .. }) => {
                    missing.insert(pid, NOT_INSTALLED.to_owned());
                }
                Err(error) => {
                    missing.insert(pid, error.to_string());
                }
            }
        }
        Self { readers, missing }
    }

    /// Gives the threads of these processes the names of their functions in Python.
    pub(super) fn name(self, profile: &mut Profile) {
        let mut missing = self.missing;
        for (_, reader) in &self.readers {
            reader.interrupt();
        }
        for (pid, mut reader) in self.readers {
            let ended = reader.wait(GRACE);
            let text = reader.stdout_tail();
            let stacks = parse(&text, text.len() >= MOST);
            if stacks.is_empty() {
                missing.insert(pid, complaint(&reader, ended.is_none()));
                continue;
            }
            for (tid, stacks) in stacks {
                if let Some(thread) = profile.threads.get_mut(&(pid, tid)) {
                    let samples = thread.stacks.values().sum();
                    thread.stacks = in_proportion(stacks, samples);
                }
            }
        }
        profile.no_python = missing;
    }
}

const NOT_INSTALLED: &str =
    "py-spy is not installed (`pip install py-spy`), and the program was not started with -X perf";

/// Whether a process runs Python and does not name its functions itself.
fn is_nameless_python(pid: u32) -> bool {
    let program = fs::read_link(format!("/proc/{pid}/exe"));
    let name = program.ok().and_then(|program| {
        let name = program.file_name()?.to_str()?;
        Some(name.to_owned())
    });
    let is_python = name.is_some_and(|name| {
        let version = name.strip_prefix("python");
        version.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
    });
    is_python && !Path::new(&format!("/proc/{pid}/root/tmp/perf-{pid}.map")).exists()
}

fn reader(pid: u32) -> Result<Process, SpawnError> {
    let (pid, rate) = (pid.to_string(), RATE.to_string());
    let words = ["py-spy", "record", "--pid", &pid, "--rate", &rate];
    let rest = ["--threads", "--function", "--format", "raw"];
    let output = ["--output", "/dev/stdout"];
    Process::spawn(&ProcessSpec {
        argv: [&words[..], &rest, &output]
            .concat()
            .into_iter()
            .map(str::to_owned)
            .collect(),
        stdout: Output::CapturedUpTo(MOST),
        stderr: Output::Captured,
        ..ProcessSpec::default()
    })
}

/// Why py-spy has read nothing.
fn complaint(reader: &Process, is_slow: bool) -> String {
    let stderr = reader.stderr_tail();
    let mut lines = stderr.lines().map(str::trim);
    let error = lines.find(|line| line.starts_with("Error") || line.contains("denied"));
    match error {
        Some(error) => format!("py-spy: {error}"),
        None if is_slow => format!("py-spy does not end within {GRACE:?}"),
        None => "py-spy saw no stack".to_owned(),
    }
}

type Stacks = HashMap<Vec<Rc<Frame>>, u64>;

/// Reads lines of `thread (TID): NAME;outermost;…;innermost COUNT`.
///
/// - `is_cut`: the first line may be the rest of one.
fn parse(text: &str, is_cut: bool) -> HashMap<u32, Stacks> {
    let mut threads: HashMap<u32, Stacks> = HashMap::new();
    let mut names: HashMap<&str, Rc<Frame>> = HashMap::new();
    for line in text.lines().skip(usize::from(is_cut)) {
        let Some((stack, count)) = line.rsplit_once(' ') else {
            continue;
        };
        let Some((thread, frames)) = stack.split_once(';') else {
            continue;
        };
        let tid = thread
            .strip_prefix("thread (")
            .and_then(|rest| rest.split_once(')')?.0.parse().ok());
        let (Some(tid), Ok(count)) = (tid, count.parse::<u64>()) else {
            continue;
        };
        let frames = frames.split(';').map(|name| {
            let frame = names
                .entry(name)
                .or_insert_with(|| Rc::new(Frame::user(name)));
            Rc::clone(frame)
        });
        *threads
            .entry(tid)
            .or_default()
            .entry(frames.collect())
            .or_default() += count;
    }
    threads
}

/// As many samples as `all`, shared out by the largest remainder.
fn in_proportion(stacks: Stacks, all: u64) -> Stacks {
    let read: u64 = stacks.values().sum();
    if read == 0 {
        return Stacks::new();
    }
    let mut shares: Vec<_> = stacks
        .into_iter()
        .map(|(stack, count)| {
            let exact = u128::from(count) * u128::from(all);
            let (whole, rest) = (exact / u128::from(read), exact % u128::from(read));
            (stack, u64::try_from(whole).unwrap_or(u64::MAX), rest)
        })
        .collect();
    let given: u64 = shares.iter().map(|(_, whole, _)| whole).sum();
    shares.sort_by(|(a, _, left), (b, _, right)| right.cmp(left).then_with(|| a.cmp(b)));
    let left = usize::try_from(all.saturating_sub(given)).unwrap_or(usize::MAX);
    for (_, whole, _) in shares.iter_mut().take(left) {
        *whole += 1;
    }
    shares
        .into_iter()
        .filter(|(_, whole, _)| *whole > 0)
        .map(|(stack, whole, _)| (stack, whole))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAW: &str = "thread (12): MainThread;<module> (a.py:1);serve (a.py:4) 3\n\
                       thread (12): MainThread;<module> (a.py:1) 1\n\
                       thread (13): worker;run (threading.py:9) 2\n\
                       something else\n";

    #[test]
    fn stacks_are_read_by_thread() {
        let threads = parse(RAW, false);
        let main: BTreeMap<_, _> = threads[&12]
            .iter()
            .map(|(stack, count)| {
                let names: Vec<_> = stack.iter().map(|frame| frame.name.as_str()).collect();
                (names.join(";"), *count)
            })
            .collect();
        let expected = [
            ("<module> (a.py:1)".to_owned(), 1),
            ("<module> (a.py:1);serve (a.py:4)".to_owned(), 3),
        ];
        assert_eq!(main, BTreeMap::from(expected));
        assert_eq!(threads[&13].values().sum::<u64>(), 2);
        assert_eq!(parse(RAW, true)[&12].len(), 1);
    }

    #[test]
    fn a_thread_keeps_the_number_of_its_samples() {
        for all in [0, 1, 2, 7, 100, 997] {
            let stacks = parse(RAW, false).remove(&12).unwrap();
            let shared = in_proportion(stacks, all);
            assert_eq!(shared.values().sum::<u64>(), all);
            let most = shared.values().max().copied().unwrap_or(0);
            assert!(most >= all * 3 / 4, "{most} of {all}");
        }
    }
}
