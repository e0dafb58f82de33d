//! Tests on the peer's address.

use std::net::IpAddr;

use ipnet::IpNet;

use super::ConditionError;

#[derive(Debug, Clone, Copy)]
pub(super) enum AddressTest {
    Equal(IpAddr),
    NotEqual(IpAddr),
    In(IpNet),
}

const KNOWN: &str = "==, !=, in";

impl AddressTest {
    pub(super) fn parse(
        subject: &str,
        operator: &str,
        value: &str,
    ) -> Result<Self, ConditionError> {
        let wrong = || ConditionError::Address(value.to_owned());
        let address = || value.parse().map_err(|_| wrong());
        Ok(match operator {
            "==" | "=" => Self::Equal(address()?),
            "!=" => Self::NotEqual(address()?),
            "in" => Self::In(
                value
                    .parse::<IpNet>()
                    .or_else(|_| value.parse::<IpAddr>().map(IpNet::from))
                    .map_err(|_| wrong())?,
            ),
            _ => {
                return Err(ConditionError::Operator {
                    subject: subject.to_owned(),
                    operator: operator.to_owned(),
                    known: KNOWN,
                });
            }
        })
    }

    /// An absent address differs from every address.
    pub(super) fn holds(self, peer: Option<IpAddr>) -> bool {
        match (self, peer) {
            (Self::Equal(address), Some(peer)) => address == peer,
            (Self::NotEqual(address), Some(peer)) => address != peer,
            (Self::In(network), Some(peer)) => network.contains(&peer),
            (Self::NotEqual(_), None) => true,
            (Self::Equal(_) | Self::In(_), None) => false,
        }
    }
}
