//! The fields that a server sees.

use std::fmt::Write as _;
use std::net::IpAddr;

use plimsoll_client::forward::FieldSource;
use plimsoll_model::Protocol;
use plimsoll_server::{Request, Scheme, Version};

use super::tunnel::Handshake;
use super::{ForwardPlan, Forwarded};

/// The name of this gateway in `Via`.
const PSEUDONYM: &str = "plimsoll";

/// The fields of a request as they are forwarded. Those of the connection are left out by the exchange.
pub(super) struct Outgoing<'a> {
    plan: &'a ForwardPlan,
    request: &'a Request<'a>,
    handshake: Option<&'a Handshake>,
    /// The server speaks HTTP/1.
    is_http1: bool,
    is_trusted: bool,
    added: Vec<(&'static str, String)>,
}

/// Fields that name the client and its request, which only a trusted proxy may set.
const OF_PROXIES: [&str; 6] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-port",
    "x-real-ip",
];

impl<'a> Outgoing<'a> {
    pub(super) fn new(
        plan: &'a ForwardPlan,
        request: &'a Request<'a>,
        handshake: Option<&'a Handshake>,
        protocol: Protocol,
    ) -> Self {
        let peer = request.peer.ip().to_canonical();
        let is_trusted = plan.trusted.iter().any(|network| network.contains(&peer));
        let mut outgoing = Self {
            plan,
            request,
            handshake,
            is_http1: protocol == Protocol::Http1,
            is_trusted,
            added: Vec::with_capacity(4),
        };
        if matches!(plan.forwarded, Forwarded::X | Forwarded::Both) {
            outgoing.add_x_forwarded(peer);
        }
        if matches!(plan.forwarded, Forwarded::Rfc7239 | Forwarded::Both) {
            outgoing.add_forwarded(peer);
        }
        let version = match request.version {
            Version::Http10 => "1.0",
            Version::Http11 => "1.1",
            Version::Http2 => "2",
            Version::Http3 => "3",
        };
        let via = format!("{version} {PSEUDONYM}");
        outgoing.add("via", outgoing.behind("via", &via));
        outgoing
    }

    fn add(&mut self, name: &'static str, value: String) {
        self.added.push((name, value));
    }

    fn add_x_forwarded(&mut self, peer: IpAddr) {
        let proto = match self.request.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        let peer = peer.to_string();
        let peer = if self.is_trusted {
            self.behind("x-forwarded-for", &peer)
        } else {
            peer
        };
        self.add("x-forwarded-for", peer);
        // Of several proxies the first one knows what the client asked for.
        let is_known = |name| self.is_trusted && self.request.header(name).is_some();
        let (knows_proto, knows_host) =
            (is_known("x-forwarded-proto"), is_known("x-forwarded-host"));
        if !knows_proto {
            self.add("x-forwarded-proto", proto.to_owned());
        }
        if !knows_host && !self.request.authority.is_empty() {
            self.add("x-forwarded-host", self.request.authority.to_owned());
        }
    }

    /// RFC 7239, section 4.
    fn add_forwarded(&mut self, peer: IpAddr) {
        let mut element = match peer {
            IpAddr::V4(address) => format!("for={address}"),
            IpAddr::V6(address) => format!("for=\"[{address}]\""),
        };
        let authority = self.request.authority;
        if !authority.is_empty() {
            write!(element, ";host=\"{authority}\"").ok();
        }
        element.push_str(match self.request.scheme {
            Scheme::Http => ";proto=http",
            Scheme::Https => ";proto=https",
        });
        let element = if self.is_trusted {
            self.behind("forwarded", &element)
        } else {
            element
        };
        self.add("forwarded", element);
    }

    /// `last` behind the values that the request has.
    fn behind(&self, name: &str, last: &str) -> String {
        let mut joined = String::new();
        for (known, value) in self.request.headers() {
            if known.eq_ignore_ascii_case(name)
                && let Ok(value) = std::str::from_utf8(value)
            {
                joined.push_str(value);
                joined.push_str(", ");
            }
        }
        joined + last
    }

    fn is_replaced(&self, name: &str) -> bool {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        self.added.iter().any(|(added, _)| is(added))
            || (!self.is_trusted && OF_PROXIES.into_iter().any(is))
            || self.plan.set.iter().any(|(set, _)| is(set.as_str()))
            || self.plan.removed.iter().any(|removed| is(removed.as_str()))
            || (self.handshake.is_some() && is("sec-websocket-key"))
    }
}

impl FieldSource for Outgoing<'_> {
    fn each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        for (name, value) in self.request.headers() {
            if !self.is_replaced(name) {
                visit(name.as_bytes(), value);
            }
        }
        let is_set = |name: &str| self.plan.set.iter().any(|(set, _)| set.as_str() == name);
        for (name, value) in &self.added {
            if !is_set(name) {
                visit(name.as_bytes(), value.as_bytes());
            }
        }
        for (name, value) in &self.plan.set {
            visit(name.as_str().as_bytes(), value.as_bytes());
        }
        // Over HTTP/2 and HTTP/3 there is no key (RFC 8441, section 5).
        if let Some(handshake) = self.handshake
            && self.is_http1
        {
            visit(b"sec-websocket-key", handshake.key().as_bytes());
        }
    }
}
