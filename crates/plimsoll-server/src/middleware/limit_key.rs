//! By what limits distinguish clients.

use std::net::{IpAddr, Ipv6Addr};

use http::header::HeaderName;
use ring::digest::{SHA256, digest};

use crate::message::request::Request;
use crate::place::Template;

/// The properties that distinguish clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitKey {
    /// Its address; of IPv6 the first 64 bits, which belong to one subscriber.
    Address,
    /// The value of this field; those without it share a limit.
    Header(HeaderName),
    /// A text with places; requests for which it is empty are not limited.
    Template(Template),
    /// Nothing: all share one limit.
    All,
}

/// A client, as a limit distinguishes it.
pub(crate) type Client = [u8; 32];

impl LimitKey {
    /// Whether it is known once credentials have been checked, and not before.
    pub(crate) fn is_of_user(&self) -> bool {
        matches!(self, Self::Template(template) if template.is_of_user())
    }

    /// The client of a request; `None` if it is not limited.
    pub(crate) fn client(&self, request: &Request<'_>) -> Option<Client> {
        let mut client = Client::default();
        match self {
            Self::All => {}
            Self::Address => {
                let address = match request.peer.ip().to_canonical() {
                    IpAddr::V4(address) => address.to_ipv6_mapped(),
                    IpAddr::V6(address) => {
                        Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))
                    }
                };
                client[..16].copy_from_slice(&address.octets());
            }
            Self::Header(name) => {
                if let Some(value) = request.header(name.as_str()) {
                    client.copy_from_slice(digest(&SHA256, value).as_ref());
                }
            }
            Self::Template(template) => {
                let mut text = Vec::new();
                template.fill(request, &mut text);
                if text.is_empty() {
                    return None;
                }
                client.copy_from_slice(digest(&SHA256, &text).as_ref());
            }
        }
        Some(client)
    }
}
