//! The generator's configuration.

use plimsoll_model::{LoadModel, LoadShape};
use serde::{Deserialize, Serialize};

use super::microseconds;

/// The generator's configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadDocument {
    /// The target's URL, credentials masked; the first one where there are several.
    pub url: String,
    /// Number of distinct URLs requested.
    pub urls: usize,
    /// The request method.
    pub method: String,
    /// The conditions on every response, as written.
    #[serde(default)]
    pub expectations: Vec<String>,
    /// The statuses that `--fail-status` names, as it was written; null if it was not given.
    #[serde(default)]
    pub fail_status: Option<String>,
    /// `closed` or `open`.
    pub model: String,
    /// Arrivals per second of an open loop.
    pub rate_per_second: Option<f64>,
    /// `HTTP/1.1` or `HTTP/2`.
    pub protocol: String,
    /// The name of exchanges, in the plural: `requests`, `round trips` or `streams`.
    #[serde(default = "requests")]
    pub exchanges: String,
    /// Connections at most.
    pub connections: usize,
    /// Exchanges at a time on each connection.
    pub streams: usize,
    /// The UDP payload that was set for QUIC packets; null where it was found by probing, or is none.
    pub udp_payload_bytes: Option<u16>,
    /// Worker threads.
    pub workers: usize,
    /// Configured length, if the run was bounded by time.
    pub duration_us: Option<f64>,
    /// Configured requests, if the run was bounded by number.
    pub requests: Option<u64>,
    /// Time at the start that is left out of the figures.
    pub warm_up_us: f64,
}

/// The name of exchanges in documents that do not have one.
fn requests() -> String {
    "requests".to_owned()
}

impl LoadDocument {
    pub(super) fn from_shape(load: &LoadShape) -> Self {
        let (model, rate) = match load.model {
            LoadModel::Closed => ("closed", None),
            LoadModel::Open { rate } => ("open", Some(rate.per_second())),
        };
        Self {
            url: load.url.clone(),
            urls: load.urls,
            method: load.method.clone(),
            expectations: load.expectations.clone(),
            fail_status: load.fail_status.clone(),
            model: model.to_owned(),
            rate_per_second: rate,
            protocol: load.protocol.name().to_owned(),
            exchanges: load.exchanges.plural().to_owned(),
            connections: load.connections,
            streams: load.streams,
            udp_payload_bytes: load.udp_payload,
            workers: load.workers,
            duration_us: load.duration.map(microseconds),
            requests: load.requests,
            warm_up_us: microseconds(load.warm_up),
        }
    }
}
