//! Heads of forwarded messages: requests borrowed from wherever they came from, responses owned.

use std::fmt;

use http::HeaderMap;
use http::{StatusCode, Version};
use plimsoll_wire::http::{FieldClass, FieldList};

/// Header fields of any origin, visited in order.
pub trait FieldSource {
    /// Calls `visit` with the name and the value of each field.
    fn each(&self, visit: &mut dyn FnMut(&[u8], &[u8]));

    /// Calls `visit` with the value of each `Connection` field. For sources that know faster than by a look at each.
    fn each_connection(&self, visit: &mut dyn FnMut(&[u8])) {
        self.each(&mut |name, value| {
            if name.len() == 10 && name.eq_ignore_ascii_case(b"connection") {
                visit(value);
            }
        });
    }
}

/// No fields.
impl FieldSource for () {
    fn each(&self, _visit: &mut dyn FnMut(&[u8], &[u8])) {}
}

impl FieldSource for HeaderMap {
    fn each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        for (name, value) in self {
            visit(name.as_str().as_bytes(), value.as_bytes());
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

/// The head of a request.
///
/// Fields keep their order, and over HTTP/1 their case. Left out are fields of the connection it came by (those of
/// [`FieldClass`], and those that `Connection` nominates), `host`, `expect` and framing: the exchange writes its own.
#[derive(Clone, Copy)]
pub struct Head<'a> {
    /// The method.
    pub method: &'a str,
    /// Path and query as they were sent; `*` for OPTIONS; host and port for CONNECT.
    pub target: &'a str,
    /// The value of `host` or `:authority`; absent means that of the endpoint.
    pub authority: Option<&'a str>,
    /// Further fields.
    pub fields: &'a dyn FieldSource,
    /// The protocol to switch to: `Upgrade` over HTTP/1, extended CONNECT over HTTP/2 and HTTP/3 (RFC 8441, RFC 9220).
    pub upgrade: Option<&'a str>,
    /// Send `Expect: 100-continue`, and the body only once the server wants it, responds, or is silent for a second.
    pub expects_continue: bool,
}

impl<'a> Head<'a> {
    /// A plain request for the endpoint's own authority.
    pub const fn new(method: &'a str, target: &'a str, fields: &'a dyn FieldSource) -> Self {
        Self {
            method,
            target,
            authority: None,
            fields,
            upgrade: None,
            expects_continue: false,
        }
    }

    /// Whether the method is CONNECT without a protocol to upgrade to.
    pub(super) fn is_connect(&self) -> bool {
        self.method == "CONNECT" && self.upgrade.is_none()
    }

    /// Visits the fields that are forwarded; `te: trailers` is among them.
    pub(super) fn each_forwarded(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        let mut nominated = Vec::new();
        self.fields
            .each_connection(&mut |value| nominate(&mut nominated, value));
        self.fields.each(&mut |name, value| {
            let is_forwarded = match FieldClass::of(name) {
                FieldClass::EndToEnd | FieldClass::ProxyAuthentication => true,
                FieldClass::HeadOnly => {
                    !name.eq_ignore_ascii_case(b"host") && !name.eq_ignore_ascii_case(b"expect")
                }
                FieldClass::Hop => {
                    // TE has to be nominated (RFC 9110, section 10.1.4).
                    return if name.len() == 2 && value.eq_ignore_ascii_case(b"trailers") {
                        visit(name, value);
                    };
                }
                FieldClass::Pseudo
                | FieldClass::Connection
                | FieldClass::TransferEncoding
                | FieldClass::ContentLength => false,
            };
            if is_forwarded && (nominated.is_empty() || !FieldClass::is_nominated(name, &nominated))
            {
                visit(name, value);
            }
        });
    }
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

/// Header fields of a response, in the order and the case in which they came.
#[derive(Debug, Clone, Default)]
pub struct Fields(FieldList);

impl Fields {
    /// Copies fields into one piece of memory; pseudo-header fields are left out.
    pub(super) fn copied<'a>(fields: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone) -> Self {
        let fields = fields.filter(|(name, _)| !name.starts_with(b":"));
        let (count, length) = fields
            .clone()
            .fold((0, 0), |(count, length), (name, value)| {
                (count + 1, length + name.len() + value.len())
            });
        let mut list = FieldList::with_capacity(count, length);
        for (name, value) in fields {
            list.push(name, value);
        }
        Self(list)
    }

    /// The same fields out of a map.
    pub(super) fn of_map(map: &HeaderMap) -> Self {
        let pairs: Vec<_> = map
            .iter()
            .map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()))
            .collect();
        Self::copied(pairs.into_iter())
    }

    /// Number of fields.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and values, as they came.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter()
    }

    /// The value of the first field of that name, in any case.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name)
    }

    /// All fields as a map.
    pub fn to_map(&self) -> HeaderMap {
        self.0.clone().into_map()
    }

    /// The fields that an intermediary forwards, as a map: see [`into_forwarded`](Self::into_forwarded).
    pub fn to_forwarded_map(&self) -> HeaderMap {
        self.clone().into_forwarded().into_map()
    }

    /// The fields that an intermediary forwards: without those of the connection, those that `Connection` nominates, and
    /// `content-length`, which the sender of the forwarded message writes. Allocates nothing.
    pub fn into_forwarded(mut self) -> FieldList {
        let nominated = self.nominated();
        self.0.retain(|name, _| is_forwarded(name, &nominated));
        self.0
    }

    /// Trailers as a map, without fields that may not stand there.
    pub(super) fn into_trailers(mut self) -> HeaderMap {
        self.0
            .retain(|name, _| FieldClass::of(name).is_allowed_in_trailers());
        self.0.into_map()
    }

    /// The values of all `Connection` fields.
    fn nominated(&self) -> Vec<u8> {
        let mut nominated = Vec::new();
        for (name, value) in self.iter() {
            if name.len() == 10 && name.eq_ignore_ascii_case(b"connection") {
                nominate(&mut nominated, value);
            }
        }
        nominated
    }
}

/// Adds the value of a `Connection` field to the names that it nominates. The usual ones name no field that would be
/// forwarded otherwise, and cost nothing.
fn nominate(nominated: &mut Vec<u8>, value: &[u8]) {
    if [&b"keep-alive"[..], b"close"]
        .iter()
        .any(|usual| value.eq_ignore_ascii_case(usual))
    {
        return;
    }
    nominated.extend_from_slice(value);
    nominated.push(b',');
}

/// Whether an intermediary forwards a field of that name.
///
/// - `nominated`: the names in `Connection`.
fn is_forwarded(name: &[u8], nominated: &[u8]) -> bool {
    let class = FieldClass::of(name);
    !class.is_hop_by_hop()
        && !class.is_framing()
        && (nominated.is_empty() || !FieldClass::is_nominated(name, nominated))
}

impl FieldSource for Fields {
    fn each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        for (name, value) in self.iter() {
            visit(name, value);
        }
    }
}

/// The head of a response, interim or final.
#[derive(Debug, Clone)]
pub struct ResponseHead {
    /// The status.
    pub status: StatusCode,
    /// The version of HTTP that it came by.
    pub version: Version,
    /// The fields.
    pub fields: Fields,
}

impl ResponseHead {
    /// Whether another head follows: 1xx other than 101.
    pub fn is_interim(&self) -> bool {
        self.status.is_informational() && self.status != StatusCode::SWITCHING_PROTOCOLS
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn forwarded(fields: &[(&str, &str)]) -> Vec<String> {
        let mut seen = Vec::new();
        let fields = fields.to_vec();
        Head::new("GET", "/", &fields).each_forwarded(&mut |name, value| {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            seen.push(format!("{}: {}", text(name), text(value)));
        });
        seen
    }

    #[test]
    fn requests_are_forwarded_without_the_fields_of_their_connection() {
        let seen = forwarded(&[
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
            ("Expect", "100-continue"),
            (":path", "/"),
            ("X-Late", "2"),
            ("Trailer", "x-sum"),
        ]);
        assert_eq!(seen, ["Accept: */*", "TE: trailers", "Trailer: x-sum"]);
    }

    #[test]
    fn responses_keep_order_and_case_and_lose_the_connection_in_maps() {
        let pairs: [(&[u8], &[u8]); 6] = [
            (b":status", b"200"),
            (b"X-A", b"1"),
            (b"Connection", b"x-b"),
            (b"X-B", b"2"),
            (b"Content-Length", b"3"),
            (b"x-a", b"\xff"),
        ];
        let fields = Fields::copied(pairs.into_iter());
        assert_eq!(fields.len(), 5);
        assert_eq!(fields.iter().next(), Some((&b"X-A"[..], &b"1"[..])));
        assert_eq!(fields.field("x-b"), Some(&b"2"[..]));
        assert_eq!(fields.to_map().len(), 5);
        let map = fields.to_forwarded_map();
        let values: Vec<_> = map
            .get_all("x-a")
            .iter()
            .map(HeaderValue::as_bytes)
            .collect();
        assert_eq!(values, [&b"1"[..], b"\xff"]);
        assert_eq!(map.len(), 2);
    }

    #[test]
    fn trailers_lose_what_may_not_stand_there() {
        let pairs: [(&[u8], &[u8]); 2] = [(b"x-sum", b"1"), (b"content-length", b"3")];
        let map = Fields::copied(pairs.into_iter()).into_trailers();
        assert_eq!(map.len(), 1);
    }
}
