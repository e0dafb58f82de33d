use jiff::civil::{Time, Weekday};

use super::*;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn layer(members: &[&str], turn: Turn) -> Layer {
    Layer {
        members: members.iter().map(|it| (*it).to_owned()).collect(),
        turn,
        start: "2026-03-02T09:00".parse().unwrap(),
        hours: None,
    }
}

fn plan(turn: Turn) -> OnCallPlan {
    OnCallPlan {
        source: Source::File,
        name: "backend".to_owned(),
        zone: TimeZone::get("Europe/Berlin").unwrap(),
        layers: vec![layer(&["ann", "bob", "eve"], turn)],
        overrides: Vec::new(),
        token: None,
    }
}

#[test]
fn turns_change_at_their_clock_time_across_summer_time() {
    let plan = plan(Turn::Days(7));
    for (date, expected) in [
        ("2026-03-02T07:59:59Z", "eve"),
        ("2026-03-02T08:00:00Z", "ann"),
        ("2026-03-09T07:59:59Z", "ann"),
        ("2026-03-09T08:00:00Z", "bob"),
        ("2026-03-23T08:00:00Z", "ann"),
        // Summer time from 29 March on.
        ("2026-03-30T06:59:59Z", "ann"),
        ("2026-03-30T07:00:00Z", "bob"),
        ("2025-12-29T12:00:00Z", "ann"),
    ] {
        assert_eq!(plan.who(at(date)), expected, "{date}");
    }
    let daily = self::plan(Turn::Days(1));
    assert_eq!(daily.who(at("2026-03-04T08:00:00Z")), "eve");
    let custom = self::plan(Turn::Time(Duration::from_hours(12)));
    assert_eq!(custom.who(at("2026-03-02T19:59:59Z")), "ann");
    assert_eq!(custom.who(at("2026-03-02T20:00:00Z")), "bob");
}

#[test]
fn shifts_have_no_gaps_and_say_what_who_says() {
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let turn = match random.u8(0..3) {
            0 => Turn::Days(1),
            1 => Turn::Days(7),
            _ => Turn::Time(Duration::from_hours(random.u64(1..50))),
        };
        let mut plan = plan(turn);
        let begin = at("2026-03-20T00:00:00Z");
        let hour = 3_600_000;
        for _ in 0..random.usize(0..3) {
            let mut more = layer(&["kim", "lee"], Turn::Days(1));
            let time = |random: &mut fastrand::Rng| Time::new(random.i8(0..24), 30, 0, 0).unwrap();
            let days = [Weekday::Monday, Weekday::Friday, Weekday::Sunday];
            more.hours = Some(Hours {
                days: days[..random.usize(1..=3)].to_vec(),
                from: time(&mut random),
                to: time(&mut random),
            });
            plan.layers.push(more);
        }
        for _ in 0..random.usize(0..4) {
            let from = Timestamp(begin.0 + random.i64(-50..300) * hour);
            plan.overrides.push(Override {
                who: "zoe".to_owned(),
                from,
                until: Timestamp(from.0 + random.i64(1..100) * hour),
            });
        }
        let end = Timestamp(begin.0 + 400 * hour);
        let shifts = plan.shifts(begin, end);
        assert_eq!(shifts.first().unwrap().from, begin);
        assert_eq!(shifts.last().unwrap().until, end);
        for pair in shifts.windows(2) {
            assert_eq!(pair[0].until, pair[1].from, "seed {seed}");
            assert_ne!(pair[0].who, pair[1].who, "seed {seed}");
        }
        for _ in 0..50 {
            let date = Timestamp(random.i64(begin.0..end.0));
            let shift = shifts.iter().find(|it| it.from <= date && date < it.until);
            assert_eq!(shift.unwrap().who, plan.who(date), "seed {seed} at {date}");
        }
    }
}

#[test]
fn the_last_override_counts_and_the_calendar_shows_it() {
    let mut plan = plan(Turn::Days(7));
    let replaced = |who: &str, from: &str, until: &str| Override {
        who: who.to_owned(),
        from: at(from),
        until: at(until),
    };
    plan.overrides = vec![
        replaced("eve", "2026-03-03T00:00:00Z", "2026-03-05T00:00:00Z"),
        replaced("bob", "2026-03-04T00:00:00Z", "2026-03-04T12:00:00Z"),
    ];
    let whos = [
        "2026-03-02T12:00:00Z",
        "2026-03-03T12:00:00Z",
        "2026-03-04T06:00:00Z",
        "2026-03-04T18:00:00Z",
    ];
    assert_eq!(
        whos.map(|date| plan.who(at(date))),
        ["ann", "eve", "bob", "eve"]
    );
    let calendar = plan.calendar(at("2026-03-02T12:00:00Z"));
    assert!(
        calendar.contains("DTSTART:20260304T000000Z\r\n"),
        "{calendar}"
    );
    assert!(calendar.contains("SUMMARY:backend: bob\r\n"), "{calendar}");
    assert!(calendar.starts_with("BEGIN:VCALENDAR\r\n") && calendar.ends_with("END:VCALENDAR\r\n"));
}

#[test]
fn a_layer_counts_within_its_hours_and_the_last_one_first() {
    let mut plan = plan(Turn::Days(7));
    let hours = |days: &[Weekday], from: i8, to: i8| {
        Some(Hours {
            days: days.to_vec(),
            from: Time::new(from, 0, 0, 0).unwrap(),
            to: Time::new(to, 0, 0, 0).unwrap(),
        })
    };
    let weekdays = [Weekday::Monday, Weekday::Tuesday, Weekday::Wednesday];
    plan.layers.push(Layer {
        hours: hours(&weekdays, 18, 8),
        ..layer(&["night"], Turn::Days(1))
    });
    plan.layers.push(Layer {
        hours: hours(&[Weekday::Tuesday], 0, 0),
        ..layer(&["kim", "lee"], Turn::Days(7))
    });
    for (date, expected) in [
        // Monday: the base until six in the evening, in winter an hour ahead of UTC.
        ("2026-03-09T16:59:59Z", "bob"),
        ("2026-03-09T17:00:00Z", "night"),
        // All of Tuesday has a layer of its own, above that of the night.
        ("2026-03-09T22:59:59Z", "night"),
        ("2026-03-09T23:00:00Z", "lee"),
        ("2026-03-10T20:00:00Z", "lee"),
        // The night of Tuesday goes on until the morning of Wednesday.
        ("2026-03-10T23:00:00Z", "night"),
        ("2026-03-11T07:00:00Z", "bob"),
        // The night of Wednesday until Thursday morning, and then no more.
        ("2026-03-12T06:59:59Z", "night"),
        ("2026-03-12T20:00:00Z", "bob"),
    ] {
        assert_eq!(plan.who(at(date)), expected, "{date}");
    }
    assert!(plan.names("night") && plan.names("kim") && !plan.names("zoe"));
}
