//! Values of places by the request itself.

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use http::header::COOKIE;

use super::{Place, Values};
use crate::message::request::{Request, Scheme};

impl Values for Request<'_> {
    fn write(&self, place: &Place, out: &mut Vec<u8>) -> bool {
        match place {
            Place::Client => address(self.peer, out),
            Place::Peer => {
                write!(out, "{}", self.peer).expect("a Vec takes whatever is written");
                true
            }
            Place::ClientPort => number(self.peer.port(), out),
            // Hosts have no case of letters (RFC 3986, section 3.2.2): what compares the value sees one form of it.
            Place::Host => {
                out.extend(self.host().bytes().map(|byte| byte.to_ascii_lowercase()));
                true
            }
            Place::Authority => text(self.authority, out),
            Place::Scheme => text(
                match self.scheme {
                    Scheme::Http => "http",
                    Scheme::Https => "https",
                },
                out,
            ),
            Place::ServerAddress
            | Place::Port
            | Place::Connection
            | Place::ServerName
            | Place::TlsVersion
            | Place::ClientCertificate(_)
            | Place::Time(_) => self.connection().write(place, out),
            Place::Method => text(self.method, out),
            Place::Path => text(self.path, out),
            Place::Segment(count) => {
                let mut segments = self.path.split('/').filter(|it| !it.is_empty());
                optional(segments.nth(count - 1).map(str::as_bytes), out)
            }
            Place::Query => match self.query {
                None => false,
                Some(query) => {
                    out.push(b'?');
                    out.extend_from_slice(query.as_bytes());
                    true
                }
            },
            Place::Parameter(name) => optional(parameter(self.query, name), out),
            Place::QueryString => optional(self.query.map(str::as_bytes), out),
            // CONNECT has no path.
            Place::Target if self.path.is_empty() => text(self.authority, out),
            Place::Target => {
                out.extend_from_slice(self.path.as_bytes());
                self.write(&Place::Query, out);
                true
            }
            Place::RequestLine => {
                out.extend_from_slice(self.method.as_bytes());
                out.push(b' ');
                self.write(&Place::Target, out);
                out.push(b' ');
                text(self.version.name(), out)
            }
            Place::Protocol => text(self.version.name(), out),
            // RFC 6265, section 5.4; HTTP/2 may send several fields (RFC 9113, section 8.2.3).
            Place::Header(name) if *name == COOKIE => joined_by(b"; ", self.values("cookie"), out),
            Place::Header(name) => joined(self.values(name.as_str()), out),
            Place::Cookie(name) => optional(self.cookie(name).map(str::as_bytes), out),
            Place::RequestBytes => match self.content_length() {
                None => false,
                Some(length) => number(length, out),
            },
            Place::Map(map) => {
                map.write(self, out);
                true
            }
            Place::RequestId => {
                let id = self.request_id().unwrap_or_else(|| {
                    // Its first reader makes it, where no layer has.
                    let id: Rc<str> = format!("{:032x}", fastrand::u128(..)).into();
                    self.called(Rc::clone(&id));
                    id
                });
                text(&id, out)
            }
            place => self.content().notes().write(place, out),
        }
    }
}

/// Appends an IP address in its shortest form.
pub(super) fn address(address: SocketAddr, out: &mut Vec<u8>) -> bool {
    // Formatting takes several hundred instructions.
    match address.ip().to_canonical() {
        IpAddr::V4(address) => {
            for (index, octet) in address.octets().into_iter().enumerate() {
                if index > 0 {
                    out.push(b'.');
                }
                digits(octet.into(), out);
            }
        }
        IpAddr::V6(address) => _ = write!(out, "{address}"),
    }
    true
}

/// Appends a number.
pub(super) fn number(value: impl Into<u64>, out: &mut Vec<u8>) -> bool {
    digits(value.into(), out);
    true
}

fn digits(mut value: u64, out: &mut Vec<u8>) {
    let start = out.len();
    loop {
        out.push(b'0' + u8::try_from(value % 10).unwrap_or_default());
        value /= 10;
        if value == 0 {
            break;
        }
    }
    if let Some(written) = out.get_mut(start..) {
        written.reverse();
    }
}

fn text(text: &str, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(text.as_bytes());
    true
}

pub(super) fn optional(value: Option<&[u8]>, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(value.unwrap_or_default());
    value.is_some()
}

/// Appends the values of a field, joined by commas.
pub(super) fn joined<'v>(values: impl Iterator<Item = &'v [u8]>, out: &mut Vec<u8>) -> bool {
    joined_by(b", ", values, out)
}

fn joined_by<'v>(
    between: &[u8],
    values: impl Iterator<Item = &'v [u8]>,
    out: &mut Vec<u8>,
) -> bool {
    let mut is_there = false;
    for value in values {
        if is_there {
            out.extend_from_slice(between);
        }
        is_there = true;
        out.extend_from_slice(value);
    }
    is_there
}

/// The first parameter of that name, as it was sent.
fn parameter<'q>(query: Option<&'q str>, name: &str) -> Option<&'q [u8]> {
    query?.split('&').find_map(|parameter| {
        let (known, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        (known == name).then_some(value.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_addresses_are_written_as_they_are_shown() {
        for value in [0, 7, 10, 255, 65_535, u64::MAX] {
            let mut out = b"a".to_vec();
            number(value, &mut out);
            assert_eq!(out, format!("a{value}").into_bytes());
        }
        for shown in ["10.0.255.1:80", "[::1]:80", "[::ffff:1.2.3.4]:80"] {
            let parsed: SocketAddr = shown.parse().unwrap();
            let mut out = Vec::new();
            address(parsed, &mut out);
            let expected = parsed.ip().to_canonical().to_string();
            assert_eq!(out, expected.into_bytes());
        }
    }

    #[test]
    fn parameters_are_found_by_their_names() {
        let found = |query, name| parameter(Some(query), name).map(<[u8]>::to_vec);
        assert_eq!(found("a=1&b=2&a=3", "a"), Some(b"1".to_vec()));
        assert_eq!(found("ab=1&b", "b"), Some(Vec::new()));
        assert_eq!(found("ab=1", "b"), None);
        assert_eq!(parameter(None, "a"), None);
    }
}
