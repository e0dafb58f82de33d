//! ICMP: one echo request, by an unprivileged datagram socket, or by a raw one where those are not permitted.

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
        let (socket, is_raw) = open(peer.ip()).map_err(|error| {
            let failure = Failure::new(Phase::Connect, FailureKind::ResourceLimit).on(Side::Ours);
            if error.kind() == std::io::ErrorKind::PermissionDenied {
                failure.because(
                    "this process may not send pings; allow it with `sysctl net.ipv4.ping_group_range='0 2147483647'`, \
                     or give it CAP_NET_RAW",
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
            let received = buffer.get(..length).unwrap_or_default();
            let message = if is_raw {
                message_of_raw(received, peer.ip())
            } else {
                received
            };
            if is_reply(message, peer.ip(), token) {
                break;
            }
        }
        let waited = context.clock.now().saturating_duration_since(begun);
        reading.phases.set(Phase::Wait, waited);
        reading.connected = true;
        Ok(())
    }
}

/// A socket, and whether it is a raw one.
fn open(address: IpAddr) -> std::io::Result<(UdpSocket, bool)> {
    match open_as(Type::DGRAM, address) {
        Ok(socket) => Ok((socket, false)),
        // The group may not, but the process may have CAP_NET_RAW. If it has not, the first error says what to do.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            let raw = open_as(Type::RAW, address).map_err(|_| error)?;
            Ok((raw, true))
        }
        Err(error) => Err(error),
    }
}

fn open_as(kind: Type, address: IpAddr) -> std::io::Result<UdpSocket> {
    let (domain, protocol) = match address {
        IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4),
        IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6),
    };
    let socket = Socket::new(domain, kind, Some(protocol))?;
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(StdSocket::from(socket))
}

/// An echo request (RFC 792, RFC 4443, section 4.1); the kernel sets the identifier of a datagram socket, and for IPv6 the
/// checksum. The reply is known by the token.
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

/// The message that a raw socket received: with IPv4 it comes behind its header (RFC 791, section 3.1).
fn message_of_raw(packet: &[u8], address: IpAddr) -> &[u8] {
    if address.is_ipv6() {
        return packet;
    }
    let words = usize::from(packet.first().copied().unwrap_or_default() & 0x0f);
    packet.get(words * 4..).unwrap_or_default()
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
    fn a_raw_socket_receives_the_header_too() {
        let target = IpAddr::from([127, 0, 0, 1]);
        let token = *b"12345678";
        let mut message = echo(target, 7, token);
        message[0] = 0;
        for words in [5_u8, 15] {
            let mut packet = vec![0; usize::from(words) * 4];
            packet[0] = 0x40 | words;
            packet.extend(&message);
            assert!(is_reply(message_of_raw(&packet, target), target, token));
        }
        assert!(message_of_raw(&[0x4f, 0], target).is_empty());
        assert!(message_of_raw(&[], target).is_empty());
        let target = IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(message_of_raw(&[129, 0], target), [129, 0]);
    }

    #[tokio::test]
    async fn a_raw_socket_gets_an_answer() {
        let target = IpAddr::from([127, 0, 0, 1]);
        // Where it is not permitted, there is nothing to test.
        let Ok(socket) = open_as(Type::RAW, target) else {
            return;
        };
        let token = *b"raw echo";
        socket.connect(SocketAddr::new(target, 0)).await.unwrap();
        socket.send(&echo(target, 1, token)).await.unwrap();
        let mut buffer = [0; 1024];
        loop {
            let length = socket.recv(&mut buffer).await.unwrap();
            if is_reply(message_of_raw(&buffer[..length], target), target, token) {
                return;
            }
        }
    }

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
