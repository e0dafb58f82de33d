//! A matrix: targets × loads × sizes by a plan, one target up at a time, in random order.
//!
//! [`compile`] makes a [`MatrixPlan`] of a TOML file; [`run`] measures its cells trial by trial, keeps
//! each finished one in a folder of its own and goes on from there after an interruption. Target,
//! generator and upstreams are all observed, so a cell says what was its limit; a target that was
//! killed for memory is a result, and what the machine cannot hold is not run, with the reason.

mod plan;

mod order;

mod store;

mod trial;

mod usage;

mod run;

mod outcome;

mod bound;

mod table;

mod text;

mod json;

mod html;

pub use crate::cgroup::GroupError;
pub use crate::matrix::html::to_html;
pub use crate::matrix::json::{SCHEMA, to_json};
pub use crate::matrix::order::{Cell, Turn, turns};
pub use crate::matrix::outcome::{CellResult, Figure, Matrix, Winner};
pub use crate::matrix::plan::{Limited, LoadPlan, Loader, MatrixPlan, SizePlan, compile};
pub use crate::matrix::run::{Event, MatrixError, RunOptions, run};
pub use crate::matrix::store::{Store, StoreError};
pub use crate::matrix::text::to_text;
pub use crate::matrix::trial::{Figures, Outcome, Trial};
pub use crate::matrix::usage::Usage;
pub use crate::plans::{ProcessPlan, TargetPlan};
