use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::detect::status::{Health, Status};
use crate::store::timestamp::{Moment, Timestamp};

const SECOND: Duration = Duration::from_secs(1);

pub(super) fn policy() -> DetectPolicy {
    DetectPolicy {
        confirm: 2,
        recover: 2,
        regions: RegionRule::Majority,
        hold: 60 * SECOND,
        flap: None,
        silent_after: 300 * SECOND,
        reports_no_data: true,
    }
}

pub(super) fn moment(seconds: u64) -> Moment {
    Moment {
        elapsed: Duration::from_secs(1_000 + seconds),
        wall: Timestamp(i64::try_from(seconds).unwrap() * 1000),
    }
}

/// One effect in a few words, times in seconds.
pub(super) fn shown(effect: &Effect) -> String {
    let seconds = |at: &Timestamp| at.0 / 1000;
    match effect {
        Effect::HealthChanged { to, at, .. } => format!("{}@{}", to.name(), seconds(at)),
        Effect::Opened { at, held, .. } => match held {
            Some(held) => format!("opened@{} held {held:?}", seconds(at)),
            None => format!("opened@{}", seconds(at)),
        },
        Effect::Recovering { at } => format!("recovering@{}", seconds(at)),
        Effect::Reopened { at, .. } => format!("reopened@{}", seconds(at)),
        Effect::Acknowledged => "acknowledged".to_owned(),
        Effect::Resolved { at, by } => format!("resolved@{} {by:?}", seconds(at)),
        Effect::Notify(notice) => format!("notify {notice:?}"),
    }
}

/// Runs a script, a line per input: the second, then `up`, `down`, `degraded`, `error` (of a region, `main` by
/// default), `tick`, `maintenance on`, `parent off`, `ack`, `resolve`, `pause on`; returns the effects by second.
fn run(policy: &DetectPolicy, script: &str) -> String {
    let mut detector = Detector::new(moment(0));
    let mut out = String::new();
    for line in script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let mut words = line.split_whitespace();
        let second: u64 = words.next().unwrap().parse().unwrap();
        let (verb, argument) = (words.next().unwrap(), words.next());
        let now = moment(second);
        let is_on = argument == Some("on");
        let status = Status::ALL.into_iter().find(|status| status.name() == verb);
        let input = match (verb, status) {
            (_, Some(status)) => Input::Observed {
                region: Arc::from(argument.unwrap_or("main")),
                status,
                reason: (status != Status::Up).then(|| format!("failed at {second}")),
                at: now.wall,
            },
            ("held-back", _) => Input::HeldBack {
                region: Arc::from("main"),
            },
            ("tick", _) => Input::Tick,
            ("maintenance", _) => Input::Maintenance(is_on),
            ("parent", _) => Input::ParentDown(is_on),
            ("ack", _) => Input::Acknowledge,
            ("resolve", _) => Input::Resolve,
            ("pause", _) => Input::Pause(is_on),
            _ => panic!("unknown line {line}"),
        };
        let (next, effects) = detector.step(input, policy, now);
        detector = next;
        if !effects.is_empty() {
            let effects: Vec<_> = effects.iter().map(shown).collect();
            writeln!(out, "{second}: {}", effects.join(", ")).unwrap();
        }
    }
    out
}

fn check(policy: &DetectPolicy, script: &str, expected: &str) {
    let expected: Vec<_> = expected
        .lines()
        .map(str::trim)
        .filter(|it| !it.is_empty())
        .collect();
    let found = run(policy, script);
    assert_eq!(found.lines().collect::<Vec<_>>(), expected, "{script}");
}

#[test]
fn an_outage_is_confirmed_dated_back_and_resolved_after_the_hold() {
    check(
        &policy(),
        "0 up
         10 down
         20 up
         30 down
         40 down
         50 down
         60 up
         70 up
         80 up
         130 tick",
        "0: up@0
         40: down@30, opened@30, notify Opened
         70: up@60, recovering@60
         130: resolved@60 Recovery, notify Resolved",
    );
}

#[test]
fn a_failure_inside_the_hold_reopens_the_same_incident() {
    check(
        &policy(),
        "0 up
         10 down
         20 down
         30 up
         40 up
         50 down
         60 down
         70 up
         80 up
         139 tick
         140 tick",
        "0: up@0
         20: down@10, opened@10, notify Opened
         40: up@30, recovering@30
         60: down@50, reopened@50
         80: up@70, recovering@70
         140: resolved@70 Recovery, notify Resolved",
    );
}

#[test]
fn errors_of_our_own_neither_confirm_nor_refute() {
    check(
        &policy(),
        "0 up
         10 down
         20 error
         30 down
         40 error
         50 up",
        "0: up@0
         30: down@10, opened@10, notify Opened",
    );
}

#[test]
fn a_degraded_target_is_no_incident() {
    check(
        &policy(),
        "0 up
         10 degraded
         20 up",
        "0: up@0
         10: degraded@10
         20: up@20",
    );
}

#[test]
fn regions_vote_and_a_silent_one_leaves_the_vote() {
    let script = "0 up a
         0 up b
         0 up c
         10 down a
         20 down a
         30 down b
         40 down b";
    check(
        &policy(),
        script,
        "0: up@0
         20: degraded@10
         40: down@30, opened@30, notify Opened",
    );
    let any = DetectPolicy {
        regions: RegionRule::Any,
        ..policy()
    };
    check(
        &any,
        script,
        "0: up@0\n 20: down@10, opened@10, notify Opened",
    );
    let all = DetectPolicy {
        regions: RegionRule::All,
        ..policy()
    };
    check(&all, script, "0: up@0\n 20: degraded@10");
    // b and c fall silent, and a is all that is left.
    check(
        &all,
        &format!("{script}\n 200 down a\n 400 down a"),
        "0: up@0
         20: degraded@10
         400: down@10, opened@10, notify Opened",
    );
}

#[test]
fn the_rules_over_regions_need_so_many() {
    for (rule, needed) in [
        (RegionRule::Any, [1, 1, 1, 1]),
        (RegionRule::Majority, [1, 2, 2, 3]),
        (RegionRule::All, [1, 2, 3, 4]),
        (RegionRule::Count(2), [1, 2, 2, 2]),
        (RegionRule::Count(0), [1, 1, 1, 1]),
    ] {
        let found = [1, 2, 3, 4].map(|reporting| rule.needed(reporting));
        assert_eq!(found, needed, "{rule:?}");
    }
}

#[test]
fn maintenance_holds_the_notice_until_its_end() {
    check(
        &policy(),
        "0 up
         5 maintenance on
         10 down
         20 down
         30 maintenance off",
        "0: up@0
         20: down@10, opened@10 held Maintenance
         30: notify Opened",
    );
    check(
        &policy(),
        "0 up
         5 maintenance on
         10 down
         20 down
         30 up
         40 up
         45 maintenance off
         100 tick",
        "0: up@0
         20: down@10, opened@10 held Maintenance
         40: up@30, recovering@30
         100: resolved@30 Recovery",
    );
}

#[test]
fn a_child_of_a_monitor_that_is_down_stays_quiet() {
    check(
        &policy(),
        "0 up
         5 parent on
         10 down
         20 down
         30 parent off",
        "0: up@0
         20: down@10, opened@10 held Parent
         30: notify Opened",
    );
}

#[test]
fn a_flapping_monitor_is_quiet_until_it_stays_down() {
    let policy = DetectPolicy {
        confirm: 1,
        recover: 1,
        hold: Duration::ZERO,
        flap: Some(FlapRule {
            opens: 2,
            within: 3600 * SECOND,
            quiet: 600 * SECOND,
        }),
        silent_after: 7200 * SECOND,
        ..policy()
    };
    check(
        &policy,
        "0 down
         1 up
         2 down
         3 up
         4 down
         5 up
         6 down
         605 tick
         606 tick
         607 up",
        "0: down@0, opened@0, notify Opened
         1: up@1, resolved@1 Recovery, notify Resolved
         2: down@2, opened@2, notify Opened
         3: up@3, resolved@3 Recovery, notify Resolved
         4: down@4, opened@4 held Flapping
         5: up@5, resolved@5 Recovery
         6: down@6, opened@6 held Flapping
         606: notify Opened
         607: up@607, resolved@607 Recovery, notify Resolved",
    );
}

#[test]
fn silence_is_no_data_and_not_an_outage() {
    check(
        &policy(),
        "0 up
         299 tick
         300 tick
         310 up",
        "0: up@0
         300: no_data@300, notify NoData
         310: up@310, notify DataAgain",
    );
    let quiet = DetectPolicy {
        reports_no_data: false,
        ..policy()
    };
    check(&quiet, "0 up\n 300 tick", "0: up@0");
    check(
        &policy(),
        "299 tick\n 300 tick",
        "300: no_data@300, notify NoData",
    );
}

#[test]
fn what_is_down_stays_down_while_its_host_has_no_checks() {
    let policy = DetectPolicy {
        confirm: 1,
        ..policy()
    };
    check(
        &policy,
        "0 down
         200 held-back
         400 held-back
         600 tick
         700 tick",
        "0: down@0, opened@0, notify Opened
         700: no_data@700, notify NoData",
    );
    check(
        &policy,
        "0 up
         200 held-back
         300 tick",
        "0: up@0
         300: no_data@300, notify NoData",
    );
}

#[test]
fn operators_acknowledge_resolve_and_pause() {
    check(
        &policy(),
        "0 down
         10 down
         20 ack
         21 ack
         30 resolve
         31 resolve
         40 down
         50 down
         60 pause on
         70 down
         80 pause off
         90 up",
        "10: down@0, opened@0, notify Opened
         20: acknowledged
         30: resolved@30 Operator, notify Resolved, pending@30
         50: down@40, opened@40, notify Opened
         60: resolved@60 Paused, notify Resolved, paused@60
         80: pending@80
         90: up@90",
    );
}

#[test]
fn a_step_of_the_date_moves_no_timer_and_no_change_before_the_last() {
    let policy = policy();
    let mut detector = Detector::new(moment(0));
    let mut observe = |elapsed: u64, wall: i64, status| {
        let now = Moment {
            elapsed: Duration::from_secs(1_000 + elapsed),
            wall: Timestamp(wall * 1000),
        };
        let input = Input::Observed {
            region: Arc::from("main"),
            status,
            reason: None,
            at: now.wall,
        };
        let (next, effects) = detector.clone().step(input, &policy, now);
        detector = next;
        effects.iter().map(shown).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(observe(0, 0, Status::Up), "up@0");
    // A day forward: no region falls silent.
    assert_eq!(observe(10, 86_400, Status::Down), "");
    assert_eq!(
        observe(20, 86_410, Status::Down),
        "down@86400, opened@86400, notify Opened"
    );
    // And back again.
    assert_eq!(observe(30, 30, Status::Up), "");
    assert_eq!(observe(40, 40, Status::Up), "up@86400, recovering@86400");
}

#[test]
fn a_restored_outage_goes_on_as_one() {
    let policy = policy();
    let region = Arc::from("main");
    let open = Some((Timestamp(5_000), true, true));
    let mut detector =
        Detector::restored(&region, Health::Down, Timestamp(5_000), open, moment(100));
    let mut effects = Vec::new();
    for (second, status) in [(110, Status::Down), (120, Status::Up), (130, Status::Up)] {
        let now = moment(second);
        let input = Input::Observed {
            region: Arc::clone(&region),
            status,
            reason: None,
            at: now.wall,
        };
        let (next, more) = detector.step(input, &policy, now);
        detector = next;
        effects.extend(more.iter().map(shown));
    }
    assert_eq!(effects, ["up@120", "recovering@120"]);
    let wake = detector.next_wake(&policy).unwrap();
    assert_eq!(wake, moment(190).elapsed);
    let (_, last) = detector.step(Input::Tick, &policy, moment(190));
    let last: Vec<_> = last.iter().map(shown).collect();
    assert_eq!(last, ["resolved@120 Recovery", "notify Resolved"]);
}
