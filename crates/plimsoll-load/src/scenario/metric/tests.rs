#![expect(
    clippy::float_cmp,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "extremes and whole numbers are kept exactly, ranks are small and positive"
)]

use std::borrow::Cow;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

const AT: Duration = Duration::ZERO;

fn tag<'a>(name: &'a str, value: &'a str) -> Tag<'a> {
    (Cow::Borrowed(name), Cow::Borrowed(value))
}

#[test]
fn samples_go_to_their_metric_and_the_sub_metrics_whose_tags_they_have() {
    let registry = Registry::default();
    let id = registry
        .register("http_reqs", MetricKind::Counter, Contains::Default)
        .unwrap();
    let wanted = vec![
        ("status".to_owned(), "200".to_owned()),
        ("group".to_owned(), String::new()),
    ];
    let sub = registry.sub_metric(id, "http_reqs{status:200,group:}", wanted);
    let mut sinks = Sinks::new(registry.clone());
    sinks.add(id, 1.0, &[tag("status", "200"), tag("group", "")], AT);
    sinks.add(id, 2.0, &[tag("status", "404"), tag("group", "")], AT);
    sinks.add(id, 4.0, &[tag("status", "200")], AT);
    sinks.add(
        id,
        8.0,
        &[tag("status", "200"), tag("group", ""), tag("status", "500")],
        AT,
    );
    let all = sinks.series(registry.metric(id).series);
    assert!(matches!(all, Some(Sink::Counter(15.0))), "{all:?}");
    let some = sinks.series(sub);
    assert!(matches!(some, Some(Sink::Counter(1.0))), "{some:?}");
    let taken = sinks.take_samples();
    assert!(sinks.is_empty());
    sinks.add(id, 1.0, &[], AT);
    sinks.merge(&taken);
    let all = sinks.series(registry.metric(id).series);
    assert!(matches!(all, Some(Sink::Counter(16.0))), "{all:?}");
}

#[test]
fn metrics_keep_their_kind_and_have_names() {
    let registry = Registry::default();
    let register = |name: &str, kind| registry.register(name, kind, Contains::Default);
    let first = register("errors", MetricKind::Rate).unwrap();
    assert_eq!(register("errors", MetricKind::Rate), Ok(first));
    let error = register("errors", MetricKind::Counter).unwrap_err();
    assert!(error.to_string().contains("already exists as a rate"));
    for bad in ["", "a", "1a", "a-b", "a b", &"a".repeat(130)] {
        assert!(
            matches!(register(bad, MetricKind::Rate), Err(MetricError::Name(_))),
            "{bad}"
        );
    }
    assert!(registry.find("nothing").is_err());
}

#[test]
fn gauges_keep_the_last_value_of_all_workers() {
    let mut one = Sink::new(MetricKind::Gauge);
    one.add(3.0, Duration::from_secs(2));
    let mut other = Sink::new(MetricKind::Gauge);
    other.add(9.0, Duration::from_secs(1));
    one.merge(&other);
    one.merge(&Sink::new(MetricKind::Gauge));
    let Sink::Gauge(gauge) = one else { panic!() };
    assert_eq!((gauge.value, gauge.min, gauge.max), (3.0, 3.0, 9.0));
}

#[test]
fn small_whole_numbers_are_exact() {
    let mut trend = Trend::default();
    for value in -100..=500_i16 {
        trend.add(f64::from(value));
    }
    for (fraction, expected) in [
        (0.0, -100.0),
        (0.25, 50.0),
        (0.5, 200.0),
        (0.9, 440.0),
        (1.0, 500.0),
    ] {
        assert_eq!(trend.quantile(fraction), expected);
    }
}

proptest! {
    #[test]
    fn quantiles_are_those_of_the_sorted_values_within_the_bounds(
        mut values in proptest::collection::vec(prop_oneof![-1e6..1e6, Just(0.0), 0.0..0.01, 1e3..1e12], 1..200),
        fraction in 0.0..=1.0,
        split in 0_usize..200,
    ) {
        let mut trend = Trend::default();
        let mut other = Trend::default();
        let mut exact = Trend::exact();
        let mut rest = Trend::exact();
        for (index, value) in values.iter().enumerate() {
            if index < split { trend.add(*value) } else { other.add(*value) }
            if index < split { exact.add(*value) } else { rest.add(*value) }
        }
        exact.merge(&rest);
        trend.merge(&other);
        trend.add(f64::NAN);
        values.sort_by(f64::total_cmp);
        let rank: f64 = fraction * (values.len() - 1) as f64;
        let (low, high) = (values[rank.floor() as usize], values[rank.ceil() as usize]);
        let expected = low + (high - low) * rank.fract();
        let tolerance = 0.002 * (low.abs().max(high.abs()));
        prop_assert!((trend.quantile(fraction) - expected).abs() <= tolerance, "{} {expected}", trend.quantile(fraction));
        prop_assert_eq!(exact.quantile(fraction), expected);
        prop_assert_eq!(exact.count(), values.len() as u64);
        prop_assert_eq!(trend.count(), values.len() as u64);
        prop_assert_eq!(trend.min(), values[0]);
        prop_assert_eq!(trend.max(), *values.last().unwrap());
    }
}

#[test]
fn samples_are_kept_where_they_are_wanted_and_taken_once() {
    let registry = Registry::default();
    let id = registry
        .register("one", MetricKind::Counter, Contains::Default)
        .unwrap();
    let tags = [("a".into(), "b".into())];
    let at = Duration::from_secs(3);
    let mut plain = Sinks::new(registry.clone());
    plain.add(id, 1.0, &tags, at);
    assert!(plain.take_points().all.is_empty());
    let mut keeping = Sinks::new(registry).with_points();
    keeping.add(id, 1.0, &tags, at);
    keeping.add(id, 2.0, &tags, at);
    let mut handed_over = keeping.take_samples();
    keeping.add(id, 3.0, &[], at);
    keeping.merge(&handed_over);
    let values = |points: &Points| {
        points
            .all
            .iter()
            .map(|point| point.value)
            .collect::<Vec<_>>()
    };
    let taken = handed_over.take_points();
    assert_eq!(values(&taken), [1.0, 2.0]);
    assert!(std::sync::Arc::ptr_eq(
        &taken.all[0].tags,
        &taken.all[1].tags
    ));
    assert_eq!(&*taken.all[0].tags, [("a".to_owned(), "b".to_owned())]);
    assert_eq!(values(&keeping.take_points()), [3.0, 1.0, 2.0]);
    assert!(keeping.take_points().all.is_empty());
}

proptest! {
    /// What a process hands to another as plain values is what it has.
    #[test]
    fn a_trend_survives_as_plain_values(
        values in proptest::collection::vec(prop_oneof![-1e6..1e6, Just(0.0), 1e3..1e12], 0..100), is_exact in any::<bool>(),
    ) {
        let mut trend = if is_exact { Trend::exact() } else { Trend::default() };
        for value in &values {
            trend.add(*value);
        }
        let read = Trend::from_parts(trend.parts()).unwrap();
        prop_assert_eq!(read.parts(), trend.parts());
        prop_assert_eq!(read.quantile(0.9), trend.quantile(0.9));
        let mut wrong = trend.parts();
        wrong.count += 1;
        prop_assert!(Trend::from_parts(wrong).is_none());
    }
}

#[test]
fn series_of_another_process_are_added_by_their_names() {
    let registry_with = |names: &[&str]| {
        let registry = Registry::default();
        for name in names {
            registry
                .register(name, MetricKind::Counter, Contains::Default)
                .unwrap();
        }
        registry
    };
    // In another order, so with other ids.
    let (one, other) = (registry_with(&["a1", "b1"]), registry_with(&["b1", "a1"]));
    for registry in [&one, &other] {
        let id = registry.find("b1").unwrap();
        registry.sub_metric(id, "b1{x:y}", vec![("x".to_owned(), "y".to_owned())]);
    }
    let mut theirs = Sinks::new(other.clone());
    theirs.add(other.find("a1").unwrap(), 1.0, &[], AT);
    theirs.add(other.find("b1").unwrap(), 2.0, &[tag("x", "y")], AT);
    let mut mine = Sinks::new(one.clone());
    mine.add(one.find("b1").unwrap(), 5.0, &[], AT);
    for series in theirs.figures() {
        mine.add_figures(&series).unwrap();
    }
    let sum = |sinks: &Sinks, series| match sinks.series(series) {
        Some(Sink::Counter(sum)) => *sum,
        other => panic!("{other:?}"),
    };
    let (a, b) = (one.find("a1").unwrap(), one.find("b1").unwrap());
    assert_eq!(sum(&mine, one.metric(a).series), 1.0);
    assert_eq!(sum(&mine, one.metric(b).series), 7.0);
    assert_eq!(sum(&mine, one.metric(b).sub_metrics[0].series), 2.0);
}
