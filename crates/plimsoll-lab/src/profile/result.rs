//! The result of a profile.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::time::Duration;

use super::ProfileKind;

/// Stacks, and how often each was seen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profile {
    /// Duration.
    pub duration: Duration,
    /// What it is of.
    pub kind: ProfileKind,
    /// Samples per second of processor time and thread; of an off-CPU profile a sample is a microsecond of waiting.
    pub frequency: u64,
    /// Whether functions of the kernel are in it.
    pub has_kernel: bool,
    /// Samples that the kernel could not hand over.
    pub lost: u64,
    /// Threads that could not be watched.
    pub unwatched: usize,
    /// Why the first of them could not.
    pub refusal: Option<String>,
    /// Why functions of the kernel are not in it, if they are not and the reason is known.
    pub no_kernel: Option<String>,
    /// Why functions in Python have no names, by process.
    pub no_python: BTreeMap<u32, String>,
    /// The file names of the programs, by process.
    pub programs: BTreeMap<u32, String>,
    /// Threads by process and number.
    pub(super) threads: BTreeMap<(u32, u32), Thread>,
}

/// One thread.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Thread {
    pub(super) name: String,
    /// Counts by stack, the outermost function first.
    pub(super) stacks: HashMap<Vec<Rc<Frame>>, u64>,
}

/// A function in a stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    /// Its demangled name; a file in brackets where no more is known.
    pub name: String,
    /// Whose it is.
    pub origin: Origin,
}

/// Whose a function is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// The program's, or one of its libraries'.
    User,
    /// The kernel's.
    Kernel,
}

/// Share of the samples of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionShare {
    /// The function.
    pub frame: Frame,
    /// Samples in itself.
    pub own: u64,
    /// Samples in itself and in what it called.
    pub total: u64,
}

/// Code without names, and how much of the samples it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nameless {
    /// The file in brackets, or `[unknown]` for code that was made at run time.
    pub name: String,
    /// The program of the process that has most of it.
    pub program: String,
    /// That process.
    pub pid: u32,
    /// Samples in it.
    pub samples: u64,
}

/// Share of the samples of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadShare {
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Its samples.
    pub samples: u64,
}

impl Frame {
    pub(super) fn user(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            origin: Origin::User,
        }
    }
}

impl Profile {
    /// All samples.
    pub fn samples(&self) -> u64 {
        self.stacks().map(|(_, _, count)| count).sum()
    }

    /// Processor time of each sample.
    pub fn time_per_sample(&self) -> Duration {
        Duration::from_secs(1) / u32::try_from(self.frequency.max(1)).unwrap_or(u32::MAX)
    }

    /// Threads that ran at all, the busiest first.
    pub fn threads(&self) -> Vec<ThreadShare> {
        let mut threads: Vec<_> = self
            .threads
            .iter()
            .map(|((pid, tid), thread)| ThreadShare {
                pid: *pid,
                tid: *tid,
                name: thread.name.clone(),
                samples: thread.stacks.values().sum(),
            })
            .filter(|thread| thread.samples > 0)
            .collect();
        threads.sort_by_key(|thread| std::cmp::Reverse(thread.samples));
        threads
    }

    /// Code without names, what has the most samples first.
    pub fn nameless(&self) -> Vec<Nameless> {
        let mut found: BTreeMap<(u32, &str), u64> = BTreeMap::new();
        for ((pid, _), thread) in &self.threads {
            for (stack, count) in &thread.stacks {
                let innermost = stack.last().filter(|frame| {
                    frame.origin == Origin::User
                        && frame.name.starts_with('[')
                        && frame.name.ends_with(']')
                });
                if let Some(frame) = innermost {
                    *found.entry((*pid, &frame.name)).or_default() += count;
                }
            }
        }
        let mut nameless: Vec<_> = found
            .into_iter()
            .map(|((pid, name), samples)| Nameless {
                name: name.to_owned(),
                program: self.programs.get(&pid).cloned().unwrap_or_default(),
                pid,
                samples,
            })
            .collect();
        nameless.sort_by_key(|nameless| std::cmp::Reverse(nameless.samples));
        nameless
    }

    /// Functions, those with the most samples of their own first.
    pub fn functions(&self) -> Vec<FunctionShare> {
        let mut shares: HashMap<&Frame, (u64, u64)> = HashMap::new();
        for (_, stack, count) in self.stacks() {
            if let Some(innermost) = stack.last() {
                shares.entry(innermost).or_default().0 += count;
            }
            // One that calls itself is counted once.
            let distinct: HashSet<&Frame> = stack.iter().map(|frame| &**frame).collect();
            for frame in distinct {
                shares.entry(frame).or_default().1 += count;
            }
        }
        let mut functions: Vec<_> = shares
            .into_iter()
            .map(|(frame, (own, total))| FunctionShare {
                frame: frame.clone(),
                own,
                total,
            })
            .collect();
        functions.sort_by(|a, b| {
            let by_share = (b.own, b.total).cmp(&(a.own, a.total));
            by_share.then_with(|| a.frame.cmp(&b.frame))
        });
        functions
    }

    /// Lines of `thread;outermost;…;innermost count`, sorted: the folded stacks that flame graphs are
    /// drawn from. Functions of the kernel end in `_[k]`.
    pub fn folded(&self) -> String {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for (thread, stack, count) in self.stacks() {
            let mut line = plain(&thread.name);
            for frame in stack {
                line.push(';');
                line.push_str(&plain(&frame.name));
                if frame.origin == Origin::Kernel {
                    line.push_str("_[k]");
                }
            }
            *counts.entry(line).or_default() += count;
        }
        let lines = counts
            .iter()
            .map(|(line, count)| format!("{line} {count}\n"));
        lines.collect()
    }

    fn stacks(&self) -> impl Iterator<Item = (&Thread, &Vec<Rc<Frame>>, u64)> {
        self.threads.values().flat_map(|thread| {
            let stacks = thread.stacks.iter();
            stacks.map(move |(stack, count)| (thread, stack, *count))
        })
    }
}

/// Without the characters that separate frames and lines.
fn plain(name: &str) -> String {
    name.replace(';', ":").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> Profile {
        let stack = |names: &[&str]| -> Vec<Rc<Frame>> {
            names
                .iter()
                .map(|name| Rc::new(Frame::user(name)))
                .collect()
        };
        let mut kernel = stack(&["main"]);
        kernel.push(Rc::new(Frame {
            name: "do_sys_open".to_owned(),
            origin: Origin::Kernel,
        }));
        let thread = |name: &str, stacks: Vec<(Vec<Rc<Frame>>, u64)>| Thread {
            name: name.to_owned(),
            stacks: stacks.into_iter().collect(),
        };
        Profile {
            frequency: 1000,
            threads: BTreeMap::from([
                (
                    (1, 1),
                    thread(
                        "main",
                        vec![(stack(&["main", "work", "work"]), 6), (kernel, 1)],
                    ),
                ),
                ((1, 2), thread("a;b", vec![(stack(&["main", "work"]), 3)])),
                ((1, 3), thread("idle", Vec::new())),
            ]),
            ..Profile::default()
        }
    }

    #[test]
    fn a_function_that_calls_itself_is_counted_once() {
        let functions: Vec<_> = profile()
            .functions()
            .into_iter()
            .map(|function| (function.frame.name, function.own, function.total))
            .collect();
        let expected = [("work", 9, 9), ("do_sys_open", 1, 1), ("main", 0, 10)];
        assert_eq!(
            functions,
            expected.map(|(name, own, total)| (name.to_owned(), own, total))
        );
    }

    #[test]
    fn folded_stacks_name_threads_and_distinguish_the_kernel() {
        let expected = "a:b;main;work 3\nmain;main;do_sys_open_[k] 1\nmain;main;work;work 6\n";
        assert_eq!(profile().folded(), expected);
        assert_eq!(profile().samples(), 10);
    }

    #[test]
    fn threads_that_ran_are_listed_the_busiest_first() {
        let names: Vec<_> = profile()
            .threads()
            .into_iter()
            .map(|thread| thread.tid)
            .collect();
        assert_eq!(names, [1, 2]);
    }
}
