//! Connecting to a server of an upstream, and to another one if that fails.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;

use super::figures::End;
use crate::balance::hash;
use crate::upstream::{Server, ServerUse, Upstream};

/// The attempts to connect for one client, for its line in the log.
#[derive(Debug)]
pub(super) struct Attempts {
    /// How many there were.
    pub(super) count: u32,
    /// How long the one took that succeeded.
    pub(super) took: Option<Duration>,
    /// The end of the client's connection if it were dropped now.
    pub(super) end: End,
    /// The upstream and the server of the last one.
    last: Option<(Arc<str>, Arc<str>)>,
}

impl Default for Attempts {
    fn default() -> Self {
        Self {
            count: 0,
            took: None,
            end: End::Cut,
            last: None,
        }
    }
}

impl Attempts {
    /// The upstream and the server that were tried last.
    pub(super) fn forwarded(&self) -> Option<(&str, &str)> {
        let (upstream, server) = self.last.as_ref()?;
        Some((upstream, server))
    }

    /// Connects to a server by `open`, and to another one if that fails, as often as the upstream retries.
    pub(super) async fn connect<T>(
        &mut self,
        upstream: &Rc<Upstream>,
        peer: SocketAddr,
        open: impl AsyncFn(Rc<Server>) -> Option<T>,
    ) -> Option<(T, ServerUse)> {
        let key = source_key(peer);
        let retries = upstream.plan.options.retry.retries;
        let mut tried = Vec::new();
        self.end = End::NoServer;
        loop {
            let now = SystemClock.now();
            let server = upstream.choose(key, None, &tried, now)?;
            tried.push(server.id());
            self.count += 1;
            self.last = Some((Arc::clone(upstream.name()), Arc::clone(server.name())));
            let in_use = Rc::clone(&server).begin(now);
            let connected = open(Rc::clone(&server)).await;
            let done = SystemClock.now();
            upstream.observe(&server, connected.is_none(), done);
            if let Some(connected) = connected {
                in_use.connected(done);
                self.took = Some(done.saturating_duration_since(now));
                self.end = End::Cut;
                return Some((connected, in_use));
            }
            in_use.failed();
            self.end = End::ConnectFailed;
            if self.count > retries {
                return None;
            }
        }
    }
}

/// The key of a client, by its address.
pub(super) fn source_key(peer: SocketAddr) -> u64 {
    match peer.ip().to_canonical() {
        IpAddr::V4(address) => hash(&address.octets()),
        IpAddr::V6(address) => hash(&address.octets()),
    }
}
