//! Commands against each other, in turns.
//!
//! The first operand is the one under judgement ("ours"); each other one is a peer of its own pair.
//! Operands are either load generators that run and exit, all against the same server, or, with
//! [`Drive`], servers that are started for each trial and driven by the same generator.
//!
//! What it does not do: it does not decide what to run (the caller splits command lines and names
//! its own program), and it does not print.

mod metric;

mod gate;

mod answers;

mod template;

mod plan;

mod order;

mod trial;

mod run;

mod outcome;

mod comparable;

mod sweep;

mod text;

mod json;

mod html;

mod forest;

pub use crate::compare::gate::{Gate, GateVerdict};
pub use crate::compare::html::{sweep_to_html, to_html};
pub use crate::compare::json::{SCHEMA, to_json};
pub use crate::compare::metric::{Metric, Verdict};
pub use crate::compare::order::{Turn, turns};
pub use crate::compare::outcome::{Comparison, MetricResult, OperandResult, PairResult};
pub use crate::compare::plan::{CompareOptions, ComparePlan, Drive, Operand, PlanError, Server};
pub use crate::compare::run::{CompareError, Event, compare};
pub use crate::compare::sweep::{
    SWEEP_SCHEMA, Sweep, SweepRow, sweep, sweep_to_json, sweep_to_text,
};
pub use crate::compare::template::{Template, TemplateError};
pub use crate::compare::text::{gate_verdict, to_text};
pub use crate::compare::trial::{Trial, TrialError};
pub use crate::server::ServerError;
pub use crate::server::probe::ProbeError;
