//! Random inputs from a seed; invariants hold after each of them.
//!
//! `PLIMSOLL_SEED` repeats one run.

use std::sync::Arc;
use std::time::Duration;

use super::tests::shown;
use super::*;
use crate::detect::status::{Health, Status};
use crate::time::{Moment, Timestamp};

#[derive(Debug, Default)]
struct Seen {
    health: Option<Health>,
    since: i64,
    is_open: bool,
    is_announced: bool,
    is_silent: bool,
    opened: u32,
    resolved: u32,
}

fn random_policy(random: &mut fastrand::Rng) -> DetectPolicy {
    let rules = [
        RegionRule::Any,
        RegionRule::Majority,
        RegionRule::All,
        RegionRule::Count(2),
    ];
    DetectPolicy {
        confirm: random.u32(1..4),
        recover: random.u32(1..4),
        regions: rules[random.usize(..rules.len())],
        hold: Duration::from_secs(random.u64(0..3) * 30),
        flap: random.bool().then(|| FlapRule {
            opens: random.u32(1..4),
            within: Duration::from_mins(10),
            quiet: Duration::from_mins(2),
        }),
        silent_after: Duration::from_secs(random.u64(20..200)),
        reports_no_data: random.bool(),
    }
}

fn random_input(random: &mut fastrand::Rng, at: Timestamp) -> Input {
    match random.u32(..100) {
        0..=69 => Input::Observed {
            region: Arc::from(["a", "b", "c"][random.usize(..3)]),
            status: Status::ALL[random.usize(..4)],
            reason: None,
            at,
        },
        70..=79 => Input::Tick,
        80..=84 => Input::Maintenance(random.bool()),
        85..=89 => Input::ParentDown(random.bool()),
        90..=92 => Input::Acknowledge,
        93..=95 => Input::Resolve,
        _ => Input::Pause(random.bool()),
    }
}

fn hold_invariants(seen: &mut Seen, effects: &[Effect]) {
    for effect in effects {
        match effect {
            Effect::HealthChanged { from, to, at, .. } => {
                assert_ne!(from, to);
                assert_eq!(*from, seen.health.unwrap_or(Health::Pending));
                assert!(at.0 >= seen.since, "changes are in order");
                seen.health = Some(*to);
                seen.since = at.0;
            }
            Effect::Opened { .. } => {
                assert!(!seen.is_open, "one incident at a time");
                assert_eq!(seen.health, Some(Health::Down));
                seen.is_open = true;
                seen.is_announced = false;
                seen.opened += 1;
            }
            Effect::Recovering { .. } | Effect::Reopened { .. } | Effect::Acknowledged => {
                assert!(seen.is_open);
            }
            Effect::Resolved { .. } => {
                assert!(seen.is_open);
                seen.is_open = false;
                seen.resolved += 1;
            }
            Effect::Notify(Notice::Opened) => {
                assert!(
                    seen.is_open && !seen.is_announced,
                    "an opening is sent once"
                );
                seen.is_announced = true;
            }
            Effect::Notify(Notice::Resolved(_)) => {
                assert!(
                    !seen.is_open && seen.is_announced,
                    "no end without an opening"
                );
                seen.is_announced = false;
            }
            Effect::Notify(Notice::NoData) => {
                assert!(!seen.is_silent, "silence is sent once");
                seen.is_silent = true;
            }
            Effect::Notify(Notice::DataAgain(_)) => {
                assert!(seen.is_silent, "no end of silence without its beginning");
                seen.is_silent = false;
            }
            Effect::SetBack { .. } => {}
        }
    }
}

fn run(seed: u64) -> (Vec<String>, Seen) {
    let mut random = fastrand::Rng::with_seed(seed);
    let policy = random_policy(&mut random);
    let mut now = Moment {
        elapsed: Duration::from_secs(1_000),
        wall: Timestamp(0),
    };
    let mut detector = Detector::new(now);
    let mut watched = Seen::default();
    let mut trace = Vec::new();
    for _ in 0..400 {
        now = now.plus(Duration::from_millis(random.u64(..20_000)));
        if random.u32(..50) == 0 {
            now.wall = Timestamp(now.wall.0 + random.i64(-100_000..100_000));
        }
        let input = random_input(&mut random, now.wall);
        let effects = detector.step(input, &policy, now);
        hold_invariants(&mut watched, &effects);
        assert_eq!(detector.has_incident(), watched.is_open);
        assert_eq!(detector.health(), watched.health.unwrap_or(Health::Pending));
        assert!(
            detector.health() != Health::Down || watched.is_open,
            "an outage always has its incident"
        );
        trace.extend(effects.iter().map(shown));
        // A due tick leaves nothing that is due at once again: the caller does not spin.
        if detector
            .next_wake(&policy)
            .is_some_and(|wake| wake <= now.elapsed)
        {
            let effects = detector.step(Input::Tick, &policy, now);
            hold_invariants(&mut watched, &effects);
            let wake = detector.next_wake(&policy);
            assert!(wake.is_none_or(|wake| wake > now.elapsed), "seed {seed}");
        }
    }
    (trace, watched)
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a failing seed is repeated by its variable"
)]
fn random_lives_keep_the_invariants() {
    if let Ok(seed) = std::env::var("PLIMSOLL_SEED") {
        run(seed.parse().expect("PLIMSOLL_SEED is a number"));
        return;
    }
    let (mut opened, mut resolved) = (0, 0);
    for seed in 0..2_000 {
        let outcome = std::panic::catch_unwind(|| run(seed));
        let Ok((_, seen)) = outcome else {
            panic!("repeat it with PLIMSOLL_SEED={seed}");
        };
        opened += seen.opened;
        resolved += seen.resolved;
    }
    assert!(
        opened > 1_000 && resolved > 1_000,
        "{opened} opened, {resolved} resolved"
    );
}

#[test]
fn the_same_seed_gives_the_same_life() {
    assert_eq!(run(42).0, run(42).0);
}
