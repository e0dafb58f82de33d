//! The load line: the highest rate at which a service keeps its objectives.
//!
//! [`search()`] is the search, pure: it requests windows of load at a rate and gets what they came
//! to. [`line()`] answers it with runs of plimsoll's own load in an open loop and puts everything
//! together in a [`Line`], which [`to_text`], [`to_json`] and [`to_html`] encode. What the windows
//! cost and how long answers took in them gives the knee and a fit of the Universal Scalability Law.

mod boundary;

mod search;

mod usl;

mod knee;

mod growth;

mod objective;

mod plan;

mod run;

mod outcome;

mod figures;

mod limit;

mod text;

mod json;

mod html;

pub use crate::line::boundary::{Boundary, Tried};
pub use crate::line::html::to_html;
pub use crate::line::json::{SCHEMA, to_json};
pub use crate::line::knee::{Operating, knee};
pub use crate::line::objective::{ObjectiveError, parse_objective};
pub use crate::line::outcome::{Line, Window};
pub use crate::line::plan::LinePlan;
pub use crate::line::run::{Event, LineError, line};
pub use crate::line::search::{
    Purpose, SearchEnd, SearchOutcome, SearchPlan, WindowOutcome, WindowPlan, search,
};
pub use crate::line::text::to_text;
pub use crate::line::usl::{Usl, fit_usl};
