//! Gates that keep a due check from starting: its own last one, the limit on all, a host that is down or busy.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;

use crate::schedule::breaker::{Breaker, BreakerRule};

/// How many checks may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateLimits {
    /// At a time.
    pub concurrency: usize,
    /// At a time against one host and port.
    pub per_host: usize,
    /// Of hosts that cannot be reached; absent for none.
    pub breaker: Option<BreakerRule>,
}

impl Default for GateLimits {
    fn default() -> Self {
        Self {
            concurrency: 1024,
            per_host: 4,
            breaker: Some(BreakerRule::default()),
        }
    }
}

/// Why a check that was due did not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// The monitor's last check still runs.
    InFlight,
    /// As many checks run as may.
    Saturated,
    /// The host could not be reached several times in a row.
    BreakerOpen,
    /// As many checks of the host run as may.
    HostBusy,
}

impl DropReason {
    /// Every reason, in the order of the gates.
    pub const ALL: [Self; 4] = [
        Self::InFlight,
        Self::Saturated,
        Self::BreakerOpen,
        Self::HostBusy,
    ];

    /// Whether others have the room that it needs, so that it is worth another attempt before its next turn.
    pub const fn is_for_room(self) -> bool {
        matches!(self, Self::Saturated | Self::HostBusy)
    }

    /// The name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InFlight => "target_in_flight",
            Self::Saturated => "pool_saturated",
            Self::BreakerOpen => "breaker_open",
            Self::HostBusy => "host_busy",
        }
    }
}

/// How often each reason kept a check from starting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DropCounts([u64; 4]);

impl DropCounts {
    /// Checks that did not start for that reason.
    pub fn count(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// The right to run a check; goes back by [`Gates::leave`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass<K> {
    /// The monitor.
    pub key: K,
    host: Option<Arc<str>>,
}

/// The gates, in order: the monitor's last check, the limit on all, the host's breaker, the limit on the host.
#[derive(Debug)]
pub struct Gates<K> {
    limits: GateLimits,
    /// Keys are assigned here, so a fast hash is safe.
    in_flight: HashSet<K, RandomState>,
    hosts: HashMap<Arc<str>, HostState>,
    dropped: DropCounts,
}

#[derive(Debug, Default)]
struct HostState {
    in_flight: usize,
    breaker: Breaker,
}

impl<K: Copy + Eq + Hash> Gates<K> {
    /// Nothing runs yet.
    pub fn new(limits: GateLimits) -> Self {
        Self {
            limits,
            in_flight: HashSet::default(),
            hosts: HashMap::new(),
            dropped: DropCounts::default(),
        }
    }

    /// Applies to checks that start from now on.
    pub fn set_limits(&mut self, limits: GateLimits) {
        self.limits = limits;
    }

    /// Checks that run.
    pub fn running(&self) -> usize {
        self.in_flight.len()
    }

    /// Checks that did not start.
    pub fn dropped(&self) -> DropCounts {
        self.dropped
    }

    /// Hosts whose breaker is open.
    pub fn open_breakers(&self, now: Instant) -> usize {
        let hosts = self.hosts.values();
        hosts.filter(|host| host.breaker.is_open(now)).count()
    }

    /// Lets a check start, or counts why it may not.
    ///
    /// - `host`: host and port that it connects to; absent if it connects to none.
    pub fn enter(
        &mut self,
        key: K,
        host: Option<&Arc<str>>,
        now: Instant,
    ) -> Result<Pass<K>, DropReason> {
        let refused = self.try_enter(key, host, now);
        if let Err(reason) = refused {
            self.dropped.0[reason as usize] += 1;
        }
        refused.map(|()| Pass {
            key,
            host: host.cloned(),
        })
    }

    fn try_enter(
        &mut self,
        key: K,
        host: Option<&Arc<str>>,
        now: Instant,
    ) -> Result<(), DropReason> {
        if self.in_flight.contains(&key) {
            return Err(DropReason::InFlight);
        }
        if self.in_flight.len() >= self.limits.concurrency {
            return Err(DropReason::Saturated);
        }
        if let Some(host) = host {
            let state = self.hosts.entry(Arc::clone(host)).or_default();
            // Before the breaker, which counts what it admits.
            let is_busy = state.in_flight >= self.limits.per_host;
            if let Some(rule) = &self.limits.breaker {
                if state.breaker.is_open(now) {
                    return Err(DropReason::BreakerOpen);
                }
                if !is_busy && !state.breaker.admits(rule, now) {
                    return Err(DropReason::BreakerOpen);
                }
            }
            if is_busy {
                return Err(DropReason::HostBusy);
            }
            state.in_flight += 1;
        }
        self.in_flight.insert(key);
        Ok(())
    }

    /// Takes back the pass of a check that ended.
    ///
    /// - `connected`: whether its host could be reached.
    /// - `interval`: between two checks of its monitor.
    pub fn leave(&mut self, pass: Pass<K>, connected: bool, interval: Duration, now: Instant) {
        self.in_flight.remove(&pass.key);
        let Some(host) = pass.host else {
            return;
        };
        let Some(state) = self.hosts.get_mut(&host) else {
            return;
        };
        state.in_flight = state.in_flight.saturating_sub(1);
        if let Some(rule) = &self.limits.breaker {
            state.breaker.done(connected, interval, rule, now);
        }
        if state.in_flight == 0 && state.breaker.is_idle() {
            self.hosts.remove(&host);
        }
    }
}
