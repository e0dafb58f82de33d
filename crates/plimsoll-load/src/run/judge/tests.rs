use plimsoll_model::{Clock, Exchange, Memory, Phase, Phases, Protocol};
use plimsoll_wire::SystemClock;

use super::*;

/// Feeds seconds with a number of requests, each of so many milliseconds.
struct Run {
    judge: Judge,
    total: Interval,
    second: u64,
}

impl Run {
    fn new(thresholds: &[&str]) -> Self {
        let thresholds: Vec<_> = thresholds
            .iter()
            .map(|text| Threshold::parse(text).unwrap())
            .collect();
        Self {
            judge: Judge::new(
                &thresholds,
                ["db".to_owned()].into(),
                Duration::ZERO,
                Some(Duration::from_secs(100)),
            ),
            total: Interval::new(0, false),
            second: 0,
        }
    }

    /// Whether that second ends the run.
    fn second(&mut self, requests: u64, millis: u64) -> bool {
        self.second_with(requests, millis, None)
    }

    /// - `db`: megabytes that the server of that name holds at its end, if it is sampled.
    fn second_with(&mut self, requests: u64, millis: u64, db: Option<u64>) -> bool {
        let mut interval = Interval::new(0, false);
        interval.counts.started = requests;
        let started = SystemClock.now();
        for _ in 0..requests {
            let exchange = Exchange {
                intended: started,
                started,
                done: started + Duration::from_millis(millis),
                phases: Phases::default(),
                bytes_sent: 1,
                bytes_received: 1,
                peer: None,
                protocol: Protocol::Http1,
                outcome: Ok(200),
            };
            interval.record(&exchange);
            interval.record_in_window(&exchange);
        }
        self.total.merge(&interval);
        self.second += 1;
        let tick = Tick {
            at: Duration::from_secs(self.second),
            length: Duration::from_secs(1),
            warm_up: false,
            grace: false,
            ok: requests,
            failed: 0,
            other_errors: 0,
            events: 0,
            bytes_received: requests,
            in_flight: 0,
            p50: None,
            p90: None,
            p99: None,
            p99_9: None,
            max: None,
            spread: Vec::new(),
            phases: [Duration::ZERO; Phase::ALL.len()],
        };
        let sample = ResourceSample {
            at: tick.at,
            memory: Memory {
                anonymous_bytes: requests * 1_000_000,
                file_bytes: 0,
            },
            ..ResourceSample::default()
        };
        let interval = &interval;
        let db = db.map(|megabytes| ResourceSample {
            memory: Memory {
                anonymous_bytes: megabytes * 1_000_000,
                file_bytes: 0,
            },
            ..sample
        });
        self.judge
            .second(&tick, interval, &self.total, Some(sample), &[db])
    }

    fn worst(&self, position: usize) -> Option<(f64, u64)> {
        let worst = self.judge.watched[position].worst;
        worst.map(|(value, at)| (value.low(), at.as_secs()))
    }
}

#[test]
fn a_stretch_is_judged_once_it_is_full_and_the_worst_is_kept() {
    let mut run = Run::new(&[
        "http_reqs:rate>10 over 3s",
        "http_req_duration:max<1s over 2s",
    ]);
    for (requests, millis) in [
        (1, 10),
        (40, 10),
        (40, 500),
        (4, 10),
        (1, 10),
        (1, 10),
        (90, 10),
    ] {
        assert!(!run.second(requests, millis), "nothing was to end the run");
    }
    let (rate, at) = run.worst(0).unwrap();
    assert!((rate - 2.0).abs() < 0.01 && at == 6, "{rate} at {at}");
    let (max, at) = run.worst(1).unwrap();
    assert!((max - 500e3).abs() < 1e3 && at == 3, "{max} at {at}");
}

#[test]
fn a_breach_ends_the_run_only_where_that_was_requested_and_not_before_its_time() {
    let mut run = Run::new(&["http_req_duration:max<100ms over 1s abort after 3s"]);
    assert!(!run.second(1, 200), "too early");
    assert!(!run.second(1, 200), "too early");
    assert!(run.second(1, 200));
    let mut run = Run::new(&["http_req_duration:avg<100ms abort", "http_reqs:rate<1"]);
    assert!(!run.second(10, 20));
    assert!(!run.second(10, 150), "the mean of the run is still below");
    assert!(run.second(10, 500));
}

#[test]
fn a_named_server_is_judged_by_its_own_samples_and_a_gap_is_no_value() {
    let mut run = Run::new(&["server_rss{name:db}:max<50MB over 1s"]);
    assert!(!run.second_with(70, 1, None));
    assert_eq!(run.worst(0), None, "the target is another server");
    assert!(!run.second_with(70, 1, Some(40)));
    assert_eq!(run.worst(0), Some((40e6, 2)));
    assert!(!run.second_with(70, 1, None));
    assert!(!run.second_with(70, 1, Some(60)));
    assert_eq!(run.worst(0), Some((60e6, 4)));
}

#[test]
fn the_target_is_judged_by_its_samples() {
    let mut run = Run::new(&["server_rss:max<50MB over 2s", "server_rss:value<50MB abort"]);
    assert!(!run.second(10, 1));
    assert!(run.second(70, 1));
    assert_eq!(run.worst(0).map(|(value, _)| value), Some(70e6));
    assert!(!run.second(10, 1));
    assert!(!run.second(10, 1));
    assert_eq!(run.worst(0), Some((70e6, 2)));
}

#[test]
fn no_more_is_kept_than_the_longest_stretch_and_the_longest_wait_need() {
    let mut run = Run::new(&["latency:p(99)<1s over 5s", "http_reqs:rate>0 over 2s"]);
    run.judge.end = None;
    for _ in 0..400 {
        run.second(3, 3);
    }
    assert_eq!(run.judge.seconds.len() as u64, 5 + PATIENCE.as_secs());
}

#[test]
fn a_short_burst_that_is_never_answered_breaches_its_stretch() {
    let mut run = Run::new(&[
        "latency:p(99)<100ms over 3s",
        "errors:rate<1% over 3s",
        "latency:p(95)<100ms over 3s",
    ]);
    for _ in 0..60 {
        run.second(100, 10);
    }
    // Nine of 6,000, in the thirtieth second.
    let mut waited = Times::new();
    (0..9).for_each(|_| waited.record_at_least(Duration::from_millis(30_500)));
    let whole = Stretch {
        times: vec![
            (Trend::Honest, waited.clone()),
            (Trend::FromStarted, waited),
        ],
        ..Stretch::default()
    };
    run.judge.count_given_up(&whole);
    let is_met = |position: usize| {
        let watched = &run.judge.watched[position];
        let (value, at) = watched.worst.unwrap();
        (watched.threshold.is_met(value), at.as_secs())
    };
    assert_eq!(is_met(0), (false, 30));
    assert_eq!(is_met(1), (false, 30));
    assert!(
        is_met(2).0,
        "3 % of a stretch are not beyond its 95th percentile"
    );
}
