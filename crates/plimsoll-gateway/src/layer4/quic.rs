//! QUIC without its keys: connections are distinguished by the connection IDs in the clear.
//!
//! A flow is a connection on one path: a client's address and a socket to the server. A client whose address changes
//! (RFC 9000, section 9) gets a new flow to the same server, which sees another address too and validates it, as it would
//! without the gateway. Connection IDs of servers are known to all workers, since the system may hand another path to
//! another worker.

mod ids;

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use hashbrown::HashTable;
use plimsoll_server::{Datagram, DatagramHandler, Effects, SessionId, SessionMatch, WorkerContext};
use plimsoll_wire::{EcnCodepoint, LongHeader, LongKind, QuicHeader};

pub(crate) use self::ids::ServerIds;
use self::ids::{IdKey, PathKey};
use super::figures::Dropped;
use super::flows::{FlowTable, Index};
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
}

/// A new flow for a datagram.
struct NewFlow {
    key: u64,
    /// The server that the connection is at already.
    server: Option<usize>,
    connection: Connection,
    /// Its client may be sent any number of bytes.
    is_validated: bool,
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
                    is_validated: true,
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
                NewFlow {
                    key: crate::balance::hash(header.destination),
                    server: None,
                    connection: Connection {
                        first: key,
                        ..Connection::default()
                    },
                    is_validated: has_token(&header, datagram.bytes),
                }
            }
        };
        self.open(now, datagram, new, effects)
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
            is_validated,
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
                    flow.is_validated = is_validated;
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
        if flow.is_validated {
            return;
        }
        flow.is_validated = true;
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
            Ok(index) => quic.flows.forward(index, now, datagram, effects),
            Err(dropped) => quic.flows.figures.count_dropped(dropped),
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
        let is_validated = flow.is_some_and(|flow| flow.is_validated);
        let most = (!is_validated).then_some(BEFORE_VALIDATION);
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
