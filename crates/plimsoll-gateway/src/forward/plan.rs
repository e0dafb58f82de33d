//! Forwarding settings of a route, as configured.

use std::time::Duration;

use http::header::{HeaderName, HeaderValue};
use ipnet::IpNet;
use plimsoll_server::{Request, Template};

use super::application::ApplicationPlan;
use super::authorize::AuthorizePlan;
use super::error_pages::ErrorPages;
use super::fault::Fault;
use super::target::Rewrite;
use super::tunnel::{Upgrades, WebSocketPlan};

/// Forwarding settings of a route, immutable.
#[derive(Debug, Clone, Default)]
pub(crate) struct ForwardPlan {
    /// The prefix of the path; empty, or begins with a slash and ends without one.
    pub(crate) base: String,
    /// The prefix of the route that is taken from the path.
    pub(crate) strip: Option<String>,
    pub(crate) host: HostPolicy,
    pub(crate) forwarded: Forwarded,
    /// Proxies whose `Forwarded` and `X-Forwarded-…` are believed; those of others are replaced.
    pub(crate) trusted: Vec<IpNet>,
    /// Fields in place of those of the request.
    pub(crate) set: Vec<(HeaderName, HeaderValue)>,
    /// The same with values that depend on the request.
    pub(crate) templates: Vec<(HeaderName, Template)>,
    /// Fields that are not forwarded.
    pub(crate) removed: Vec<HeaderName>,
    /// The first one that matches changes the path.
    pub(crate) rewrites: Vec<Rewrite>,
    /// Bytes of content that a request may have.
    pub(crate) request_limit: Option<u64>,
    /// Bytes of content up to which a request is read whole before it is forwarded; longer ones are rejected.
    pub(crate) request_buffer: Option<u64>,
    /// Bytes of a response that are read ahead of a slow client.
    pub(crate) response_buffer: Option<u64>,
    /// Bytes of content that a response may have.
    pub(crate) response_limit: Option<u64>,
    pub(crate) error_pages: ErrorPages,
    /// Errors of servers are replaced too, by pages or by another route, not only those of the gateway itself.
    pub(crate) intercepts: bool,
    /// Responses may name a path that responds in their place.
    pub(crate) hands_over: bool,
    pub(crate) fault: Option<Fault>,
    pub(crate) authorize: Option<AuthorizePlan>,
    /// Calls of the health service of gRPC are answered here.
    pub(crate) grpc_health: bool,
    /// The longest deadline of a call of gRPC; those that wish for more, or for none, get this one.
    pub(crate) grpc_timeout: Option<Duration>,
    pub(crate) websocket: WebSockets,
    /// Other protocols that connections may be upgraded to.
    pub(crate) upgrades: Upgrades,
    /// The servers are applications behind FastCGI or uwsgi.
    pub(crate) application: Option<ApplicationPlan>,
    pub(crate) timeouts: RouteTimeouts,
}

impl ForwardPlan {
    /// The fields of requests that the configuration sets or removes, or that a service sets.
    pub(crate) fn own_fields(&self) -> impl Iterator<Item = &HeaderName> {
        let fixed = self.set.iter().map(|(name, _)| name);
        let templates = self.templates.iter().map(|(name, _)| name);
        let copied = self.authorize.iter().flat_map(|it| &it.copied);
        fixed.chain(templates).chain(&self.removed).chain(copied)
    }
}

/// Time limits of a route, each in place of that of its upstream ([`Timeouts`](crate::upstream::Timeouts)).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RouteTimeouts {
    pub(crate) response: Option<Duration>,
    pub(crate) idle: Option<Duration>,
    pub(crate) total: Option<Duration>,
}

/// Whether WebSockets are forwarded, and within which limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WebSockets {
    Rejected,
    Forwarded(WebSocketPlan),
}

impl Default for WebSockets {
    fn default() -> Self {
        Self::Forwarded(WebSocketPlan::default())
    }
}

/// The host that a server sees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum HostPolicy {
    /// That of the request.
    #[default]
    Client,
    /// The same without its port.
    ClientName,
    /// That of the server's URL.
    Server,
    /// This one.
    Name(String),
}

/// The fields that name the client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Forwarded {
    /// `X-Forwarded-For`, `-Host` and `-Proto`.
    #[default]
    X,
    /// `Forwarded` (RFC 7239).
    Rfc7239,
    /// All of them.
    Both,
    /// None; those of the request are removed all the same, unless it comes from a trusted proxy.
    None,
}

impl HostPolicy {
    /// The host for a request; `None` means that of the server's URL.
    pub(super) fn authority<'a>(&'a self, request: &Request<'a>) -> Option<&'a str> {
        match self {
            Self::Client => Some(request.authority).filter(|it| !it.is_empty()),
            Self::ClientName => Some(request.host()).filter(|it| !it.is_empty()),
            Self::Server => None,
            Self::Name(name) => Some(name.as_str()),
        }
    }
}
