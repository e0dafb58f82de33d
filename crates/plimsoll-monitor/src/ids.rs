//! The numbers by which a store knows what it keeps. They stay the same for ever.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

/// A map by monitor with a fast hash: a check makes some thirty look-ups. The store assigns the numbers, so an attacker cannot
/// choose keys that collide.
pub(crate) type MonitorMap<V> = HashMap<MonitorId, V, RandomState>;

/// A set of monitors with the same hash.
pub(crate) type MonitorSet = HashSet<MonitorId, RandomState>;

/// The number of an organisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrgId(pub i64);

/// The number of a monitor, unique in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonitorId(pub i64);

/// The number of an incident, unique in a store; later incidents have higher numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IncidentId(pub i64);
