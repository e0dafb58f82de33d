use proptest::prelude::*;

use super::*;
use crate::{Cost, Counts, CpuTime, Histogram, TimesView};

/// A second with a hundred requests of 1 to 100 ms, two of them with status 500.
struct Second {
    times: Histogram,
}

impl Second {
    fn new() -> Self {
        let mut times = Histogram::new();
        for millis in 1..=100 {
            times.record(Duration::from_millis(millis));
        }
        Self { times }
    }
}

impl Measured for Second {
    fn length(&self) -> Duration {
        Duration::from_secs(2)
    }

    fn counts(&self) -> Counts {
        Counts {
            started: 100,
            ok: 99,
            failed: 1,
            dropped: 100,
            completed_in_window: 100,
            ..Counts::default()
        }
    }

    fn unexpected(&self) -> u64 {
        3
    }

    fn bytes_sent(&self) -> u64 {
        4_000
    }

    fn bytes_in_window(&self) -> crate::WindowBytes {
        crate::WindowBytes {
            sent: self.bytes_sent(),
            received: self.bytes_received(),
        }
    }

    fn bytes_received(&self) -> u64 {
        16_000
    }

    fn times(&self, trend: Trend) -> Option<TimesView<'_>> {
        (trend == Trend::FromStarted).then(|| (&self.times).into())
    }

    fn server(&self, name: Option<&str>) -> Option<ServerFigures> {
        if name.is_some_and(|name| name != "db") {
            return None;
        }
        Some(ServerFigures {
            cost: Cost {
                cpu: CpuTime {
                    user: Duration::from_micros(500),
                    system: Duration::from_micros(1_500),
                },
                window: Duration::from_secs(2),
                exchanges: 100,
            },
            memory_bytes: 50_000_000,
            peak_memory_bytes: 70_000_000,
            fds: 0,
            peak_fds: 0,
        })
    }
}

fn judged(text: &str) -> (Option<f64>, ThresholdVerdict) {
    let threshold = Threshold::parse(text).unwrap();
    let judged = JudgedThreshold {
        value: threshold.value(&Second::new()),
        threshold,
        at: None,
        ended_run: false,
    };
    (judged.value.map(Bounded::low), judged.verdict())
}

#[test]
fn each_kind_of_figure_has_its_unit() {
    use ThresholdVerdict::{Breached, Met, NoData};

    for (text, value, verdict) in [
        ("http_reqs:rate>=50/s", Some(50.0), Met),
        ("http_reqs: count == 100", Some(100.0), Met),
        ("http_reqs:rate>3k/m", Some(50.0), Breached),
        ("http_req_failed:rate<0.03", Some(0.03), Breached),
        ("http_req_failed:rate<=3%", Some(0.03), Met),
        ("errors:rate<1%", Some(0.505), Breached),
        ("errors:count<102", Some(101.0), Met),
        ("dropped_iterations:count===100", Some(100.0), Met),
        ("data_received:rate<8kB/s", Some(8_000.0), Breached),
        ("data_sent:count!=4000", Some(4_000.0), Breached),
        ("server_cpu_per_request:value<20.5us", Some(20.0), Met),
        ("server_cpu:value<80%", Some(0.1), Met),
        ("server_cpu{name:db}:value<80%", Some(0.1), Met),
        ("server_cpu{ name: db } : value < 80%", Some(0.1), Met),
        ("server_cpu{name:web}:value<80%", None, NoData),
        ("server_rss:value<64MB", Some(50e6), Met),
        ("rss:max<64MB", Some(70e6), Breached),
        ("server_fds:max<100", None, NoData),
        ("latency:p(99)<1s", None, NoData),
        ("http_req_duration:count>=100", Some(100.0), Met),
    ] {
        let (found, came_to) = judged(text);
        assert_eq!(came_to, verdict, "{text}: {found:?}");
        match (found, value) {
            (Some(found), Some(value)) => assert!((found - value).abs() < 1e-3 * value, "{text}"),
            pair => assert_eq!(pair, (None, None), "{text}"),
        }
    }
}

#[test]
fn only_metrics_of_servers_are_of_a_named_one() {
    let threshold = Threshold::parse("server_rss{name:db}:max<64MB over 10s").unwrap();
    assert_eq!(threshold.server(), Some("db"));
    assert_eq!(Threshold::parse("rss:max<64MB").unwrap().server(), None);
    for text in [
        "latency{name:db}:p(99)<1s",
        "server_rss{status:db}:max<1MB",
        "server_rss{name:}:max<1MB",
        "server_rss{name:db:max<1MB",
    ] {
        assert_eq!(Threshold::parse(text), Err(ThresholdError::Tag), "{text}");
    }
    let error = Threshold::parse("server_rss{name:db}<1MB");
    assert_eq!(error, Err(ThresholdError::Form));
}

#[test]
fn times_are_aggregated() {
    for (aggregation, millis) in [
        ("avg", 50.5),
        ("min", 1.0),
        ("max", 100.0),
        ("med", 50.0),
        ("p(90)", 90.0),
        ("p99", 99.0),
        ("p(100)", 100.0),
    ] {
        let text = format!("http_req_duration:{aggregation}<1000");
        let (value, _) = judged(&text);
        let found = value.unwrap() / 1e3;
        assert!((found - millis).abs() < 0.002 * millis, "{text}: {found}");
    }
}

#[test]
fn a_margin_is_what_is_left_of_the_limit() {
    let margin = |text: &str, value| Threshold::parse(text).unwrap().margin_percent(value);
    assert_eq!(
        margin("latency:max<200ms", Bounded::exact(150e3)),
        Some(25.0)
    );
    assert_eq!(
        margin("latency:max<200ms", Bounded::exact(250e3)),
        Some(-25.0)
    );
    assert_eq!(
        margin("http_reqs:rate>100", Bounded::exact(150.0)),
        Some(50.0)
    );
    assert_eq!(margin("errors:count<=0", Bounded::exact(3.0)), None);
    assert_eq!(margin("errors:count==5", Bounded::exact(3.0)), None);
}

#[test]
fn the_worst_value_is_the_one_that_is_reported() {
    let slow = Threshold::parse("latency:p(99)<100ms").unwrap();
    assert!(
        slow.is_worse(Bounded::exact(90e3), Bounded::exact(50e3))
            && slow.is_worse(Bounded::exact(150e3), Bounded::exact(50e3))
    );
    let few = Threshold::parse("http_reqs:rate>100").unwrap();
    assert!(
        few.is_worse(Bounded::exact(90.0), Bounded::exact(150.0))
            && !few.is_worse(Bounded::exact(150.0), Bounded::exact(110.0))
    );
    let exact = Threshold::parse("errors:count==0").unwrap();
    assert!(
        exact.is_worse(Bounded::exact(1.0), Bounded::exact(0.0))
            && !exact.is_worse(Bounded::exact(0.0), Bounded::exact(1.0))
    );
}

#[test]
fn stretch_and_abort_follow_the_limit() {
    let parsed = Threshold::parse("latency:p(99) < 300 ms over 10s abort after 5s").unwrap();
    assert_eq!(parsed.over, Some(Duration::from_secs(10)));
    assert_eq!(parsed.abort_after, Some(Duration::from_secs(5)));
    assert!((parsed.limit() - 300e3).abs() < 1e-6);
    let parsed = Threshold::parse("errors:rate<1% abort").unwrap();
    assert_eq!(
        (parsed.over, parsed.abort_after),
        (None, Some(Duration::ZERO))
    );
}

#[test]
fn mistakes_are_explained() {
    let error = |text| Threshold::parse(text).unwrap_err().to_string();
    assert!(
        error("http_req_durations:p(99)<1s")
            .starts_with("unknown metric `http_req_durations`; did you mean `http_req_duration`? known are http_req_duration, latency,"),
    );
    assert_eq!(
        error("http_reqs:p(99)<1s"),
        "`http_reqs` has no `p(99)`; it has count, rate"
    );
    assert_eq!(
        error("latency:p(101)<1s"),
        "`p(101)` is no percentile; write `p(N)` with N from 0 to 100"
    );
    assert_eq!(
        error("latency:p(N)<1s"),
        "`p(N)` is no percentile; write `p(N)` with N from 0 to 100"
    );
    assert_eq!(
        error("latency:median<1s"),
        "`http_req_duration` has no `median`; it has avg, min, max, med, p(N), count"
            .replace("http_req_duration", "latency")
    );
    assert_eq!(
        error("latency:p(99)<1 parsec"),
        "unknown unit `parsec`; known are ns, us, ms, s, m, h, d"
    );
    assert_eq!(
        error("errors:rate<few"),
        "`few` is no limit for this; write for example `1%`"
    );
    assert_eq!(
        error("errors:rate<-1"),
        "`-1` is no limit for this; write for example `1%`"
    );
    assert_eq!(
        error("errors:rate<"),
        "the limit is missing; write for example `1%`"
    );
    assert_eq!(
        error("errors:rate<1% abort before 5s"),
        "did not expect `before`; behind the limit may stand `over TIME`, `abort`, `abort after TIME`"
    );
    assert_eq!(
        error("errors:rate<1% over"),
        "a time is missing behind `over`; write for example `over 10s`"
    );
    assert_eq!(
        error("errors:rate<1% over 10ms"),
        "a threshold can be held over one second to one hour"
    );
    for text in [
        "",
        "latency",
        "latency:p(99)",
        "latency:p(99)<>1s",
        "latency:p(99)=1s",
    ] {
        assert!(
            error(text).starts_with("expected"),
            "{text}: {}",
            error(text)
        );
    }
}

#[test]
fn a_threshold_is_met_only_if_both_bounds_meet_it() {
    let met = |text: &str, value| Threshold::parse(text).unwrap().is_met(value);
    let above = Bounded::at_least(47e3);
    assert!(!met("latency:p(99)<50ms", above) && !met("latency:p(99)<10ms", above));
    assert!(met("latency:p(99)>40ms", above) && !met("latency:p(99)>50ms", above));
    assert!(!met("latency:p(99)==47ms", above) && !met("latency:p(99)!=50ms", above));
    assert!(met("latency:p(99)!=40ms", above));
    let between = Bounded::between(47e3, Some(49e3));
    assert!(met("latency:p(99)<50ms", between) && !met("latency:p(99)<48ms", between));
    let limit = Threshold::parse("latency:p(99)<50ms").unwrap();
    assert_eq!(limit.margin_percent(above), None);
    assert!(limit.is_worse(above, Bounded::exact(1e9)));
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC*") {
        drop(Threshold::parse(&text));
    }

    #[test]
    fn what_is_shown_is_parsed_again(
        metric in prop::sample::select(Metric::names().collect::<Vec<_>>()),
        aggregation in prop::sample::select(vec!["avg", "p(99.9)", "max", "count", "rate", "value"]),
        operator in prop::sample::select(vec!["<", "<=", ">", ">=", "==", "!="]),
        limit in 0_u32..1_000_000,
        rest in prop::sample::select(vec!["", " over 10s", " abort", " over 1m abort after 3s"]),
    ) {
        let text = format!(" {metric}:{aggregation} {operator} {limit}{rest}");
        if let Ok(threshold) = Threshold::parse(&text) {
            prop_assert_eq!(Threshold::parse(&threshold.to_string()), Ok(threshold.clone()));
            let value = threshold.value(&Second::new());
            if let Some(value) = value {
                let shown = value.text(|value| threshold.unit().show(value));
                prop_assert!(!shown.is_empty());
                prop_assert!(!threshold.is_worse(value, value));
            }
        }
    }
}
