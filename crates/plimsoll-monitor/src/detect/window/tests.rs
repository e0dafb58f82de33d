use jiff::civil::time;
use proptest::prelude::*;

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
        about: None,
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
fn frequent_cron_times_follow_the_clock() {
    let cron = Starts::Cron("0 */2 * * *".parse().unwrap());
    let window = window(cron, 10, "Europe/Berlin");
    assert_eq!(
        starts(&window, "2026-03-28T22:30:00Z", 2),
        ["Sun 29 Mar 00:00 CET", "Sun 29 Mar 04:00 CEST"]
    );
    assert_eq!(
        starts(&window, "2026-10-24T23:30:00Z", 3),
        [
            "Sun 25 Oct 02:00 CEST",
            "Sun 25 Oct 02:00 CET",
            "Sun 25 Oct 04:00 CET"
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

#[test]
fn a_window_that_is_longer_than_its_period_never_ends() {
    for (cron, minutes) in [("*/5 * * * *", 7), ("* * * * *", 1), ("0 3 * * *", 3_000)] {
        let window = window(
            Starts::Cron(cron.parse().unwrap()),
            minutes,
            "Europe/Berlin",
        );
        let (from, to) = (at("2026-01-05T00:10:00Z"), at("2027-01-05T00:10:00Z"));
        assert_eq!(window.spans(from, to), [(from, to)], "{cron}");
        let expected = (at("2024-12-31T23:00:00Z"), at("2027-12-31T23:00:00Z"));
        let found = window.occurrence(at("2026-05-01T00:00:00Z"));
        assert_eq!(found, Some(expected), "{cron}");
    }
}

#[test]
fn every_occurrence_of_a_period_is_found() {
    let cron = Starts::Cron("*/5 * * * *".parse().unwrap());
    let window = window(cron, 2, "America/New_York");
    let (from, to) = (at("2026-01-01T00:00:00Z"), at("2026-04-01T00:00:00Z"));
    let spans = window.spans(from, to);
    // Clocks go forward on 8 March, so an hour of clock times falls on another.
    assert_eq!(spans.len(), 90 * 288);
    let two_minutes = Duration::from_mins(2);
    assert!(spans.iter().all(|span| span.1.since(span.0) == two_minutes));
}

#[test]
fn an_occurrence_is_whole_at_each_of_its_moments() {
    let weekly = Starts::Weekly {
        days: vec![Weekday::Friday, Weekday::Saturday, Weekday::Monday],
        time: time(22, 0, 0, 0),
    };
    let window = window(weekly, 24 * 60 + 30, "UTC");
    // 2026-03-06 is a Friday.
    let expected = (at("2026-03-06T22:00:00Z"), at("2026-03-08T22:30:00Z"));
    for now in [
        "2026-03-06T22:00:00Z",
        "2026-03-08T00:00:00Z",
        "2026-03-08T22:29:59Z",
    ] {
        assert_eq!(window.occurrence(at(now)), Some(expected), "{now}");
    }
    assert_eq!(window.occurrence(at("2026-03-08T22:30:00Z")), None);
}

/// Zones with daylight saving of an hour and half an hour, with gaps that begin or end at midnight, and without any.
const ZONES: [&str; 7] = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Havana",
    "America/Scoresbysund",
    "Asia/Kathmandu",
    "UTC",
];

/// Moves of the clock in 2025 in all of these zones, and a time without any.
const AROUND: [&str; 8] = [
    "2025-03-09T07:00:00Z",
    "2025-03-30T01:00:00Z",
    "2025-04-05T15:00:00Z",
    "2025-10-04T15:30:00Z",
    "2025-10-26T01:00:00Z",
    "2025-11-02T05:00:00Z",
    "2025-03-09T05:00:00Z",
    "2025-06-10T00:00:00Z",
];

/// The clock times of a zone, minute by minute, and the minutes of an expression among them.
struct Walk {
    zone: TimeZone,
    fields: [fn(&Zoned) -> i8; 5],
    sets: [Vec<i8>; 5],
}

impl Walk {
    fn new(sets: [Vec<i8>; 5], zone: TimeZone) -> Self {
        let fields: [fn(&Zoned) -> i8; 5] = [
            |it| it.minute(),
            |it| it.hour(),
            |it| it.day(),
            |it| it.month(),
            |it| it.weekday().to_sunday_zero_offset(),
        ];
        Self { zone, fields, sets }
    }

    fn text(&self) -> String {
        let field = |set: &Vec<i8>| {
            let values: Vec<_> = set.iter().map(ToString::to_string).collect();
            values.join(",")
        };
        let fields: Vec<_> = self
            .sets
            .iter()
            .map(|set| match set[..] {
                [] => "*".to_owned(),
                _ => field(set),
            })
            .collect();
        fields.join(" ")
    }

    fn matches(&self, clock: &Zoned) -> bool {
        let has = |number: usize| {
            let set = &self.sets[number];
            set.is_empty() || set.contains(&self.fields[number](clock))
        };
        let is_day = match (self.sets[2].is_empty(), self.sets[4].is_empty()) {
            (false, false) => has(2) || has(4),
            _ => has(2) && has(4),
        };
        is_day && has(0) && has(1) && has(3)
    }

    /// Starts from `from` until before `to`. Without `*` in front, clock times that are skipped are those of a clock that
    /// has not moved.
    fn starts(&self, from: Timestamp, to: Timestamp) -> Vec<Timestamp> {
        let mut starts = Vec::new();
        let minutes = (from.0 / 60_000..to.0 / 60_000).map(|minute| Timestamp(minute * 60_000));
        if self.sets[0].is_empty() || self.sets[1].is_empty() {
            return minutes
                .filter(|minute| self.matches(&zoned(*minute, &self.zone)))
                .collect();
        }
        let mut latest = None;
        for minute in minutes {
            let clock = zoned(minute, &self.zone);
            let before = zoned(minute.minus(Duration::from_mins(1)), &self.zone);
            let moved = (clock.offset().seconds() - before.offset().seconds()) / 60;
            for skipped in 0..moved.max(0) {
                let past = minute.plus(Duration::from_mins(u64::from(skipped.unsigned_abs())));
                let unmoved = past.to_jiff().to_zoned(before.offset().to_time_zone());
                if self.matches(&unmoved) {
                    starts.push(past);
                }
            }
            // A time that comes twice counts once.
            let is_new = latest.is_none_or(|latest| clock.datetime() > latest);
            if is_new {
                latest = Some(clock.datetime());
                if self.matches(&clock) {
                    starts.push(minute);
                }
            }
        }
        starts
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Spans, starts and occurrences are those of a walk from minute to minute.
    #[test]
    fn windows_are_those_of_a_walk(
        minutes in prop::collection::btree_set(0_i8..60, 0..5),
        hours in prop::collection::btree_set(prop_oneof![0_i8..5, 22_i8..24, 0_i8..24], 0..4),
        days in prop_oneof![Just(Vec::new()), prop::collection::vec(1_i8..32, 1..12)],
        weekdays in prop_oneof![Just(Vec::new()), prop::collection::vec(0_i8..7, 1..4)],
        length in prop_oneof![1_u64..10, 10_u64..180, 1_000_u64..3_000],
        zone_name in prop::sample::select(&ZONES[..]),
        around in prop::sample::select(&AROUND[..]),
        cut in 0_u64..2_880,
    ) {
        let sets = [minutes.into_iter().collect(), hours.into_iter().collect(), days, Vec::new(), weekdays];
        let walk = Walk::new(sets, zone(zone_name));
        let window = window(Starts::Cron(walk.text().parse().unwrap()), length, zone_name);
        let day = Duration::from_hours(24);
        let (from, to) = (at(around).minus(day), at(around).plus(day));
        // What began before may be under way.
        let starts = walk.starts(from.minus(window.duration + day), to.plus(day));
        let spans: Vec<_> = starts.iter().map(|start| (*start, start.plus(window.duration))).collect();
        let clipped = spans.iter().map(|span| (span.0.max(from), span.1.min(to)));
        let expected = united(clipped.collect());
        prop_assert_eq!(window.spans(from, to), expected);
        let now = from.plus(Duration::from_mins(cut));
        let next = starts.iter().copied().filter(|start| *start > now).min();
        if next.is_some() {
            prop_assert_eq!(window.next_start(now), next);
        }
        let is_active = spans.iter().any(|span| span.0 <= now && now < span.1);
        prop_assert_eq!(window.is_active(now), is_active);
        if let Some(span) = window.occurrence(now) {
            prop_assert!(span.0 <= now && now < span.1);
            let walked = united(spans).into_iter().find(|walked| walked.0 <= now && now < walked.1);
            let walked = walked.unwrap();
            prop_assert!(span.0 <= walked.0 && span.1 >= walked.1, "{:?} {:?}", span, walked);
        } else {
            prop_assert!(!is_active);
        }
    }
}
