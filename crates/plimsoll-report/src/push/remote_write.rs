//! Prometheus remote write, version 1: a message of Protocol Buffers in the block format of Snappy.
//!
//! Source: <https://prometheus.io/docs/specs/prw/remote_write_spec/>.

use std::collections::BTreeMap;

use prost::Message;

use super::{Point, since_epoch};

#[derive(Clone, PartialEq, Message)]
pub(super) struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) timeseries: Vec<TimeSeries>,
    #[prost(message, repeated, tag = "3")]
    pub(super) metadata: Vec<Metadata>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TimeSeries {
    /// Sorted by name, as the specification demands.
    #[prost(message, repeated, tag = "1")]
    pub(super) labels: Vec<Label>,
    /// Oldest first.
    #[prost(message, repeated, tag = "2")]
    pub(super) samples: Vec<Sample>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Label {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Sample {
    #[prost(double, tag = "1")]
    pub(super) value: f64,
    /// Milliseconds since 1970.
    #[prost(int64, tag = "2")]
    pub(super) timestamp: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Metadata {
    #[prost(int32, tag = "1")]
    pub(super) kind: i32,
    #[prost(string, tag = "2")]
    pub(super) family: String,
    #[prost(string, tag = "4")]
    pub(super) help: String,
}

/// The kind of everything that is sent.
const GAUGE: i32 = 2;

/// The body of a request with `content-type: application/x-protobuf` and `content-encoding: snappy`.
///
/// Of several values of one series within a millisecond the last one counts.
pub fn remote_write(points: &[Point]) -> Vec<u8> {
    let mut families = BTreeMap::new();
    let mut series: BTreeMap<Vec<(&str, &str)>, BTreeMap<i64, f64>> = BTreeMap::new();
    let names: Vec<_> = points
        .iter()
        .map(|point| format!("{}_{}", point.prefix, point.name))
        .collect();
    for (point, name) in points.iter().zip(&names) {
        families.insert(name, point.help);
        let mut labels = vec![("__name__", name.as_str())];
        labels.extend(point.labels.iter().map(|(name, value)| (&**name, &**value)));
        labels.sort_unstable();
        let millis = i64::try_from(since_epoch(point.at).as_millis()).unwrap_or(i64::MAX);
        series
            .entry(labels)
            .or_default()
            .insert(millis, point.value);
    }
    let request = WriteRequest {
        timeseries: series
            .into_iter()
            .map(|(labels, samples)| TimeSeries {
                labels: labels
                    .into_iter()
                    .map(|(name, value)| Label {
                        name: name.to_owned(),
                        value: value.to_owned(),
                    })
                    .collect(),
                samples: samples
                    .into_iter()
                    .map(|(timestamp, value)| Sample { value, timestamp })
                    .collect(),
            })
            .collect(),
        metadata: families
            .into_iter()
            .map(|(family, help)| Metadata {
                kind: GAUGE,
                family: family.clone(),
                help: help.to_owned(),
            })
            .collect(),
    };
    snap::raw::Encoder::new()
        .compress_vec(&request.encode_to_vec())
        .expect("a batch of points is far below the 4 GiB that Snappy takes")
}
