//! The connections to one endpoint, one after another, and who waits for them.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::Context;
use std::time::Instant;

use plimsoll_client::{ConnectFailure, Connection, Http2, Stream};
use plimsoll_model::Clock;
use plimsoll_wire::SystemClock;
use plimsoll_wire::h2::Settings;
use tokio::time::Sleep;

use crate::plan::RunPlan;
use crate::worker::back_off::BackOff;

/// The way to one endpoint.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) connecting: Option<Connecting>,
    pub(super) current: Option<Open>,
    /// Retired ones whose last exchanges are still under way.
    pub(super) retired: Vec<Open>,
    /// Places that wait for a connection, or for room on it.
    pub(super) queue: VecDeque<u32>,
    /// For the one that waits longest; made when one first waits.
    pub(super) patience: Option<Pin<Box<Sleep>>>,
    pub(super) back_off: BackOff,
    /// While no connection may be opened; made when that is first so.
    pub(super) rest: Option<Pin<Box<Sleep>>>,
}

pub(super) struct Connecting {
    /// The place whose exchange it is opened for.
    pub(super) place: u32,
    pub(super) begun: Instant,
    pub(super) attempt: Pin<Box<dyn Future<Output = Result<Connection, ConnectFailure>>>>,
}

impl std::fmt::Debug for Connecting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connecting")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(super) struct Open {
    pub(super) http: Box<Http2<Stream>>,
    pub(super) peer: Option<SocketAddr>,
    /// Days until the peer's certificate expires, if a condition looks at it.
    pub(super) certificate_days: Option<i64>,
    /// When it was begun to be opened.
    pub(super) begun: Instant,
    /// A complete exchange.
    pub(super) has_carried: bool,
}

impl Link {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            connecting: None,
            current: None,
            retired: Vec::new(),
            queue: VecDeque::new(),
            patience: None,
            back_off: BackOff::new(seed),
            rest: None,
        }
    }

    /// Learns from a connection that has ended for the next one.
    pub(super) fn take_leave(&mut self, open: &Open) {
        if !open.has_carried {
            self.back_off.lost(open.begun);
        }
    }

    /// Whether no connection may be opened yet; the task is woken when one may.
    pub(super) fn poll_rest(&mut self, context: &mut Context<'_>) -> bool {
        let Some(until) = self.back_off.until().filter(|_| !self.queue.is_empty()) else {
            return false;
        };
        let rest = self
            .rest
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until.into())));
        if rest.deadline().into_std() != until {
            rest.as_mut().reset(until.into());
        }
        rest.as_mut().poll(context).is_pending()
    }
}

impl Open {
    /// - `begun`: when it was begun to be opened.
    pub(super) fn new(
        connection: Connection,
        plan: &RunPlan,
        settings: Settings,
        begun: Instant,
    ) -> Self {
        let certificate_days = if plan.expectations.needs_certificate() {
            let session = connection.stream.tls_session();
            let certificate = session.and_then(|session| session.certificate);
            certificate.map(|certificate| certificate.days_left(SystemClock.wall()))
        } else {
            None
        };
        let now = SystemClock.now();
        Self {
            http: Box::new(Http2::new(connection.stream, settings, now)),
            peer: connection.peer,
            certificate_days,
            begun,
            has_carried: false,
        }
    }
}
