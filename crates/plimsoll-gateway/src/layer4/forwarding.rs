//! Forwarding of datagrams, whatever they carry: flows, their servers, counts and log lines.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use plimsoll_model::Clock as _;
use plimsoll_server::{AccessLog, Datagram, Effects, LoggedConnection, SessionId, WorkerContext};
use plimsoll_wire::{EcnCodepoint, RetryKey, SystemClock, return_free_memory};

use super::figures::{Dropped, End, ListenerFigures, WorkerFigures};
use super::flows::{Flow, FlowLimits, FlowTable, Index};
use super::servers::{FlowServers, address_of};
use crate::upstream::{Server, Upstream, UpstreamPlan};

/// A listener that forwards datagrams, as configured.
#[derive(Debug)]
pub(crate) struct DatagramPlan {
    /// `udp` or `quic`.
    pub(crate) protocol: &'static str,
    pub(crate) upstream: Arc<UpstreamPlan>,
    pub(crate) limits: FlowLimits,
    /// Bytes that a client is sent for each byte that it has sent; any number without.
    pub(crate) amplification: Option<u32>,
    /// Clients of QUIC are sent back to prove their address, with a token that servers read by it too.
    pub(crate) retry_key: Option<RetryKey>,
    pub(crate) figures: Arc<ListenerFigures>,
    pub(crate) log: Option<AccessLog>,
    /// Everything that its flows depend on.
    pub(crate) identity: String,
}

/// The flows of one worker. `X` is what a protocol keeps of each.
pub(super) struct Forwarding<X> {
    pub(super) table: FlowTable<X>,
    pub(super) servers: FlowServers,
    pub(super) figures: Arc<WorkerFigures>,
    pub(super) upstream: Rc<Upstream>,
    pub(super) plan: Arc<DatagramPlan>,
    /// Empty between two sweeps; kept for its memory.
    expired: Vec<Index>,
    /// The most flows since memory was given back.
    most: usize,
}

/// Flows whose memory is given back once most of them are gone: about a megabyte.
const FLOOD: usize = 4096;

impl<X> Forwarding<X> {
    pub(super) fn new(plan: &Arc<DatagramPlan>, context: &WorkerContext) -> Self {
        Self {
            table: FlowTable::new(plan.limits, context.clock().now()),
            servers: FlowServers::default(),
            figures: plan.figures.worker(),
            upstream: Upstream::of_worker(&plan.upstream, context),
            plan: Arc::clone(plan),
            expired: Vec::new(),
            most: 0,
        }
    }

    /// A server for a new flow.
    pub(super) fn choose(&self, key: u64, now: Instant) -> Result<Rc<Server>, Dropped> {
        let chosen = self.upstream.choose(key, None, &[], now);
        chosen.ok_or(Dropped::NoServer)
    }

    /// Adds a flow to a server. If clients are sent Retry packets, the listener reports the address of its socket.
    pub(super) fn open(
        &mut self,
        now: Instant,
        (peer, local): (SocketAddr, SocketAddr),
        server: &Rc<Server>,
        extra: X,
        effects: &mut Effects,
    ) -> Result<Index, Dropped> {
        let address = address_of(server).ok_or(Dropped::NoServer)?;
        let number = self.servers.enter(server);
        let inserted = self.table.insert(peer, local, number, extra, now);
        let index = inserted.inspect_err(|_| self.servers.leave(number))?;
        self.figures.count_opened();
        if let Some(session) = self.table.session(index) {
            effects.open(session, address, self.plan.retry_key.is_some());
        }
        Ok(index)
    }

    /// Forwards a datagram of a client.
    pub(super) fn forward(
        &mut self,
        index: Index,
        now: Instant,
        datagram: &Datagram<'_>,
        effects: &mut Effects,
    ) {
        let length = datagram.bytes.len() as u64;
        self.table.touch(index, now);
        if let Some(flow) = self.table.get_mut(index) {
            flow.received += length;
        }
        self.figures.count_bytes(length, 0);
        if let Some(session) = self.table.session(index) {
            effects.send(session, datagram.ecn, datagram.bytes);
        }
    }

    /// Forwards a datagram of a server.
    ///
    /// - `most`: bytes that the client may have been sent for each byte that it has sent.
    pub(super) fn reply(
        &mut self,
        index: Index,
        now: Instant,
        (ecn, bytes): (Option<EcnCodepoint>, &[u8]),
        most: Option<u32>,
        effects: &mut Effects,
    ) {
        let Some(flow) = self.table.get_mut(index) else {
            return;
        };
        let sent = flow.sent + bytes.len() as u64;
        if most.is_some_and(|most| sent > flow.received * u64::from(most)) {
            return self.figures.count_dropped(Dropped::Amplification);
        }
        let is_first = flow.sent == 0;
        flow.sent = sent;
        let server = flow.server();
        self.table.touch(index, now);
        self.figures.count_bytes(0, bytes.len() as u64);
        if let Some(server) = self.servers.get(server).filter(|_| is_first) {
            self.upstream.observe(server, false, now);
        }
        if let Some((peer, local)) = self.table.ends(index) {
            effects.reply(local, peer, ecn, bytes);
        }
    }

    /// Ends a flow whose server cannot be reached; returns what was kept of it.
    pub(super) fn fail(
        &mut self,
        now: Instant,
        session: SessionId,
        error: io::ErrorKind,
        effects: &mut Effects,
    ) -> Option<Flow<X>> {
        let index = self.table.of_session(session)?;
        match error {
            // The server does not listen: the next datagram may find another one.
            io::ErrorKind::ConnectionRefused => {
                let server = self.table.get(index).map(Flow::server);
                if let Some(server) = server.and_then(|it| self.servers.get(it)) {
                    self.upstream.observe(server, true, now);
                }
                self.close(index, End::ServerReset, now, effects)
            }
            // It has no socket, so the next datagram tries again.
            io::ErrorKind::QuotaExceeded => {
                self.figures.count_dropped(Dropped::NoSocket);
                self.forget(index, End::ConnectFailed, now)
            }
            // One datagram did not arrive, such as because it was too long.
            io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::InvalidInput => None,
            _ => self.close(index, End::ServerReset, now, effects),
        }
    }

    /// Ends flows on which nothing passes any more, each of which `forgotten` gets.
    pub(super) fn sweep(
        &mut self,
        now: Instant,
        effects: &mut Effects,
        mut forgotten: impl FnMut(Index, Flow<X>),
    ) {
        self.most = self.most.max(self.table.len());
        let mut expired = std::mem::take(&mut self.expired);
        self.table.expired(now, &mut expired);
        for index in expired.drain(..) {
            if let Some(flow) = self.close(index, End::IdleTimeout, now, effects) {
                forgotten(index, flow);
            }
        }
        self.expired = expired;
        self.table.shrink();
    }

    /// Gives memory back after a flood; for after a sweep.
    pub(super) fn return_memory(&mut self) {
        if self.most > FLOOD && self.table.len() < self.most / 4 {
            self.most = self.table.len();
            self.expired = Vec::new();
            return_free_memory();
        }
    }

    fn close(
        &mut self,
        index: Index,
        end: End,
        now: Instant,
        effects: &mut Effects,
    ) -> Option<Flow<X>> {
        if let Some(session) = self.table.session(index) {
            effects.close(session);
        }
        self.forget(index, end, now)
    }

    /// Counts and logs a flow that has ended.
    fn forget(&mut self, index: Index, end: End, now: Instant) -> Option<Flow<X>> {
        let (ends, age) = (self.table.ends(index), self.table.age(index, now));
        let flow = self.table.remove(index)?;
        self.figures.count_end(end);
        if let (Some(log), Some((peer, _))) = (&self.plan.log, ends) {
            let server = self.servers.get(flow.server());
            log.note_connection(&LoggedConnection {
                time: SystemClock.wall() - age,
                peer,
                protocol: self.plan.protocol,
                server_name: None,
                forwarded: server.map(|it| (&**self.upstream.name(), &**it.name())),
                attempts: 1,
                connect: None,
                received: flow.received,
                sent: flow.sent,
                duration: age,
                end: end.name(),
            });
        }
        self.servers.leave(flow.server());
        Some(flow)
    }
}

impl<X> Drop for Forwarding<X> {
    fn drop(&mut self) {
        let now = SystemClock.now();
        for index in self.table.indices() {
            self.forget(index, End::Cut, now);
        }
    }
}
