//! What each process of a run that several make hands over of its exchanges.

use std::time::Duration;

use plimsoll_model::{Histogram, Protocol, RequestFigures};

use crate::worker::recorder::Interval;

/// What a part has recorded since it handed over before.
#[derive(Debug, Clone)]
pub struct PartExchanges {
    /// Its seconds, in their order.
    pub seconds: Vec<ExchangeSecond>,
    /// Figures by the names of requests, in their order.
    pub requests: Vec<RequestFigures>,
    /// One of the requests, if there was one.
    pub first: Option<FirstRequest>,
    /// From the intended start of an iteration to its end, of the scenarios with a schedule.
    pub iterations: Histogram,
    /// Arrivals that were dropped since the start of the run.
    pub dropped: u64,
}

/// The exchanges of a second.
#[derive(Debug, Clone)]
pub struct ExchangeSecond {
    /// Its end, since the start of the run.
    pub at: Duration,
    /// No other second of the part follows.
    pub is_last: bool,
    /// The counts.
    pub interval: Box<Interval>,
}

/// A request, as the load of a record is described by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstRequest {
    /// The request method.
    pub method: String,
    /// Its name, or its URL.
    pub url: String,
    /// What it was sent over.
    pub protocol: Protocol,
}
