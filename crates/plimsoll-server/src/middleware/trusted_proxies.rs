//! The client behind proxies, as a header field names it.
//!
//! Each proxy appends the address that it was connected from (RFC 7239, section 4), so the field is read from its end: the first
//! address that is no trusted proxy's is that of the client. What stands before it a client may have made up.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use http::header::HeaderName;
use ipnet::IpNet;

use crate::action::{Action, Answer, Refusal};
use crate::message::request::Request;

/// Proxies that are believed, and the field in which they name their clients.
#[derive(Debug, Clone)]
pub struct TrustedProxies {
    /// Networks of the proxies.
    pub networks: Vec<IpNet>,
    /// `x-forwarded-for`, `forwarded` (RFC 7239), or one with an address, such as `x-real-ip`.
    pub header: HeaderName,
    /// Whether addresses that are trusted proxies' are skipped; otherwise the last address is that of the client.
    pub recursive: bool,
}

impl TrustedProxies {
    /// Whether a proxy at this address is believed.
    pub fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks
            .iter()
            .any(|network| network.contains(&address))
    }

    /// The client of a request; its port is 0 if no proxy names it.
    pub fn client(&self, request: &Request<'_>) -> SocketAddr {
        let name = self.header.as_str();
        let of_name = request
            .headers()
            .filter(|(it, _)| it.eq_ignore_ascii_case(name));
        let values: Vec<_> = of_name.map(|(_, value)| value).collect();
        self.client_behind(request.peer, &values)
    }

    /// The client of a request.
    ///
    /// - `peer`: the other end of the connection.
    /// - `values`: those of the fields called [`header`](Self::header), in their order.
    pub fn client_behind(&self, peer: SocketAddr, values: &[&[u8]]) -> SocketAddr {
        let mut client = peer;
        if !self.trusts(client.ip()) {
            return client;
        }
        let name = self.header.as_str();
        let elements = values.iter().rev();
        let elements = elements.flat_map(|value| split_from_end(value, b','));
        for element in elements {
            let text = std::str::from_utf8(element).ok();
            let text = text.and_then(|text| match name {
                "forwarded" => forwarded_for(text),
                _ => Some(text),
            });
            // Where it is not known who sent it, whoever sent it on is as far as trust goes.
            let Some(address) = text.and_then(address) else {
                break;
            };
            client = address;
            if !self.recursive || !self.trusts(client.ip()) {
                break;
            }
        }
        client
    }
}

/// The parts of a value, the last one first, at each separator outside quotes (RFC 9110, section 5.6.4).
///
/// A client chooses text that a proxy quotes, such as the host, so a separator in it begins no part. Quotes are matched from
/// the end: a quote that the client left open cannot hide the part that the proxy appended.
fn split_from_end(value: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(value);
    std::iter::from_fn(move || {
        let value = rest?;
        let mut is_quoted = false;
        let at = (0..value.len()).rev().find(|&at| {
            if value[at] == b'"' {
                let before = value[..at].iter().rev();
                let backslashes = before.take_while(|it| **it == b'\\').count();
                is_quoted = !is_quoted || backslashes % 2 == 1;
            }
            value[at] == separator && !is_quoted
        });
        let Some(at) = at else {
            return rest.take();
        };
        rest = Some(&value[..at]);
        Some(&value[at + 1..])
    })
}

/// The value of `for` in an element of `forwarded`.
fn forwarded_for(element: &str) -> Option<&str> {
    let pairs = split_from_end(element.as_bytes(), b';');
    let pairs = pairs.filter_map(|pair| std::str::from_utf8(pair).ok()?.split_once('='));
    let mut named = pairs.filter(|(name, _)| name.trim().eq_ignore_ascii_case("for"));
    let value = named.next()?.1.trim();
    let quoted = value.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    Some(quoted.unwrap_or(value))
}

/// An address with or without a port; one of IPv6 may be in brackets.
fn address(text: &str) -> Option<SocketAddr> {
    let text = text.trim();
    let with_port = |address: IpAddr| SocketAddr::new(address, 0);
    let bracketed = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let whole = bracketed.unwrap_or(text).parse().map(with_port);
    whole.ok().or_else(|| text.parse().ok())
}

/// Has another action see the client in place of the proxy.
pub(crate) struct BehindProxies {
    proxies: Arc<TrustedProxies>,
    inner: Rc<dyn Action>,
}

impl BehindProxies {
    pub(crate) fn new(proxies: Arc<TrustedProxies>, inner: Rc<dyn Action>) -> Self {
        Self { proxies, inner }
    }
}

impl Action for BehindProxies {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let mut request = *request;
        request.peer = self.proxies.client(&request);
        self.inner.handle(&request)
    }

    fn refused(&self, refusal: &Refusal) {
        self.inner.refused(refusal);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_have_ports_and_brackets_or_not() {
        for (text, expected) in [
            ("192.0.2.1", Some("192.0.2.1:0")),
            (" 192.0.2.1:80 ", Some("192.0.2.1:80")),
            ("2001:db8::1", Some("[2001:db8::1]:0")),
            ("[2001:db8::1]", Some("[2001:db8::1]:0")),
            ("[2001:db8::1]:80", Some("[2001:db8::1]:80")),
            ("unknown", None),
            ("_hidden", None),
            ("", None),
            ("[192.0.2.1", None),
        ] {
            let expected = expected.map(|it| it.parse().unwrap());
            assert_eq!(address(text), expected, "{text}");
        }
    }

    #[test]
    fn the_standard_field_has_pairs() {
        for (element, expected) in [
            ("for=192.0.2.1;proto=http", Some("192.0.2.1")),
            (
                " proto=http; For=\"[2001:db8::1]:80\" ",
                Some("[2001:db8::1]:80"),
            ),
            ("by=192.0.2.1", None),
            ("192.0.2.1", None),
            ("host=\"a;for=6.6.6.6\";for=192.0.2.1", Some("192.0.2.1")),
            ("for=192.0.2.1;host=\"a;for=6.6.6.6\"", Some("192.0.2.1")),
            ("host=\"a\\\";for=6.6.6.6\"", None),
        ] {
            assert_eq!(forwarded_for(element), expected, "{element}");
        }
    }

    #[test]
    fn separators_within_quotes_divide_nothing() {
        for (value, expected) in [
            ("", vec![""]),
            ("a,b, c", vec![" c", "b", "a"]),
            ("a;h=\"x,y\",b", vec!["b", "a;h=\"x,y\""]),
            ("h=\"x\\\",y\",b", vec!["b", "h=\"x\\\",y\""]),
            ("h=\"x\\\\\",b", vec!["b", "h=\"x\\\\\""]),
            // A client leaves quotes open; the proxy appends its element.
            ("for=\", for=b", vec![" for=b", "for=\""]),
        ] {
            let parts = split_from_end(value.as_bytes(), b',');
            let parts: Vec<_> = parts.map(|it| std::str::from_utf8(it).unwrap()).collect();
            assert_eq!(parts, expected, "{value}");
        }
    }

    proptest! {
        /// Whatever a client sends, what its proxy appends is read alone.
        #[test]
        fn what_a_client_sends_does_not_reach_into_what_its_proxy_appends(
            sent in prop::collection::vec(prop::sample::select(b"\"\\,;=for192.".to_vec()), 0..40),
            appended in prop::sample::select(vec![
                "for=192.0.2.1",
                "for=\"[2001:db8::1]:80\";proto=https",
                "for=192.0.2.1;host=\"a,b;for=c\\\"d\"",
            ]),
        ) {
            let value = [&sent, b",".as_slice(), appended.as_bytes()].concat();
            prop_assert_eq!(split_from_end(&value, b',').next(), Some(appended.as_bytes()));
            let named = forwarded_for(appended).and_then(address);
            prop_assert!(named.is_some_and(|it| ["192.0.2.1", "2001:db8::1"].contains(&&*it.ip().to_string())));
        }
    }
}
