//! Heads of requests that are forwarded, borrowed from wherever they came from.

use std::fmt;
use std::rc::Rc;

use http::HeaderMap;
use plimsoll_model::Protocol;
use plimsoll_wire::http::{
    FieldClass, FieldList, Nominated, announced_trailers, may_be_trailer, retain_trailers,
};

use super::hops;

/// Header fields of any origin, visited in order.
pub trait FieldSource {
    /// Calls `visit` with the name and the value of each field.
    fn each(&self, visit: &mut dyn FnMut(&[u8], &[u8]));

    /// The same fields as lines of HTTP/1, for sources that have them in this form: all of them are valid then, and none is of
    /// a connection, frames content, or is `host`, `te` or `expect`.
    fn lines(&self) -> Option<&[u8]> {
        None
    }

    /// Whether all names and values are valid, for sources that know: they were checked when they were read.
    fn is_valid(&self) -> bool {
        false
    }

    /// Whether there is a field of that name, in any case. For sources that know without making the values.
    fn has(&self, name: &[u8]) -> bool {
        let mut has = false;
        self.each(&mut |known, _| has |= known.eq_ignore_ascii_case(name));
        has
    }

    /// The names that these fields never have, whatever was sent: a rule for the trailers that come later. `None` if
    /// there are no such names.
    fn withheld(&self) -> Option<Rc<WithheldNames>> {
        None
    }
}

/// Whether a field of that name, in any case, is withheld.
pub type WithheldNames = dyn Fn(&[u8]) -> bool;

/// No fields.
impl FieldSource for () {
    fn each(&self, _visit: &mut dyn FnMut(&[u8], &[u8])) {}
}

impl FieldSource for HeaderMap {
    fn is_valid(&self) -> bool {
        true
    }

    fn each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        for (name, value) in self {
            visit(name.as_str().as_bytes(), value.as_bytes());
        }
    }
}

impl FieldSource for FieldList {
    fn each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        for (name, value) in self {
            visit(name, value);
        }
    }
}

impl<N: AsRef<[u8]>, V: AsRef<[u8]>> FieldSource for [(N, V)] {
    fn each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        for (name, value) in self {
            visit(name.as_ref(), value.as_ref());
        }
    }
}

impl<N: AsRef<[u8]>, V: AsRef<[u8]>, const COUNT: usize> FieldSource for [(N, V); COUNT] {
    fn each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        self.as_slice().each(visit);
    }
}

impl<N: AsRef<[u8]>, V: AsRef<[u8]>> FieldSource for Vec<(N, V)> {
    fn each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        self.as_slice().each(visit);
    }
}

/// Fields that a client sent, as an intermediary sees them before it adds its own.
pub struct ReceivedFields<'a> {
    fields: &'a dyn FieldSource,
    nominated: Nominated,
    /// Number of `cookie` fields.
    cookies: usize,
}

impl<'a> ReceivedFields<'a> {
    /// - `fields`: all of them, those of the connection too.
    pub fn new(fields: &'a dyn FieldSource) -> Self {
        let mut nominated = Nominated::default();
        let mut cookies = 0;
        fields.each(&mut |name, value| {
            nominated.note(name, value);
            cookies += usize::from(is_cookie(name));
        });
        Self {
            fields,
            nominated,
            cookies,
        }
    }

    /// Visits what is left of them beside `own` fields.
    ///
    /// - `joins_cookies`: makes one `cookie` field of several.
    fn each(
        &self,
        own: &dyn FieldSource,
        joins_cookies: bool,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) {
        let is_kept = |name: &[u8], value: &[u8]| {
            is_sent(name, value)
                && (is_te(name) || !self.nominated.contains(name))
                && !own.has(name)
        };
        let mut joins_cookies = joins_cookies && self.cookies > 1;
        let mut has_joined = false;
        self.fields.each(&mut |name, value| {
            if !is_kept(name, value) {
                return;
            }
            if !is_cookie(name) {
                return visit(name, value);
            }
            if joins_cookies {
                visit(name, &self.joined_cookies());
                (joins_cookies, has_joined) = (false, true);
            } else if !has_joined {
                visit(name, value);
            }
        });
    }

    /// Whether all of them are valid.
    pub(super) fn is_valid(&self) -> bool {
        self.fields.is_valid()
    }

    /// The cookies of all fields in one value (RFC 9113, section 8.2.3).
    fn joined_cookies(&self) -> Vec<u8> {
        let mut joined = Vec::new();
        self.fields.each(&mut |name, value| {
            if is_cookie(name) {
                if !joined.is_empty() {
                    joined.extend_from_slice(b"; ");
                }
                joined.extend_from_slice(value);
            }
        });
        joined
    }
}

impl fmt::Debug for ReceivedFields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceivedFields")
            .field("nominated", &self.nominated)
            .finish_non_exhaustive()
    }
}

/// The head of a request.
///
/// Made in one order for every sender: first the fields that a client sent, without those of its connection and
/// those that its `Connection` fields nominate, without those that the sender sets itself, and over HTTP/1 with one
/// `cookie` field; then the sender's own, which nothing that the client sent removes or doubles.
///
/// Fields keep their order, and over HTTP/1 their case. Left out of both are fields of connections ([`FieldClass`]),
/// `host`, `expect: 100-continue` and framing: the exchange writes its own.
#[derive(Clone, Copy)]
pub struct Head<'a> {
    /// The method.
    pub method: &'a str,
    /// Path and query as they were sent; `*` for OPTIONS; host and port for CONNECT.
    pub target: &'a str,
    /// The value of `host` or `:authority`; absent means that of the endpoint.
    pub authority: Option<&'a str>,
    /// Fields of the client whose request is forwarded.
    pub received: Option<&'a ReceivedFields<'a>>,
    /// Fields of the sender, in place of received ones of the same name.
    pub own: &'a dyn FieldSource,
    /// The protocol to switch to: `Upgrade` over HTTP/1, extended CONNECT over HTTP/2 and HTTP/3 (RFC 8441, RFC 9220).
    pub upgrade: Option<&'a str>,
    /// Send `Expect: 100-continue`, and the body only once the server wants it, responds, or is silent for a second.
    pub expects_continue: bool,
    /// Parameters of FastCGI and uwsgi in place of the request line, by their names in CGI: `SCRIPT_FILENAME`, `REQUEST_METHOD` and the like. Those
    /// of fields, and the length of the content, the exchange writes. Other protocols leave them out.
    pub parameters: Option<&'a dyn FieldSource>,
    /// Of uwsgi: the plugin of the server that the request is for, 0 for WSGI, and what that plugin takes for it. Other protocols leave
    /// them out.
    pub modifiers: [u8; 2],
}

impl<'a> Head<'a> {
    /// A plain request of the sender's own, for the endpoint's own authority.
    pub const fn new(method: &'a str, target: &'a str, own: &'a dyn FieldSource) -> Self {
        Self {
            method,
            target,
            authority: None,
            received: None,
            own,
            upgrade: None,
            expects_continue: false,
            parameters: None,
            modifiers: [0, 0],
        }
    }

    /// A request that is forwarded.
    pub const fn forwarded(
        method: &'a str,
        target: &'a str,
        received: &'a ReceivedFields<'a>,
        own: &'a dyn FieldSource,
    ) -> Self {
        let mut head = Self::new(method, target, own);
        head.received = Some(received);
        head
    }

    /// The fields as a server of that version gets them with a request that has no trailers, without those that the
    /// exchange writes.
    pub fn field_list(&self, protocol: Protocol) -> FieldList {
        let mut list = FieldList::new();
        self.each_field(protocol, false, &mut |name, value| list.push(name, value));
        list
    }

    /// The rule for the trailers of the request.
    pub(super) fn trailer_rule(&self) -> TrailerRule {
        let Some(received) = self.received else {
            return TrailerRule::default();
        };
        let mut own = FieldList::new();
        self.own.each(&mut |name, _| own.push(name, b""));
        TrailerRule {
            nominated: received.nominated.clone(),
            own,
            withheld: received.fields.withheld(),
        }
    }

    /// Whether the method is CONNECT without a protocol to upgrade to.
    pub(super) fn is_connect(&self) -> bool {
        self.method == "CONNECT" && self.upgrade.is_none()
    }

    /// Visits the fields that are sent; `te: trailers` is among them.
    ///
    /// - `has_trailers`: trailers may follow; otherwise none is announced.
    pub(super) fn each_field(
        &self,
        protocol: Protocol,
        has_trailers: bool,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) {
        self.each_received_field(protocol, has_trailers, visit);
        self.each_own_field(visit);
    }

    /// Visits those of the client.
    pub(super) fn each_received_field(
        &self,
        protocol: Protocol,
        has_trailers: bool,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) {
        let is_limited = hops::is_limited(self.method);
        if let Some(received) = self.received {
            received.each(self.own, protocol == Protocol::Http1, &mut |name, value| {
                if is_trailer(name) {
                    let rule = has_trailers.then(|| self.trailer_rule());
                    let announced = rule.map(|rule| rule.announced(value));
                    if let Some(announced) = announced.filter(|names| !names.is_empty()) {
                        visit(name, &announced);
                    }
                } else if is_limited && name.eq_ignore_ascii_case(b"max-forwards") {
                    let less = hops::one_hop_less(value);
                    visit(name, less.as_deref().map_or(value, str::as_bytes));
                } else {
                    visit(name, value);
                }
            });
        }
    }

    /// Visits those of the sender, which stand behind the others.
    pub(super) fn each_own_field(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        self.own.each(&mut |name, value| {
            if is_sent(name, value) {
                visit(name, value);
            }
        });
    }
}

/// Which trailers are sent behind a [`Head`].
///
/// A server may merge them into the head, so a name that the client could not send there is left out here too: those
/// that its `Connection` fields nominate, those that the sender sets itself, and those that it withholds.
#[derive(Default)]
pub(super) struct TrailerRule {
    nominated: Nominated,
    /// Names of the sender's own fields.
    own: FieldList,
    withheld: Option<Rc<WithheldNames>>,
}

impl TrailerRule {
    /// The trailers that are sent; `None` if there are none left.
    pub(super) fn sent(&self, mut trailers: HeaderMap) -> Option<HeaderMap> {
        retain_trailers(&mut trailers, |name| self.allows(name.as_bytes()));
        (!trailers.is_empty()).then_some(trailers)
    }

    /// A `Trailer` field of the client with the names of those that may be sent.
    fn announced(&self, value: &[u8]) -> Vec<u8> {
        announced_trailers(value, |name| self.allows(name))
    }

    fn allows(&self, name: &[u8]) -> bool {
        let mut own = self.own.iter();
        may_be_trailer(name)
            && !self.nominated.contains(name)
            && !own.any(|(known, _)| known.eq_ignore_ascii_case(name))
            && !self.withheld.as_ref().is_some_and(|it| it(name))
    }
}

impl fmt::Debug for TrailerRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrailerRule")
            .field("nominated", &self.nominated)
            .field("own", &self.own)
            .finish_non_exhaustive()
    }
}

/// Whether a field may leave with a head whose exchange writes framing, `host` and `expect` itself.
fn is_sent(name: &[u8], value: &[u8]) -> bool {
    match FieldClass::from_name(name) {
        FieldClass::EndToEnd | FieldClass::ProxyAuthentication => true,
        FieldClass::HeadOnly => {
            // Other expectations pass to the server.
            let is_continue =
                name.eq_ignore_ascii_case(b"expect") && value.eq_ignore_ascii_case(b"100-continue");
            !is_continue && !name.eq_ignore_ascii_case(b"host")
        }
        // TE has to be nominated (RFC 9110, section 10.1.4), which the exchange does.
        FieldClass::Hop => is_te(name) && value.eq_ignore_ascii_case(b"trailers"),
        FieldClass::Pseudo
        | FieldClass::Connection
        | FieldClass::TransferEncoding
        | FieldClass::ContentLength => false,
    }
}

fn is_te(name: &[u8]) -> bool {
    name.len() == 2 && name.eq_ignore_ascii_case(b"te")
}

pub(super) fn is_trailer(name: &[u8]) -> bool {
    name.len() == 7 && name.eq_ignore_ascii_case(b"trailer")
}

fn is_cookie(name: &[u8]) -> bool {
    name.len() == 6 && name.eq_ignore_ascii_case(b"cookie")
}

impl fmt::Debug for Head<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Head")
            .field("method", &self.method)
            .field("target", &self.target)
            .field("upgrade", &self.upgrade)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(protocol: Protocol, received: &[(&str, &str)], own: &[(&str, &str)]) -> Vec<String> {
        let (received, own) = (received.to_vec(), own.to_vec());
        let received = ReceivedFields::new(&received);
        let list = Head::forwarded("GET", "/", &received, &own).field_list(protocol);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let fields = list.iter();
        fields
            .map(|(name, value)| format!("{}: {}", text(name), text(value)))
            .collect()
    }

    #[test]
    fn requests_are_forwarded_without_the_fields_of_their_connection() {
        let received = [
            ("Host", "a"),
            ("Accept", "*/*"),
            ("Connection", "close, X-Hop"),
            ("X-Hop", "1"),
            ("connection", "x-late"),
            ("Keep-Alive", "1"),
            ("TE", "trailers"),
            ("te", "gzip"),
            ("Upgrade", "h2c"),
            ("Transfer-Encoding", "chunked"),
            ("Content-Length", "1"),
            ("Expect", "100-Continue"),
            ("expect", "x-other"),
            (":path", "/"),
            ("X-Late", "2"),
            ("Trailer", "x-sum"),
        ];
        let seen = sent(Protocol::Http1, &received, &[]);
        assert_eq!(seen, ["Accept: */*", "TE: trailers", "expect: x-other"]);
    }

    #[test]
    fn trailers_are_announced_that_are_sent() {
        let fields = [
            ("Connection", "x-hop"),
            ("Trailer", "X-Sum, cookie, x-hop, x-user"),
            ("trailer", "if-match"),
        ];
        let own = [("x-user", "ann")];
        let received = ReceivedFields::new(&fields);
        let head = Head::forwarded("POST", "/", &received, &own);
        let mut seen = Vec::new();
        head.each_field(Protocol::Http1, true, &mut |name, value| {
            seen.push((name.to_vec(), value.to_vec()));
        });
        let pair = |name: &str, value: &str| (name.into(), value.into());
        assert_eq!(seen, [pair("Trailer", "X-Sum"), pair("x-user", "ann")]);
    }

    #[test]
    fn an_options_is_forwarded_with_one_hop_less() {
        let fields = [("Max-Forwards", "10")];
        let received = ReceivedFields::new(&fields);
        for (method, expected) in [("OPTIONS", "9"), ("GET", "10")] {
            let list = Head::forwarded(method, "/", &received, &()).field_list(Protocol::Http1);
            assert_eq!(list.get("max-forwards"), Some(expected.as_bytes()));
        }
    }

    #[test]
    fn what_the_sender_adds_cannot_be_removed_or_doubled_by_the_client() {
        let received = [
            ("Connection", "close, x-user, X-Tenant, via"),
            ("X-User", "root"),
            ("X-TENANT", "evil"),
            ("X-Other", "1"),
        ];
        let own = [
            ("x-user", "ann"),
            ("X-Tenant", "safe"),
            ("via", "2 plimsoll"),
        ];
        for protocol in [Protocol::Http1, Protocol::Http2, Protocol::Http3] {
            let seen = sent(protocol, &received, &own);
            let expected = [
                "X-Other: 1",
                "x-user: ann",
                "X-Tenant: safe",
                "via: 2 plimsoll",
            ];
            assert_eq!(seen, expected);
        }
        // Its own request has no connection that it came by.
        let own = [("connection", "x-a"), ("x-a", "1"), ("te", "trailers")];
        assert_eq!(sent(Protocol::Http1, &[], &own), ["x-a: 1", "te: trailers"]);
    }

    #[test]
    fn cookies_are_joined_for_http_1() {
        let received = [
            ("Cookie", "a=1"),
            ("accept", "*/*"),
            ("cookie", "b=2"),
            ("cookie", "c=3; d=4"),
        ];
        let joined = ["Cookie: a=1; b=2; c=3; d=4", "accept: */*"];
        assert_eq!(sent(Protocol::Http1, &received, &[]), joined);
        assert_eq!(sent(Protocol::Http2, &received, &[]).len(), 4);
        assert_eq!(
            sent(Protocol::Http1, &received, &[("cookie", "e=5")]),
            ["accept: */*", "cookie: e=5"]
        );
    }
}
