use jiff::civil::time;

use super::*;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap()
}

fn window(starts: Starts, minutes: u64, zone_name: &str) -> Window {
    Window {
        name: "upkeep".to_owned(),
        starts,
        duration: Duration::from_secs(minutes * 60),
        zone: zone(zone_name),
    }
}

/// The starts after `from`, as a clock in the zone shows them.
fn starts(window: &Window, from: &str, count: usize) -> Vec<String> {
    let mut after = at(from);
    let mut all = Vec::new();
    for _ in 0..count {
        after = window.next_start(after).unwrap();
        all.push(
            zoned(after, &window.zone)
                .strftime("%a %d %b %H:%M %Z")
                .to_string(),
        );
    }
    all
}

#[test]
fn a_window_of_one_time_is_active_from_its_start_to_its_end() {
    let window = window(Starts::Once(at("2026-03-01T12:00:00Z")), 30, "UTC");
    for (now, expected) in [
        ("2026-03-01T11:59:59Z", None),
        ("2026-03-01T12:00:00Z", Some("2026-03-01T12:30:00Z")),
        ("2026-03-01T12:29:59Z", Some("2026-03-01T12:30:00Z")),
        ("2026-03-01T12:30:00Z", None),
    ] {
        assert_eq!(window.active_until(at(now)), expected.map(at), "{now}");
    }
    assert_eq!(window.next_change(at("2026-03-02T00:00:00Z")), None);
}

#[test]
fn a_weekly_window_keeps_its_clock_time_over_daylight_saving() {
    let weekly = Starts::Weekly {
        days: vec![Weekday::Saturday, Weekday::Sunday],
        time: time(2, 30, 0, 0),
    };
    let berlin = window(weekly, 60, "Europe/Berlin");
    // On 29 March 2026 clocks go from 02:00 to 03:00, on 25 October from 03:00 to 02:00.
    assert_eq!(
        starts(&berlin, "2026-03-27T00:00:00Z", 4),
        [
            "Sat 28 Mar 02:30 CET",
            "Sun 29 Mar 03:30 CEST",
            "Sat 04 Apr 02:30 CEST",
            "Sun 05 Apr 02:30 CEST",
        ]
    );
    assert_eq!(
        starts(&berlin, "2026-10-24T12:00:00Z", 2),
        ["Sun 25 Oct 02:30 CEST", "Sat 31 Oct 02:30 CET"]
    );
    let during = at("2026-10-25T00:45:00Z");
    assert_eq!(
        berlin.active_until(during),
        Some(at("2026-10-25T01:30:00Z"))
    );
}

#[test]
fn a_window_goes_on_past_midnight() {
    let daily = Starts::Weekly {
        days: vec![Weekday::Monday],
        time: time(23, 0, 0, 0),
    };
    let window = window(daily, 180, "UTC");
    // 2026-03-02 is a Monday.
    assert!(window.active_until(at("2026-03-03T01:59:00Z")).is_some());
    assert!(window.active_until(at("2026-03-03T02:00:00Z")).is_none());
    assert!(window.active_until(at("2026-03-03T23:30:00Z")).is_none());
}

#[test]
fn cron_expressions_match_as_cron_does() {
    for (text, expected) in [
        (
            "*/20 3 * * *",
            [
                "Sun 01 Mar 03:00 UTC",
                "Sun 01 Mar 03:20 UTC",
                "Sun 01 Mar 03:40 UTC",
            ],
        ),
        (
            "0 22 * * 1-5",
            [
                "Mon 02 Mar 22:00 UTC",
                "Tue 03 Mar 22:00 UTC",
                "Wed 04 Mar 22:00 UTC",
            ],
        ),
        (
            "15,45 0 1 jan,jul *",
            [
                "Wed 01 Jul 00:15 UTC",
                "Wed 01 Jul 00:45 UTC",
                "Fri 01 Jan 00:15 UTC",
            ],
        ),
        (
            "0 0 13 * fri",
            [
                "Fri 06 Mar 00:00 UTC",
                "Fri 13 Mar 00:00 UTC",
                "Fri 20 Mar 00:00 UTC",
            ],
        ),
        (
            "0 12 * * 7",
            [
                "Sun 01 Mar 12:00 UTC",
                "Sun 08 Mar 12:00 UTC",
                "Sun 15 Mar 12:00 UTC",
            ],
        ),
        (
            "0 0 29 2 *",
            [
                "Tue 29 Feb 00:00 UTC",
                "Sun 29 Feb 00:00 UTC",
                "Fri 29 Feb 00:00 UTC",
            ],
        ),
        (
            "@monthly",
            [
                "Wed 01 Apr 00:00 UTC",
                "Fri 01 May 00:00 UTC",
                "Mon 01 Jun 00:00 UTC",
            ],
        ),
        (
            "5/25 1 * * *",
            [
                "Sun 01 Mar 01:05 UTC",
                "Sun 01 Mar 01:30 UTC",
                "Sun 01 Mar 01:55 UTC",
            ],
        ),
    ] {
        let window = window(Starts::Cron(text.parse().unwrap()), 10, "UTC");
        assert_eq!(
            starts(&window, "2026-03-01T00:00:00Z", 3),
            expected,
            "{text}"
        );
    }
}

#[test]
fn cron_times_that_a_zone_skips_or_repeats_run_once() {
    let cron = Starts::Cron("30 2,3 * * *".parse().unwrap());
    let window = window(cron, 10, "Europe/Berlin");
    assert_eq!(
        starts(&window, "2026-03-28T12:00:00Z", 2),
        ["Sun 29 Mar 03:30 CEST", "Mon 30 Mar 02:30 CEST"]
    );
    assert_eq!(
        starts(&window, "2026-10-24T12:00:00Z", 3),
        [
            "Sun 25 Oct 02:30 CEST",
            "Sun 25 Oct 03:30 CET",
            "Mon 26 Oct 02:30 CET"
        ]
    );
}

#[test]
fn what_is_no_cron_expression_is_refused_with_the_field() {
    for (text, expected) in [
        (
            "* * * *",
            "`* * * *` is not a cron expression; write five fields, such as `30 2 * * 1-5`",
        ),
        (
            "60 * * * *",
            "`60` is not a minute of a cron expression; it goes from 0 to 59",
        ),
        (
            "* * 0 * *",
            "`0` is not a day of the month of a cron expression; it goes from 1 to 31",
        ),
        (
            "* * * foo *",
            "`foo` is not a month of a cron expression; it goes from 1 to 12",
        ),
        (
            "*/0 * * * *",
            "`*/0` is not a minute of a cron expression; it goes from 0 to 59",
        ),
        (
            "5-1 * * * *",
            "`5-1` is not a minute of a cron expression; it goes from 0 to 59",
        ),
        ("0 0 30 2 *", "no date ever matches `0 0 30 2 *`"),
    ] {
        assert_eq!(text.parse::<Cron>().unwrap_err().to_string(), expected);
    }
}

#[test]
fn windows_that_meet_are_one() {
    let cron = Starts::Cron("0,30 * * * *".parse().unwrap());
    let window = window(cron, 30, "UTC");
    let now = at("2026-03-01T00:10:00Z");
    assert!(window.active_until(now).unwrap() > at("2026-03-02T00:00:00Z"));
    let spans = window.spans(now, at("2026-03-01T05:00:00Z"));
    assert_eq!(spans, [(now, at("2026-03-01T05:00:00Z"))]);
}
