//! `latency.hdr`: the log of histograms, read by the library of the format.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

use super::{BUCKET, Figures, Shown, exact};
use crate::Failure;

pub(super) fn figures(log: &str) -> Result<Figures, Failure> {
    let mut times: Option<Histogram<u64>> = None;
    let mut given_up: Option<Histogram<u64>> = None;
    for entry in IntervalLogIterator::new(log.as_bytes()) {
        let entry = entry.map_err(|error| format!("latency.hdr: {error:?}"))?;
        let LogEntry::Interval(interval) = entry else {
            continue;
        };
        let histogram = || -> Result<Histogram<u64>, Failure> {
            let bytes = STANDARD.decode(interval.encoded_histogram());
            let bytes = bytes.map_err(|error| format!("latency.hdr: {error}"))?;
            let histogram = Deserializer::new().deserialize(&mut &bytes[..]);
            histogram.map_err(|error| format!("latency.hdr: {error}").into())
        };
        match interval.tag().map(|tag| tag.as_str()) {
            None => times = Some(histogram()?),
            Some("censored") => given_up = Some(histogram()?),
            Some(_) => {}
        }
    }
    let mut times = times.ok_or("latency.hdr has no interval")?;
    let mut figures = Figures::new();
    if let Some(given_up) = given_up {
        // A reader of the log knows no marks: what is compared are the lower bounds.
        times.auto(true);
        times
            .add(&given_up)
            .map_err(|error| format!("latency.hdr: {error}"))?;
    }
    figures.insert("latencies", exact(times.len() as f64));
    if !times.is_empty() {
        let quantiles = [
            ("p50", 0.5),
            ("p75", 0.75),
            ("p90", 0.9),
            ("p95", 0.95),
            ("p99", 0.99),
            ("p99.9", 0.999),
            ("max", 1.0),
        ];
        let quantiles = quantiles.map(|(name, fraction)| {
            let value = times.value_at_quantile(fraction) as f64;
            (name, value)
        });
        let others = [("min", times.min() as f64), ("mean", times.mean())];
        for (name, nanoseconds) in quantiles.into_iter().chain(others) {
            let shown = Shown {
                value: nanoseconds / 1e3,
                is_bound: false,
                rounding: BUCKET,
            };
            figures.insert(name, shown);
        }
    }
    Ok(figures)
}
