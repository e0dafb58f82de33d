//! What a handler of datagrams wants done.

use std::net::SocketAddr;
use std::ops::Range;

use plimsoll_wire::EcnCodepoint;

/// A session with an upstream, by a number that its handler chose and uses once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u64);

/// Effects in the order in which they are to happen.
///
/// Datagrams that a socket does not take at once are lost, as datagrams are.
#[derive(Debug, Clone, Default)]
pub struct Effects {
    entries: Vec<Entry>,
    /// The content of all datagrams.
    bytes: Vec<u8>,
}

#[derive(Debug, Clone)]
enum Entry {
    Reply {
        from: SocketAddr,
        to: SocketAddr,
        ecn: Option<EcnCodepoint>,
        bytes: Range<usize>,
    },
    Open(SessionId, SocketAddr),
    Send(SessionId, Option<EcnCodepoint>, Range<usize>),
    Close(SessionId),
}

/// One effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect<'a> {
    /// Sends a datagram to a client from the listener's socket.
    Reply {
        /// The address of ours that the client knows.
        from: SocketAddr,
        /// The client.
        to: SocketAddr,
        /// Its ECN bits.
        ecn: Option<EcnCodepoint>,
        /// What is in it.
        bytes: &'a [u8],
    },
    /// Opens a socket to an upstream.
    Open {
        /// What the handler calls it.
        session: SessionId,
        /// Where to.
        upstream: SocketAddr,
    },
    /// Sends a datagram to the upstream of a session.
    Send {
        /// Which one.
        session: SessionId,
        /// Its ECN bits.
        ecn: Option<EcnCodepoint>,
        /// What is in it.
        bytes: &'a [u8],
    },
    /// Closes the socket of a session.
    Close {
        /// Which one.
        session: SessionId,
    },
}

impl Effects {
    /// Nothing is to be done.
    pub fn new() -> Self {
        Self::default()
    }

    /// Every effect in its order.
    pub fn iter(&self) -> impl Iterator<Item = Effect<'_>> {
        self.entries.iter().map(|entry| match entry {
            Entry::Reply {
                from,
                to,
                ecn,
                bytes,
            } => Effect::Reply {
                from: *from,
                to: *to,
                ecn: *ecn,
                bytes: &self.bytes[bytes.clone()],
            },
            Entry::Open(session, upstream) => Effect::Open {
                session: *session,
                upstream: *upstream,
            },
            Entry::Send(session, ecn, bytes) => Effect::Send {
                session: *session,
                ecn: *ecn,
                bytes: &self.bytes[bytes.clone()],
            },
            Entry::Close(session) => Effect::Close { session: *session },
        })
    }

    /// Sends a datagram to a client.
    ///
    /// - `from`: the address that the client sent to.
    pub fn reply(
        &mut self,
        from: SocketAddr,
        to: SocketAddr,
        ecn: Option<EcnCodepoint>,
        bytes: &[u8],
    ) {
        let bytes = self.keep(bytes);
        self.entries.push(Entry::Reply {
            from,
            to,
            ecn,
            bytes,
        });
    }

    /// Opens a socket to `upstream`, before anything is sent by it.
    pub fn open(&mut self, session: SessionId, upstream: SocketAddr) {
        self.entries.push(Entry::Open(session, upstream));
    }

    /// Sends a datagram to the upstream of a session.
    pub fn send(&mut self, session: SessionId, ecn: Option<EcnCodepoint>, bytes: &[u8]) {
        let bytes = self.keep(bytes);
        self.entries.push(Entry::Send(session, ecn, bytes));
    }

    /// Closes the socket of a session.
    pub fn close(&mut self, session: SessionId) {
        self.entries.push(Entry::Close(session));
    }

    /// Forgets all of them; the memory stays.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.bytes.clear();
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }
}
