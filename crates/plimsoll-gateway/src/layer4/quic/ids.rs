//! The connection IDs that servers have chosen, for all workers of a listener.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// Paths of one connection ID: clients have few addresses, so more of them are forged.
const MOST_PATHS: u32 = 8;

/// Addresses of clients whose last server is known.
const RECENT: usize = 65_536;

/// A connection ID, as a keyed hash, which clients cannot predict; 0 for none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct IdKey(pub(super) u64);

/// A connection ID on one path, in the same way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PathKey(pub(super) u64);

/// Connection IDs with the servers that chose them. Workers look here only for what they do not know themselves.
#[derive(Debug)]
pub(crate) struct ServerIds {
    hasher: RandomState,
    /// The server that clients of an address used last, by a hash of the address and as its number and one.
    recent: Box<[AtomicU32]>,
    /// The lengths of connection IDs that servers use, as bits.
    lengths: AtomicU32,
    known: Mutex<HashTable<Known>>,
}

#[derive(Debug)]
struct Known {
    key: u64,
    server: u32,
    /// Flows that it is of.
    paths: u32,
}

impl Default for ServerIds {
    fn default() -> Self {
        Self {
            hasher: RandomState::new(),
            recent: (0..RECENT).map(|_| AtomicU32::new(0)).collect(),
            lengths: AtomicU32::new(0),
            known: Mutex::default(),
        }
    }
}

impl ServerIds {
    /// Notes that a client of an address uses a server.
    pub(super) fn note(&self, client: IpAddr, server: usize) {
        let server = u32::try_from(server + 1).unwrap_or(0);
        self.place(client).store(server, Ordering::Relaxed);
    }

    /// The server that clients of an address, or of another one with the same hash, used last.
    pub(super) fn recent(&self, client: IpAddr) -> Option<usize> {
        let server = self.place(client).load(Ordering::Relaxed);
        server.checked_sub(1).map(|server| server as usize)
    }

    fn place(&self, client: IpAddr) -> &AtomicU32 {
        let hash = self.hasher.hash_one(client.to_canonical());
        &self.recent[usize::try_from(hash % RECENT as u64).unwrap_or_default()]
    }

    pub(super) fn key(&self, id: &[u8]) -> IdKey {
        IdKey(self.hasher.hash_one(id) | 1)
    }

    pub(super) fn path_key(&self, id: &[u8], path: (SocketAddr, SocketAddr)) -> PathKey {
        PathKey(self.hasher.hash_one((id, path)) | 1)
    }

    /// The lengths that IDs of servers may have.
    pub(super) fn lengths(&self) -> impl Iterator<Item = usize> + use<> {
        let lengths = self.lengths.load(Ordering::Relaxed);
        (1..=20).filter(move |length| lengths & 1 << length != 0)
    }

    /// Notes the length of an ID.
    pub(super) fn learn(&self, length: usize) {
        let bit = 1 << length;
        if self.lengths.load(Ordering::Relaxed) & bit == 0 {
            self.lengths.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// The server that chose an ID, by the number that its upstream gave it.
    pub(super) fn server(&self, key: IdKey) -> Option<usize> {
        let known = self.lock();
        known
            .find(key.0, |it| it.key == key.0)
            .map(|it| it.server as usize)
    }

    /// One more flow has the ID; false if it has too many, or the ID is another server's.
    pub(super) fn enter(&self, key: IdKey, server: usize) -> bool {
        let server = u32::try_from(server).unwrap_or(u32::MAX);
        match self.lock().entry(key.0, |it| it.key == key.0, |it| it.key) {
            Entry::Vacant(place) => {
                place.insert(Known {
                    key: key.0,
                    server,
                    paths: 1,
                });
                true
            }
            Entry::Occupied(mut known) => {
                let known = known.get_mut();
                let is_fine = known.server == server && known.paths < MOST_PATHS;
                known.paths += u32::from(is_fine);
                is_fine
            }
        }
    }

    /// A flow that had the ID has ended.
    pub(super) fn leave(&self, key: IdKey) {
        let mut known = self.lock();
        if let Ok(mut entry) = known.find_entry(key.0, |it| it.key == key.0) {
            entry.get_mut().paths -= 1;
            if entry.get().paths == 0 {
                entry.remove();
            }
        }
        if known.capacity() > 1024 && known.len() < known.capacity() / 8 {
            known.shrink_to(0, |it| it.key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashTable<Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_leads_to_its_server_as_long_as_a_flow_has_it() {
        let ids = ServerIds::default();
        let key = ids.key(b"abcdefgh");
        assert_eq!(ids.server(key), None);
        assert!(ids.enter(key, 3));
        assert!(!ids.enter(key, 4), "another server has chosen the same");
        for _ in 1..MOST_PATHS {
            assert!(ids.enter(key, 3));
        }
        assert!(!ids.enter(key, 3), "more paths than a client has");
        for _ in 0..MOST_PATHS {
            assert_eq!(ids.server(key), Some(3));
            ids.leave(key);
        }
        assert_eq!(ids.server(key), None);
        ids.leave(key);
        for length in [8, 20, 8] {
            ids.learn(length);
        }
        assert_eq!(ids.lengths().collect::<Vec<_>>(), [8, 20]);
        let client = "192.0.2.1".parse().unwrap();
        assert_eq!(ids.recent(client), None);
        ids.note(client, 0);
        assert_eq!(ids.recent("::ffff:192.0.2.1".parse().unwrap()), Some(0));
    }
}
