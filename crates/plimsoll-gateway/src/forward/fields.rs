//! The fields that a server sees.

use std::fmt::Write as _;
use std::net::IpAddr;

use http::header::{HeaderName, HeaderValue};
use plimsoll_client::forward::FieldSource;
use plimsoll_model::Protocol;
use plimsoll_server::{Request, Scheme, Version};

use super::tunnel::Handshake;
use super::{ForwardPlan, Forwarded, Forwarding};

/// The name of this gateway in `Via`.
const PSEUDONYM: &str = "plimsoll";

/// The fields of a request as they are forwarded. Those of the connection are left out by the exchange.
pub(super) struct Outgoing<'a> {
    plan: &'a ForwardPlan,
    /// Fields that the service which authorized the request has set.
    identity: &'a [(HeaderName, HeaderValue)],
    request: &'a Request<'a>,
    handshake: Option<&'a Handshake>,
    /// The server speaks HTTP/1.
    is_http1: bool,
    is_trusted: bool,
    /// There is a `Connection` field.
    has_connection: bool,
    /// Values of the fields that the gateway adds, behind one another.
    text: &'a mut String,
    added: [(&'static str, usize); MOST_ADDED],
    count: usize,
}

/// `x-forwarded-for`, `-proto` and `-host`, `forwarded`, `via`.
const MOST_ADDED: usize = 5;

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
    /// - `text`: memory for what is added, kept from one request to the next.
    pub(super) fn new(
        forwarding: &'a Forwarding,
        request: &'a Request<'a>,
        handshake: Option<&'a Handshake>,
        protocol: Protocol,
        text: &'a mut String,
    ) -> Self {
        let plan = &*forwarding.forwarder.plan;
        // The proxy in front that is believed, whoever it names as the client.
        let proxy = request.connection().peer.ip().to_canonical();
        let is_trusted = plan.trusted.iter().any(|network| network.contains(&proxy));
        let peer = if is_trusted {
            proxy
        } else {
            request.peer.ip().to_canonical()
        };
        text.clear();
        let mut outgoing = Self {
            plan,
            identity: &forwarding.identity,
            request,
            handshake,
            is_http1: protocol == Protocol::Http1,
            is_trusted,
            has_connection: false,
            text,
            added: [("", 0); MOST_ADDED],
            count: 0,
        };
        if matches!(plan.forwarded, Forwarded::X | Forwarded::Both) {
            outgoing.add_x_forwarded(peer);
        }
        if matches!(plan.forwarded, Forwarded::Rfc7239 | Forwarded::Both) {
            outgoing.add_forwarded(peer);
        }
        let mut has_via = false;
        for (name, _) in request.headers() {
            match name.len() {
                3 => has_via |= name.eq_ignore_ascii_case("via"),
                10 => outgoing.has_connection |= name.eq_ignore_ascii_case("connection"),
                _ => {}
            }
        }
        let version = match request.version {
            Version::Http10 => "1.0",
            Version::Http11 => "1.1",
            Version::Http2 => "2",
            Version::Http3 => "3",
        };
        if has_via {
            outgoing.join("via");
        }
        outgoing.text.push_str(version);
        outgoing.text.push(' ');
        outgoing.text.push_str(PSEUDONYM);
        outgoing.added_as("via");
        outgoing
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
        for (known, value) in self.request.headers() {
            if known.eq_ignore_ascii_case(name)
                && let Ok(value) = std::str::from_utf8(value)
            {
                self.text.push_str(value);
                self.text.push_str(", ");
            }
        }
    }

    fn is_replaced(&self, name: &str) -> bool {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        self.added[..self.count].iter().any(|(added, _)| is(added))
            || (!self.is_trusted && OF_PROXIES.into_iter().any(is))
            || self.is_set(is)
            || self.plan.removed.iter().any(|removed| is(removed.as_str()))
            || self.is_identity(name)
            || (self.handshake.is_some() && is("sec-websocket-key"))
    }
}

impl Outgoing<'_> {
    /// Whether the configuration has a value for the field.
    fn is_set(&self, is: impl Fn(&str) -> bool) -> bool {
        let fixed = self.plan.set.iter().map(|(name, _)| name);
        let mut names = fixed.chain(self.plan.templates.iter().map(|(name, _)| name));
        names.any(|name| is(name.as_str()))
    }

    /// Whether only the service that authorizes requests may set the field.
    fn is_identity(&self, name: &str) -> bool {
        let copied = self.plan.authorize.iter().flat_map(|it| &it.copied);
        copied
            .into_iter()
            .any(|it| name.eq_ignore_ascii_case(it.as_str()))
    }
}

/// Appends an address. Digits of IPv4 are written one by one: formatting takes 800 instructions, of 33,000 for a request.
fn push_address(text: &mut String, address: IpAddr) {
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

impl FieldSource for Outgoing<'_> {
    fn each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        for (name, value) in self.request.headers() {
            if !self.is_replaced(name) {
                visit(name.as_bytes(), value);
            }
        }
        for (name, value) in self.added() {
            if !self.is_set(|set| set == name) {
                visit(name.as_bytes(), value.as_bytes());
            }
        }
        for (name, value) in &self.plan.set {
            visit(name.as_str().as_bytes(), value.as_bytes());
        }
        let mut text = String::new();
        for (name, template) in &self.plan.templates {
            text.clear();
            template.write(self.request, &mut text);
            visit(name.as_str().as_bytes(), text.as_bytes());
        }
        for (name, value) in self.identity {
            visit(name.as_str().as_bytes(), value.as_bytes());
        }
        // Over HTTP/2 and HTTP/3 there is no key (RFC 8441, section 5).
        if let Some(handshake) = self.handshake
            && self.is_http1
        {
            visit(b"sec-websocket-key", handshake.key().as_bytes());
        }
    }

    fn each_connection(&self, visit: &mut dyn FnMut(&[u8])) {
        if !self.has_connection {
            return;
        }
        for (name, value) in self.request.headers() {
            if name.eq_ignore_ascii_case("connection") {
                visit(value);
            }
        }
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
