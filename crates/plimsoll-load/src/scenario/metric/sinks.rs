//! The aggregates of one worker, or of all.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;

use super::point::{Metadata, Points};
use super::registry::{Metric, MetricId, Registry, SeriesId, Tag};
use super::sink::Sink;

/// Adds samples to the series that they belong to.
#[derive(Debug)]
pub struct Sinks {
    registry: Registry,
    /// Metrics that had samples, by their ids.
    known: Vec<Option<Arc<Metric>>>,
    /// By their ids.
    series: Vec<Option<Sink>>,
    /// The samples themselves, if they are wanted.
    points: Option<Points>,
    /// Of the next samples.
    metadata: Option<Metadata>,
    /// Those of sub-metrics, which are all there once a sample is added.
    tag_names: OnceCell<Vec<String>>,
}

impl Sinks {
    /// Without samples.
    pub fn new(registry: Registry) -> Self {
        Self {
            registry,
            known: Vec::new(),
            series: Vec::new(),
            points: None,
            metadata: None,
            tag_names: OnceCell::new(),
        }
    }

    /// The same, which keeps the samples themselves until they are taken.
    #[must_use]
    pub fn with_points(mut self) -> Self {
        self.points = Some(Points::default());
        self
    }

    /// Whether the samples themselves are kept.
    pub fn keeps_points(&self) -> bool {
        self.points.is_some()
    }

    /// Whether it makes a difference that the next sample has a tag of this name.
    pub fn wants_tag(&self, name: &str) -> bool {
        let names = self.tag_names.get_or_init(|| self.registry.tag_names());
        self.keeps_points() || names.iter().any(|known| known == name)
    }

    /// The metadata of the samples that are added from now on, by name.
    pub fn set_metadata(&mut self, metadata: Option<Metadata>) {
        self.metadata = metadata;
    }

    /// Takes the samples; none unless they are kept.
    pub fn take_points(&mut self) -> Points {
        self.points.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Adds a sample; one of an unknown metric is ignored.
    ///
    /// - `at`: since the start of the run.
    pub fn add(&mut self, id: MetricId, value: f64, tags: &[Tag<'_>], at: Duration) {
        let index = id.0 as usize;
        if self.known.get(index).is_none_or(Option::is_none) {
            let Some(metric) = self.registry.get(id) else {
                return;
            };
            if self.known.len() <= index {
                self.known.resize(index + 1, None);
            }
            self.known[index] = Some(metric);
        }
        let Some(metric) = &self.known[index] else {
            return;
        };
        if let Some(points) = &mut self.points {
            points.add(id, value, tags, self.metadata.as_ref(), at);
        }
        sink(&mut self.series, metric.series)
            .get_or_insert_with(|| Sink::for_metric(metric))
            .add(value, at);
        for sub_metric in &metric.sub_metrics {
            if sub_metric.matches(tags) {
                sink(&mut self.series, sub_metric.series)
                    .get_or_insert_with(|| Sink::for_metric(metric))
                    .add(value, at);
            }
        }
    }

    /// Adds everything that another one holds.
    pub fn merge(&mut self, other: &Self) {
        if let (Some(mine), Some(theirs)) = (&mut self.points, &other.points) {
            mine.append(theirs);
        }
        for (index, theirs) in other.series.iter().enumerate() {
            let Some(theirs) = theirs else { continue };
            let id = SeriesId(u32::try_from(index).unwrap_or(u32::MAX));
            match sink(&mut self.series, id) {
                Some(mine) => mine.merge(theirs),
                none => *none = Some(theirs.clone()),
            }
        }
    }

    /// Adds the aggregate of one series.
    pub(super) fn merge_series(&mut self, id: SeriesId, other: &Sink) {
        match sink(&mut self.series, id) {
            Some(mine) => mine.merge(other),
            none => *none = Some(other.clone()),
        }
    }

    /// Takes what there is and goes on without samples.
    #[must_use]
    pub fn take_samples(&mut self) -> Self {
        Self {
            registry: self.registry.clone(),
            known: self.known.clone(),
            series: std::mem::take(&mut self.series),
            points: self.points.as_mut().map(std::mem::take),
            metadata: None,
            tag_names: self.tag_names.clone(),
        }
    }

    /// The aggregate of a series; `None` without samples.
    pub fn series(&self, id: SeriesId) -> Option<&Sink> {
        self.series.get(id.0 as usize)?.as_ref()
    }

    /// The metrics of the run.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.series.iter().all(Option::is_none)
    }
}

fn sink(series: &mut Vec<Option<Sink>>, id: SeriesId) -> &mut Option<Sink> {
    let index = id.0 as usize;
    if series.len() <= index {
        series.resize_with(index + 1, || None);
    }
    &mut series[index]
}
