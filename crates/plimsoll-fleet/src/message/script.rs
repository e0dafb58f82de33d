//! The figures of a script as JSON: the aggregates of its metrics, its checks, how far its scenarios are.

use std::time::Duration;

use plimsoll_load::scenario::metric::{GaugeSink, RateSink, Trend, TrendParts};
use plimsoll_load::scenario::{
    Contains, MetricKind, PartExchanges, ScenarioCounts, SeriesFigures, Sink,
};
use serde::{Deserialize, Serialize};

use super::exchanges::ExchangesRecord;
use super::figures::FiguresError;

/// What virtual users of an agent have measured since its last tick.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptFigures {
    series: Vec<SeriesRecord>,
    /// Since the start of the run.
    pub checks: Vec<CheckFigures>,
    /// Paths of groups, since the start of the run.
    pub groups: Vec<String>,
    /// By name: active, initialised, completed, interrupted and aborted.
    scenarios: Vec<(String, [u64; 5])>,
    /// Absent if exchanges are not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    exchanges: Option<Box<ExchangesRecord>>,
    /// The busiest worker since the last tick: share of one core in percent.
    pub busiest_worker_percent: f64,
}

/// A check with its results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckFigures {
    /// The path of its group.
    pub group: String,
    /// Its name.
    pub name: String,
    /// How often it was met.
    pub passes: u64,
    /// How often it was not.
    pub fails: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SeriesRecord {
    metric: String,
    kind: String,
    contains: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sub_metric: Option<String>,
    sink: SinkRecord,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum SinkRecord {
    Counter(f64),
    Gauge {
        value: f64,
        min: f64,
        max: f64,
        at_us: Option<u64>,
    },
    Rate {
        passes: u64,
        total: u64,
    },
    Trend(Box<TrendRecord>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrendRecord {
    /// Page, bucket and count of [`Trend`].
    buckets: Vec<(i16, u16, u64)>,
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
    has_fractions: bool,
    /// Every value, if the trends of the run are exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    values: Option<Vec<f64>>,
}

const KINDS: [MetricKind; 4] = [
    MetricKind::Counter,
    MetricKind::Gauge,
    MetricKind::Rate,
    MetricKind::Trend,
];

const CONTENTS: [Contains; 3] = [Contains::Default, Contains::Time, Contains::Data];

impl ScriptFigures {
    /// - `series`: aggregates since the last tick.
    /// - `checks`, `groups`: since the start of the run.
    /// - `exchanges`: since the last tick, if they are recorded.
    pub fn new(
        series: &[SeriesFigures],
        checks: Vec<CheckFigures>,
        groups: Vec<String>,
        scenarios: &[(String, ScenarioCounts)],
        exchanges: Option<&PartExchanges>,
    ) -> Self {
        let scenarios = scenarios.iter().map(|(name, counts)| {
            let ScenarioCounts {
                active,
                initialised,
                completed,
                interrupted,
                aborted,
            } = *counts;
            let counts = [active, initialised, completed, interrupted, aborted];
            (name.clone(), counts)
        });
        Self {
            series: series.iter().map(SeriesRecord::from_figures).collect(),
            checks,
            groups,
            scenarios: scenarios.collect(),
            exchanges: exchanges.map(|it| Box::new(ExchangesRecord::from_part(it))),
            busiest_worker_percent: 0.0,
        }
    }

    /// The exchanges, if they are recorded.
    pub fn exchanges(&self) -> Result<Option<PartExchanges>, FiguresError> {
        let record = self.exchanges.as_ref();
        record.map(|record| record.read()).transpose()
    }

    /// The record of the exchanges.
    pub(super) fn exchanges_record(&self) -> Option<&ExchangesRecord> {
        self.exchanges.as_deref()
    }

    /// The aggregates.
    pub fn series(&self) -> Result<Vec<SeriesFigures>, FiguresError> {
        self.series.iter().map(SeriesRecord::read).collect()
    }

    /// The records of the aggregates.
    pub(super) fn records(&self) -> &[SeriesRecord] {
        &self.series
    }

    /// How far the scenarios are, by their names.
    pub fn scenarios(&self) -> Vec<(String, ScenarioCounts)> {
        let scenarios = self.scenarios.iter();
        let counts = scenarios.map(|(name, counts)| {
            let [active, initialised, completed, interrupted, aborted] = *counts;
            let counts = ScenarioCounts {
                active,
                initialised,
                completed,
                interrupted,
                aborted,
            };
            (name.clone(), counts)
        });
        counts.collect()
    }
}

impl SeriesRecord {
    fn from_figures(figures: &SeriesFigures) -> Self {
        Self {
            metric: figures.metric.clone(),
            kind: figures.kind.name().to_owned(),
            contains: figures.contains.name().to_owned(),
            sub_metric: figures.sub_metric.clone(),
            sink: match &figures.sink {
                Sink::Counter(sum) => SinkRecord::Counter(*sum),
                Sink::Gauge(gauge) => SinkRecord::Gauge {
                    value: gauge.value,
                    min: gauge.min,
                    max: gauge.max,
                    at_us: gauge
                        .at
                        .map(|at| u64::try_from(at.as_micros()).unwrap_or(u64::MAX)),
                },
                Sink::Rate(rate) => SinkRecord::Rate {
                    passes: rate.passes,
                    total: rate.total,
                },
                Sink::Trend(trend) => {
                    let parts = trend.parts();
                    SinkRecord::Trend(Box::new(TrendRecord {
                        buckets: parts.buckets,
                        count: parts.count,
                        sum: parts.sum,
                        min: parts.min,
                        max: parts.max,
                        has_fractions: parts.has_fractions,
                        values: parts.values,
                    }))
                }
            },
        }
    }

    fn read(&self) -> Result<SeriesFigures, FiguresError> {
        let kind = KINDS.into_iter().find(|kind| kind.name() == self.kind);
        let kind = kind.ok_or(FiguresError("kind of a metric"))?;
        let contains = CONTENTS.into_iter().find(|it| it.name() == self.contains);
        let (sink, is_of) = match &self.sink {
            SinkRecord::Counter(sum) => (Sink::Counter(*sum), MetricKind::Counter),
            SinkRecord::Gauge {
                value,
                min,
                max,
                at_us,
            } => {
                let gauge = GaugeSink {
                    value: *value,
                    min: *min,
                    max: *max,
                    at: at_us.map(Duration::from_micros),
                };
                (Sink::Gauge(gauge), MetricKind::Gauge)
            }
            SinkRecord::Rate { passes, total } => {
                let (passes, total) = (*passes, *total);
                (Sink::Rate(RateSink { passes, total }), MetricKind::Rate)
            }
            SinkRecord::Trend(record) => {
                let trend = Trend::from_parts(TrendParts {
                    buckets: record.buckets.clone(),
                    count: record.count,
                    sum: record.sum,
                    min: record.min,
                    max: record.max,
                    has_fractions: record.has_fractions,
                    values: record.values.clone(),
                });
                let trend = trend.ok_or(FiguresError("trend"))?;
                (Sink::Trend(Box::new(trend)), MetricKind::Trend)
            }
        };
        if is_of != kind {
            return Err(FiguresError("kind of an aggregate"));
        }
        Ok(SeriesFigures {
            metric: self.metric.clone(),
            kind,
            contains: contains.ok_or(FiguresError("content of a metric"))?,
            sub_metric: self.sub_metric.clone(),
            sink,
        })
    }

    /// What a checksum counts: the samples of rates and trends, by their values as far as they are known.
    pub(super) fn counted(&self, mut count: impl FnMut(u64, u64)) {
        match &self.sink {
            SinkRecord::Rate { passes, total } => {
                count(1, *passes);
                count(2, *total);
            }
            SinkRecord::Trend(trend) => {
                count(3, trend.count);
                for (page, bucket, number) in &trend.buckets {
                    let place = (u64::from(page.unsigned_abs()) << 16) | u64::from(*bucket);
                    count((place << 2) | u64::from(*page < 0), *number);
                }
            }
            SinkRecord::Counter(_) | SinkRecord::Gauge { .. } => {}
        }
    }

    pub(super) fn name(&self) -> (&str, Option<&str>) {
        (&self.metric, self.sub_metric.as_deref())
    }

    /// The sum of a counter, as a whole number.
    pub(super) fn whole(&self) -> Option<u64> {
        match self.sink {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it counts"
            )]
            SinkRecord::Counter(sum) => Some(sum.max(0.0) as u64),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
