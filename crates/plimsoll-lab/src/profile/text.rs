//! A profile as text: threads, then functions.

use std::cmp::Reverse;
use std::fmt::Write as _;

use plimsoll_model::{counted, grouped, share_percentage};

use super::{FunctionShare, Nameless, Origin, Profile, ProfileKind};

/// The order in which functions are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FunctionOrder {
    /// By the time that was spent in each itself.
    #[default]
    Own,
    /// By the time in each and in what it called.
    Total,
}

/// Lines for a terminal.
///
/// - `most`: functions that are shown at most.
/// - `width`: columns that there are.
pub fn table(profile: &Profile, order: FunctionOrder, most: usize, width: usize) -> String {
    let all = profile.samples();
    let seconds = profile.duration.as_secs_f64();
    let mut text = match profile.kind {
        ProfileKind::Cpu => format!(
            "{} samples in {seconds:.1} s, taken at {} Hz of CPU time per thread\n",
            grouped(all as f64),
            profile.frequency,
        ),
        ProfileKind::OffCpu => format!(
            "{} of waiting in {seconds:.1} s, by all threads together; waits for a core are not counted\n",
            waited(all),
        ),
    };
    if profile.lost > 0 {
        let lost = grouped(profile.lost as f64);
        let remedy = match profile.kind {
            ProfileKind::Cpu => "lower the frequency (-F)",
            ProfileKind::OffCpu => "--call-graph fp takes less room",
        };
        writeln!(
            text,
            "{lost} samples were lost because the machine was too busy; {remedy}"
        )
        .expect(IN_MEMORY);
    }
    if profile.unwatched > 0 {
        let threads = profile.unwatched;
        let reason = profile
            .refusal
            .as_deref()
            .unwrap_or("the reason is not known");
        let threads = counted(threads as u64, "thread");
        writeln!(text, "{threads} could not be sampled: {reason}").expect(IN_MEMORY);
    }
    if !profile.has_kernel {
        let reason = profile
            .no_kernel
            .as_deref()
            .unwrap_or("the system does not permit it");
        writeln!(text, "kernel functions are missing: {reason}").expect(IN_MEMORY);
    }
    for (pid, reason) in &profile.no_python {
        writeln!(
            text,
            "functions in Python of process {pid} have no names: {reason}"
        )
        .expect(IN_MEMORY);
    }
    if all == 0 {
        text.push_str(match profile.kind {
            ProfileKind::Cpu => "no CPU time was used: an idle process has no profile\n",
            ProfileKind::OffCpu => {
                "no wait began: threads that wait all the time, or never, have no profile\n"
            }
        });
        return text;
    }
    for nameless in profile.nameless() {
        if nameless.samples * NAMELESS_PART >= all {
            let share = share(nameless.samples, all);
            writeln!(text, "{share} {}", without_names(&nameless)).expect(IN_MEMORY);
        }
    }
    let unit = match profile.kind {
        ProfileKind::Cpu => "samples",
        ProfileKind::OffCpu => " waited",
    };
    writeln!(
        text,
        "\nthreads         {unit}        of all  process   thread"
    )
    .expect(IN_MEMORY);
    for thread in profile.threads() {
        writeln!(
            text,
            "  {:<13} {:>7}  {:>12}  {:>7}  {:>7}",
            clipped(&thread.name, 13),
            match profile.kind {
                ProfileKind::Cpu => thread.samples.to_string(),
                ProfileKind::OffCpu => waited(thread.samples),
            },
            share(thread.samples, all),
            thread.pid,
            thread.tid,
        )
        .expect(IN_MEMORY);
    }
    writeln!(text, "\n{:>SHARE$}  {:>SHARE$}  function", "own", "total").expect(IN_MEMORY);
    let mut functions = profile.functions();
    if order == FunctionOrder::Total {
        // They are sorted by their own time; where totals are equal, they stay so.
        functions.sort_by_key(|function| Reverse(function.total));
    }
    for function in functions.iter().take(most) {
        writeln!(
            text,
            "{:>SHARE$}  {:>SHARE$}  {}",
            share(function.own, all),
            share(function.total, all),
            clipped(&name(function), width.saturating_sub(2 * SHARE + 4)),
        )
        .expect(IN_MEMORY);
    }
    text
}

/// Samples of an off-CPU profile as time.
fn waited(micros: u64) -> String {
    plimsoll_model::Unit::Microseconds.show(micros as f64)
}

/// Code without names is mentioned if at least one in so many samples is in it.
const NAMELESS_PART: u64 = 20;

/// The parts without names, and how to get them.
fn without_names(nameless: &Nameless) -> String {
    let Nameless {
        name, program, pid, ..
    } = nameless;
    if name != "[unknown]" {
        let file = name.trim_matches(['[', ']']);
        return format!(
            "of the samples are in {file}, which has no symbols: install its debug symbols, or build it \
             without stripping"
        );
    }
    let how = match program.as_str() {
        "java" => format!(
            "start Java with -XX:+PreserveFramePointer, and run `jcmd {pid} Compiler.perfmap` before the \
             profile ends (JDK 17 and later)"
        ),
        "node" | "nodejs" => {
            "start Node with --perf-basic-prof --interpreted-frames-native-stack".to_owned()
        }
        program if program.starts_with("python") => {
            "start Python 3.12 or later with -X perf, or install py-spy".to_owned()
        }
        _ => format!("have its runtime write /tmp/perf-{pid}.map, the perf map"),
    };
    format!("of the samples are in code that was compiled at run time, without names: {how}")
}

fn name(function: &FunctionShare) -> String {
    match function.frame.origin {
        Origin::User => function.frame.name.clone(),
        Origin::Kernel => format!("{} [kernel]", function.frame.name),
    }
}

/// Columns of a share: `> 99.99 %`.
const SHARE: usize = 9;

fn share(part: u64, all: u64) -> String {
    share_percentage(part as f64 / all as f64)
}

/// A long name keeps its beginning: behind it are files, lines and types.
fn clipped(name: &str, width: usize) -> String {
    if name.chars().count() <= width {
        return name.to_owned();
    }
    let start: String = name.chars().take(width.saturating_sub(1)).collect();
    format!("{start}…")
}

const IN_MEMORY: &str = "writing to memory does not fail";

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::profile::Frame;
    use crate::profile::result::Thread;

    #[test]
    fn long_names_keep_their_beginning() {
        assert_eq!(clipped("abcdef", 6), "abcdef");
        assert_eq!(clipped("abcdefg", 6), "abcde…");
        assert_eq!(clipped("äöüß", 3), "äö…");
    }

    #[test]
    fn functions_are_sorted_by_what_they_spend_or_by_their_total() {
        let frame = |name: &str| {
            Rc::new(Frame {
                name: name.to_owned(),
                origin: Origin::User,
            })
        };
        let (main, work, wait) = (frame("main"), frame("work"), frame("wait"));
        let stacks = [
            (vec![Rc::clone(&main), work], 60),
            (vec![Rc::clone(&main), wait], 30),
            (vec![main], 10),
        ];
        let thread = Thread {
            name: "server".to_owned(),
            stacks: stacks.into_iter().collect(),
        };
        let profile = Profile {
            has_kernel: true,
            threads: [((1, 1), thread)].into(),
            ..Profile::default()
        };
        let listed = |order| {
            let text = table(&profile, order, 10, 80);
            let (_, functions) = text.split_once("function\n").unwrap();
            let names = functions
                .lines()
                .filter_map(|line| line.split_whitespace().last());
            names.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(listed(FunctionOrder::Own), ["work", "wait", "main"]);
        assert_eq!(listed(FunctionOrder::Total), ["main", "work", "wait"]);
    }

    /// A process whose samples lie in functions of these names.
    fn profile(program: &str, functions: &[(&str, u64)]) -> Profile {
        let thread = |tid: u32| {
            let stacks = functions.iter().map(|(name, count)| {
                let frame = Frame {
                    name: (*name).to_owned(),
                    origin: Origin::User,
                };
                (vec![Rc::new(frame)], *count)
            });
            let thread = Thread {
                name: program.to_owned(),
                stacks: stacks.collect(),
            };
            ((4711, tid), thread)
        };
        Profile {
            has_kernel: true,
            programs: [(4711, program.to_owned())].into(),
            threads: [thread(4711), thread(4712)].into(),
            ..Profile::default()
        }
    }

    #[test]
    fn code_without_names_says_how_to_get_them() {
        for (program, function, expected) in [
            ("java", "[unknown]", "jcmd 4711 Compiler.perfmap"),
            ("node", "[unknown]", "--perf-basic-prof"),
            ("luajit", "[unknown]", "/tmp/perf-4711.map"),
            ("server", "[libssl.so.3]", "debug symbols"),
        ] {
            let text = table(
                &profile(program, &[(function, 40), ("work", 60)]),
                FunctionOrder::Own,
                10,
                80,
            );
            assert!(text.contains("40.0 % of the samples"), "{text}");
            assert!(text.contains(expected), "{text}");
        }
        let text = table(
            &profile("node", &[("[unknown]", 1), ("work", 99)]),
            FunctionOrder::Own,
            10,
            80,
        );
        assert!(!text.contains("without names"), "{text}");
    }

    #[test]
    fn a_share_is_not_rounded_to_all_or_nothing() {
        let profile = profile("server", &[("work", 1_999), ("rare", 1)]);
        let text = table(&profile, FunctionOrder::Own, 10, 80);
        for row in ["  99.95 %    99.95 %  work", "   0.05 %     0.05 %  rare"] {
            assert!(text.lines().any(|line| line == row), "{text}");
        }
        assert!(text.contains("        50.0 %     4711"), "{text}");
    }

    #[test]
    fn threads_of_one_name_are_distinguished() {
        let text = table(&profile("java", &[("work", 1)]), FunctionOrder::Own, 10, 80);
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| line.contains(" java "))
            .collect();
        assert!(
            lines[0].ends_with("4711     4711") || lines[0].ends_with("4711     4712"),
            "{text}"
        );
        assert_ne!(lines[0], lines[1]);
    }

    #[test]
    fn what_could_not_be_watched_has_its_reason() {
        let profile = Profile {
            unwatched: 3,
            refusal: Some("no memory; raise `ulimit -l`".to_owned()),
            no_kernel: Some("kernel.perf_event_paranoid is 2".to_owned()),
            ..Profile::default()
        };
        let text = table(&profile, FunctionOrder::Own, 10, 80);
        assert!(
            text.contains("3 threads could not be sampled: no memory; raise"),
            "{text}"
        );
        assert!(
            text.contains("kernel functions are missing: kernel.perf_event_paranoid is 2"),
            "{text}"
        );
    }

    #[test]
    fn an_idle_process_is_reported() {
        assert!(
            table(&Profile::default(), FunctionOrder::Own, 10, 80).contains("no CPU time was used")
        );
    }
}
