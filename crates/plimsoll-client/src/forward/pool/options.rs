//! Bounds on the connections of a pool.

use std::time::{Duration, Instant};

use plimsoll_wire::h1::Limits;

/// The version of HTTP that connections of a pool speak, or what carries it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Speaks {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2; without TLS by prior knowledge.
    Http2,
    /// The protocol that the server chooses by ALPN; HTTP/1.1 without TLS. The TLS settings have to offer both.
    #[default]
    Negotiated,
    /// HTTP/3, which needs settings of QUIC in the plan of the connector; of upgrades, only to WebSockets.
    Http3,
    /// FastCGI, without TLS ([`Head::parameters`](crate::forward::Head)).
    FastCgi,
    /// uwsgi, without TLS, with one exchange on a connection ([`Head::parameters`](crate::forward::Head)).
    Uwsgi,
}

impl Speaks {
    /// The names that a client offers by ALPN (RFC 7301), the preferred one first.
    pub const fn alpn(self) -> &'static [&'static [u8]] {
        match self {
            Self::Http1 => &[b"http/1.1"],
            Self::Http2 => &[b"h2"],
            Self::Http3 => &[b"h3"],
            Self::Negotiated => &[b"h2", b"http/1.1"],
            Self::FastCgi | Self::Uwsgi => &[],
        }
    }
}

/// Bounds on the connections of a pool.
#[derive(Debug, Clone, Copy)]
pub struct PoolOptions {
    /// The version of HTTP.
    pub speaks: Speaks,
    /// Destinations that are kept; beyond it those that no caller keeps and no exchange uses are forgotten.
    pub destinations: usize,
    /// Connections to one destination, idle ones included; HTTP/2 connections that only end their last exchanges do
    /// not count.
    pub connections: usize,
    /// Exchanges at a time on an HTTP/2 connection, whatever more the server allows.
    pub streams: u32,
    /// Callers that wait for a connection to one destination; one more fails with `resource-limit`.
    pub waiting: usize,
    /// Connections to one destination that are kept without an exchange.
    pub idle: usize,
    /// Idle timeout of a connection; should be less than the server's.
    pub idle_timeout: Duration,
    /// After how long without an exchange an HTTP/2 connection is probed by a PING before it is used again. A server may
    /// have disappeared, or a router on the way have forgotten the connection, without either end being notified.
    pub probe_after: Duration,
    /// Timeout for the server's answer to a probe; then the connection is replaced.
    pub probe_timeout: Duration,
    /// Maximum age of a connection; then names are resolved again.
    pub lifetime: Duration,
    /// Whether a connection is used no longer than the TTL of its address allows, though for at least
    /// [`SHORTEST_LIFETIME`](Self::SHORTEST_LIFETIME), so that servers that move by DNS are followed.
    pub follows_ttl: bool,
    /// Exchanges that a connection carries before it is replaced.
    pub exchanges: u64,
    /// Bytes of content that an HTTP/2 server may send ahead of the reader of one exchange.
    pub stream_window: u32,
    /// Bounds on responses.
    pub limits: Limits,
}

impl PoolOptions {
    /// Names with a TTL of a few seconds are common for load balancing; a connection for each of these intervals would
    /// cost servers more than it helps them.
    pub const SHORTEST_LIFETIME: Duration = Duration::from_secs(30);

    /// When a connection that was opened at `now` is old.
    ///
    /// - `valid_until`: until when its address is valid, if name servers gave it.
    pub(super) fn use_until(&self, now: Instant, valid_until: Option<Instant>) -> Instant {
        let old = now + self.lifetime;
        match valid_until.filter(|_| self.follows_ttl) {
            Some(valid) => valid.max(now + Self::SHORTEST_LIFETIME).min(old),
            None => old,
        }
    }
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            speaks: Speaks::Negotiated,
            // A crawl or a template reaches as many hosts; each takes a few hundred bytes without connections.
            destinations: 1024,
            connections: 256,
            streams: 100,
            waiting: 1024,
            idle: 64,
            idle_timeout: Duration::from_secs(15),
            // A probe takes a round trip, so not between the requests of one page or one check.
            probe_after: Duration::from_secs(5),
            // More than a round trip with one retransmission anywhere, less than callers' timeouts.
            probe_timeout: Duration::from_secs(2),
            lifetime: Duration::from_mins(5),
            follows_ttl: true,
            exchanges: u64::MAX,
            stream_window: 256 * 1024,
            limits: Limits::default(),
        }
    }
}
