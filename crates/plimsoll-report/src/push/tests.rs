use std::time::{Duration, UNIX_EPOCH};

use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use plimsoll_model::{CpuTime, Memory};
use prost::Message;

use super::remote_write::WriteRequest;
use super::*;
use crate::fixture;

const AT: Duration = Duration::from_millis(1_790_000_000_123);

fn points() -> Vec<Point> {
    let labels = run_labels("a run", "http://127.0.0.1/");
    let target = ResourceSample {
        cpu: CpuTime {
            user: Duration::from_millis(1_500),
            system: Duration::from_millis(250),
        },
        memory: Memory {
            anonymous_bytes: 5,
            file_bytes: 6,
        },
        ..ResourceSample::default()
    };
    let mut points = Vec::new();
    for second in 1..=3 {
        let at = UNIX_EPOCH + AT + Duration::from_secs(second);
        let tick = fixture::tick(second, false);
        points.extend(of_tick(&tick, Some(&target), &labels, at));
    }
    let at = UNIX_EPOCH + AT + Duration::from_secs(4);
    for (name, run) in [
        ("a run", fixture::failing()),
        ("mixed", fixture::mixed()),
        ("tiers", fixture::tiers()),
        ("censored", fixture::censored()),
    ] {
        points.extend(of_run(name, &run, at));
    }
    points
}

#[test]
fn labels_and_names_are_those_that_prometheus_takes() {
    for point in points() {
        let mut names: Vec<_> = point.labels.iter().map(|(name, _)| &**name).collect();
        names.push(&*point.name);
        for name in &names {
            let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(name.chars().all(is_name), "{name}");
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), point.labels.len() + 1, "{point:?}");
        assert!(point.labels.iter().all(|(_, value)| !value.is_empty()));
        assert!(point.value.is_finite(), "{point:?}");
    }
}

#[test]
fn remote_write_has_sorted_series_with_their_samples_in_order() {
    let points = points();
    let block = remote_write(&points);
    let bytes = snap::raw::Decoder::new().decompress_vec(&block).unwrap();
    let request = WriteRequest::decode(&*bytes).unwrap();
    let mut count = 0;
    for series in &request.timeseries {
        let names: Vec<_> = series.labels.iter().map(|label| &label.name).collect();
        assert!(names.is_sorted(), "{names:?}");
        assert_eq!(names[0], "__name__");
        assert!(
            series
                .samples
                .is_sorted_by(|a, b| a.timestamp < b.timestamp)
        );
        count += series.samples.len();
    }
    assert_eq!(count, points.len());
    let rate = request.timeseries.iter().find(|series| {
        let is_rate = |label: &remote_write::Label| {
            (&*label.name, &*label.value) == ("__name__", "plimsoll_live_requests_per_second")
        };
        series.labels.iter().any(is_rate)
    });
    let samples = &rate.unwrap().samples;
    let times: Vec<_> = samples.iter().map(|sample| sample.timestamp).collect();
    assert_eq!(
        times,
        [1_790_000_001_123, 1_790_000_002_123, 1_790_000_003_123]
    );
    assert!((samples[0].value - fixture::tick(1, false).ok as f64).abs() < 1e-9);
    let described = request.metadata.iter();
    let described = described.filter(|one| one.family == "plimsoll_live_in_flight");
    let described: Vec<_> = described.map(|one| (one.kind, &*one.help)).collect();
    assert_eq!(described, [(2, "exchanges under way")]);
}

#[test]
fn otlp_is_read_by_the_messages_of_opentelemetry() {
    let points = points();
    let bytes = Otlp { version: "9.9" }.encode(&points);
    let request = ExportMetricsServiceRequest::decode(&*bytes).unwrap();
    let [resource] = &*request.resource_metrics else {
        panic!("{request:?}");
    };
    let attributes = &resource.resource.as_ref().unwrap().attributes;
    let text = |value: &str| Some(Value::StringValue(value.to_owned()));
    assert_eq!(attributes[0].key, "service.name");
    let value = attributes[0].value.clone().unwrap().value;
    assert_eq!(value, text("plimsoll"));
    let [scope] = &*resource.scope_metrics else {
        panic!("{request:?}");
    };
    assert_eq!(scope.scope.as_ref().unwrap().version, "9.9");
    let mut count = 0;
    for metric in &scope.metrics {
        let Some(Data::Gauge(gauge)) = &metric.data else {
            panic!("{metric:?}");
        };
        count += gauge.data_points.len();
        for point in &gauge.data_points {
            assert!(point.time_unix_nano > 1_790_000_000_000_000_000);
            assert!(matches!(point.value, Some(Number::AsDouble(_))));
        }
    }
    assert_eq!(count, points.len());
    let of = |name: &str| scope.metrics.iter().find(|metric| metric.name == name);
    let latency = of("plimsoll.latency").unwrap();
    assert_eq!(latency.unit, "s");
    assert_eq!(of("plimsoll.live_received").unwrap().unit, "By/s");
    let of_responses = of("plimsoll.latency_of_responses").unwrap();
    assert_eq!(of_responses.unit, "s");
    let Some(Data::Gauge(gauge)) = &of_responses.data else {
        panic!("{of_responses:?}");
    };
    let kinds = gauge.data_points.iter().map(|point| {
        let mut labels = point.attributes.iter();
        let label = labels.find(|label| label.key == "responses");
        label.and_then(|label| label.value.clone()).unwrap().value
    });
    let kinds: Vec<_> = kinds.collect();
    let (ok, errors) = kinds.split_at(6);
    assert!(ok.iter().all(|kind| *kind == text("ok")), "{kinds:?}");
    assert_eq!(errors.len(), 6);
    assert!(
        errors.iter().all(|kind| *kind == text("error")),
        "{kinds:?}"
    );
    let Some(Data::Gauge(gauge)) = &latency.data else {
        panic!("{latency:?}");
    };
    let labels = &gauge.data_points[0].attributes;
    let labels: Vec<_> = labels.iter().map(|label| &*label.key).collect();
    assert_eq!(labels, ["run", "url", "quantile"]);
}

#[test]
fn what_a_receiver_does_not_take_is_reported() {
    let body = ExportMetricsServiceResponse {
        partial_success: Some(ExportMetricsPartialSuccess {
            rejected_data_points: 3,
            error_message: "too old".to_owned(),
        }),
    };
    let rejected = Rejected {
        points: 3,
        message: "too old".to_owned(),
    };
    assert_eq!(Otlp::rejected(&body.encode_to_vec()), Some(rejected));
    assert_eq!(Otlp::rejected(b""), None);
    let nothing = ExportMetricsServiceResponse {
        partial_success: Some(ExportMetricsPartialSuccess::default()),
    };
    assert_eq!(Otlp::rejected(&nothing.encode_to_vec()), None);
    assert_eq!(Otlp::rejected(b"<html>"), None);
}

/// The table of docs/load.md is what databases are sent: each name under both protocols, its unit, its labels, in the words
/// that are sent with it.
#[test]
fn every_series_is_in_the_documents_table() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/load.md");
    let document = std::fs::read_to_string(document).unwrap();
    let rows: Vec<Vec<&str>> = document
        .lines()
        .filter(|line| line.starts_with("| `plimsoll_"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let live = of_live().into_iter();
    let families = prometheus::FAMILIES.into_iter();
    let sent: Vec<(String, &str)> = live
        .chain(families.map(|(name, help, _)| (name.to_owned(), help)))
        .collect();
    let points = points();
    for (name, help) in &sent {
        let (short, unit) = otlp::name_and_unit(name);
        let expected = [
            format!("`plimsoll_{name}`"),
            format!("`plimsoll.{short}`"),
            unit.to_owned(),
        ];
        let row = rows.iter().find(|row| row[0] == expected[0]);
        let row = row.unwrap_or_else(|| panic!("docs/load.md has no row for {expected:?}"));
        assert_eq!(row[..3], expected, "{help}");
        assert_eq!(row[4], *help);
        for point in points.iter().filter(|point| point.name == *name) {
            let labels = point.labels.iter().map(|(label, _)| label.as_ref());
            for label in labels.filter(|label| !["run", "url"].contains(label)) {
                assert!(row[3].contains(&format!("`{label}`")), "{name} has {label}");
            }
        }
    }
    assert_eq!(rows.len(), sent.len(), "a row names what is not sent");
}

/// Names and meanings of the figures of a second.
fn of_live() -> Vec<(String, &'static str)> {
    let mut live: Vec<(String, &str)> = points()
        .into_iter()
        .filter(|point| point.name.starts_with("live_"))
        .map(|point| (point.name.into_owned(), point.help))
        .collect();
    live.sort_unstable();
    live.dedup();
    live
}
