use super::*;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn plan(turn: Turn) -> OnCallPlan {
    OnCallPlan {
        name: "backend".to_owned(),
        zone: TimeZone::get("Europe/Berlin").unwrap(),
        members: ["ann", "bob", "eve"].map(str::to_owned).into(),
        turn,
        start: "2026-03-02T09:00".parse().unwrap(),
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
