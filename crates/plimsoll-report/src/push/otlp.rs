//! Metrics of OpenTelemetry over HTTP, as Protocol Buffers, which more receivers take than
//! JSON.
//!
//! Source: <https://opentelemetry.io/docs/specs/otlp/>, and the messages of
//! `opentelemetry.proto.collector.metrics.v1`, as far as gauges need them.

use std::collections::BTreeMap;

use prost::{Message, Oneof};

use super::{PREFIX, Point, since_epoch};

#[derive(Clone, PartialEq, Message)]
struct ExportRequest {
    #[prost(message, repeated, tag = "1")]
    resource_metrics: Vec<ResourceMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_metrics: Vec<ScopeMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeMetrics {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    metrics: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    description: String,
    #[prost(string, tag = "3")]
    unit: String,
    #[prost(message, optional, tag = "5")]
    gauge: Option<Gauge>,
}

#[derive(Clone, PartialEq, Message)]
struct Gauge {
    #[prost(message, repeated, tag = "1")]
    data_points: Vec<DataPoint>,
}

#[derive(Clone, PartialEq, Message)]
struct DataPoint {
    #[prost(message, repeated, tag = "7")]
    attributes: Vec<KeyValue>,
    #[prost(fixed64, tag = "3")]
    time_unix_nano: u64,
    /// Written even if it is zero: without it the point says that there is no value.
    #[prost(double, optional, tag = "4")]
    as_double: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "Value", tags = "1")]
    value: Option<Value>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Value {
    #[prost(string, tag = "1")]
    String(String),
}

#[derive(Clone, PartialEq, Message)]
struct ExportResponse {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected_data_points: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

/// The sender of the metrics.
#[derive(Debug, Clone, Copy)]
pub struct Otlp {
    /// The version of plimsoll.
    pub version: &'static str,
}

/// Points that a receiver did not take of a request that it accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// Points that it did not take; zero is a mere warning.
    pub points: u64,
    /// Why.
    pub message: String,
}

impl Otlp {
    /// The body of a request with `content-type: application/x-protobuf`.
    pub fn encode(&self, points: &[Point]) -> Vec<u8> {
        let mut metrics: BTreeMap<(&str, &str), Metric> = BTreeMap::new();
        for point in points {
            let key = (point.prefix, point.name.as_ref());
            let metric = metrics.entry(key).or_insert_with(|| {
                let (name, unit) = name_and_unit(&point.name);
                Metric {
                    name: format!("{}.{name}", point.prefix),
                    description: point.help.to_owned(),
                    unit: unit.to_owned(),
                    gauge: Some(Gauge::default()),
                }
            });
            let nanos = since_epoch(point.at).as_nanos();
            let gauge = metric.gauge.get_or_insert_default();
            gauge.data_points.push(DataPoint {
                attributes: point
                    .labels
                    .iter()
                    .map(|(key, value)| text(key, value))
                    .collect(),
                time_unix_nano: u64::try_from(nanos).unwrap_or(u64::MAX),
                as_double: Some(point.value),
            });
        }
        let request = ExportRequest {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(Resource {
                    attributes: vec![
                        text("service.name", PREFIX),
                        text("service.version", self.version),
                    ],
                }),
                scope_metrics: vec![ScopeMetrics {
                    scope: Some(Scope {
                        name: PREFIX.to_owned(),
                        version: self.version.to_owned(),
                    }),
                    metrics: metrics.into_values().collect(),
                }],
            }],
        };
        request.encode_to_vec()
    }

    /// The rejected points in the body of a successful response; mostly none.
    pub fn rejected(body: &[u8]) -> Option<Rejected> {
        let partial = ExportResponse::decode(body).ok()?.partial_success?;
        let rejected = Rejected {
            points: u64::try_from(partial.rejected_data_points).unwrap_or(0),
            message: partial.error_message,
        };
        (rejected.points > 0 || !rejected.message.is_empty()).then_some(rejected)
    }
}

fn text(key: &str, value: &str) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            value: Some(Value::String(value.to_owned())),
        }),
    }
}

/// OpenTelemetry keeps units apart from names (<https://ucum.org>).
pub(super) fn name_and_unit(name: &str) -> (&str, &'static str) {
    if let Some(name) = name.strip_suffix("_bytes_per_second") {
        (name, "By/s")
    } else if let Some(name) = name.strip_suffix("_seconds") {
        (name, "s")
    } else if let Some(name) = name.strip_suffix("_bytes") {
        (name, "By")
    } else if name.ends_with("_per_second") {
        (name, "1/s")
    } else if name.ends_with("_seconds_per_request") {
        (name, "s")
    } else {
        (name, "1")
    }
}
