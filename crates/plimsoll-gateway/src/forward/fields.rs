//! The fields that a server sees: what the client sent and trust allows, and what the gateway adds.
//!
//! They are put together by the exchange, in the order of [`Head::forwarded`](plimsoll_client::forward::Head): what is
//! added here nothing of the client removes, renames or doubles.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use http::header::{HeaderName, HeaderValue};
use plimsoll_client::forward::{FieldSource, Head, ReceivedFields, WithheldNames};
use plimsoll_model::Protocol;
use plimsoll_server::{Request, Scheme, Version};
use plimsoll_wire::http::{FieldList, is_proxy_field};

use super::tunnel::Handshake;
use super::{ForwardPlan, Forwarded};

/// The name of this gateway in `Via`.
const PSEUDONYM: &str = "plimsoll";

/// Whether a request comes from a trusted proxy.
fn is_trusted(plan: &ForwardPlan, request: &Request<'_>) -> bool {
    let proxy = request.connection().peer.ip().to_canonical();
    plan.trusted.iter().any(|network| network.contains(&proxy))
}

/// The fields of the client that it may set: not those of proxies unless it is a trusted one, not those that the
/// configuration removes, nor those that only the service which authorizes requests sets.
pub(super) struct ClientFields<'a> {
    plan: &'a Arc<ForwardPlan>,
    request: &'a Request<'a>,
    /// A WebSocket is to be opened, for which the gateway has a key of its own.
    is_handshake: bool,
    is_trusted: bool,
}

impl<'a> ClientFields<'a> {
    pub(super) fn new(
        plan: &'a Arc<ForwardPlan>,
        request: &'a Request<'a>,
        handshake: Option<&Handshake>,
    ) -> Self {
        Self {
            plan,
            request,
            is_handshake: handshake.is_some_and(|it| it.key().is_some()),
            is_trusted: is_trusted(plan, request),
        }
    }

    fn is_left_out(&self, name: &[u8]) -> bool {
        is_withheld(self.plan, self.is_trusted, name)
            || (self.is_handshake && name.eq_ignore_ascii_case(b"sec-websocket-key"))
    }
}

/// Whether no client may set the field of that name.
fn is_withheld(plan: &ForwardPlan, is_trusted: bool, name: &[u8]) -> bool {
    let is = |other: &HeaderName| name.eq_ignore_ascii_case(other.as_str().as_bytes());
    let mut identity = plan.authorize.iter().flat_map(|it| &it.copied);
    (!is_trusted && is_proxy_field(name)) || plan.removed.iter().any(is) || identity.any(is)
}

impl FieldSource for ClientFields<'_> {
    fn each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        for (name, value) in self.request.sent_fields() {
            if !self.is_left_out(name) {
                visit(name, value);
            }
        }
    }

    fn withheld(&self) -> Option<Rc<WithheldNames>> {
        let (plan, is_trusted) = (Arc::clone(self.plan), self.is_trusted);
        Some(Rc::new(move |name| is_withheld(&plan, is_trusted, name)))
    }
}

/// The fields of a request as a server would see them over HTTP/1.
///
/// - `identity`: what the service that authorized the request has set.
/// - `text`: memory for what is added.
pub(super) fn seen_fields(
    plan: &Arc<ForwardPlan>,
    request: &Request<'_>,
    identity: &[(HeaderName, HeaderValue)],
    text: &mut String,
) -> FieldList {
    let client = ClientFields::new(plan, request, None);
    let received = ReceivedFields::new(&client);
    let added = AddedFields::new(plan, identity, request, (None, Protocol::Http1), text);
    Head::forwarded(request.method, "/", &received, &added).field_list(Protocol::Http1)
}

/// The fields that the gateway and its layers add.
pub(super) struct AddedFields<'a> {
    plan: &'a ForwardPlan,
    /// Fields that the service which authorized the request has set.
    identity: &'a [(HeaderName, HeaderValue)],
    request: &'a Request<'a>,
    handshake: Option<&'a Handshake>,
    /// The server speaks HTTP/1.
    is_http1: bool,
    is_trusted: bool,
    /// Values of the fields that depend on the connection, behind one another.
    text: &'a mut String,
    added: [(&'static str, usize); MOST_ADDED],
    count: usize,
}

/// `x-forwarded-for`, `-proto` and `-host`, `forwarded`, `via`.
const MOST_ADDED: usize = 5;

impl<'a> AddedFields<'a> {
    /// - `identity`: what the service that authorized the request has set.
    /// - `text`: memory for what is added, kept from one request to the next.
    pub(super) fn new(
        plan: &'a ForwardPlan,
        identity: &'a [(HeaderName, HeaderValue)],
        request: &'a Request<'a>,
        (handshake, protocol): (Option<&'a Handshake>, Protocol),
        text: &'a mut String,
    ) -> Self {
        let is_trusted = is_trusted(plan, request);
        let peer = if is_trusted {
            request.connection().peer
        } else {
            request.peer
        };
        let peer = peer.ip().to_canonical();
        text.clear();
        let mut fields = Self {
            plan,
            identity,
            request,
            handshake,
            is_http1: protocol == Protocol::Http1,
            is_trusted,
            text,
            added: [("", 0); MOST_ADDED],
            count: 0,
        };
        if matches!(plan.forwarded, Forwarded::X | Forwarded::Both) {
            fields.add_x_forwarded(peer);
        }
        if matches!(plan.forwarded, Forwarded::Rfc7239 | Forwarded::Both) {
            fields.add_forwarded(peer);
        }
        fields.join("via");
        fields.text.push_str(match request.version {
            Version::Http10 => "1.0",
            Version::Http11 => "1.1",
            Version::Http2 => "2",
            Version::Http3 => "3",
        });
        fields.text.push(' ');
        fields.text.push_str(PSEUDONYM);
        fields.added_as("via");
        fields
    }

    /// Names the field whose value was appended since the last one.
    fn added_as(&mut self, name: &'static str) {
        debug_assert!(self.count < MOST_ADDED, "there is room for each of them");
        if let Some(slot) = self.added.get_mut(self.count) {
            *slot = (name, self.text.len());
            self.count += 1;
        }
    }

    fn added(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let mut start = 0;
        self.added[..self.count].iter().map(move |&(name, end)| {
            let value = self.text.get(start..end).unwrap_or_default();
            start = end;
            (name, value)
        })
    }

    fn add_x_forwarded(&mut self, peer: IpAddr) {
        if self.is_trusted {
            self.join("x-forwarded-for");
        }
        push_address(self.text, peer);
        self.added_as("x-forwarded-for");
        // Of several proxies the first one has seen the client's own request.
        let is_known = |name| self.is_trusted && self.request.header(name).is_some();
        let (knows_proto, knows_host) =
            (is_known("x-forwarded-proto"), is_known("x-forwarded-host"));
        if !knows_proto {
            self.text.push_str(match self.request.scheme {
                Scheme::Http => "http",
                Scheme::Https => "https",
            });
            self.added_as("x-forwarded-proto");
        }
        if !knows_host && !self.request.authority.is_empty() {
            self.text.push_str(self.request.authority);
            self.added_as("x-forwarded-host");
        }
    }

    /// RFC 7239, section 4.
    fn add_forwarded(&mut self, peer: IpAddr) {
        if self.is_trusted {
            self.join("forwarded");
        }
        let (before, behind) = if peer.is_ipv4() {
            ("for=", "")
        } else {
            ("for=\"[", "]\"")
        };
        self.text.push_str(before);
        push_address(self.text, peer);
        self.text.push_str(behind);
        let authority = self.request.authority;
        if !authority.is_empty() {
            write!(self.text, ";host=\"{authority}\"").ok();
        }
        self.text.push_str(match self.request.scheme {
            Scheme::Http => ";proto=http",
            Scheme::Https => ";proto=https",
        });
        self.added_as("forwarded");
    }

    /// Appends the values that the request has, each with a comma behind.
    fn join(&mut self, name: &str) {
        for value in self.request.values(name) {
            if let Ok(value) = std::str::from_utf8(value) {
                self.text.push_str(value);
                self.text.push_str(", ");
            }
        }
    }

    /// The fields that layers have set and the route leaves alone.
    fn of_layers(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.request.layer_fields().filter(|(name, _)| {
            let is = |removed: &HeaderName| name.eq_ignore_ascii_case(removed.as_str());
            !self.plan.removed.iter().any(is)
        })
    }

    /// Whether the gateway adds the field for every request.
    fn is_added(&self, name: &[u8]) -> bool {
        let mut added = self.added[..self.count].iter();
        added.any(|(added, _)| name.eq_ignore_ascii_case(added.as_bytes()))
    }

    /// Whether the configuration of the route has a value for the field.
    fn is_set(&self, name: &[u8]) -> bool {
        let fixed = self.plan.set.iter().map(|(name, _)| name);
        let mut names = fixed.chain(self.plan.templates.iter().map(|(name, _)| name));
        names.any(|set| name.eq_ignore_ascii_case(set.as_str().as_bytes()))
    }

    /// Whether the service that authorized the request has set the field.
    fn is_identity(&self, name: &[u8]) -> bool {
        let mut identity = self.identity.iter();
        identity.any(|(set, _)| name.eq_ignore_ascii_case(set.as_str().as_bytes()))
    }

    /// The key of the handshake; over HTTP/2 and HTTP/3 there is none (RFC 8441, section 5).
    fn key(&self) -> Option<&str> {
        self.handshake
            .filter(|_| self.is_http1)
            .and_then(Handshake::key)
    }
}

/// Each name has one source: the service that authorized the request before the route, that before what every request
/// gets, that before layers.
impl FieldSource for AddedFields<'_> {
    fn each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        for (name, value) in self.of_layers() {
            let name = name.as_bytes();
            if !self.is_added(name) && !self.is_set(name) && !self.is_identity(name) {
                visit(name, value);
            }
        }
        for (name, value) in self.added() {
            let name = name.as_bytes();
            if !self.is_set(name) && !self.is_identity(name) {
                visit(name, value.as_bytes());
            }
        }
        for (name, value) in &self.plan.set {
            let name = name.as_str().as_bytes();
            if !self.is_identity(name) {
                visit(name, value.as_bytes());
            }
        }
        let mut text = Vec::new();
        for (name, template) in &self.plan.templates {
            let name = name.as_str().as_bytes();
            if !self.is_identity(name)
                && let Some(value) = template.field(self.request, &mut text)
            {
                visit(name, value);
            }
        }
        for (name, value) in self.identity {
            visit(name.as_str().as_bytes(), value.as_bytes());
        }
        if let Some(key) = self.key() {
            visit(b"sec-websocket-key", key.as_bytes());
        }
    }

    fn has(&self, name: &[u8]) -> bool {
        let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        self.is_added(name)
            || self.is_set(name)
            || self.is_identity(name)
            || self.of_layers().any(|(name, _)| is(name))
            || (self.key().is_some() && is("sec-websocket-key"))
    }
}

/// Appends an address. Digits of IPv4 are written one by one: formatting takes 800 instructions, of 33,000 for a request.
pub(super) fn push_address(text: &mut String, address: IpAddr) {
    let IpAddr::V4(address) = address else {
        write!(text, "{address}").ok();
        return;
    };
    let digit = |value: u8| char::from(b'0' + value % 10);
    for (index, octet) in address.octets().into_iter().enumerate() {
        if index > 0 {
            text.push('.');
        }
        if octet >= 100 {
            text.push(digit(octet / 100));
        }
        if octet >= 10 {
            text.push(digit(octet / 10));
        }
        text.push(digit(octet));
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    #[test]
    fn addresses_are_written_as_they_are_shown() {
        let short = (0..=u8::MAX).map(|octet| Ipv4Addr::new(octet, 0, 255, octet).into());
        let long: IpAddr = Ipv6Addr::LOCALHOST.into();
        for address in short.chain([long]) {
            let mut text = String::from("a");
            push_address(&mut text, address);
            assert_eq!(text, format!("a{address}"));
        }
    }
}
