#![expect(
    clippy::cast_possible_truncation,
    reason = "numbers of tests are small"
)]

use std::time::Duration;

use plimsoll_load::Interval;
use plimsoll_model::{
    EventFigures, Failure, FailureCount, FailureKind, GrpcFigures, GrpcStatus, GrpcStatusCount,
    Histogram, Phase, RequestFigures, Times,
};
use proptest::prelude::*;

use super::*;

const IS_OPEN: bool = true;

fn empty() -> Interval {
    Interval::new(2, IS_OPEN)
}

fn histogram(micros: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    for value in micros {
        histogram.record(Duration::from_micros(*value));
    }
    histogram
}

#[test]
fn a_tick_has_about_as_many_bytes_as_forecasts_count() {
    for (rate, known) in [(50_000, None), (50_000, Some(5e4)), (20, Some(20.0))] {
        let bytes = bytes_of_tick(rate);
        let forecast = tick_bytes(known, 0);
        assert!(
            (forecast / 4..=forecast).contains(&bytes),
            "{rate}: {bytes} of {forecast}"
        );
    }
}

/// Bytes of a second of an open loop with durations around a millisecond, up to some 50.
fn bytes_of_tick(rate: u64) -> u64 {
    let mut random = fastrand::Rng::with_seed(3);
    let mut interval = empty();
    let (mut times, mut waits, mut reads) = (Times::new(), Histogram::new(), Histogram::new());
    for _ in 0..rate {
        let sum: f64 = (0..12).map(|_| random.f64()).sum();
        let seconds = 1e-3 * (0.8 * (sum - 6.0)).exp();
        let duration = Duration::from_secs_f64(seconds);
        times.record(duration);
        waits.record(duration);
        reads.record(Duration::from_micros(random.u64(1..50)));
        interval
            .lag
            .record(Duration::from_micros(random.u64(0..300)));
    }
    interval.counts.ok = rate;
    interval.add_status(200, rate);
    interval.from_started.merge(&times);
    if let Some(intended) = &mut interval.from_intended {
        intended.merge(&times);
    }
    interval.add_phase(Phase::Wait, waits);
    interval.add_phase(Phase::Receive, reads);
    let tick = ToCoordinator::Tick {
        agent: "agent".to_owned(),
        number: 1,
        at_us: 1,
        grace: false,
        is_last: false,
        figures: Counted::Load(Box::new(Figures::from_interval(&interval))),
    };
    encode("run", tick).len() as u64
}

/// An interval in which everything is set that can be, from some numbers.
fn interval(seeds: &[u64]) -> Interval {
    let mut interval = empty();
    for seed in seeds {
        let seed = *seed;
        interval.counts.started += 3;
        interval.counts.ok += 1 + seed % 2;
        interval.counts.failed += 2 - seed % 2;
        interval.counts.dropped += seed % 3;
        interval.counts.completed_in_window += 1;
        interval.add_status(100 + (seed % 500) as u16, 1 + seed % 2);
        interval.unmet[seed as usize % 2] += 1;
        interval.bytes_sent += seed;
        interval.bytes_received += 2 * seed;
        interval.bytes_in_window.received += seed;
        interval.connections_opened += 1;
        interval.latency_nanos += seed;
        interval.in_flight += 1;
        let busiest = &mut interval.busiest_worker_percent;
        *busiest = busiest.max((seed % 100) as f64);
        interval.messages.sent += 1;
        interval.decoded.decoded += 5;
        let mut started = Times::new();
        started.record(Duration::from_nanos(seed));
        started.record_at_least(Duration::from_nanos(seed / 2));
        interval.from_started.merge(&started);
        if let Some(intended) = &mut interval.from_intended {
            intended.merge(&started);
        }
        interval.lag.record(Duration::from_micros(seed % 1000));
        interval.add_phase(Phase::Wait, histogram(&[seed % 10_000]));
        let errors = interval.of_errors.get_or_insert_default();
        errors.record(Duration::from_nanos(seed));
        let timeouts = interval.of_timeouts.get_or_insert_default();
        timeouts.record(Duration::from_nanos(3 * seed));
        let kinds = FailureKind::ALL;
        let kind = kinds[seed as usize % kinds.len()];
        let failure = Failure::new(Phase::Connect, kind).because("why");
        FailureCount::add(&mut interval.failures, &failure);
        interval.add_grpc(&GrpcFigures {
            statuses: vec![GrpcStatusCount {
                status: GrpcStatus::from_code(seed % 17),
                count: 2,
                example: Some("message".to_owned()),
            }],
            messages_received: 2,
            messages_in_window: 1,
        });
        interval
            .events
            .get_or_insert_default()
            .merge(&EventFigures {
                opened: 1,
                received: seed,
                gaps: histogram(&[seed % 7_000]),
                ..EventFigures::default()
            });
        let request = RequestFigures {
            ok: 1,
            latency: started,
            ..RequestFigures::default()
        };
        let requests = interval
            .requests
            .get_or_insert_with(|| Box::new([RequestFigures::default()]));
        requests[0].merge(&request);
    }
    interval
}

/// Through JSON and back, added to what there is.
fn carried(interval: &Interval, into: &mut Interval) {
    let text = serde_json::to_string(&Figures::from_interval(interval)).unwrap();
    let figures: Figures = serde_json::from_str(&text).unwrap();
    figures.add_to(into).unwrap();
}

fn seeds() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(1_u64..3_000_000_000, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// What agents count in many ticks, carried and added, is what one process counts in one interval.
    #[test]
    fn merged_ticks_are_the_union(
        agents in prop::collection::vec(prop::collection::vec(seeds(), 0..4), 1..4),
    ) {
        let mut merged = empty();
        let mut checksum = Checksum::default();
        for tick in agents.iter().flatten() {
            let tick = interval(tick);
            carried(&tick, &mut merged);
            checksum.add(&Checksum::from_interval(&tick));
        }
        let all: Vec<u64> = agents.into_iter().flatten().flatten().collect();
        let union = interval(&all);
        // The order of failures is that in which they were first seen, in both.
        prop_assert_eq!(merged.counts, union.counts);
        prop_assert_eq!(&merged.failures, &union.failures);
        prop_assert_eq!(&merged.unmet, &union.unmet);
        prop_assert_eq!(merged.grpc(), union.grpc());
        prop_assert!(merged.statuses().eq(union.statuses()));
        prop_assert_eq!(&merged.from_started, &union.from_started);
        prop_assert_eq!(&merged.from_intended, &union.from_intended);
        prop_assert_eq!(&merged.of_errors, &union.of_errors);
        prop_assert_eq!(&merged.of_timeouts, &union.of_timeouts);
        prop_assert_eq!(&merged.lag, &union.lag);
        prop_assert_eq!(merged.in_flight, union.in_flight);
        prop_assert_eq!(merged.latency_nanos, union.latency_nanos);
        prop_assert_eq!(merged.phase(Phase::Wait), union.phase(Phase::Wait));
        let gaps = |interval: &Interval| interval.events.as_ref().map(|events| events.gaps.clone());
        prop_assert_eq!(gaps(&merged), gaps(&union));
        let latency = |interval: &Interval| interval.requests.as_ref().map(|it| (it[0].ok, it[0].latency.clone()));
        prop_assert_eq!(latency(&merged), latency(&union));
        // The digest covers what is compared here, and is that of the ticks together.
        prop_assert_eq!(checksum, Checksum::from_interval(&union));
        prop_assert_eq!(Checksum::from_interval(&merged), checksum);
    }

    /// A tick that is lost or merged twice shows in the checksum.
    #[test]
    fn a_checksum_shows_what_is_lost_or_doubled(ticks in prop::collection::vec(seeds(), 1..5), at in any::<prop::sample::Index>()) {
        let sums: Vec<_> = ticks.iter().map(|tick| Checksum::from_interval(&interval(tick))).collect();
        let add = |sums: &[Checksum]| {
            let mut sum = Checksum::default();
            for one in sums {
                sum.add(one);
            }
            sum
        };
        let position = at.index(sums.len());
        prop_assume!(!ticks[position].is_empty());
        let mut lost = sums.clone();
        lost.remove(position);
        let mut doubled = sums.clone();
        doubled.push(sums[position]);
        prop_assert_ne!(add(&lost), add(&sums));
        prop_assert_ne!(add(&doubled), add(&sums));
    }
}

#[test]
fn an_empty_interval_takes_few_bytes() {
    let text = serde_json::to_string(&Figures::from_interval(&Interval::new(3, false))).unwrap();
    assert_eq!(text, "{}");
}

#[test]
fn figures_of_another_run_are_refused() {
    let one = Figures::from_interval(&interval(&[1, 2, 3]));
    assert!(
        one.add_to(&mut Interval::new(2, false)).is_err(),
        "another loop"
    );
    assert!(
        one.add_to(&mut Interval::new(1, true)).is_err(),
        "other conditions"
    );
    for wrong in [
        r#"{"from_started":{"known":"AAAA"}}"#,
        r#"{"failures":[{"phase":"none","kind":"reset","count":1,"side":"ours","retry":"never"}]}"#,
        r#"{"phases":[["none",""]]}"#,
    ] {
        let figures: Figures = serde_json::from_str(wrong).unwrap();
        assert!(
            figures.add_to(&mut Interval::new(0, false)).is_err(),
            "{wrong}"
        );
    }
    assert!(serde_json::from_str::<Figures>(r#"{"other":1}"#).is_err());
}

#[test]
fn messages_survive_and_other_versions_are_refused() {
    let body = ToCoordinator::Tick {
        agent: "a".to_owned(),
        number: 7,
        at_us: 8,
        grace: false,
        is_last: true,
        figures: Counted::Load(Box::new(Figures::from_interval(&interval(&[5])))),
    };
    let payload = encode("run", body.clone());
    let read = decode::<ToCoordinator>(&payload).unwrap();
    assert_eq!((read.version, read.run.as_str()), (VERSION, "run"));
    assert_eq!(read.body, body);
    let start = ToAgents::Start {
        at_us: BTreeMap::from([("a".to_owned(), u64::MAX)]),
        unix_us: 7,
        set_up: SetUp {
            data: Some("{}".to_owned()),
            took_us: 8,
            failed: Some("no stock".to_owned()),
            figures: Some(Box::default()),
        },
    };
    let read = decode::<ToAgents>(&encode("run", start.clone())).unwrap();
    assert_eq!(read.body, start);
    let newer = br#"{"version":2,"run":"run","body":{"new":{}}}"#;
    assert_eq!(
        decode::<ToAgents>(newer),
        Err(MessageError::Version { found: 2 })
    );
    for wrong in [
        &b"x"[..],
        b"{}",
        br#"{"version":1,"run":"r","body":"other"}"#,
    ] {
        let read = decode::<ToAgents>(wrong);
        assert!(matches!(read, Err(MessageError::Form(_))), "{read:?}");
    }
}

#[test]
fn messages_of_a_coordinator_are_known_by_its_key_and_for_one_run() {
    // RFC 8410, sections 10.1 and 10.3.
    let key = SigningKey::parse("-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n").unwrap();
    let keys = TrustedKeys::parse("-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n").unwrap();
    let start = ToAgents::Start {
        at_us: [("one".to_owned(), 5)].into(),
        unix_us: 6,
        set_up: SetUp {
            data: Some("{\"a\":1}".to_owned()),
            ..SetUp::default()
        },
    };
    let envelope = |payload: &[u8]| decode::<ToAgents>(payload).unwrap();
    let signed = envelope(&encode_signed("run", start.clone(), Some(&key)));
    assert!(signed.is_signed_by(&keys));
    assert!(!envelope(&encode_signed("run", start, None)).is_signed_by(&keys));
    let other_run = Envelope {
        run: "other".to_owned(),
        ..signed.clone()
    };
    assert!(!other_run.is_signed_by(&keys));
    let other_body = Envelope {
        body: ToAgents::Stop {
            reason: String::new(),
            is_urgent: true,
        },
        ..signed
    };
    assert!(!other_body.is_signed_by(&keys));
}
