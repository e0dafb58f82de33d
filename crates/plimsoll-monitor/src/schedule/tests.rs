use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[expect(clippy::disallowed_methods, reason = "any moment will do")]
fn start() -> Instant {
    Instant::now()
}

fn every(interval: Duration) -> Timing {
    Timing {
        interval,
        jitter: 0.0,
        catch_up: CatchUp::Once,
    }
}

#[test]
fn checks_come_at_their_interval_and_do_not_drift() {
    let start = start();
    let mut scheduler = Scheduler::new(1);
    scheduler.set("a", every(10 * SECOND), Duration::ZERO, start);
    let mut starts = Vec::new();
    let mut now = start;
    for _ in 0..6 {
        now = scheduler.next_wake().unwrap();
        // Each wake-up is late by a little.
        now += Duration::from_millis(7);
        starts.push(scheduler.pop(now).unwrap().intended);
        assert_eq!(scheduler.pop(now), None);
    }
    assert_eq!(starts[0], start);
    let first_step = starts[1] - starts[0];
    assert!(
        first_step >= 5 * SECOND && first_step <= 10 * SECOND,
        "{first_step:?}"
    );
    for pair in starts[1..].windows(2) {
        assert_eq!(pair[1] - pair[0], 10 * SECOND);
    }
    assert!(now > start);
}

#[test]
fn missed_starts_are_counted_and_made_up_for_once() {
    let start = start();
    let mut scheduler = Scheduler::new(1);
    scheduler.set(1, every(SECOND), Duration::ZERO, start);
    scheduler.pop(start).unwrap();
    let second = scheduler.next_wake().unwrap();
    // The machine slept for half a minute.
    let woken = second + 30 * SECOND + SECOND / 2;
    let due = scheduler.pop(woken).unwrap();
    assert_eq!((due.missed, due.intended), (30, second + 30 * SECOND));
    assert_eq!(scheduler.pop(woken), None);
    assert_eq!(scheduler.next_wake(), Some(second + 31 * SECOND));

    let skipping = Timing {
        catch_up: CatchUp::Skip,
        ..every(SECOND)
    };
    scheduler.set(1, skipping, Duration::ZERO, woken);
    assert_eq!(scheduler.pop(woken + 10 * SECOND), None);
    assert!(scheduler.next_wake().unwrap() > woken + 10 * SECOND);
}

#[test]
fn a_change_applies_to_one_monitor_and_keeps_the_due_time_of_equal_intervals() {
    let start = start();
    let mut scheduler = Scheduler::new(1);
    for key in 0..3 {
        scheduler.set(key, every(60 * SECOND), Duration::ZERO, start);
        scheduler.pop(start).unwrap();
    }
    let before = scheduler.next_wake();
    scheduler.set(0, every(60 * SECOND), Duration::ZERO, start + SECOND);
    assert_eq!(scheduler.next_wake(), before, "nothing changed");
    scheduler.set(1, every(SECOND), Duration::ZERO, start + SECOND);
    assert_eq!(scheduler.pop(start + SECOND).unwrap().key, 1);
    assert!(scheduler.remove(&2));
    assert!(!scheduler.remove(&2));
    let mut seen = HashMap::new();
    let end = start + 200 * SECOND;
    while let Some(now) = scheduler.next_wake().filter(|now| *now < end) {
        *seen.entry(scheduler.pop(now).unwrap().key).or_insert(0) += 1;
    }
    assert_eq!(seen.get(&2), None);
    assert!((3..=4).contains(&seen[&0]), "{seen:?}");
    assert!(seen[&1] >= 195, "{seen:?}");
}

#[test]
fn twenty_thousand_checks_a_minute_are_spread_evenly() {
    let start = start();
    let mut scheduler = Scheduler::new(7);
    for key in 0..20_000_u32 {
        let timing = Timing {
            jitter: 0.1,
            ..every(60 * SECOND)
        };
        scheduler.set(key, timing, 30 * SECOND, start);
    }
    let mut per_second = vec![0_u32; 300];
    let end = start + 300 * SECOND;
    while let Some(now) = scheduler.next_wake().filter(|now| *now < end) {
        scheduler.pop(now).unwrap();
        per_second[usize::try_from((now - start).as_secs()).unwrap()] += 1;
    }
    let total: u32 = per_second.iter().sum();
    assert!((95_000..=111_000).contains(&total), "{total}");
    let busiest = per_second[60..].iter().max().unwrap();
    assert!(*busiest < 1_100, "{busiest} in one second");
}

#[test]
fn the_same_seed_gives_the_same_starts() {
    let start = start();
    let run = |seed| {
        let mut scheduler = Scheduler::new(seed);
        let timing = Timing {
            jitter: 0.5,
            ..every(10 * SECOND)
        };
        for key in 0..10 {
            scheduler.set(key, timing, 10 * SECOND, start);
        }
        let mut trace = Vec::new();
        for _ in 0..100 {
            let now = scheduler.next_wake().unwrap();
            trace.push((scheduler.pop(now).unwrap().key, now - start));
        }
        trace
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

#[test]
fn a_monitor_that_is_brought_forward_is_due_at_once() {
    let start = start();
    let mut scheduler = Scheduler::new(1);
    scheduler.set(1, every(60 * SECOND), Duration::ZERO, start);
    scheduler.pop(start).unwrap();
    assert_eq!(scheduler.pop(start + SECOND), None);
    assert!(scheduler.bring_forward(1, start + SECOND));
    assert_eq!(scheduler.pop(start + SECOND).unwrap().key, 1);
    assert_eq!(scheduler.pop(start + SECOND), None);
    assert!(!scheduler.bring_forward(2, start));
}

fn limits(concurrency: usize, per_host: usize) -> GateLimits {
    GateLimits {
        concurrency,
        per_host,
        breaker: Some(BreakerRule {
            failures: 2,
            open: 60 * SECOND,
            trials: 1,
            successes: 2,
        }),
    }
}

#[test]
fn each_gate_refuses_and_counts() {
    let now = start();
    let mut gates = Gates::new(limits(3, 2));
    let host: Arc<str> = "a:80".into();
    let first = gates.enter(1, Some(&host), now).unwrap();
    assert_eq!(gates.enter(1, Some(&host), now), Err(DropReason::InFlight));
    let second = gates.enter(2, Some(&host), now).unwrap();
    assert_eq!(gates.enter(3, Some(&host), now), Err(DropReason::HostBusy));
    let third = gates.enter(3, None, now).unwrap();
    assert_eq!(gates.enter(4, None, now), Err(DropReason::Saturated));
    for (pass, connected) in [(first, false), (second, false), (third, true)] {
        gates.leave(pass, connected, 60 * SECOND, now);
    }
    assert_eq!(
        gates.enter(1, Some(&host), now),
        Err(DropReason::BreakerOpen)
    );
    assert_eq!(gates.open_breakers(now), 1);
    for reason in DropReason::ALL {
        assert_eq!(gates.dropped().count(reason), 1, "{reason:?}");
    }
    assert_eq!((gates.dropped().total(), gates.running()), (4, 0));
}

#[test]
fn a_breaker_lets_trials_through_and_closes_after_successes() {
    let now = start();
    let mut gates = Gates::new(limits(10, 10));
    let host: Arc<str> = "a:80".into();
    for key in 0..2 {
        let pass = gates.enter(key, Some(&host), now).unwrap();
        gates.leave(pass, false, 60 * SECOND, now);
    }
    let later = now + 61 * SECOND;
    let trial = gates.enter(1, Some(&host), later).unwrap();
    assert_eq!(
        gates.enter(2, Some(&host), later),
        Err(DropReason::BreakerOpen)
    );
    gates.leave(trial, false, 60 * SECOND, later);
    assert_eq!(
        gates.enter(1, Some(&host), later),
        Err(DropReason::BreakerOpen)
    );
    let later = later + 61 * SECOND;
    for _ in 0..2 {
        let trial = gates.enter(1, Some(&host), later).unwrap();
        gates.leave(trial, true, 60 * SECOND, later);
    }
    let passes: Vec<_> = (0..3)
        .map(|key| gates.enter(key, Some(&host), later).unwrap())
        .collect();
    assert_eq!(passes.len(), 3);
}

#[test]
fn a_breaker_does_not_make_the_checks_of_one_monitor_rarer() {
    let mut now = start();
    let mut gates = Gates::new(limits(10, 10));
    let host: Arc<str> = "a:80".into();
    for _ in 0..10 {
        let pass = gates.enter(1, Some(&host), now).unwrap();
        gates.leave(pass, false, 5 * SECOND, now);
        now += 5 * SECOND;
    }
    assert_eq!(gates.dropped().total(), 0);
}

#[test]
fn ten_thousand_targets_that_time_out_at_once_do_not_hold_up_the_schedule() {
    const COUNT: usize = 10_000;
    const TIMEOUT: Duration = Duration::from_secs(10);

    let begin = start();
    let mut scheduler = Scheduler::new(11);
    let mut gates = Gates::new(GateLimits::default());
    let hosts: Vec<Arc<str>> = (0..COUNT).map(|key| format!("h{key}:443").into()).collect();
    for key in 0..COUNT {
        let timing = Timing {
            jitter: 0.1,
            ..every(60 * SECOND)
        };
        scheduler.set(key, timing, 30 * SECOND, begin);
    }
    // All end after the same time, so they end in the order in which they began.
    let mut running = std::collections::VecDeque::new();
    let (mut started, mut refused) = (vec![0_u32; COUNT], 0_u64);
    let end = begin + 600 * SECOND;
    loop {
        let ends = running.front().map(|(at, _)| *at);
        let due = scheduler.next_wake();
        let Some(now) = ends.into_iter().chain(due).min().filter(|now| *now < end) else {
            break;
        };
        if ends == Some(now) {
            let (_, pass) = running.pop_front().unwrap();
            gates.leave(pass, false, 60 * SECOND, now);
            continue;
        }
        let due = scheduler.pop(now).unwrap();
        assert_eq!(due.missed, 0, "no start is skipped");
        assert!(now - due.intended <= 6 * SECOND, "later than its jitter");
        match gates.enter(due.key, Some(&hosts[due.key]), now) {
            Ok(pass) => {
                started[due.key] += 1;
                running.push_back((now + TIMEOUT, pass));
                assert!(gates.running() <= GateLimits::default().concurrency);
            }
            Err(reason) => {
                refused += 1;
                if reason.is_for_room() {
                    scheduler.put_off(due.key, now);
                }
            }
        }
    }
    assert_eq!(gates.dropped().total(), refused, "each is counted");
    let (least, all) = (
        started.iter().min().unwrap(),
        started.iter().map(|count| u64::from(*count)).sum::<u64>(),
    );
    // Ten rounds; room is for 1,024 at a time, which is six in ten of them. None is left out.
    assert!(all >= 60_000 && *least >= 1, "{all} {refused} {least}");
}
