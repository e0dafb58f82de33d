//! Drivers: they carry the exchanges of a workload over one version of HTTP.
//!
//! A driver opens connections, rests after failed ones, sends what the workload gives it and hands the
//! workload what arrives. It does not know what a response means. [`Driver::start`] begins the virtual
//! users of one connection: over HTTP/1 one, over HTTP/2 and HTTP/3 one per stream.

mod http1;

mod http2;

mod http3;

mod outlasting;

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_client::{Connector, Endpoint, ReadBuffer};
use plimsoll_model::{Exchange, Phase, Phases, Protocol};
use tokio::task::JoinSet;

pub(crate) use self::http1::Http1Driver;
pub(crate) use self::http2::Http2Driver;
pub(crate) use self::http3::Http3Driver;
use crate::plan::RunPlan;
use crate::source::SharedSource;
use crate::worker::ConnectionSlot;
use crate::worker::pace::{Gate, Start};
use crate::worker::user::Recorder;
use crate::workload::HttpWorkload;

/// The tasks of a worker's virtual users.
pub(crate) type Tasks = JoinSet<io::Result<()>>;

/// Carries exchanges over one version of HTTP.
pub(crate) trait Driver {
    /// Starts the virtual users of one connection.
    ///
    /// - `make`: makes the workload of a virtual user from its number in the run.
    fn start<W: HttpWorkload>(
        &self,
        slot: &ConnectionSlot<'_>,
        make: &dyn Fn(usize) -> W,
        tasks: &mut Tasks,
    );
}

/// How often a request is sent again on another connection because the server left the one before
/// without having processed it. A server that does so every time is not worth more.
const MOST_ATTEMPTS: u8 = 5;

/// Timeout of a response that outlasts its exchange: longer than any run.
const NEVER: Duration = Duration::from_hours(24 * 365);

/// State that the virtual users of one worker share.
#[derive(Debug)]
pub(crate) struct WorkerState {
    pub(crate) plan: Rc<RunPlan>,
    pub(crate) connector: Connector,
    pub(crate) buffer: ReadBuffer,
    pub(crate) source: Rc<SharedSource>,
    pub(crate) gate: Rc<Gate>,
    pub(crate) recorder: Rc<Recorder>,
    /// Endpoints that redirects led to; their positions follow those of the plan.
    found: RefCell<Vec<Rc<Endpoint>>>,
}

/// Endpoints besides those of the plan that redirects may lead a worker to: each costs every virtual
/// user a connection, and a target that redirects to ever new hosts must not use ever more memory.
const MOST_FOUND: usize = 1_000;

impl WorkerState {
    /// Redirects have led nowhere yet.
    pub(crate) fn new(
        plan: &Rc<RunPlan>,
        connector: Connector,
        source: SharedSource,
        gate: &Rc<Gate>,
        recorder: &Rc<Recorder>,
    ) -> Self {
        Self {
            plan: Rc::clone(plan),
            connector,
            buffer: ReadBuffer::new(),
            source: Rc::new(source),
            gate: Rc::clone(gate),
            recorder: Rc::clone(recorder),
            found: RefCell::default(),
        }
    }

    /// Calls `look` with the endpoint at `position`.
    #[inline]
    pub(crate) fn with_endpoint<T>(&self, position: usize, look: impl FnOnce(&Endpoint) -> T) -> T {
        match position.checked_sub(self.plan.endpoints.len()) {
            None => look(&self.plan.endpoints[position]),
            Some(position) => look(&self.found.borrow()[position]),
        }
    }

    /// The endpoint at `position`, to be kept while a connection is opened.
    pub(crate) fn endpoint(&self, position: usize) -> Endpoint {
        self.with_endpoint(position, Clone::clone)
    }

    /// The position of an endpoint that a redirect leads to; `None` if redirects led to
    /// [too many](MOST_FOUND) before.
    pub(crate) fn find(&self, endpoint: Endpoint) -> Option<usize> {
        let is_same = |other: &Endpoint| {
            other.scheme() == endpoint.scheme() && other.authority() == endpoint.authority()
        };
        let planned = &self.plan.endpoints;
        if let Some(position) = planned.iter().position(is_same) {
            return Some(position);
        }
        let mut found = self.found.borrow_mut();
        let known = found.iter().position(|other| is_same(other));
        if known.is_none() && found.len() == MOST_FOUND {
            return None;
        }
        let position = known.unwrap_or_else(|| {
            found.push(Rc::new(endpoint));
            found.len() - 1
        });
        Some(planned.len() + position)
    }
}

/// An exchange that has just been taken up.
#[inline]
pub(crate) fn begin(start: &Start, protocol: Protocol) -> Exchange {
    let mut exchange = Exchange {
        intended: start.intended,
        started: start.started,
        done: start.started,
        phases: Phases::default(),
        bytes_sent: 0,
        bytes_received: 0,
        peer: None,
        protocol,
        outcome: Ok(0),
    };
    if start.started > start.intended {
        exchange
            .phases
            .set(Phase::Blocked, start.started - start.intended);
    }
    exchange
}
