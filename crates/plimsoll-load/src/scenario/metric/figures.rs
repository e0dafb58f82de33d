//! Aggregates as plain values, for another process that merges them with its own.

use super::registry::{Contains, MetricError, MetricKind};
use super::sink::Sink;
use super::sinks::Sinks;

/// The aggregate of one series.
#[derive(Debug, Clone)]
pub struct SeriesFigures {
    /// The name of its metric.
    pub metric: String,
    /// How samples of the metric are aggregated.
    pub kind: MetricKind,
    /// The meaning of its numbers.
    pub contains: Contains,
    /// The sub-metric, as it was written; absent for all samples of the metric.
    pub sub_metric: Option<String>,
    /// The aggregate.
    pub sink: Sink,
}

impl Sinks {
    /// The aggregates of all series that have samples.
    pub fn figures(&self) -> Vec<SeriesFigures> {
        let mut figures = Vec::new();
        for metric in self.registry().metrics() {
            let of_sub_metrics = metric
                .sub_metrics
                .iter()
                .map(|sub| (sub.series, Some(sub.name.to_string())));
            for (series, sub_metric) in [(metric.series, None)].into_iter().chain(of_sub_metrics) {
                if let Some(sink) = self.series(series) {
                    figures.push(SeriesFigures {
                        metric: metric.name.to_string(),
                        kind: metric.kind,
                        contains: metric.contains,
                        sub_metric,
                        sink: sink.clone(),
                    });
                }
            }
        }
        figures
    }

    /// Adds the aggregate of a series. A metric that is not known is registered; a sub-metric that is not known here is of no
    /// interest here, and left out.
    ///
    /// Fails if there is a metric of that name with another kind or meaning.
    pub fn add_figures(&mut self, figures: &SeriesFigures) -> Result<(), MetricError> {
        let registry = self.registry();
        let id = registry.register(&figures.metric, figures.kind, figures.contains)?;
        let metric = registry.metric(id);
        let series = match &figures.sub_metric {
            None => Some(metric.series),
            Some(written) => {
                let mut sub_metrics = metric.sub_metrics.iter();
                let found = sub_metrics.find(|sub| *sub.name == **written);
                found.map(|sub| sub.series)
            }
        };
        if let Some(series) = series {
            self.merge_series(series, &figures.sink);
        }
        Ok(())
    }
}
