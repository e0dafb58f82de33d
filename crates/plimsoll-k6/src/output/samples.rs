//! Samples written one by one, as k6's outputs `json` and `csv` do.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_load::scenario::{Metric, Point, Points, Registry};
use serde_json::{Map, Value, json};

use crate::metrics::thresholds::ThresholdOptions;
use crate::options::Options;
use crate::options::duration::go_duration;

/// The format of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleFormat {
    /// A line of JSON for each metric, before its first sample, and one for each sample.
    Json,
    /// A line for each sample, with a column for each system tag.
    Csv(CsvTime),
}

/// The times in samples of CSV.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CsvTime {
    /// Seconds since 1970.
    #[default]
    Seconds,
    /// Milliseconds since 1970.
    Milliseconds,
    /// Microseconds since 1970.
    Microseconds,
    /// Nanoseconds since 1970.
    Nanoseconds,
    /// `2026-01-31T10:00:00Z`.
    Rfc3339,
    /// The same with nanoseconds.
    Rfc3339Nanoseconds,
}

impl CsvTime {
    /// The names of all, as `K6_CSV_TIME_FORMAT` has them.
    pub const NAMES: [(&'static str, Self); 6] = [
        ("unix", Self::Seconds),
        ("unix_milli", Self::Milliseconds),
        ("unix_micro", Self::Microseconds),
        ("unix_nano", Self::Nanoseconds),
        ("rfc3339", Self::Rfc3339),
        ("rfc3339_nano", Self::Rfc3339Nanoseconds),
    ];

    fn text(self, at: SystemTime) -> String {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        match self {
            Self::Seconds => since.as_secs().to_string(),
            Self::Milliseconds => since.as_millis().to_string(),
            Self::Microseconds => since.as_micros().to_string(),
            Self::Nanoseconds => since.as_nanos().to_string(),
            Self::Rfc3339 => humantime::format_rfc3339_seconds(at).to_string(),
            Self::Rfc3339Nanoseconds => humantime::format_rfc3339_nanos(at).to_string(),
        }
    }
}

/// An output of samples.
pub struct SampleOutput {
    /// For messages: the name of the file.
    pub name: String,
    /// Their format.
    pub format: SampleFormat,
    /// Opens the file once the script and its options are valid: a script that is not leaves no files behind. Writing should be buffered.
    pub open: OpenSamples,
}

/// Opens the file of an output, once.
pub type OpenSamples = Box<dyn Fn() -> io::Result<Box<dyn SampleFile>>>;

/// A file of samples. It is flushed about once a second, so that others can follow the run in it.
pub trait SampleFile: Write {
    /// Completes the file at the end of the run.
    fn finish(&mut self) -> io::Result<()> {
        self.flush()
    }
}

impl<W: Write> SampleFile for io::BufWriter<W> {}

impl SampleFile for io::Sink {}

impl std::fmt::Debug for SampleOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SampleOutput")
            .field("name", &self.name)
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

/// Writes samples to one output.
pub(crate) struct SampleWriter<'a> {
    output: &'a SampleOutput,
    file: Box<dyn SampleFile>,
    registry: Registry,
    /// Metrics that were described already, by their ids.
    described: Vec<bool>,
    /// The columns of CSV.
    columns: Vec<String>,
    /// Those of metrics, as written.
    thresholds: BTreeMap<String, Vec<Value>>,
    /// Nothing is written behind an error.
    failed: Option<io::Error>,
}

/// An output of samples that cannot be opened or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {output}: {cause}")]
pub(crate) struct SampleError {
    output: String,
    cause: io::Error,
}

impl<'a> SampleWriter<'a> {
    /// Fails if the output cannot be opened.
    pub(crate) fn new(
        output: &'a SampleOutput,
        options: &Options,
        registry: &Registry,
    ) -> Result<Self, SampleError> {
        let opened = (output.open)();
        let opened = opened.map_err(|cause| SampleError {
            output: output.name.clone(),
            cause,
        });
        let mut columns = options.system_tags.clone();
        columns.retain(|name| name != "vu" && name != "iter");
        columns.sort();
        let thresholds = options
            .thresholds
            .iter()
            .map(|(metric, list)| (metric.clone(), list.iter().map(described).collect()));
        let mut writer = Self {
            output,
            file: opened?,
            registry: registry.clone(),
            described: Vec::new(),
            columns,
            thresholds: thresholds.collect(),
            failed: None,
        };
        if matches!(writer.output.format, SampleFormat::Csv(_)) {
            let head = writer.head();
            writer.attempt(|file| file.write_all(&head));
        }
        Ok(writer)
    }

    /// - `start`: of the run.
    pub(crate) fn write(&mut self, points: &Points, start: SystemTime) {
        for point in &points.all {
            let Some(metric) = self.registry.get(point.metric) else {
                continue;
            };
            let at = start + point.at;
            let line = match self.output.format {
                SampleFormat::Json => self.json(&metric, point, at),
                SampleFormat::Csv(time) => self.csv(&metric, point, &time.text(at)),
            };
            self.attempt(|file| file.write_all(&line));
        }
    }

    /// Writes what is buffered.
    pub(crate) fn flush(&mut self) {
        self.attempt(|file| file.flush());
    }

    /// Completes the file, and returns why not everything was written.
    pub(crate) fn finish(mut self) -> Result<(), SampleError> {
        self.attempt(|file| file.finish());
        match self.failed {
            Some(cause) => Err(SampleError {
                output: self.output.name.clone(),
                cause,
            }),
            None => Ok(()),
        }
    }

    fn attempt(&mut self, write: impl FnOnce(&mut dyn SampleFile) -> io::Result<()>) {
        if self.failed.is_some() {
            return;
        }
        if let Err(error) = write(&mut *self.file) {
            self.failed = Some(error);
        }
    }

    fn json(&mut self, metric: &Metric, point: &Point, at: SystemTime) -> Vec<u8> {
        let mut lines = String::new();
        let index = point.metric.number() as usize;
        if self.described.len() <= index {
            self.described.resize(index + 1, false);
        }
        if !std::mem::replace(&mut self.described[index], true) {
            let line = json!({ "type": "Metric", "data": self.description(metric), "metric": *metric.name });
            lines.push_str(&line.to_string());
            lines.push('\n');
        }
        let tags: Map<String, Value> = sorted(point)
            .into_iter()
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect();
        let mut line = json!({
            "metric": *metric.name,
            "type": "Point",
            "data": { "time": humantime::format_rfc3339_nanos(at).to_string(), "value": number(point.value), "tags": tags },
        });
        if let Some(metadata) = &point.metadata {
            let pairs = metadata.iter();
            let pairs = pairs.map(|(name, value)| (name.clone(), json!(value)));
            line["data"]["metadata"] = Value::Object(pairs.collect());
        }
        lines.push_str(&line.to_string());
        lines.push('\n');
        lines.into_bytes()
    }

    fn description(&self, metric: &Metric) -> Value {
        let sub_metrics: Vec<_> = metric
            .sub_metrics
            .iter()
            .map(|sub| {
                let suffix = sub.name.split_once('{').map_or("", |(_, rest)| rest);
                let tags: Map<String, Value> = sub
                    .tags
                    .iter()
                    .map(|(name, value)| (name.clone(), json!(value)))
                    .collect();
                let suffix = suffix.strip_suffix('}').unwrap_or(suffix);
                json!({ "name": *sub.name, "suffix": suffix, "tags": tags })
            })
            .collect();
        let thresholds = self
            .thresholds
            .get(&*metric.name)
            .cloned()
            .unwrap_or_default();
        json!({
            "name": *metric.name,
            "type": metric.kind.name(),
            "contains": metric.contains.name(),
            "thresholds": thresholds,
            "submetrics": if sub_metrics.is_empty() { Value::Null } else { json!(sub_metrics) },
        })
    }

    fn head(&self) -> Vec<u8> {
        let before = ["metric_name", "timestamp", "metric_value"];
        let columns = self.columns.iter().map(String::as_str);
        record(
            before
                .into_iter()
                .chain(columns)
                .chain(["extra_tags", "metadata"]),
        )
    }

    fn csv(&self, metric: &Metric, point: &Point, at: &str) -> Vec<u8> {
        let tags = sorted(point);
        let value = format!("{:.6}", point.value);
        let own = self
            .columns
            .iter()
            .map(|name| tags.get(name.as_str()).copied().unwrap_or_default());
        let extra = tags
            .iter()
            .filter(|(name, _)| !self.columns.iter().any(|column| column == *name));
        let pair = |(name, value): (&str, &str)| format!("{name}={value}");
        let extra: Vec<_> = extra.map(|(name, value)| pair((name, value))).collect();
        let extra = extra.join("&");
        let metadata = point.metadata.iter().flat_map(|all| all.iter());
        let metadata: Vec<_> = metadata.map(|(name, value)| pair((name, value))).collect();
        let metadata = metadata.join("&");
        let before = [&*metric.name, at, value.as_str()];
        record(
            before
                .into_iter()
                .chain(own)
                .chain([extra.as_str(), metadata.as_str()]),
        )
    }
}

/// A threshold as k6 describes it: its source, or an object if it aborts the run.
fn described(threshold: &ThresholdOptions) -> Value {
    if !threshold.aborts {
        return json!(threshold.source);
    }
    json!({
        "threshold": threshold.source,
        "abortOnFail": true,
        "delayAbortEval": threshold.delay.map(go_duration),
    })
}

fn record<'t>(fields: impl Iterator<Item = &'t str>) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    // Writing to memory does not fail.
    writer.write_record(fields).ok();
    writer.into_inner().unwrap_or_default()
}

/// By name; later ones override earlier ones.
fn sorted(point: &Point) -> BTreeMap<&str, &str> {
    let tags = point.tags.iter();
    tags.map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

/// Whole numbers without a fraction, as k6 writes them.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is whole and small enough"
        )]
        return json!(value as i64);
    }
    json!(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_csv() {
        let at = UNIX_EPOCH + Duration::new(1_700_000_000, 1_002_003);
        let texts = CsvTime::NAMES.map(|(_, time)| time.text(at));
        assert_eq!(
            texts,
            [
                "1700000000",
                "1700000000001",
                "1700000000001002",
                "1700000000001002003",
                "2023-11-14T22:13:20Z",
                "2023-11-14T22:13:20.001002003Z",
            ]
        );
    }
}
