//! A set-up: a server, the load on it, what disturbs the run, and what is known about its figures beforehand.

use std::time::Duration;

use super::server::Served;
use super::server::behaviour::{Behaviour, Http2Behaviour, PLAIN};

/// One set-up; most fields have a default in [`SETUP`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Setup {
    pub(super) name: &'static str,
    /// What is hostile about it.
    pub(super) about: &'static str,
    pub(super) served: Served,
    pub(super) load: Load,
    pub(super) disturbance: Disturbance,
    pub(super) known: Known,
}

/// How plimsoll is called.
#[derive(Debug, Clone, Copy)]
pub(super) enum Load {
    /// Flags of `plimsoll load`, divided by spaces. `{port}` is the port of the server, `{folder}` that of files; the
    /// URL is appended unless there is one.
    Flags(&'static str),
    /// A k6 script; `{url}` is the URL of the server.
    Script(&'static str),
}

/// What happens to the generator meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disturbance {
    None,
    /// It is stopped (SIGSTOP) after the first time, for the second.
    Stopped(Duration, Duration),
    /// A process that never waits runs on the same core.
    Neighbour,
    /// Its control group may use this share of a core, in percent.
    Throttled(u32),
    /// The wall clock that it sees leaps an hour ahead after this time.
    ClockStep(Duration),
    /// It is interrupted (SIGINT) after this time.
    Interrupted(Duration),
}

/// What is known beforehand; everything else follows from the log of the server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) exit: i32,
    /// Exchanges that are meant to be made.
    pub(super) intended: Option<u64>,
    /// The rate that the server would give to a generator that is never late.
    pub(super) rate: Option<f64>,
    pub(super) begins: Begins,
    /// What responses are timed from.
    pub(super) timed: Timed,
    /// What becomes of requests that the server cut.
    pub(super) cut: Cut,
    /// What becomes of requests that the server never answers.
    pub(super) unanswered: Unanswered,
    /// Whether bytes are those that the server wrote and read: not where connections break.
    pub(super) bytes: Bytes,
    /// Rows of a feeder, each of which should be used once.
    pub(super) rows: Option<u64>,
    /// Parts of cautions that have to be there.
    pub(super) cautions: &'static [&'static str],
    /// `--grace`.
    pub(super) grace: Duration,
}

/// When a run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begins {
    WithFirstRequest,
    /// The first request may come later, so the start is the one that plimsoll reports, some milliseconds before.
    Before,
}

/// From when the latency of a response counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Timed {
    /// From the request on: the delay of the server.
    FromRequest,
    /// From the start of the run on for the first request of each connection, from the request on for others.
    FromAccept,
    /// From arrivals on that are evenly spaced, with this many a second.
    FromArrival(f64),
    /// The server does not know it.
    Unknown,
}

/// What becomes of requests that the server cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    Failed,
    /// They are sent again on a fresh connection.
    Repeated,
}

/// What becomes of requests that are never answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unanswered {
    Aborted,
    /// They fail after the timeout.
    TimedOut(Duration),
}

/// What bytes are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bytes {
    /// What the server read and wrote, exactly.
    Exact,
    /// What a relay before TLS counted, within the tolerance; or less, if it is marked to be without TLS.
    Wire,
    /// Nothing: connections break, or frames of the connection are not of exchanges.
    Unknown,
}

/// Requests that follow each other, and nothing else that is known.
pub(super) const KNOWN: Known = Known {
    exit: 0,
    intended: None,
    rate: None,
    begins: Begins::WithFirstRequest,
    timed: Timed::FromRequest,
    cut: Cut::Failed,
    unanswered: Unanswered::Aborted,
    bytes: Bytes::Exact,
    rows: None,
    cautions: &[],
    grace: Duration::from_secs(5),
};

/// A server without malice.
pub(super) const SETUP: Setup = Setup {
    name: "",
    about: "",
    served: Served::Http1(PLAIN),
    load: Load::Flags("-c 4 -z 1s"),
    disturbance: Disturbance::None,
    known: KNOWN,
};

/// A set-up of HTTP/1.1.
pub(super) const fn http1(
    name: &'static str,
    about: &'static str,
    behaviour: Behaviour,
    flags: &'static str,
    known: Known,
) -> Setup {
    Setup {
        name,
        about,
        served: Served::Http1(behaviour),
        load: Load::Flags(flags),
        known,
        ..SETUP
    }
}

/// A set-up of HTTP/2.
pub(super) const fn http2(
    name: &'static str,
    about: &'static str,
    behaviour: Http2Behaviour,
    flags: &'static str,
    known: Known,
) -> Setup {
    Setup {
        name,
        about,
        served: Served::Http2(behaviour),
        load: Load::Flags(flags),
        known: Known {
            bytes: Bytes::Unknown,
            ..known
        },
        ..SETUP
    }
}

pub(super) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
