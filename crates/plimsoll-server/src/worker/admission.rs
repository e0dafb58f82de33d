//! Connection limits: in total, and per client address. All workers of an engine share them.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::counters::Cut;

/// Parts of the table of addresses. Each has its own lock, so that workers seldom wait for each other.
const SHARDS: usize = 64;

/// Counts open connections, by which it admits new ones.
#[derive(Debug)]
pub(crate) struct Admission {
    open: AtomicUsize,
    hasher: RandomState,
    per_address: [Shard; SHARDS],
}

/// Open connections by their address, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard(Mutex<HashMap<IpAddr, usize>>);

impl Default for Admission {
    fn default() -> Self {
        Self {
            open: AtomicUsize::new(0),
            hasher: RandomState::new(),
            per_address: std::array::from_fn(|_| Shard::default()),
        }
    }
}

impl Admission {
    /// A place for a connection from `address`, if there is one.
    pub(crate) fn admit(
        &self,
        address: IpAddr,
        most: usize,
        most_of_address: usize,
    ) -> Result<(), Cut> {
        if self.open.fetch_add(1, Ordering::Relaxed) >= most {
            self.open.fetch_sub(1, Ordering::Relaxed);
            return Err(Cut::Connections);
        }
        let added = self.add(address, most_of_address);
        if added.is_err() {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
        added
    }

    /// Counts a connection as one of `to`, which a proxy passes on from `from`.
    pub(crate) fn moved(
        &self,
        from: IpAddr,
        to: IpAddr,
        most_of_address: usize,
    ) -> Result<(), Cut> {
        self.add(to, most_of_address)?;
        self.remove(from);
        Ok(())
    }

    /// Gives a place back.
    pub(crate) fn leave(&self, address: IpAddr) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        self.remove(address);
    }

    fn add(&self, address: IpAddr, most: usize) -> Result<(), Cut> {
        let address = counted(address);
        let mut connections = self.shard(address);
        let open = connections.entry(address).or_insert(0);
        if *open >= most {
            return Err(Cut::ConnectionsOfAddress);
        }
        *open += 1;
        Ok(())
    }

    fn remove(&self, address: IpAddr) {
        let address = counted(address);
        let mut connections = self.shard(address);
        if let Some(open) = connections.get_mut(&address) {
            *open -= 1;
            if *open == 0 {
                connections.remove(&address);
            }
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "any bits of a hash choose as well as others"
    )]
    fn shard(&self, address: IpAddr) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        let shard = self.hasher.hash_one(address) as usize % SHARDS;
        let connections = self.per_address[shard].0.lock();
        connections.unwrap_or_else(PoisonError::into_inner)
    }
}

/// As what an address is counted: of one of IPv6, its first 64 bits, of which a client has at least the rest.
fn counted(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            Ipv6Addr::from(network).into()
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_given_back() {
        let admission = Admission::default();
        let (here, there) = ([127, 0, 0, 1].into(), [127, 0, 0, 2].into());
        assert_eq!(admission.admit(here, 2, 1), Ok(()));
        assert_eq!(admission.admit(here, 2, 1), Err(Cut::ConnectionsOfAddress));
        assert_eq!(admission.admit(there, 2, 1), Ok(()));
        assert_eq!(admission.admit(there, 2, 9), Err(Cut::Connections));
        admission.leave(here);
        assert_eq!(admission.admit(here, 2, 1), Ok(()));
        let open = || admission.open.load(Ordering::Relaxed);
        assert_eq!(open(), 2);
        let too_many = Err(Cut::ConnectionsOfAddress);
        assert_eq!(admission.moved(here, there, 1), too_many);
        assert_eq!(admission.moved(here, there, 2), Ok(()));
        admission.leave(there);
        admission.leave(there);
        assert_eq!(open(), 0);
        for shard in &admission.per_address {
            assert!(shard.0.lock().unwrap().is_empty());
        }
    }

    #[test]
    fn networks_of_ipv6_count_as_one_address() {
        let admission = Admission::default();
        let address = |text: &str| text.parse().unwrap();
        let admit = |text| admission.admit(address(text), 9, 1);
        assert_eq!(admit("2001:db8::1"), Ok(()));
        let too_many = Err(Cut::ConnectionsOfAddress);
        assert_eq!(admit("2001:db8::ffff:2"), too_many);
        assert_eq!(admit("2001:db8:0:1::1"), Ok(()));
        // The same client, whatever the family of the socket.
        assert_eq!(admit("::ffff:192.0.2.1"), Ok(()));
        assert_eq!(admit("192.0.2.1"), too_many);
        assert_eq!(admit("192.0.2.2"), Ok(()));
        admission.leave(address("192.0.2.1"));
        assert_eq!(admit("192.0.2.1"), Ok(()));
        admission.leave(address("2001:db8::2"));
        assert_eq!(admit("2001:db8::1"), Ok(()));
    }
}
