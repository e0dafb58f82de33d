//! Tagged metrics, aggregated in bounded memory.
//!
//! A [`Registry`] names the metrics of a run and their sub-metrics, which count only samples with certain tags. Each
//! worker adds samples to [`Sinks`] of its own; once a second these are merged. Memory grows with metrics and
//! sub-metrics, not with samples or values of tags.

mod figures;

mod point;

mod registry;

mod sink;

mod sinks;

mod trend;

pub use self::figures::SeriesFigures;
pub use self::point::{Metadata, Point, Points};
pub use self::registry::{
    Contains, Metric, MetricError, MetricId, MetricKind, Registry, SeriesId, SubMetric, Tag,
};
pub use self::sink::{GaugeSink, RateSink, Sink, TrendSink};
pub use self::sinks::Sinks;
pub use self::trend::{Trend, TrendParts};

#[cfg(test)]
mod tests;
