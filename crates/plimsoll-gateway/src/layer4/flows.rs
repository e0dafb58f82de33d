//! Flows: what one client and one server exchange by datagrams, in a table with bounds. Pure.
//!
//! A flow takes 56 bytes in memory that grows and shrinks by pieces, so that a million of them are neither copied nor
//! kept when they are gone. Those on which nothing passes are found by looking at a part of the table at a time.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::time::{Duration, Instant};

use hashbrown::HashTable;
use plimsoll_server::SessionId;

use super::figures::Dropped;

/// Flows of one piece of memory.
const PIECE: usize = 1024;

/// Counters of sources: of two sources that share one, each has room for less.
const SOURCES: usize = 65_536;

/// Parts in which the table is looked through, and how often all of it is within the idle timeout.
const PARTS: u32 = 8;

/// Limits of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlowLimits {
    pub(crate) flows: usize,
    pub(crate) flows_per_source: u32,
    /// How long nothing may pass.
    pub(crate) idle: Duration,
}

/// One flow, and what its protocol keeps of it.
#[derive(Debug)]
pub(crate) struct Flow<X> {
    peer: [u8; 16],
    scope: u32,
    /// The 10 ms since the table was made in which something passed, and in which it began.
    last: u32,
    begun: u32,
    generation: u32,
    server: u16,
    port: u16,
    local: u16,
    pub(crate) address: AddressProof,
    pub(crate) received: u64,
    pub(crate) sent: u64,
    pub(crate) extra: X,
}

/// Whether a client receives what is sent to its address, where the protocol requires that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressProof {
    /// It has not shown it.
    Missing,
    /// It has a token that its server may know, and judges.
    Claimed,
    /// It has answered to what it was sent.
    Shown,
}

impl<X> Flow<X> {
    /// The number that its server was inserted with.
    pub(crate) fn server(&self) -> u32 {
        self.server.into()
    }
}

/// The place of a flow, as long as it is there.
pub(crate) type Index = u32;

/// Every flow of a listener on one worker.
#[derive(Debug)]
pub(crate) struct FlowTable<X> {
    limits: FlowLimits,
    start: Instant,
    hasher: RandomState,
    pieces: Vec<Option<Box<Piece<X>>>>,
    /// No piece before it has room.
    first_with_room: usize,
    /// By both addresses.
    by_path: HashTable<Index>,
    sources: Box<[u32]>,
    /// The addresses that clients sent to.
    locals: Vec<SocketAddr>,
    generation: u32,
    len: usize,
    next_sweep: Option<Instant>,
    next_part: u32,
}

#[derive(Debug)]
struct Piece<X> {
    slots: Vec<Option<Flow<X>>>,
    used: usize,
    /// No slot before it is free.
    first_free: usize,
}

impl<X> FlowTable<X> {
    pub(crate) fn new(limits: FlowLimits, now: Instant) -> Self {
        Self {
            limits,
            start: now,
            hasher: RandomState::new(),
            pieces: Vec::new(),
            first_with_room: 0,
            by_path: HashTable::new(),
            sources: vec![0; SOURCES].into_boxed_slice(),
            locals: Vec::new(),
            generation: 0,
            len: 0,
            next_sweep: None,
            next_part: 0,
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// When [`expired`](Self::expired) is to be called.
    pub(crate) fn next_sweep(&self) -> Option<Instant> {
        self.next_sweep
    }

    /// The flow with these addresses that was inserted last.
    pub(crate) fn of_path(&self, peer: SocketAddr, local: SocketAddr) -> Option<Index> {
        let local = self.locals.iter().position(|it| *it == local)?;
        let path = path(peer, u16::try_from(local).ok()?);
        let hash = self.hasher.hash_one(path);
        let found = self.by_path.find(hash, |index| {
            self.get(*index).is_some_and(|it| it.path() == path)
        });
        found.copied()
    }

    /// The flow of a session.
    pub(crate) fn of_session(&self, session: SessionId) -> Option<Index> {
        let index = u32::try_from(session.0 & u64::from(u32::MAX)).ok()?;
        let generation = u32::try_from(session.0 >> 32).ok()?;
        self.get(index)
            .filter(|flow| flow.generation == generation)
            .map(|_| index)
    }

    pub(crate) fn get(&self, index: Index) -> Option<&Flow<X>> {
        let index = index as usize;
        self.pieces.get(index / PIECE)?.as_ref()?.slots[index % PIECE].as_ref()
    }

    pub(crate) fn get_mut(&mut self, index: Index) -> Option<&mut Flow<X>> {
        let index = index as usize;
        self.pieces.get_mut(index / PIECE)?.as_mut()?.slots[index % PIECE].as_mut()
    }

    /// The number by which the flow's socket is known; no other flow has or had it.
    pub(crate) fn session(&self, index: Index) -> Option<SessionId> {
        let flow = self.get(index)?;
        Some(SessionId(
            u64::from(flow.generation) << 32 | u64::from(index),
        ))
    }

    /// The client and the address that it sends to.
    pub(crate) fn ends(&self, index: Index) -> Option<(SocketAddr, SocketAddr)> {
        let flow = self.get(index)?;
        let local = *self.locals.get(usize::from(flow.local))?;
        let ip = Ipv6Addr::from(flow.peer);
        let peer = match local {
            SocketAddr::V4(_) => SocketAddr::new(IpAddr::V6(ip).to_canonical(), flow.port),
            SocketAddr::V6(_) => SocketAddrV6::new(ip, flow.port, 0, flow.scope).into(),
        };
        Some((peer, local))
    }

    /// How long ago the flow began.
    pub(crate) fn age(&self, index: Index, now: Instant) -> Duration {
        let begun = self.get(index).map_or(0, |flow| flow.begun);
        Duration::from_millis(10) * self.ticks(now).saturating_sub(begun)
    }

    /// Notes that something passes.
    pub(crate) fn touch(&mut self, index: Index, now: Instant) {
        let now = self.ticks(now);
        if let Some(flow) = self.get_mut(index) {
            flow.last = now;
        }
    }

    /// Adds a flow.
    ///
    /// - `server`: a number for where it leads to.
    pub(crate) fn insert(
        &mut self,
        peer: SocketAddr,
        local: SocketAddr,
        server: u32,
        extra: X,
        now: Instant,
    ) -> Result<Index, Dropped> {
        if self.len >= self.limits.flows {
            return Err(Dropped::Flows);
        }
        let server = u16::try_from(server).map_err(|_| Dropped::NoServer)?;
        let source = self.source(peer.ip());
        if self.sources[source] >= self.limits.flows_per_source {
            return Err(Dropped::FlowsOfSource);
        }
        let local = self.local(local).ok_or(Dropped::Flows)?;
        let ((address, scope, port), ticks) = (compact(peer), self.ticks(now));
        self.generation = self.generation.wrapping_add(1);
        let flow = Flow {
            peer: address,
            scope,
            last: ticks,
            begun: ticks,
            generation: self.generation,
            server,
            port,
            local,
            address: AddressProof::Missing,
            received: 0,
            sent: 0,
            extra,
        };
        let hash = self.hasher.hash_one(flow.path());
        let index = self.place(flow);
        self.sources[source] += 1;
        self.len += 1;
        let (pieces, hasher) = (&self.pieces, &self.hasher);
        self.by_path.insert_unique(hash, index, |index| {
            flow_of(pieces, *index).map_or(0, |flow| hasher.hash_one(flow.path()))
        });
        if self.next_sweep.is_none() {
            self.next_sweep = Some(now + self.period());
        }
        Ok(index)
    }

    /// Takes a flow out.
    pub(crate) fn remove(&mut self, index: Index) -> Option<Flow<X>> {
        let number = index as usize / PIECE;
        let piece = self.pieces.get_mut(number)?;
        let slot = index as usize % PIECE;
        let flow = piece.as_mut()?.slots[slot].take()?;
        if let Some(whole) = piece {
            whole.used -= 1;
            whole.first_free = whole.first_free.min(slot);
            if whole.used == 0 {
                *piece = None;
            }
        }
        self.first_with_room = self.first_with_room.min(number);
        self.len -= 1;
        let source = self.source(Ipv6Addr::from(flow.peer).into());
        self.sources[source] -= 1;
        let hash = self.hasher.hash_one(flow.path());
        if let Ok(entry) = self.by_path.find_entry(hash, |it| *it == index) {
            entry.remove();
        }
        if self.len == 0 {
            self.next_sweep = None;
        }
        Some(flow)
    }

    /// Flows on which nothing has passed for the idle timeout, of the part of the table that is to be looked at now.
    pub(crate) fn expired(&mut self, now: Instant, expired: &mut Vec<Index>) {
        if self.next_sweep.is_none_or(|due| due > now) {
            return;
        }
        let oldest = self.ticks(now).checked_sub(ticks_of(self.limits.idle));
        for (number, piece) in self.pieces.iter().enumerate() {
            let (Some(piece), Some(oldest)) = (piece, oldest) else {
                continue;
            };
            if number % PARTS as usize != self.next_part as usize {
                continue;
            }
            for (slot, flow) in piece.slots.iter().enumerate() {
                if flow.as_ref().is_some_and(|flow| flow.last <= oldest) {
                    expired.extend(Index::try_from(number * PIECE + slot));
                }
            }
        }
        self.next_part = (self.next_part + 1) % PARTS;
        self.next_sweep = Some(now + self.period());
    }

    /// Gives back the memory of flows that are gone; for after a sweep.
    pub(crate) fn shrink(&mut self) {
        while self.pieces.last().is_some_and(Option::is_none) {
            self.pieces.pop();
        }
        self.first_with_room = self.first_with_room.min(self.pieces.len());
        if self.by_path.capacity() > PIECE && self.by_path.len() < self.by_path.capacity() / 4 {
            let (pieces, hasher) = (&self.pieces, &self.hasher);
            self.by_path.shrink_to(self.len * 2, |index| {
                flow_of(pieces, *index).map_or(0, |flow| hasher.hash_one(flow.path()))
            });
        }
        if self.len == 0 {
            self.pieces = Vec::new();
            self.locals = Vec::new();
        }
    }

    /// Every flow.
    pub(crate) fn indices(&self) -> Vec<Index> {
        let pieces = self.pieces.iter().enumerate();
        let flows = pieces.filter_map(|(number, piece)| Some((number, piece.as_ref()?)));
        flows
            .flat_map(|(number, piece)| {
                let slots = piece.slots.iter().enumerate();
                let used = slots.filter(|(_, flow)| flow.is_some());
                used.filter_map(move |(slot, _)| Index::try_from(number * PIECE + slot).ok())
            })
            .collect()
    }

    fn place(&mut self, flow: Flow<X>) -> Index {
        loop {
            let number = self.first_with_room;
            if number == self.pieces.len() {
                self.pieces.push(None);
            }
            let piece = self.pieces[number].get_or_insert_with(|| {
                Box::new(Piece {
                    slots: std::iter::repeat_with(|| None).take(PIECE).collect(),
                    used: 0,
                    first_free: 0,
                })
            });
            let rest = &piece.slots[piece.first_free..];
            if let Some(slot) = rest.iter().position(Option::is_none) {
                let slot = piece.first_free + slot;
                piece.slots[slot] = Some(flow);
                piece.used += 1;
                piece.first_free = slot + 1;
                return Index::try_from(number * PIECE + slot).expect("limits are below 2^32");
            }
            self.first_with_room += 1;
        }
    }

    /// How often a part of the table is looked at.
    fn period(&self) -> Duration {
        let period = self.limits.idle / (PARTS * PARTS);
        period.clamp(Duration::from_millis(10), Duration::from_secs(1))
    }

    fn local(&mut self, local: SocketAddr) -> Option<u16> {
        let known = self.locals.iter().position(|it| *it == local);
        let number = known.unwrap_or_else(|| {
            self.locals.push(local);
            self.locals.len() - 1
        });
        u16::try_from(number).ok()
    }

    /// The counter of a source: one for all addresses of a client's network.
    fn source(&self, address: IpAddr) -> usize {
        let address = match address.to_canonical() {
            IpAddr::V6(address) => u128::from(address) >> 64,
            IpAddr::V4(address) => u128::from(u32::from(address)) | 1 << 64,
        };
        usize::try_from(self.hasher.hash_one(address) % SOURCES as u64).unwrap_or_default()
    }

    fn ticks(&self, now: Instant) -> u32 {
        ticks_of(now.saturating_duration_since(self.start))
    }
}

fn ticks_of(time: Duration) -> u32 {
    u32::try_from(time.as_millis() / 10).unwrap_or(u32::MAX)
}

fn flow_of<X>(pieces: &[Option<Box<Piece<X>>>], index: Index) -> Option<&Flow<X>> {
    let index = index as usize;
    pieces.get(index / PIECE)?.as_ref()?.slots[index % PIECE].as_ref()
}

/// Identifies a flow by its addresses.
type Path = ([u8; 16], u32, u16, u16);

fn compact(peer: SocketAddr) -> ([u8; 16], u32, u16) {
    match peer {
        SocketAddr::V4(peer) => (peer.ip().to_ipv6_mapped().octets(), 0, peer.port()),
        SocketAddr::V6(peer) => (peer.ip().octets(), peer.scope_id(), peer.port()),
    }
}

fn path(peer: SocketAddr, local: u16) -> Path {
    let (address, scope, port) = compact(peer);
    (address, scope, port, local)
}

impl<X> Flow<X> {
    fn path(&self) -> Path {
        (self.peer, self.scope, self.port, self.local)
    }
}

#[cfg(test)]
mod tests;
