//! Iterations of scripts and other workloads: when they start, what they may use, what they measure.
//!
//! - [`Executor`] decides when iterations start; pure arithmetic over the time since the start of a scenario.
//! - [`Workload`] is one virtual user: [`Workload::iterate`] is one iteration.
//! - [`Sinks`] aggregate samples of tagged metrics; one per worker, merged once a second.
//! - [`run_scenarios`] puts them together: worker threads with their virtual users, graceful stops, ticks. With a
//!   [`RecordingPlan`] it also records the exchanges, for the result files that plain runs have.
//!
//! The names are those of k6. Nothing of this is on the path of a plain run.

pub mod executor;

pub mod metric;

mod workload;

mod claims;

mod segment;

mod progress;

mod exchanges;

mod left_out;

mod part;

mod run;

mod union;

mod worker;

pub use self::claims::{Claims, NextStart};
pub use self::exchanges::{
    ExchangeRecorder, ExchangeUnderWay, RecordedRequest, RecordedRun, RecordingPlan,
};
pub use self::executor::Executor;
pub use self::left_out::LeftOut;
pub use self::metric::{
    Contains, Metadata, Metric, MetricError, MetricId, MetricKind, Point, Points, Registry,
    SeriesFigures, SeriesId, Sink, Sinks, SubMetric, Tag,
};
pub use self::part::{ExchangeSecond, FirstRequest, PartExchanges};
pub use self::progress::{ScenarioCounts, ScenarioProgress, TestProgress};
pub use self::run::{
    Abort, JudgedRun, Scenario, ScenarioError, ScenarioFigures, ScenarioHooks, ScenarioRun,
    ScenarioTick, run_scenarios,
};
pub use self::segment::{Segment, SegmentError};
pub use self::union::{ExchangeUnion, ExchangeUnionEnd};
pub use self::workload::{
    Iteration, IterationEnd, LocalFuture, UserError, UserId, VirtualUsers, WorkerState, Workload,
    Workloads,
};
