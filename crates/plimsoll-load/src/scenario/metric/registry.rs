//! The metrics of a run, by name.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How samples of a metric are aggregated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MetricKind {
    /// Their sum.
    Counter,
    /// The last one.
    Gauge,
    /// How many are not 0.
    Rate,
    /// Their distribution.
    Trend,
}

impl MetricKind {
    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Rate => "rate",
            Self::Trend => "trend",
        }
    }
}

/// The meaning of a metric's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Contains {
    /// Numbers.
    Default,
    /// Milliseconds.
    Time,
    /// Bytes.
    Data,
}

impl Contains {
    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Time => "time",
            Self::Data => "data",
        }
    }
}

/// Names a metric of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MetricId(pub(super) u32);

impl MetricId {
    /// Its number within the run, as scripts keep it.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The metric of a number; samples of one that was never registered are ignored.
    pub fn of_number(number: u32) -> Self {
        Self(number)
    }
}

/// Names a series of a run: a metric, or a sub-metric of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SeriesId(pub(super) u32);

/// A name and a value that samples carry.
pub type Tag<'a> = (Cow<'a, str>, Cow<'a, str>);

/// A metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// Its name.
    pub name: Arc<str>,
    /// How its samples are aggregated.
    pub kind: MetricKind,
    /// The meaning of its numbers.
    pub contains: Contains,
    /// True if its trends keep every value.
    pub is_exact: bool,
    /// The series of all samples.
    pub series: SeriesId,
    /// Those of samples with certain tags.
    pub sub_metrics: Vec<SubMetric>,
}

/// A series that counts only samples with certain tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubMetric {
    /// As it was written: `http_req_duration{status:200}`.
    pub name: Arc<str>,
    /// The tags that a sample must have.
    pub tags: Vec<(String, String)>,
    /// The series.
    pub series: SeriesId,
}

impl SubMetric {
    /// Whether a sample with these tags counts.
    pub fn matches(&self, tags: &[Tag<'_>]) -> bool {
        self.tags.iter().all(|(name, value)| {
            let mut found = tags.iter().filter(|(other, _)| other == name);
            // A later tag overrides an earlier one of its name.
            found.next_back().is_some_and(|(_, other)| other == value)
        })
    }
}

/// Why a metric cannot be registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetricError {
    /// The name has other characters than letters, digits and `_`, begins with a digit, or is too long.
    #[error(
        "invalid metric name `{0}`: use 2 to 129 letters, digits and underscores, beginning with a letter or an underscore"
    )]
    Name(String),
    /// There is one of that name with another kind or meaning.
    #[error("metric `{name}` already exists as a {kind} that contains {contains}")]
    Differs {
        /// The name.
        name: String,
        /// Its kind.
        kind: &'static str,
        /// Its meaning.
        contains: &'static str,
    },
    /// There is no metric of that name.
    #[error("there is no metric `{0}`")]
    Unknown(String),
}

/// The metrics of a run; clones share them. Locked when scripts are initialised, not while they run.
#[derive(Debug, Clone, Default)]
pub struct Registry(Arc<Mutex<Metrics>>);

#[derive(Debug, Default)]
struct Metrics {
    by_name: HashMap<Arc<str>, MetricId>,
    all: Vec<Arc<Metric>>,
    series: u32,
    is_exact: bool,
}

impl Metrics {
    fn next_series(&mut self) -> SeriesId {
        self.series += 1;
        SeriesId(self.series - 1)
    }
}

impl Registry {
    /// A registry whose trends keep every value, so that their quantiles are exact and take 8 bytes for each sample.
    pub fn exact() -> Self {
        let registry = Self::default();
        registry.lock().is_exact = true;
        registry
    }

    /// The metric of that name; it is added if there is none.
    pub fn register(
        &self,
        name: &str,
        kind: MetricKind,
        contains: Contains,
    ) -> Result<MetricId, MetricError> {
        if !is_name(name) {
            return Err(MetricError::Name(name.to_owned()));
        }
        let mut metrics = self.lock();
        if let Some(id) = metrics.by_name.get(name).copied() {
            let metric = &metrics.all[id.0 as usize];
            if metric.kind == kind && metric.contains == contains {
                return Ok(id);
            }
            return Err(MetricError::Differs {
                name: name.to_owned(),
                kind: metric.kind.name(),
                contains: metric.contains.name(),
            });
        }
        let id = MetricId(u32::try_from(metrics.all.len()).unwrap_or(u32::MAX));
        let name: Arc<str> = Arc::from(name);
        let series = metrics.next_series();
        let is_exact = metrics.is_exact;
        metrics.by_name.insert(Arc::clone(&name), id);
        metrics.all.push(Arc::new(Metric {
            name,
            kind,
            contains,
            is_exact,
            series,
            sub_metrics: Vec::new(),
        }));
        Ok(id)
    }

    /// Adds a series of the samples that have certain tags; one that exists is found again. To be called before the
    /// first sample.
    ///
    /// - `written`: as the user wrote it, `name{tag:value}`.
    pub fn sub_metric(&self, id: MetricId, written: &str, tags: Vec<(String, String)>) -> SeriesId {
        let mut metrics = self.lock();
        let existing = metrics.all[id.0 as usize].sub_metrics.iter();
        if let Some(found) = existing.clone().find(|sub| *sub.name == *written) {
            return found.series;
        }
        let series = metrics.next_series();
        let mut metric = Metric::clone(&metrics.all[id.0 as usize]);
        metric.sub_metrics.push(SubMetric {
            name: Arc::from(written),
            tags,
            series,
        });
        metrics.all[id.0 as usize] = Arc::new(metric);
        series
    }

    /// The names of tags by which sub-metrics tell samples apart.
    pub fn tag_names(&self) -> Vec<String> {
        let metrics = self.lock();
        let tags = metrics.all.iter().flat_map(|metric| &metric.sub_metrics);
        let mut names: Vec<_> = tags
            .flat_map(|sub| &sub.tags)
            .map(|(name, _)| name.clone())
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// The id of a metric.
    pub fn find(&self, name: &str) -> Result<MetricId, MetricError> {
        let metrics = self.lock();
        let id = metrics.by_name.get(name).copied();
        id.ok_or_else(|| MetricError::Unknown(name.to_owned()))
    }

    /// A metric. Panics if the id is not one of this registry.
    pub fn metric(&self, id: MetricId) -> Arc<Metric> {
        self.get(id).expect("ids are those of this registry")
    }

    /// A metric, if there is one of that id.
    pub fn get(&self, id: MetricId) -> Option<Arc<Metric>> {
        self.lock().all.get(id.0 as usize).cloned()
    }

    /// All metrics, in the order in which they were registered.
    pub fn metrics(&self) -> Vec<Arc<Metric>> {
        self.lock().all.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Metrics> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Names as k6 allows them: `^[a-zA-Z_][a-zA-Z0-9_]{1,128}$`.
fn is_name(name: &str) -> bool {
    let mut letters = name.bytes();
    let first = letters.next();
    first.is_some_and(|it| it.is_ascii_alphabetic() || it == b'_')
        && (2..=129).contains(&name.len())
        && letters.all(|it| it.is_ascii_alphanumeric() || it == b'_')
}
