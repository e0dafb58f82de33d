//! Effects of a datagram handler.

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
    Open(SessionId, SocketAddr, bool),
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
        /// Its content.
        bytes: &'a [u8],
    },
    /// Opens a socket to an upstream.
    Open {
        /// The handler's name for it.
        session: SessionId,
        /// Where to.
        upstream: SocketAddr,
        /// Whether the listener reports the address of the socket to the handler.
        reports_address: bool,
    },
    /// Sends a datagram to the upstream of a session.
    Send {
        /// Which one.
        session: SessionId,
        /// Its ECN bits.
        ecn: Option<EcnCodepoint>,
        /// Its content.
        bytes: &'a [u8],
    },
    /// Closes the socket of a session.
    Close {
        /// Which one.
        session: SessionId,
    },
}

/// Bytes that are sent at once at most: a datagram of UDP has no more.
const MOST_JOINED: usize = 65_000;

impl Effects {
    /// Nothing is to be done.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether nothing is to be done.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Every effect in its order.
    pub fn iter(&self) -> impl Iterator<Item = Effect<'_>> {
        self.entries.iter().map(|entry| self.effect(entry, None))
    }

    /// Every effect in its order, where datagrams of one length that follow each other on the same way are one, with that
    /// length; the last of them may be shorter.
    ///
    /// - `most`: how many may be one.
    pub(crate) fn joined(&self, most: usize) -> impl Iterator<Item = (Effect<'_>, Option<usize>)> {
        let mut rest = self.entries.as_slice();
        std::iter::from_fn(move || {
            let (first, after) = rest.split_first()?;
            rest = after;
            let Some(bytes) = first.bytes() else {
                return Some((self.effect(first, None), None));
            };
            let (segment, mut end, mut count) = (bytes.len(), bytes.end, 1);
            while let Some((next, after)) = rest.split_first()
                && let Some(following) = next.bytes()
                && first.has_way_of(next)
                && count < most
                && !following.is_empty()
                && following.len() <= segment
                && following.end - bytes.start <= MOST_JOINED
            {
                (rest, end, count) = (after, following.end, count + 1);
                if following.len() < segment {
                    break;
                }
            }
            let segment = (count > 1).then_some(segment);
            Some((self.effect(first, Some(end)), segment))
        })
    }

    /// - `end`: where its content ends, if not where its own does.
    fn effect(&self, entry: &Entry, end: Option<usize>) -> Effect<'_> {
        let content = |bytes: &Range<usize>| &self.bytes[bytes.start..end.unwrap_or(bytes.end)];
        match entry {
            Entry::Reply {
                from,
                to,
                ecn,
                bytes,
            } => Effect::Reply {
                from: *from,
                to: *to,
                ecn: *ecn,
                bytes: content(bytes),
            },
            Entry::Open(session, upstream, reports_address) => Effect::Open {
                session: *session,
                upstream: *upstream,
                reports_address: *reports_address,
            },
            Entry::Send(session, ecn, bytes) => Effect::Send {
                session: *session,
                ecn: *ecn,
                bytes: content(bytes),
            },
            Entry::Close(session) => Effect::Close { session: *session },
        }
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
    ///
    /// - `reports_address`: whether the listener reports the address of the socket by
    ///   [`on_open`](crate::DatagramHandler::on_open), which takes a system call.
    pub fn open(&mut self, session: SessionId, upstream: SocketAddr, reports_address: bool) {
        self.entries
            .push(Entry::Open(session, upstream, reports_address));
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

impl Entry {
    /// Where its content is, if it is a datagram; contents follow each other as the entries do.
    fn bytes(&self) -> Option<&Range<usize>> {
        match self {
            Self::Reply { bytes, .. } | Self::Send(_, _, bytes) => Some(bytes),
            Self::Open(..) | Self::Close(_) => None,
        }
    }

    /// Whether both are datagrams between the same ends, with the same ECN bits.
    fn has_way_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Send(session, ecn, _), Self::Send(other, other_ecn, _)) => {
                session == other && ecn == other_ecn
            }
            (
                Self::Reply { from, to, ecn, .. },
                Self::Reply {
                    from: other_from,
                    to: other_to,
                    ecn: other_ecn,
                    ..
                },
            ) => from == other_from && to == other_to && ecn == other_ecn,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_of_one_length_on_one_way_are_joined() {
        let mut effects = Effects::new();
        let (here, there): (SocketAddr, SocketAddr) = (
            "127.0.0.1:1".parse().unwrap(),
            "127.0.0.1:2".parse().unwrap(),
        );
        let (one, two) = (SessionId(1), SessionId(2));
        for bytes in [&b"abc"[..], b"def", b"gh", b"ijk", b"lmno", b""] {
            effects.send(one, None, bytes);
        }
        effects.send(two, None, b"pq");
        effects.send(two, Some(EcnCodepoint::Ce), b"rs");
        effects.open(SessionId(3), here, false);
        effects.reply(here, there, None, b"tu");
        effects.reply(here, there, None, b"vw");
        effects.reply(there, here, None, b"xy");
        let shown = |most| -> Vec<(String, Option<usize>)> {
            let joined = effects.joined(most);
            joined
                .map(|(effect, segment)| match effect {
                    Effect::Reply { bytes, .. } | Effect::Send { bytes, .. } => {
                        (String::from_utf8(bytes.to_vec()).unwrap(), segment)
                    }
                    Effect::Open { .. } => ("open".to_owned(), segment),
                    Effect::Close { .. } => ("close".to_owned(), segment),
                })
                .collect()
        };
        let expected = [
            ("abcdefgh", Some(3)),
            ("ijk", None),
            ("lmno", None),
            ("", None),
            ("pq", None),
            ("rs", None),
            ("open", None),
            ("tuvw", Some(2)),
            ("xy", None),
        ];
        assert_eq!(
            shown(64),
            expected.map(|(text, segment)| (text.to_owned(), segment))
        );
        assert_eq!(shown(1).len(), effects.iter().count());
        assert_eq!(shown(2)[0], ("abcdef".to_owned(), Some(3)));
    }
}
