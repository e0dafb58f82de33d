//! ICMP: one echo request by an unprivileged datagram socket.

use std::net::{IpAddr, SocketAddr, UdpSocket as StdSocket};
use std::sync::Arc;

use plimsoll_model::{Clock, Failure, FailureKind, Phase, Side};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;

use crate::probe::context::{ProbeContext, Reach, TcpTarget, timed};
use crate::probe::reading::Reading;
use crate::probe::udp::resolve;
use crate::probe::{Probe, ProbeFuture};

/// Bytes behind the head of an echo request, as ping sends them.
const PAYLOAD: usize = 56;

/// Sends one echo request.
#[derive(Debug)]
pub struct IcmpProbe {
    /// Address of the target; the port is not used.
    pub target: TcpTarget,
    /// Connection options.
    pub reach: Reach,
}

impl Probe for IcmpProbe {
    fn kind(&self) -> &'static str {
        "icmp"
    }

    fn target(&self) -> String {
        self.target.endpoint().host().to_string()
    }

    fn host(&self) -> Option<Arc<str>> {
        Some(self.target().into())
    }

    fn check<'a>(&'a self, context: &'a ProbeContext) -> ProbeFuture<'a> {
        Box::pin(timed(self.reach.timeout, context, async |reading, _| {
            if let Err(failure) = self.ping(context, reading).await {
                reading.failure = Some(failure);
            }
        }))
    }
}

impl IcmpProbe {
    async fn ping(&self, context: &ProbeContext, reading: &mut Reading) -> Result<(), Failure> {
        let peer = resolve(&self.target, &self.reach, context, reading).await?;
        let peer = SocketAddr::new(peer.ip(), 0);
        reading.peer = Some(peer.ip());
        let socket = open(peer.ip()).map_err(|error| {
            let failure = Failure::new(Phase::Connect, FailureKind::ResourceLimit).on(Side::Ours);
            if error.kind() == std::io::ErrorKind::PermissionDenied {
                failure.because(
                    "this group may not send pings; allow it with `sysctl net.ipv4.ping_group_range='0 2147483647'`",
                )
            } else {
                failure.because(error.to_string())
            }
        })?;
        let io = |error: std::io::Error| Failure::from_io(Phase::Wait, &error);
        let sequence = fastrand::u16(..);
        let token = fastrand::u64(..).to_be_bytes();
        let request = echo(peer.ip(), sequence, token);
        let begun = context.clock.now();
        socket.connect(peer).await.map_err(io)?;
        socket.send(&request).await.map_err(io)?;
        let mut buffer = [0; 1024];
        loop {
            let length = socket.recv(&mut buffer).await.map_err(io)?;
            if is_reply(buffer.get(..length).unwrap_or_default(), peer.ip(), token) {
                break;
            }
        }
        let waited = context.clock.now().saturating_duration_since(begun);
        reading.phases.set(Phase::Wait, waited);
        reading.connected = true;
        Ok(())
    }
}

fn open(address: IpAddr) -> std::io::Result<UdpSocket> {
    let (domain, protocol) = match address {
        IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4),
        IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6),
    };
    let socket = Socket::new(domain, Type::DGRAM, Some(protocol))?;
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(StdSocket::from(socket))
}

/// An echo request (RFC 792, RFC 4443, section 4.1); the kernel sets its identifier, and for IPv6 its checksum.
fn echo(address: IpAddr, sequence: u16, token: [u8; 8]) -> Vec<u8> {
    let kind = if address.is_ipv4() { 8 } else { 128 };
    let mut message = vec![kind, 0, 0, 0, 0, 0];
    message.extend(sequence.to_be_bytes());
    message.extend(token);
    message.resize(8 + PAYLOAD, 0x61);
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

fn is_reply(message: &[u8], address: IpAddr, token: [u8; 8]) -> bool {
    let kind = if address.is_ipv4() { 0 } else { 129 };
    message.first() == Some(&kind) && message.get(8..16) == Some(&token[..])
}

/// RFC 1071.
fn checksum(message: &[u8]) -> u16 {
    let words = message.chunks(2).map(|pair| match pair {
        [high, low] => u32::from(u16::from_be_bytes([*high, *low])),
        [high] => u32::from(*high) << 8,
        _ => 0,
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(u16::try_from(sum).unwrap_or(u16::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_sums_to_zero_and_its_reply_is_known_by_the_token() {
        let token = *b"12345678";
        let mut message = echo(IpAddr::from([127, 0, 0, 1]), 7, token);
        assert_eq!(checksum(&message), 0);
        assert!(!is_reply(&message, IpAddr::from([127, 0, 0, 1]), token));
        message[0] = 0;
        assert!(is_reply(&message, IpAddr::from([127, 0, 0, 1]), token));
        assert!(!is_reply(
            &message,
            IpAddr::from([127, 0, 0, 1]),
            *b"x2345678"
        ));
    }
}
