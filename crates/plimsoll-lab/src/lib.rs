//! Experiments: interleaved comparisons, the load line and trends, with their statistics.
//!
//! [`compare`] runs two or more commands in turns, one trial after another, and says by how much the
//! first differs from each of the others: processor time per request, rate, latency, memory. What a
//! trial did is read from the tool's own output ([`counts`]) or from the server; what it cost is
//! read from the kernel. [`line`](mod@line) finds the highest rate at which a service keeps its
//! objectives. [`matrix`](mod@matrix) measures targets × loads × sizes by a plan.
//! [`soak`](mod@soak) watches a target for hours and finds what grows.
//! [`trend`](mod@trend) follows figures over many results. [`profile`] shows where processor time goes. [`statistics`] holds the estimators and nothing else.
//!
//! The crate starts processes and stops every one of them; it prints nothing and handles no signal:
//! the caller hands in an [`Interrupt`](plimsoll_load::Interrupt) and receives [`compare::Event`]s.

pub mod compare;

pub mod line;

pub mod matrix;

pub mod soak;

pub mod trend;

pub mod profile;

pub mod statistics;

mod error_share;

pub mod counts;

mod command;

mod server;

mod cgroup;

mod plans;

mod whole_file;

mod wording;

mod text_table;

mod pages;

pub use crate::wording::TextFormat;
