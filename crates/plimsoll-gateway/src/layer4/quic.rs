//! QUIC without its keys: connections are distinguished by the connection IDs in the clear.
//!
//! A flow is a connection on one path: a client's address and a socket to the server. A client whose address changes
//! (RFC 9000, section 9) gets a new flow to the same server, which sees another address too and validates it, as it would
//! without the gateway. Connection IDs of servers are known to all workers, since the system may hand another path to
//! another worker.

mod ids;
mod retrying;

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use hashbrown::HashTable;
use plimsoll_server::{Datagram, DatagramHandler, Effects, SessionId, SessionMatch, WorkerContext};
use plimsoll_wire::{EcnCodepoint, LongHeader, LongKind, QuicHeader};

pub(crate) use self::ids::ServerIds;
use self::ids::{IdKey, PathKey};
use self::retrying::{Admitted, Exchanged, Exchanges, admit};
use super::figures::Dropped;
use super::flows::{AddressProof, FlowTable, Index};
use super::forwarding::{DatagramPlan, Forwarding};

/// Bytes that a client whose address is not validated may be sent for each byte from it (RFC 9000, section 8.1).
const BEFORE_VALIDATION: u32 = 3;

/// Forwards the datagrams of one worker; flows outlive a reload that changes nothing of them.
pub(crate) struct QuicHandler(Rc<RefCell<QuicFlows>>);

impl QuicHandler {
    pub(crate) fn new(
        plan: &Arc<DatagramPlan>,
        ids: &Arc<ServerIds>,
        context: &WorkerContext,
    ) -> Self {
        Self(context.state(&plan.identity, || {
            RefCell::new(QuicFlows {
                flows: Forwarding::new(plan, context),
                by_id: HashTable::new(),
                ids: Arc::clone(ids),
                exchanges: Exchanges::default(),
            })
        }))
    }
}

/// The connection of a flow, as far as it is known.
#[derive(Debug, Default)]
struct Connection {
    /// The connection ID that the client began with, on this path.
    first: PathKey,
    /// The one that the server chose, on this path.
    server: PathKey,
    /// The same among those of all workers.
    shared: IdKey,
}

/// The flows of one worker.
struct QuicFlows {
    flows: Forwarding<Connection>,
    /// By both keys of their connections.
    by_id: HashTable<Indexed>,
    ids: Arc<ServerIds>,
    exchanges: Exchanges,
}

/// A new flow for a datagram.
struct NewFlow {
    key: u64,
    /// The server that the connection is at already.
    server: Option<usize>,
    connection: Connection,
    address: AddressProof,
    /// The connection ID of its packet that was answered by Retry.
    retried: Option<Vec<u8>>,
}

impl QuicFlows {
    /// The flow of a datagram.
    fn flow_of(
        &mut self,
        now: Instant,
        datagram: &Datagram<'_>,
        effects: &mut Effects,
    ) -> Result<Index, Dropped> {
        let header = QuicHeader::parse(datagram.bytes).map_err(|_| Dropped::Malformed)?;
        let path = (datagram.peer, datagram.local);
        let new = match header {
            QuicHeader::Short { rest } => {
                let lengths = self.ids.lengths();
                let known = lengths.filter_map(|length| rest.get(..length));
                let known = known.map(|id| (self.ids.path_key(id, path), id));
                let known: smallvec::SmallVec<[_; 4]> = known.collect();
                if let Some(index) = known.iter().find_map(|(key, _)| self.find(*key)) {
                    self.validate(index);
                    return Ok(index);
                }
                // Another address of the client, or another worker than that of the handshake.
                let found = known.iter().find_map(|(key, id)| {
                    let shared = self.ids.key(id);
                    Some((*key, shared, self.ids.server(shared)?))
                });
                let (server, shared, at) = if let Some(found) = found {
                    found
                } else {
                    // The client uses an ID that the server has sent it encrypted.
                    let index = self.flows.table.of_path(datagram.peer, datagram.local);
                    if let Some(index) = index {
                        return Ok(index);
                    }
                    // And its address has changed, perhaps no more than the port.
                    let at = self.ids.recent(datagram.peer.ip());
                    let at = at.ok_or(Dropped::UnknownConnection)?;
                    (PathKey::default(), IdKey::default(), at)
                };
                if shared != IdKey::default() && !self.ids.enter(shared, at) {
                    return Err(Dropped::ForgedPaths);
                }
                NewFlow {
                    key: shared.0,
                    server: Some(at),
                    connection: Connection {
                        first: PathKey::default(),
                        server,
                        shared,
                    },
                    // The server validates a path that it does not know.
                    address: AddressProof::Shown,
                    retried: None,
                }
            }
            QuicHeader::Long(header) => {
                let key = self.ids.path_key(header.destination, path);
                if let Some(index) = self.find(key) {
                    let flow = self.flows.table.get(index);
                    if flow.is_some_and(|flow| flow.extra.server == key) {
                        self.validate(index);
                    }
                    return Ok(index);
                }
                begins(&header, datagram.bytes.len())?;
                let retried = self.admit(&header, datagram, effects)?;
                NewFlow {
                    key: crate::balance::hash(header.destination),
                    server: None,
                    connection: Connection {
                        first: key,
                        ..Connection::default()
                    },
                    address: match &retried {
                        Some(_) => AddressProof::Shown,
                        None if has_token(&header, datagram.bytes) => AddressProof::Claimed,
                        None => AddressProof::Missing,
                    },
                    retried,
                }
            }
        };
        self.open(now, datagram, new, effects)
    }

    /// Sends a client back to prove its address, if that is wanted; otherwise returns the connection ID of its packet that was
    /// answered so before.
    fn admit(
        &self,
        header: &LongHeader<'_>,
        datagram: &Datagram<'_>,
        effects: &mut Effects,
    ) -> Result<Option<Vec<u8>>, Dropped> {
        let Some(key) = &self.flows.plan.retry_key else {
            return Ok(None);
        };
        match admit(key, header, datagram)? {
            Admitted::Flow(retried) => Ok(retried),
            Admitted::Retry(packet) => {
                effects.reply(datagram.local, datagram.peer, None, &packet);
                Err(Dropped::Retry)
            }
        }
    }

    /// Forwards a datagram of a flow, with the token that its server reads.
    fn forward(
        &mut self,
        index: Index,
        now: Instant,
        datagram: &Datagram<'_>,
        effects: &mut Effects,
    ) {
        match self.exchanges.exchange(index, datagram) {
            Exchanged::Same => self.flows.forward(index, now, datagram, effects),
            Exchanged::Other(bytes) => {
                let bytes = &bytes;
                let datagram = Datagram { bytes, ..*datagram };
                self.flows.forward(index, now, &datagram, effects);
            }
            Exchanged::Nothing => {}
        }
    }

    /// Whether a datagram is of a connection that is known, and how that is known.
    fn session_of(&self, datagram: &Datagram<'_>) -> Option<SessionMatch> {
        let path = (datagram.peer, datagram.local);
        match QuicHeader::parse(datagram.bytes) {
            // It is dropped here as well as elsewhere.
            Err(_) => Some(SessionMatch::Path),
            Ok(QuicHeader::Long(header)) => {
                let key = self.ids.path_key(header.destination, path);
                self.find(key).map(|_| SessionMatch::Path)
            }
            Ok(QuicHeader::Short { rest }) => {
                let ids = || self.ids.lengths().filter_map(|length| rest.get(..length));
                if ids().any(|id| self.find(self.ids.path_key(id, path)).is_some()) {
                    Some(SessionMatch::Path)
                } else if ids().any(|id| self.ids.server(self.ids.key(id)).is_some()) {
                    Some(SessionMatch::Id)
                } else if self
                    .flows
                    .table
                    .of_path(datagram.peer, datagram.local)
                    .is_some()
                {
                    Some(SessionMatch::Path)
                } else {
                    let recent = self.ids.recent(datagram.peer.ip());
                    recent.map(|_| SessionMatch::Guess)
                }
            }
        }
    }

    fn open(
        &mut self,
        now: Instant,
        datagram: &Datagram<'_>,
        new: NewFlow,
        effects: &mut Effects,
    ) -> Result<Index, Dropped> {
        let NewFlow {
            key,
            server,
            connection,
            address,
            retried,
        } = new;
        let shared = connection.shared;
        let server = match server {
            None => self.flows.choose(key, now),
            Some(id) => self.flows.upstream.server(id).ok_or(Dropped::NoServer),
        };
        let ends = (datagram.peer, datagram.local);
        let opened =
            server.and_then(|server| self.flows.open(now, ends, &server, connection, effects));
        match opened {
            Ok(index) => {
                if let Some(flow) = self.flows.table.get_mut(index) {
                    flow.address = address;
                }
                if let Some(original) = retried {
                    self.exchanges.begin(index, original);
                    self.note(index);
                }
                self.index(Indexed::first(index));
                self.index(Indexed::server(index));
                Ok(index)
            }
            Err(dropped) => {
                self.ids.leave(shared);
                Err(dropped)
            }
        }
    }

    /// Learns the connection ID that a server has chosen for a flow.
    fn learn(&mut self, index: Index, bytes: &[u8]) {
        let Ok(QuicHeader::Long(header)) = QuicHeader::parse(bytes) else {
            return;
        };
        // Version negotiation repeats the ID of the client.
        let is_chosen = header.kind != LongKind::Negotiation
            && (1..=QuicHeader::MOST_ID).contains(&header.source.len());
        let ends = self.flows.table.ends(index);
        let (true, Some(ends)) = (is_chosen, ends) else {
            return;
        };
        // The server has accepted the connection: later packets may have any token.
        self.exchanges.end(index);
        let key = self.ids.path_key(header.source, ends);
        let Some(flow) = self.flows.table.get(index) else {
            return;
        };
        if flow.extra.server == key {
            return;
        }
        let (old, old_shared, server) = (flow.extra.server, flow.extra.shared, flow.server());
        let Some(server) = self.flows.servers.get(server).map(|it| it.id()) else {
            return;
        };
        let shared = self.ids.key(header.source);
        self.ids.learn(header.source.len());
        if !self.ids.enter(shared, server) {
            return;
        }
        self.unindex(old, Indexed::server(index));
        self.ids.leave(old_shared);
        if let Some(flow) = self.flows.table.get_mut(index) {
            flow.extra.server = key;
            flow.extra.shared = shared;
        }
        self.index(Indexed::server(index));
    }

    fn validate(&mut self, index: Index) {
        let Some(flow) = self.flows.table.get_mut(index) else {
            return;
        };
        if flow.address == AddressProof::Shown {
            return;
        }
        flow.address = AddressProof::Shown;
        self.note(index);
    }

    /// Remembers at which server the client's address was last.
    fn note(&self, index: Index) {
        let Some(flow) = self.flows.table.get(index) else {
            return;
        };
        let server = flow.server();
        let server = self.flows.servers.get(server).map(|it| it.id());
        if let (Some(server), Some((peer, _))) = (server, self.flows.table.ends(index)) {
            self.ids.note(peer.ip(), server);
        }
    }

    fn find(&self, key: PathKey) -> Option<Index> {
        let table = &self.flows.table;
        let found = self.by_id.find(key.0, |entry| entry.key(table) == key);
        found.map(|entry| entry.index())
    }

    /// Has a flow found by one of its keys.
    fn index(&mut self, entry: Indexed) {
        let table = &self.flows.table;
        let key = entry.key(table);
        if key != PathKey::default() {
            self.by_id
                .insert_unique(key.0, entry, |entry| entry.key(table).0);
        }
    }

    fn unindex(&mut self, key: PathKey, entry: Indexed) {
        if let Ok(found) = self.by_id.find_entry(key.0, |it| *it == entry) {
            found.remove();
        }
    }

    /// Ends flows on which nothing passes any more.
    fn sweep(&mut self, now: Instant, effects: &mut Effects) {
        let mut ended = Vec::new();
        let sweeping = &mut self.flows;
        sweeping.sweep(now, effects, |index, flow| ended.push((index, flow.extra)));
        let is_swept = !ended.is_empty();
        for (index, connection) in ended {
            self.forget(index, &connection);
        }
        if is_swept && self.by_id.len() < self.by_id.capacity() / 4 {
            let table = &self.flows.table;
            self.by_id
                .shrink_to(self.by_id.len() * 2, |entry| entry.key(table).0);
        }
        self.flows.return_memory();
    }

    fn forget(&mut self, index: Index, connection: &Connection) {
        self.exchanges.end(index);
        self.unindex(connection.first, Indexed::first(index));
        self.unindex(connection.server, Indexed::server(index));
        self.ids.leave(connection.shared);
    }
}

impl Drop for QuicFlows {
    fn drop(&mut self) {
        for index in self.flows.table.indices() {
            if let Some(flow) = self.flows.table.get(index) {
                self.ids.leave(flow.extra.shared);
            }
        }
    }
}

/// One of the two keys of a flow: its index, and in the lowest bit which one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Indexed(u32);

impl Indexed {
    const fn first(index: Index) -> Self {
        Self(index << 1)
    }

    const fn server(index: Index) -> Self {
        Self(index << 1 | 1)
    }

    const fn index(self) -> Index {
        self.0 >> 1
    }

    fn key(self, table: &FlowTable<Connection>) -> PathKey {
        let connection = table.get(self.index()).map(|flow| &flow.extra);
        let key = connection.map(|it| if self.0 & 1 == 0 { it.first } else { it.server });
        key.unwrap_or_default()
    }
}

/// Whether a client begins with a token, by which a server that has sent it before may know the address; one that is forged
/// leaves the server with its own limit (RFC 9000, sections 8.1.3 and 17.2.2).
fn has_token(header: &LongHeader<'_>, datagram: &[u8]) -> bool {
    // Behind the first byte, the version, and both IDs with their lengths.
    let length = datagram.get(7 + header.destination.len() + header.source.len());
    header.kind == LongKind::Initial && length.is_some_and(|length| *length != 0)
}

/// Whether a packet with a connection ID that is not known may begin a connection.
fn begins(header: &LongHeader<'_>, length: usize) -> Result<(), Dropped> {
    match header.kind {
        // One of another version is the server's to answer, by version negotiation.
        LongKind::Initial | LongKind::Unknown => {}
        LongKind::ZeroRtt | LongKind::Handshake => return Err(Dropped::UnknownConnection),
        LongKind::Retry | LongKind::Negotiation => return Err(Dropped::Malformed),
    }
    if length < QuicHeader::LEAST_INITIAL || header.destination.len() < QuicHeader::LEAST_FIRST_ID {
        return Err(Dropped::ShortInitial);
    }
    Ok(())
}

impl DatagramHandler for QuicHandler {
    fn on_datagram(&mut self, now: Instant, datagram: &Datagram<'_>, effects: &mut Effects) {
        let quic = &mut *self.0.borrow_mut();
        match quic.flow_of(now, datagram, effects) {
            Ok(index) => quic.forward(index, now, datagram, effects),
            Err(dropped) => quic.flows.figures.count_dropped(dropped),
        }
    }

    fn on_open(
        &mut self,
        now: Instant,
        session: SessionId,
        local: SocketAddr,
        effects: &mut Effects,
    ) {
        let quic = &mut *self.0.borrow_mut();
        let Some(index) = quic.flows.table.of_session(session) else {
            return;
        };
        let (Some(key), Some((peer, ours))) =
            (&quic.flows.plan.retry_key, quic.flows.table.ends(index))
        else {
            return;
        };
        for (ecn, bytes) in quic.exchanges.opened(index, local, key) {
            let datagram = Datagram {
                local: ours,
                peer,
                ecn,
                bytes: &bytes,
            };
            quic.flows.forward(index, now, &datagram, effects);
        }
    }

    fn on_reply(
        &mut self,
        now: Instant,
        session: SessionId,
        ecn: Option<EcnCodepoint>,
        bytes: &[u8],
        effects: &mut Effects,
    ) {
        let quic = &mut *self.0.borrow_mut();
        let Some(index) = quic.flows.table.of_session(session) else {
            return;
        };
        if bytes.first().is_some_and(|first| first & 0x80 != 0) {
            quic.learn(index, bytes);
        }
        let flow = quic.flows.table.get(index);
        let is_limited = flow.is_none_or(|flow| flow.address == AddressProof::Missing);
        let most = is_limited.then_some(BEFORE_VALIDATION);
        quic.flows.reply(index, now, (ecn, bytes), most, effects);
    }

    fn on_failure(
        &mut self,
        now: Instant,
        session: SessionId,
        error: io::ErrorKind,
        effects: &mut Effects,
    ) {
        let quic = &mut *self.0.borrow_mut();
        let index = quic.flows.table.of_session(session);
        let failed = quic.flows.fail(now, session, error, effects);
        if let (Some(index), Some(flow)) = (index, failed) {
            quic.forget(index, &flow.extra);
        }
    }

    fn on_wake(&mut self, now: Instant, effects: &mut Effects) {
        self.0.borrow_mut().sweep(now, effects);
    }

    fn next_wake(&self) -> Option<Instant> {
        self.0.borrow().flows.table.next_sweep()
    }

    fn session_of(&self, datagram: &Datagram<'_>) -> Option<SessionMatch> {
        self.0.borrow().session_of(datagram)
    }

    fn keeps(&self, session: SessionId) -> bool {
        self.0.borrow().flows.table.of_session(session).is_some()
    }
}

#[cfg(test)]
mod tests;
