//! A run as its result directory keeps it: what reports are made of.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use plimsoll_model::{Histogram, LatencyByStatus, RunSummary, Times};
use serde_json::Value;

use crate::SummaryDocument;
use crate::hdr;

/// One run: its summary, and how its latency was distributed.
#[derive(Debug, Clone)]
pub struct RunRecord {
    /// Its name beside others.
    pub name: String,
    /// The summary.
    pub summary: SummaryDocument,
    /// Latency from the intended start where there is one.
    pub latency: Times,
    /// Every interval of `latency.hdr` by its tag: the one without is `latency`, others are named after
    /// what they measure.
    pub intervals: Vec<(Option<String>, Histogram)>,
}

/// Why a result directory cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The summary is not JSON of the right shape.
    #[error("summary.json is not a summary of `plimsoll load`")]
    Summary(#[source] serde_json::Error),
    /// It is of another version.
    #[error("summary.json has the schema `{0}`, this program reads `{expected}`", expected = SummaryDocument::SCHEMA)]
    Schema(String),
    /// The latency log cannot be read.
    #[error("latency.hdr is not a log of HdrHistograms: {0}")]
    Latency(String),
}

impl RunRecord {
    /// The record of a run that has just been made.
    pub fn from_summary(name: &str, run: &RunSummary) -> Self {
        Self {
            name: name.to_owned(),
            summary: SummaryDocument::from_summary(run),
            latency: run.latency.honest().clone(),
            intervals: hdr::intervals(run)
                .map(|(tag, histogram)| (tag.map(str::to_owned), histogram.clone()))
                .collect(),
        }
    }

    /// Latencies of responses below 400 and of error statuses; `None` unless there are both, and in the results of
    /// versions that did not keep them.
    pub(crate) fn latency_by_status(&self) -> Option<LatencyByStatus<'_>> {
        let errors = self.interval(hdr::OF_ERRORS)?;
        let timeouts = self.interval(hdr::OF_TIMEOUTS);
        LatencyByStatus::from_errors(self.latency.observed(), errors, timeouts)
    }

    /// The interval with this tag.
    pub(crate) fn interval(&self, wanted: &str) -> Option<&Histogram> {
        let mut all = self.intervals.iter();
        all.find(|(tag, _)| tag.as_deref() == Some(wanted))
            .map(|(_, histogram)| histogram)
    }

    /// Reads what `--out` wrote.
    ///
    /// - `summary`, `latency`: the content of `summary.json` and `latency.hdr`.
    pub fn read(name: &str, summary: &[u8], latency: &[u8]) -> Result<Self, RecordError> {
        // By way of a value: numbers keep their text in JSON, and flattened structs cannot take them so.
        let summary: Value = serde_json::from_slice(summary).map_err(RecordError::Summary)?;
        let summary: SummaryDocument =
            serde_json::from_value(summary).map_err(RecordError::Summary)?;
        if summary.schema != SummaryDocument::SCHEMA {
            return Err(RecordError::Schema(summary.schema));
        }
        let intervals = read_intervals(latency)?;
        let find = |wanted: Option<&str>| {
            let mut all = intervals.iter();
            all.find(|(tag, _)| tag.as_deref() == wanted)
                .map(|(_, histogram)| histogram.clone())
        };
        let Some(latency) = find(None) else {
            return Err(RecordError::Latency("it holds no interval".to_owned()));
        };
        let censored = find(Some(hdr::CENSORED)).unwrap_or_default();
        Ok(Self {
            name: name.to_owned(),
            summary,
            latency: Times::from_parts(latency, censored),
            intervals,
        })
    }
}

/// Every interval with its tag.
fn read_intervals(log: &[u8]) -> Result<Vec<(Option<String>, Histogram)>, RecordError> {
    let mut intervals = Vec::new();
    for entry in IntervalLogIterator::new(log) {
        let entry = entry.map_err(|error| RecordError::Latency(format!("{error:?}")))?;
        let LogEntry::Interval(interval) = entry else {
            continue;
        };
        let bytes = STANDARD
            .decode(interval.encoded_histogram())
            .map_err(|error| RecordError::Latency(error.to_string()))?;
        let read: hdrhistogram::Histogram<u64> =
            Deserializer::new()
                .deserialize(&mut &bytes[..])
                .map_err(|error| RecordError::Latency(error.to_string()))?;
        let tag = interval.tag().map(|tag| tag.as_str().to_owned());
        intervals.push((tag, Histogram::from_hdr(read)));
    }
    Ok(intervals)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fixture, latency_log};

    #[test]
    fn what_was_written_is_read_again() {
        for (name, run) in fixture::all() {
            let made = RunRecord::from_summary(name, &run);
            let summary = made.summary.to_json();
            let read = RunRecord::read(name, summary.as_bytes(), &latency_log(&run)).unwrap();
            assert_eq!(read.summary, made.summary, "{name}");
            let count = |record: &RunRecord| record.latency.view().len();
            assert_eq!(count(&read), count(&made), "{name}");
            for quantile in [0.5, 0.99, 0.999] {
                let quantiles = [&read, &made].map(|record| record.latency.quantile(quantile));
                assert_eq!(quantiles[0], quantiles[1], "{name}");
            }
        }
    }

    #[test]
    fn what_is_something_else_is_reported() {
        let run = fixture::closed();
        let summary = SummaryDocument::from_summary(&run).to_json();
        let log = latency_log(&run);
        let error = |summary: &str, log: &[u8]| {
            RunRecord::read("run", summary.as_bytes(), log)
                .unwrap_err()
                .to_string()
        };
        assert!(error("{}", &log).contains("not a summary"));
        let other = summary.replace("load.summary/1", "load.summary/9");
        assert!(error(&other, &log).contains("`plimsoll.load.summary/9`"));
        assert!(error(&summary, b"nonsense\n").contains("latency.hdr"));
        assert!(error(&summary, b"").contains("no interval"));
    }
}
