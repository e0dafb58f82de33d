//! The measuring client: resolve, connect, exchange with phase timings, judge.

mod request;

mod http1;

pub mod check;

pub use crate::http1::{Completed, Http1, Incomplete, ReadBuffer};
pub use crate::request::Request;
