//! Conditions that a response must meet, and one exchange judged by them.
//!
//! `status == 200`, `body.json($.ok) == true`, `cert.days > 14`. A [`Condition`] is parsed once and
//! judged against values: that part is pure and shared by load tests, checks and monitors. Only a
//! [`Checker`] sends anything: one exchange at a time, on a connection that it keeps or on a fresh
//! one; over HTTP/2 many can share a few ([`SharedConnections`]). [`check`] makes one on a new connection, and follows
//! redirects if that is wanted.

mod condition;

mod observed;

mod expectations;

mod extraction;

mod observer;

mod plan;

mod shared;

mod open;

mod observing;

mod checker;

mod follow;

pub use crate::check::checker::{Checker, Outcome, Reuse};
pub use crate::check::condition::{Condition, ConditionError};
pub use crate::check::expectations::Expectations;
pub use crate::check::extraction::Extraction;
pub use crate::check::follow::{CheckOptions, check};
pub use crate::check::observed::{Facts, Observed};
pub use crate::check::observer::Observer;
pub use crate::check::plan::{CheckPlan, GrpcCheck, ToJson};
pub use crate::check::shared::SharedConnections;
