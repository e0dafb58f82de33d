//! Access by the client's address.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use http::StatusCode;
use ipnet::IpNet;

use crate::action::{Action, Answer};
use crate::message::request::Request;
use crate::message::response::Response;

/// Networks whose clients are let in, and those whose are not.
///
/// Of the networks that hold an address the smallest decides, as in a table of routes, so their order does not matter. An
/// address in none of them is let in unless there are networks that are let in.
#[derive(Debug, Clone, Default)]
pub struct Addresses {
    /// The smallest networks first.
    rules: Vec<Rule>,
    /// For an address that no network holds.
    admits_others: bool,
}

#[derive(Debug, Clone, Copy)]
struct Rule {
    network: IpNet,
    admits: bool,
}

impl Addresses {
    /// A network that is both allowed and denied is denied.
    pub fn new(allow: &[IpNet], deny: &[IpNet]) -> Self {
        let rule = |admits| {
            move |network: &IpNet| Rule {
                network: *network,
                admits,
            }
        };
        // The sort keeps the order of equals, so those that are denied come first.
        let mut rules: Vec<_> = deny.iter().map(rule(false)).collect();
        rules.extend(allow.iter().map(rule(true)));
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.network.prefix_len()));
        Self {
            rules,
            admits_others: allow.is_empty(),
        }
    }

    /// Whether a client at this address is let in. An IPv4 address in IPv6's form is the IPv4 address.
    pub fn admits(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let mut rules = self.rules.iter();
        rules
            .find(|rule| rule.network.contains(&address))
            .map_or(self.admits_others, |rule| rule.admits)
    }
}

/// Lets another action answer clients at some addresses.
pub(super) struct Admitting {
    addresses: Arc<Addresses>,
    inner: Rc<dyn Action>,
}

impl Admitting {
    pub(super) fn new(addresses: Arc<Addresses>, inner: Rc<dyn Action>) -> Self {
        Self { addresses, inner }
    }
}

impl Action for Admitting {
    fn handle(&self, request: &Request<'_>) -> Answer {
        if self.addresses.admits(request.peer.ip()) {
            self.inner.handle(request)
        } else {
            Answer::now(Response::text(StatusCode::FORBIDDEN, "forbidden\n"))
        }
    }
}

/// Lets one action answer clients at some addresses, and another one the others.
pub(super) struct Preferring {
    addresses: Arc<Addresses>,
    preferred: Rc<dyn Action>,
    others: Rc<dyn Action>,
}

impl Preferring {
    /// - `preferred`: answers the clients that the addresses admit.
    pub(super) fn new(
        addresses: Arc<Addresses>,
        preferred: Rc<dyn Action>,
        others: Rc<dyn Action>,
    ) -> Self {
        Self {
            addresses,
            preferred,
            others,
        }
    }
}

impl Action for Preferring {
    fn handle(&self, request: &Request<'_>) -> Answer {
        if self.addresses.admits(request.peer.ip()) {
            self.preferred.handle(request)
        } else {
            self.others.handle(request)
        }
    }

    fn methods(&self) -> Option<&'static str> {
        self.preferred.methods()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn networks(texts: &[&str]) -> Vec<IpNet> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn admits(allow: &[&str], deny: &[&str], address: &str) -> bool {
        Addresses::new(&networks(allow), &networks(deny)).admits(address.parse().unwrap())
    }

    #[test]
    fn the_smallest_network_decides() {
        let allow = ["10.0.0.0/8", "10.1.2.3/32", "2001:db8::/32"];
        let deny = ["10.1.0.0/16", "2001:db8:1::/48"];
        for (address, expected) in [
            ("10.2.0.1", true),
            ("10.1.0.1", false),
            ("10.1.2.3", true),
            ("::ffff:10.1.0.1", false),
            ("192.0.2.1", false),
            ("2001:db8::1", true),
            ("2001:db8:1::1", false),
            ("::1", false),
        ] {
            assert_eq!(admits(&allow, &deny, address), expected, "{address}");
        }
    }

    #[test]
    fn without_allowed_networks_the_others_are_let_in() {
        assert!(admits(&[], &["10.0.0.0/8"], "192.0.2.1"));
        assert!(!admits(&[], &["10.0.0.0/8"], "10.0.0.1"));
        assert!(admits(&[], &[], "::1"));
        assert!(!admits(&["10.0.0.0/8"], &["10.0.0.0/8"], "10.0.0.1"));
    }

    proptest! {
        #[test]
        fn the_order_does_not_matter(
            rules in prop::collection::vec((any::<u32>(), 0u8..=32, any::<bool>()), 0..12),
            address in any::<u32>(),
        ) {
            let of = |admits: bool| -> Vec<IpNet> {
                let rules = rules.iter().filter(|rule| rule.2 == admits);
                rules
                    .map(|(address, length, _)| {
                        ipnet::Ipv4Net::new((*address).into(), *length).unwrap().into()
                    })
                    .collect()
            };
            let reversed = |mut networks: Vec<IpNet>| {
                networks.reverse();
                networks
            };
            let address = IpAddr::V4(address.into());
            let one = Addresses::new(&of(true), &of(false));
            let other = Addresses::new(&reversed(of(true)), &reversed(of(false)));
            prop_assert_eq!(one.admits(address), other.admits(address));
        }
    }
}
