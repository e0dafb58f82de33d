//! Text for people: the summary after a run, the line while it goes on, a checked exchange.
//!
//! Plain text of at most [`WIDTH`] columns, complete without colour.

mod style;

mod page;

mod numbers;

mod requests;

mod summary;

mod spread;

mod live;

mod check;

mod chaos;

mod loadtest;

pub use chaos::chaos;
pub use check::check;
pub use live::{Progress, SecondsTogether, live};
pub use loadtest::{loadtest, loadtest_agents, loadtest_line};
pub(crate) use numbers::margin_of_limit;
pub use style::{Emphasis, Style};
pub(crate) use summary::FEW_SAMPLES;
pub use summary::{Detail, cautions, summary};

/// Columns at most.
pub const WIDTH: usize = 80;
