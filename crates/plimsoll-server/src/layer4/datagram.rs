//! Handlers of datagrams: a core that is driven by values and tested without sockets.

use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use plimsoll_wire::EcnCodepoint;

use crate::layer4::effects::{Effects, SessionId};
use crate::worker::context::WorkerContext;

/// One datagram of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The address that it was sent to.
    pub local: SocketAddr,
    /// The sender.
    pub peer: SocketAddr,
    /// Its ECN bits, unless they are zero (RFC 3168).
    pub ecn: Option<EcnCodepoint>,
    /// Its content.
    pub bytes: &'a [u8],
}

/// How a handler knows that a datagram is of one of its sessions; the surest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SessionMatch {
    /// By both addresses.
    Path,
    /// By an identifier in the datagram, from another address.
    Id,
    /// It may be of another one.
    Guess,
}

/// Takes the datagrams of a listener on one worker.
///
/// It has no socket and reads no clock: it says what is to be done by [`Effects`], and the listener does it, in their
/// order. Sockets to upstreams belong to the listener; the handler knows them by the [`SessionId`]s that it chose. It
/// must not block.
pub trait DatagramHandler {
    /// Called for each datagram of a client.
    fn on_datagram(&mut self, now: Instant, datagram: &Datagram<'_>, effects: &mut Effects);

    /// Called once the socket to the upstream of a session is open, if the handler requested its address.
    ///
    /// - `local`: the address that the upstream sees, unless something on the way replaces it.
    fn on_open(
        &mut self,
        _now: Instant,
        _session: SessionId,
        _local: SocketAddr,
        _effects: &mut Effects,
    ) {
    }

    /// Called for each datagram of the upstream of a session.
    fn on_reply(
        &mut self,
        _now: Instant,
        _session: SessionId,
        _ecn: Option<EcnCodepoint>,
        _bytes: &[u8],
        _effects: &mut Effects,
    ) {
    }

    /// Called when the upstream of a session does not take datagrams. For one that could not be opened, whatever the
    /// reason, the error is [`QuotaExceeded`](io::ErrorKind::QuotaExceeded); it is closed already.
    fn on_failure(
        &mut self,
        _now: Instant,
        _session: SessionId,
        _error: io::ErrorKind,
        _effects: &mut Effects,
    ) {
    }

    /// Called once [`next_wake`](Self::next_wake) has come.
    fn on_wake(&mut self, _now: Instant, _effects: &mut Effects) {}

    /// When it has something to do, even if nothing comes before.
    fn next_wake(&self) -> Option<Instant> {
        None
    }

    /// The session that a datagram is of. While another process of a hand-over lives, it gets those that are of none here.
    /// A handler without sessions takes every datagram.
    fn session_of(&self, _datagram: &Datagram<'_>) -> Option<SessionMatch> {
        Some(SessionMatch::Path)
    }

    /// Whether it goes on with a session of the handler that a reload has replaced, such as by state that both have of
    /// [`WorkerContext::state`]. Others are closed.
    fn keeps(&self, _session: SessionId) -> bool {
        false
    }
}

/// Makes one handler for each worker; called on the worker, once for each generation of the configuration.
pub type MakeDatagramHandler = dyn Fn(&WorkerContext) -> Box<dyn DatagramHandler> + Send + Sync;
