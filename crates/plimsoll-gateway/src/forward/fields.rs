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
use plimsoll_wire::h1::has_control;
use plimsoll_wire::http::{FieldList, NameFilter, is_proxy_field};

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

    fn is_valid(&self) -> bool {
        self.request.has_valid_fields()
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
    /// A line for each of the fields that depend on the connection, as HTTP/1 has them.
    lines: &'a mut String,
    added: [Added; MOST_ADDED],
    count: usize,
    /// Of those.
    added_names: NameFilter,
    /// What clients and proxies have sent of the values has no control characters.
    is_valid: bool,
}

/// A field of `lines`.
#[derive(Debug, Clone, Copy, Default)]
struct Added {
    name: &'static str,
    /// Where its value begins and ends.
    begin: usize,
    end: usize,
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
            lines: text,
            added: [Added::default(); MOST_ADDED],
            count: 0,
            added_names: NameFilter::NONE,
            is_valid: true,
        };
        if matches!(plan.forwarded, Forwarded::X | Forwarded::Both) {
            fields.add_x_forwarded(peer);
        }
        if matches!(plan.forwarded, Forwarded::Rfc7239 | Forwarded::Both) {
            fields.add_forwarded(peer);
        }
        fields.begin("via: ");
        fields.join("via");
        fields.lines.push_str(match request.version {
            Version::Http10 => "1.0",
            Version::Http11 => "1.1",
            Version::Http2 => "2",
            Version::Http3 => "3",
        });
        fields.lines.push(' ');
        fields.lines.push_str(PSEUDONYM);
        fields.end();
        fields
    }

    /// Begins a line.
    ///
    /// - `name`: with what stands before the value.
    fn begin(&mut self, name: &'static str) {
        debug_assert!(self.count < MOST_ADDED, "there is room for each of them");
        self.lines.push_str(name);
        if let Some(slot) = self.added.get_mut(self.count) {
            slot.name = name.strip_suffix(": ").unwrap_or(name);
            slot.begin = self.lines.len();
        }
    }

    /// Ends it, behind its value.
    fn end(&mut self) {
        if let Some(slot) = self.added.get_mut(self.count) {
            slot.end = self.lines.len();
            self.added_names.add(slot.name.as_bytes());
            self.count += 1;
        }
        self.lines.push_str("\r\n");
    }

    /// Appends a text of the request to the value.
    fn push_sent(&mut self, text: &str) {
        self.is_valid &= !has_control(text.as_bytes());
        self.lines.push_str(text);
    }

    fn added(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.added[..self.count].iter().map(move |added| {
            let value = self.lines.get(added.begin..added.end);
            (added.name, value.unwrap_or_default())
        })
    }

    fn add_x_forwarded(&mut self, peer: IpAddr) {
        self.begin("x-forwarded-for: ");
        if self.is_trusted {
            self.join("x-forwarded-for");
        }
        push_address(self.lines, peer);
        self.end();
        // Of several proxies the first one has seen the client's own request.
        let is_known = |name| self.is_trusted && self.request.header(name).is_some();
        let (knows_proto, knows_host) =
            (is_known("x-forwarded-proto"), is_known("x-forwarded-host"));
        if !knows_proto {
            self.begin("x-forwarded-proto: ");
            self.lines.push_str(match self.request.scheme {
                Scheme::Http => "http",
                Scheme::Https => "https",
            });
            self.end();
        }
        if !knows_host && !self.request.authority.is_empty() {
            self.begin("x-forwarded-host: ");
            self.push_sent(self.request.authority);
            self.end();
        }
    }

    /// RFC 7239, section 4.
    fn add_forwarded(&mut self, peer: IpAddr) {
        self.begin("forwarded: ");
        if self.is_trusted {
            self.join("forwarded");
        }
        let (before, behind) = if peer.is_ipv4() {
            ("for=", "")
        } else {
            ("for=\"[", "]\"")
        };
        self.lines.push_str(before);
        push_address(self.lines, peer);
        self.lines.push_str(behind);
        let authority = self.request.authority;
        if !authority.is_empty() {
            self.lines.push_str(";host=\"");
            self.push_sent(authority);
            self.lines.push('"');
        }
        self.lines.push_str(match self.request.scheme {
            Scheme::Http => ";proto=http",
            Scheme::Https => ";proto=https",
        });
        self.end();
    }

    /// Appends the values that the request has, each with a comma behind.
    fn join(&mut self, name: &str) {
        for value in self.request.values(name) {
            if let Ok(value) = std::str::from_utf8(value) {
                self.push_sent(value);
                self.lines.push_str(", ");
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
        if !self.added_names.may_have(name) {
            return false;
        }
        let mut added = self.added[..self.count].iter();
        added.any(|added| name.eq_ignore_ascii_case(added.name.as_bytes()))
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

    /// Where nothing else adds fields, or replaces one of these.
    fn lines(&self) -> Option<&[u8]> {
        let is_alone = self.identity.is_empty()
            && self.plan.set.is_empty()
            && self.plan.templates.is_empty()
            && self.key().is_none()
            && !self.request.may_have_layer_fields();
        (is_alone && self.is_valid).then_some(self.lines.as_bytes())
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
