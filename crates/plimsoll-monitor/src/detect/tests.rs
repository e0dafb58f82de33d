use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::detect::status::{Health, Status};
use crate::time::{Moment, Timestamp};

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
        Effect::Resolved { at, by, .. } => format!("resolved@{} {by:?}", seconds(at)),
        Effect::SetBack { from, to } => format!("set back {} to {}", seconds(from), seconds(to)),
        // By whatever it ended, which the line before says.
        Effect::Notify(Notice::Resolved(_)) => "notify Resolved".to_owned(),
        Effect::Notify(Notice::DataAgain(_)) => "notify DataAgain".to_owned(),
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
            ("rejudge", _) => Input::Rejudge,
            ("absent", _) => {
                detector.begin_anew(now);
                Input::Tick
            }
            ("removed", _) => Input::Removed,
            _ => panic!("unknown line {line}"),
        };
        let effects = detector.step(input, policy, now);
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
         400: down@400, opened@400, notify Opened",
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
        let effects = detector.step(input, &policy, now);
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
        let more = detector.step(input, &policy, now);
        effects.extend(more.iter().map(shown));
    }
    assert_eq!(effects, ["up@120", "recovering@120"]);
    let wake = detector.next_wake(&policy).unwrap();
    assert_eq!(wake, moment(190).elapsed);
    let last = detector.step(Input::Tick, &policy, moment(190));
    let last: Vec<_> = last.iter().map(shown).collect();
    assert_eq!(last, ["resolved@120 Recovery", "notify Resolved"]);
}

#[test]
fn an_outage_lasts_from_the_quorum_reached_until_it_is_lost() {
    let policy = DetectPolicy {
        hold: Duration::ZERO,
        confirm: 1,
        recover: 1,
        ..policy()
    };
    let script = "0 up a
         0 up b
         0 up c
         10 down a
         12 down b
         20 down c
         30 up b
         33 up a
         40 up c";
    check(
        &policy,
        script,
        "0: up@0
         10: degraded@10
         12: down@12, opened@12, notify Opened
         33: degraded@33, resolved@33 Recovery, notify Resolved
         40: up@40",
    );
    let all = DetectPolicy {
        regions: RegionRule::All,
        ..policy.clone()
    };
    check(
        &all,
        script,
        "0: up@0
         10: degraded@10
         20: down@20, opened@20, notify Opened
         30: degraded@30, resolved@30 Recovery, notify Resolved
         40: up@40",
    );
    let two = DetectPolicy {
        regions: RegionRule::Count(2),
        confirm: 2,
        recover: 2,
        ..policy
    };
    // Dated back to the first result of the row that reached it, and of the one that lost it.
    check(
        &two,
        "0 up a
         0 up b
         1 up a
         1 up b
         10 down a
         11 down b
         12 down a
         14 down b
         20 up a
         22 up a",
        "0: up@0
         12: degraded@10
         14: down@11, opened@11, notify Opened
         22: degraded@20, resolved@20 Recovery, notify Resolved",
    );
}

#[test]
fn a_quorum_that_is_reached_since_others_fell_silent_begins_then() {
    let policy = DetectPolicy {
        confirm: 1,
        recover: 1,
        silent_after: 100 * SECOND,
        ..policy()
    };
    check(
        &policy,
        "0 up b
         0 down a
         90 down a
         100 tick",
        "0: up@0
         0: degraded@0
         100: down@100, opened@100, notify Opened",
    );
}

#[test]
fn other_rules_hold_from_now_on() {
    let strict = DetectPolicy {
        confirm: 1,
        ..policy()
    };
    let lax = DetectPolicy {
        regions: RegionRule::Any,
        ..strict.clone()
    };
    let mut detector = Detector::new(moment(0));
    let mut observe = |second, region: &str, status| {
        let input = Input::Observed {
            region: Arc::from(region),
            status,
            reason: None,
            at: moment(second).wall,
        };
        let effects = detector.step(input, &strict, moment(second));
        drop(effects);
    };
    observe(0, "a", Status::Up);
    observe(1, "b", Status::Up);
    observe(10, "a", Status::Down);
    let effects = detector.step(Input::Rejudge, &lax, moment(50));
    let effects: Vec<_> = effects.iter().map(shown).collect();
    assert_eq!(effects, ["down@50", "opened@50", "notify Opened"]);
}

#[test]
fn silence_within_maintenance_is_sent_behind_it_and_its_end_only_then() {
    check(
        &policy(),
        "0 up
         200 maintenance on
         300 tick
         310 up
         320 maintenance off
         620 tick
         621 up
         700 maintenance on
         925 tick
         950 maintenance off
         960 up",
        "0: up@0
         300: no_data@300
         310: up@310
         620: no_data@620, notify NoData
         621: up@621, notify DataAgain
         925: no_data@925
         950: notify NoData
         960: up@960, notify DataAgain",
    );
}

#[test]
fn what_is_removed_or_paused_ends_whatever_was_sent() {
    check(
        &policy(),
        "0 up
         300 tick
         310 pause on
         320 pause off
         330 down
         340 down
         350 removed",
        "0: up@0
         300: no_data@300, notify NoData
         310: notify DataAgain, paused@310
         320: pending@320
         340: down@330, opened@330, notify Opened
         350: resolved@350 Removed, notify Resolved, pending@350",
    );
}

#[test]
fn an_absence_begins_the_hold_anew_and_no_region_falls_silent_in_it() {
    check(
        &policy(),
        "0 up
         10 down
         20 down
         30 up
         40 up
         2000 absent
         2050 up
         2060 tick",
        "0: up@0
         20: down@10, opened@10, notify Opened
         40: up@30, recovering@30
         2060: resolved@30 Recovery, notify Resolved",
    );
}

/// Sixteen seconds of outage stay sixteen, wherever the date is set to meanwhile.
#[test]
fn a_date_that_is_set_moves_dates_and_no_duration() {
    let policy = DetectPolicy {
        hold: Duration::ZERO,
        ..policy()
    };
    let at = |elapsed: u64, wall: i64| Moment {
        elapsed: Duration::from_secs(5_000 + elapsed),
        wall: Timestamp(wall * 1000),
    };
    for by in [-3_600, 3_600] {
        let mut detector = Detector::new(at(0, 0));
        let mut lasted = None;
        for (second, status) in [
            (0, Status::Up),
            (100, Status::Down),
            (102, Status::Down),
            (116, Status::Up),
            (118, Status::Up),
        ] {
            let set = if second > 105 { by } else { 0 };
            let now = at(second, i64::try_from(second).unwrap() + set);
            if second == 116 && by < 0 {
                let input = Input::SetBack {
                    from: Timestamp(105_000),
                    to: Timestamp((105 + by) * 1_000),
                };
                let effects = detector.step(input, &policy, now);
                assert_eq!(effects.len(), 1);
            }
            let input = Input::Observed {
                region: Arc::from("main"),
                status,
                reason: None,
                at: now.wall,
            };
            for effect in detector.step(input, &policy, now) {
                if let Effect::Resolved { lasted: it, at, .. } = effect {
                    assert_eq!(at, Timestamp((116 + by) * 1_000));
                    lasted = Some(it);
                }
            }
        }
        assert_eq!(lasted, Some(16 * SECOND), "set by {by}");
    }
}

#[test]
fn what_is_remembered_makes_the_same_detector_by_other_clocks() {
    let policy = policy();
    let mut detector = Detector::new(moment(0));
    let lines = [
        (0, Status::Up),
        (10, Status::Down),
        (20, Status::Down),
        (30, Status::Up),
    ];
    for (second, status) in lines {
        let input = Input::Observed {
            region: Arc::from("main"),
            status,
            reason: Some("refused".to_owned()),
            at: moment(second).wall,
        };
        assert!(detector.step(input, &policy, moment(second)).len() < 4);
    }
    let text = serde_json::to_string(&detector).unwrap();
    // The next process starts 100 s later, by a clock that began elsewhere.
    let now = Moment {
        elapsed: Duration::from_secs(77),
        wall: moment(130).wall,
    };
    let read = serde_json::from_str(&text).unwrap();
    let mut next = Detector::recalled(read, moment(30), now).unwrap();
    assert_eq!(next.health(), detector.health());
    let observed = |at: Moment| Input::Observed {
        region: Arc::from("main"),
        status: Status::Up,
        reason: None,
        at: at.wall,
    };
    let effects = next.step(observed(now), &policy, now);
    // The first success of the row came before the restart.
    let effects: Vec<_> = effects.iter().map(shown).collect();
    assert_eq!(effects, ["up@30", "recovering@30"]);
    assert!(Detector::recalled(serde_json::json!({}), now, now).is_none());
}
