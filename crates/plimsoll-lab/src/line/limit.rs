//! What limited the target where its windows broke, as far as it was seen.

use plimsoll_model::{ByteSize, counted, three_figures};
use plimsoll_observe::{LockWaits, MemoryStall};

use super::outcome::{Line, Window};
use super::search::SearchEnd;
use crate::statistics::median;

/// From this share of what there is on, in percent, all of it is taken to be used: a mean never reaches the maximum.
const FULL_PERCENT: f64 = 90.0;

/// Above this share of one core, in percent, more than one thread computes.
const MORE_THAN_ONE: f64 = 108.0;

/// A lock that threads wait for in this share of the samples is held nearly always: it is used up as a core is.
const HELD_SHARE: f64 = 0.8;

/// Processes that wait for memory in this share of the time are slowed down by its limit.
const STALLED_SHARE: f64 = 0.1;

/// The limit in words, if the windows that broke show one.
pub(super) fn limit(line: &Line) -> Option<String> {
    if !matches!(line.found.ended, SearchEnd::Line(_)) {
        return None;
    }
    let broken: Vec<&Window> = line
        .searched()
        .into_iter()
        .filter(|window| !window.seen.held && !window.seen.generator_limited)
        .collect();
    let cores = match line.conditions.pinning.target.len() {
        0 => line.conditions.cores.max(1),
        bound => bound,
    };
    let cpu: Vec<f64> = broken.iter().filter_map(|it| it.cpu_percent).collect();
    let used = median(&cpu);
    // In this order: what is further down may be the consequence of what is further up. A lock that is held by threads that
    // compute looks like one thread.
    memory(&broken)
        .or_else(|| full_files(&broken))
        .or_else(|| all_cores(used?, cores))
        .or_else(|| lock(&broken))
        .or_else(|| one_thread(&broken, used, cores))
        .or_else(|| queue(&broken))
        .or_else(|| connections(line))
        .or_else(|| used.and_then(|used| others(line, used)))
        .or_else(|| used.map(|used| nothing_seen(&broken, used)))
}

fn all_cores(used: f64, cores: usize) -> Option<String> {
    let all = cores as f64 * 100.0;
    (used >= all * FULL_PERCENT / 100.0).then(|| {
        let cores = counted(cores as u64, "core");
        format!("the processor: the target used {used:.0} % of its {cores}")
    })
}

/// The limit of its control group, where most of the windows reached it and waited for it.
fn memory(broken: &[&Window]) -> Option<String> {
    let stalls = broken.iter().filter_map(|window| window.waits.memory);
    // Without a figure of the time, that the limit was reached has to do.
    let is_felt = |stall: &MemoryStall| stall.waited.is_none_or(|share| share >= STALLED_SHARE);
    let stalls: Vec<MemoryStall> = stalls.filter(is_felt).collect();
    let first = stalls.first().filter(|_| stalls.len() * 2 > broken.len())?;
    let waited: Vec<f64> = stalls.iter().filter_map(|stall| stall.waited).collect();
    let waited = median(&waited).map_or_else(String::new, |share| {
        format!(
            ", and its processes waited for memory {:.0} % of the time",
            share * 100.0
        )
    });
    let windows = counted(stalls.len() as u64, "window");
    Some(format!(
        "memory: the target was at the limit of its control group, {}, in {windows} that broke{waited}",
        ByteSize(first.limit_bytes)
    ))
}

/// A lock that was nearly always waited for, in most of the windows.
fn lock(broken: &[&Window]) -> Option<String> {
    let locks = broken.iter().filter_map(|window| window.waits.lock);
    let locks: Vec<LockWaits> = locks.filter(|lock| lock.share >= HELD_SHARE).collect();
    if locks.is_empty() || locks.len() * 2 <= broken.len() {
        return None;
    }
    let middle =
        |value: fn(&LockWaits) -> f64| median(&locks.iter().map(value).collect::<Vec<_>>());
    let (share, threads) = (middle(|lock| lock.share)?, middle(|lock| lock.threads)?);
    Some(format!(
        "a lock: {} threads on average waited for it, off the processor, in {:.0} % of the samples (futex at {:#x}); \
         `plimsoll profile --off-cpu` shows where",
        three_figures(threads),
        share * 100.0,
        locks.last()?.address
    ))
}

/// One thread that used a whole core, while there are more.
fn one_thread(broken: &[&Window], used: Option<f64>, cores: usize) -> Option<String> {
    let busiest = broken
        .iter()
        .filter_map(|window| window.waits.busiest.as_ref());
    let busiest: Vec<_> = busiest.collect();
    let percents: Vec<f64> = busiest.iter().map(|thread| thread.percent).collect();
    if let (Some(percent), Some(thread)) = (median(&percents), busiest.last())
        && percent >= FULL_PERCENT
    {
        return Some(format!(
            "one thread: `{}` used {percent:.0} % of one core, and {cores} are there for the target",
            thread.name
        ));
    }
    let used = used.filter(|used| (FULL_PERCENT..=MORE_THAN_ONE).contains(used))?;
    Some(format!(
        "one thread: the target used {used:.0} % of one core, and {cores} are there for it"
    ))
}

/// A process that had as many files open as it may, in most of the windows.
fn full_files(broken: &[&Window]) -> Option<String> {
    let full: Vec<u64> = broken
        .iter()
        .filter_map(|window| window.waits.full_files)
        .collect();
    let limit = full.first().filter(|_| full.len() * 2 > broken.len())?;
    Some(format!(
        "connections: a process of the target had {limit} files open, as many as it may (`ulimit -n`, `LimitNOFILE`)"
    ))
}

/// A listener's queue without room, in most of the windows. A target that cannot keep up accepts late too, so that what keeps it
/// busy comes first.
fn queue(broken: &[&Window]) -> Option<String> {
    let overflows: Vec<u64> = broken
        .iter()
        .map(|window| window.waits.overflows)
        .filter(|count| *count > 0)
        .collect();
    if overflows.len() * 2 <= broken.len() {
        return None;
    }
    let turned_away = counted(overflows.iter().sum(), "connection");
    Some(format!(
        "connections: the queue of a listener was full for {turned_away} (the backlog of `listen`, and `net.core.somaxconn`)"
    ))
}

fn connections(line: &Line) -> Option<String> {
    let connections = line.found.connections;
    line.found
        .connections_full
        .then(|| format!("connections: all {connections} were in use"))
}

/// Other programs, where they kept all cores of the machine busy before the run: they may have gone on.
fn others(line: &Line, used: f64) -> Option<String> {
    let conditions = &line.conditions;
    let load = conditions.load_before?.one;
    (load >= conditions.cores.max(1) as f64).then(|| {
        format!(
            "not known: the target used {used:.0} % of one core, and other programs may have had the rest: the load average \
             before the run was {load:.2} on {}",
            counted(conditions.cores as u64, "core")
        )
    })
}

fn nothing_seen(broken: &[&Window], used: f64) -> String {
    let looked = broken.iter().any(|window| window.waits.samples > 0);
    let elsewhere = if looked {
        "no lock was waited for all the time, so it waited for something else"
    } else {
        "it waited for something else. Locks were not looked at: that takes the right to trace the target (CAP_SYS_PTRACE)"
    };
    format!("not the processor: the target used {used:.0} % of one core; {elsewhere}")
}

#[cfg(test)]
mod tests {
    use plimsoll_model::LoadAverage;
    use plimsoll_observe::{BusyThread, Waits};

    use super::super::outcome::tests::line_with;
    use super::super::search::Purpose;
    use super::*;

    fn line(cores: usize, broken: impl Fn(&mut Window)) -> Line {
        let mut line = line_with(&[
            (100.0, Purpose::Round, true),
            (200.0, Purpose::Round, false),
            (200.0, Purpose::Round, false),
        ]);
        line.conditions.cores = cores;
        // A window that held does not show the limit.
        for window in line.windows.iter_mut().filter(|window| !window.seen.held) {
            broken(window);
        }
        line
    }

    #[test]
    fn the_limit_is_what_was_used_up_where_windows_broke() {
        for (cpu_percent, connections_full, cores, expected) in [
            (Some(99.0), false, 4, Some("one thread: the target")),
            (Some(390.0), false, 4, Some("the processor: ")),
            (Some(97.0), true, 1, Some("the processor: ")),
            (Some(30.0), true, 4, Some("connections: all 64")),
            (Some(30.0), false, 4, Some("not the processor: ")),
            (None, false, 4, None),
        ] {
            let mut line = line(cores, |window| window.cpu_percent = cpu_percent);
            line.found.connections_full = connections_full;
            let limit = limit(&line);
            match expected {
                None => assert_eq!(limit, None),
                Some(start) => assert!(
                    limit.as_deref().is_some_and(|it| it.starts_with(start)),
                    "{limit:?}"
                ),
            }
        }
    }

    #[test]
    fn on_a_machine_that_others_keep_busy_a_target_that_waits_shows_nothing() {
        let load = |one| {
            let mut line = line(2, |window| window.cpu_percent = Some(36.0));
            line.conditions.load_before = Some(LoadAverage {
                one,
                five: 0.0,
                fifteen: 0.0,
            });
            limit(&line).unwrap()
        };
        assert!(load(1.9).starts_with("not the processor: "));
        let busy = load(8.66);
        assert!(
            busy.starts_with("not known: the target used 36 %"),
            "{busy}"
        );
        assert!(busy.ends_with("8.66 on 2 cores"), "{busy}");
    }

    #[test]
    fn a_lock_a_thread_and_memory_are_named() {
        let lock = |share| LockWaits {
            address: 0x7f00,
            share,
            threads: 6.5,
        };
        let thread = |percent| BusyThread {
            name: "node".to_owned(),
            percent,
        };
        let memory = |waited| MemoryStall {
            limit_bytes: 256 << 20,
            reached: 9,
            waited,
        };
        let waits = Waits {
            samples: 80,
            ..Waits::default()
        };
        for (waits, cpu_percent, expected) in [
            (
                Waits {
                    lock: Some(lock(0.97)),
                    busiest: Some(thread(40.0)),
                    ..waits.clone()
                },
                100.0,
                "a lock: 6.50 threads on average waited for it, off the processor, in 97 % of the samples",
            ),
            // Waited for now and then.
            (
                Waits {
                    lock: Some(lock(0.4)),
                    ..waits.clone()
                },
                20.0,
                "not the processor: the target used 20 % of one core; no lock was waited for",
            ),
            (
                Waits {
                    busiest: Some(thread(98.0)),
                    ..waits.clone()
                },
                150.0,
                "one thread: `node` used 98 % of one core, and 4 are there",
            ),
            (
                Waits {
                    memory: Some(memory(Some(0.3))),
                    ..waits.clone()
                },
                30.0,
                "memory: the target was at the limit of its control group, 268 MB, in 2 windows that broke, and its \
                 processes waited for memory 30 % of the time",
            ),
            (
                Waits {
                    memory: Some(memory(Some(0.01))),
                    ..waits.clone()
                },
                30.0,
                "not the processor: ",
            ),
            (
                Waits {
                    full_files: Some(1024),
                    overflows: 7,
                    ..waits.clone()
                },
                100.0,
                "connections: a process of the target had 1024 files open",
            ),
            (
                Waits {
                    overflows: 7,
                    ..waits.clone()
                },
                30.0,
                "connections: the queue of a listener was full for 14 connections",
            ),
            // That one thread was busy comes first.
            (
                Waits {
                    overflows: 7,
                    busiest: Some(thread(98.0)),
                    ..waits.clone()
                },
                98.0,
                "one thread: `node` used 98 %",
            ),
            (
                Waits::default(),
                30.0,
                "not the processor: the target used 30 % of one core; it waited",
            ),
        ] {
            let limit = limit(&line(4, |window| {
                window.cpu_percent = Some(cpu_percent);
                window.waits = waits.clone();
            }));
            let limit = limit.unwrap();
            assert!(limit.starts_with(expected), "{limit}");
        }
    }
}
