//! Conditions that a response must meet: `status == 200`, `body contains 'ok'`, `time < 300ms`.
//!
//! Pure: a [`Condition`] is parsed once and judged against values; nothing here sends anything.

mod condition;

mod expectations;

pub use crate::check::condition::{Condition, ConditionError};
pub use crate::check::expectations::{Expectations, Observed, Observer};
