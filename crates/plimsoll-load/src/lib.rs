//! The load engine: schedules, virtual users, aggregation, and the cost of the target.
//!
//! A [`RunPlan`] goes in and a [`RunSummary`](plimsoll_model::RunSummary) comes out of [`run`].
//! Between them, each worker thread drives its share of the connections on a runtime of its own:
//! a pacer decides when an exchange starts, a driver carries it over one version of HTTP, a workload
//! makes its requests and reads its responses, a recorder counts it. Nothing is shared while it runs;
//! intervals are merged once a second.
//!
//! It prints nothing, reads no flags and knows no terminal.
//!
//! # The way of an exchange
//!
//! 1. [`run`] (`run.rs`) starts a worker for each share of the connections (`run/crew.rs`), and a collector.
//! 2. The pacer says when the exchange starts: at once in a closed loop, at its intended start in an open one
//!    (`worker/pace/`; `open_pacer` of `worker.rs` puts schedule and jitter together, `schedule/`).
//! 3. The source picks its request and fills in values (`source/`), the driver of the version of HTTP opens or reuses a
//!    connection (`driver/`), and the workload sends the request and reads the response, or a session of events or messages
//!    (`workload/`).
//! 4. The recorder counts what came of it in the worker's interval (`worker/recorder.rs`). Once a second the collector merges
//!    the intervals of all workers (`run/collector.rs`), and hands them to views and thresholds.
//! 5. At the end the costs of the target, what the generator itself could not do (`run/saturation.rs`, `run/standstill.rs`) and
//!    doubts (`run/hazards.rs`) join the counts in the summary.

mod plan;

pub mod schedule;

mod run;

mod part;

mod rows;

mod union;

mod worker;

mod source;

mod driver;

mod workload;

pub mod harness;

pub mod scenario;

pub mod conditions;

pub use crate::part::{PartHooks, PartReport, PartSecond, RunPart, run_part};
pub use crate::plan::{
    GrpcPlan, Http2Plan, Http3Plan, HttpPlan, KeptValue, OnFull, Pacing, Pick, PlannedRequest,
    ResponsePlan, RunPlan, Spacing, StatusSet, StatusSetError, StopRule, ThinkTime, WebSocketPlan,
    WorkloadPlan,
};
pub use crate::run::progress::Interrupt;
pub use crate::run::{Observation, RunError, Standing, Watch, check_reachable, run, shape};
pub use crate::schedule::ramp::Ramp;
pub use crate::source::{
    Feeder, FeederOrder, RequestTemplate, TemplateForm, TemplateProblem, ValueSources,
};
pub use crate::union::{Union, UnionEnd, UnionSecond};
pub use crate::worker::pace::{Finished, Start};
pub use crate::worker::recorder::Interval;
pub use crate::worker::user::{Recorder, VirtualUser};

#[cfg(test)]
#[global_allocator]
static ALLOCATOR: plimsoll_testkit::CountingAllocator = plimsoll_testkit::CountingAllocator;
