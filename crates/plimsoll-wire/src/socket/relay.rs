//! Datagrams that one process passes to another, with the addresses that they came with.
//!
//! The ends are a pair of connected sockets that keep the bounds of messages. What does not fit the queue of the other
//! end is refused at once, so a process that hangs does not hold the other one up.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr, SocketAddrV6};
use std::os::fd::OwnedFd;

use quinn_udp::EcnCodepoint;
use socket2::{Domain, SockRef, Socket, Type};
use tokio::net::UnixStream;

use crate::socket::datagram::DatagramPath;

/// Bytes of the label that a message carries, at most.
const LONGEST_LABEL: usize = 64;

/// Bytes of an address: its family, the address, the port, and the scope.
const ADDRESS: usize = 1 + 16 + 2 + 4;

/// Bytes of a message at most: a label, two addresses, and the longest datagram.
const LONGEST: usize = 2 + LONGEST_LABEL + 2 * ADDRESS + 65_536;

/// Bytes that may wait at the other end: a burst while it does something else.
const BUFFER: usize = 1 << 20;

/// One end of a pair.
pub struct RelayEnd(UnixStream);

/// Memory for a message that is received.
pub struct RelayBuffer(Box<[u8]>);

/// A datagram with a label, which means something to the process that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relayed<'a> {
    /// Its meaning is that of its maker; the other process sends it back unchanged.
    pub label: &'a [u8],
    /// The addresses of the datagram.
    pub path: DatagramPath,
    /// Its content.
    pub bytes: &'a [u8],
}

impl Default for RelayBuffer {
    fn default() -> Self {
        Self(vec![0; LONGEST].into_boxed_slice())
    }
}

impl fmt::Debug for RelayBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelayBuffer").finish_non_exhaustive()
    }
}

impl fmt::Debug for RelayEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelayEnd").finish_non_exhaustive()
    }
}

impl RelayEnd {
    /// Both ends, of which one goes to another process.
    pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
        let (one, other) = Socket::pair(Domain::UNIX, Type::SEQPACKET, None)?;
        for end in [&one, &other] {
            // The system allows what it is configured for (`net.core.wmem_max`).
            end.set_send_buffer_size(BUFFER).ok();
        }
        Ok((one.into(), other.into()))
    }

    /// Uses an end; within a runtime.
    pub fn new(end: OwnedFd) -> io::Result<Self> {
        let stream = std::os::unix::net::UnixStream::from(end);
        stream.set_nonblocking(true)?;
        UnixStream::from_std(stream).map(Self)
    }

    /// Sends a message. Fails with `WouldBlock` if too many wait, and with another error if there is no other end.
    pub fn try_send(&self, message: &Relayed<'_>) -> io::Result<()> {
        let mut head = Vec::with_capacity(2 + LONGEST_LABEL + 2 * ADDRESS);
        let length = u8::try_from(message.label.len()).ok();
        let length = length.filter(|length| usize::from(*length) <= LONGEST_LABEL);
        head.push(length.ok_or(io::ErrorKind::InvalidInput)?);
        head.extend(message.label);
        head.push(message.path.ecn.map_or(0, |ecn| ecn as u8));
        write_address(message.path.peer, &mut head);
        write_address(message.path.local, &mut head);
        let parts = [IoSlice::new(&head), IoSlice::new(message.bytes)];
        match self.0.try_write_vectored(&parts) {
            // The runtime does not know of a new socket that it can be written to.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                rustix::io::writev(&self.0, &parts)
                    .map(|_| ())
                    .map_err(Into::into)
            }
            written => written.map(|_| ()),
        }
    }

    /// Has the other end send no more; the messages that it has sent are received before the end.
    pub fn stop_receiving(&self) {
        // It fails where there is no other end, which is the same.
        SockRef::from(&self.0).shutdown(Shutdown::Read).ok();
    }

    /// The next message, or nothing once the other end is closed.
    pub async fn receive<'a>(
        &self,
        buffer: &'a mut RelayBuffer,
    ) -> io::Result<Option<Relayed<'a>>> {
        loop {
            self.0.readable().await?;
            match self.0.try_read(&mut buffer.0) {
                Ok(0) => return Ok(None),
                Ok(length) => {
                    let message = buffer.0.get(..length).and_then(read);
                    return message.map(Some).ok_or(io::ErrorKind::InvalidData.into());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn read(message: &[u8]) -> Option<Relayed<'_>> {
    let (length, rest) = message.split_first()?;
    let (label, rest) = rest.split_at_checked(usize::from(*length))?;
    let (ecn, rest) = rest.split_first()?;
    let (peer, rest) = read_address(rest)?;
    let (local, bytes) = read_address(rest)?;
    let path = DatagramPath {
        peer,
        local,
        ecn: EcnCodepoint::from_bits(*ecn),
    };
    Some(Relayed { label, path, bytes })
}

fn write_address(address: SocketAddr, head: &mut Vec<u8>) {
    let (family, ip, scope) = match address {
        SocketAddr::V4(address) => (4, address.ip().to_ipv6_mapped(), 0),
        SocketAddr::V6(address) => (6, *address.ip(), address.scope_id()),
    };
    head.push(family);
    head.extend(ip.octets());
    head.extend(address.port().to_be_bytes());
    head.extend(scope.to_be_bytes());
}

fn read_address(bytes: &[u8]) -> Option<(SocketAddr, &[u8])> {
    let (family, rest) = bytes.split_first()?;
    let (ip, rest) = rest.split_first_chunk::<16>()?;
    let (port, rest) = rest.split_first_chunk()?;
    let (scope, rest) = rest.split_first_chunk()?;
    let (ip, port) = (Ipv6Addr::from(*ip), u16::from_be_bytes(*port));
    let address = match family {
        4 => SocketAddr::new(IpAddr::V4(ip.to_ipv4_mapped()?), port),
        6 => SocketAddrV6::new(ip, port, 0, u32::from_be_bytes(*scope)).into(),
        _ => return None,
    };
    Some((address, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn datagrams_arrive_with_their_addresses_until_the_other_end_is_closed() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let (one, other) = RelayEnd::pair().unwrap();
            let (one, other) = (RelayEnd::new(one).unwrap(), RelayEnd::new(other).unwrap());
            let mut buffer = RelayBuffer::default();
            let long = vec![7; 65_507];
            for (peer, ecn, bytes) in [
                ("127.0.0.1:1", None, &b"hello"[..]),
                ("[fe80::1%3]:9", Some(EcnCodepoint::Ce), b""),
                ("[::ffff:127.0.0.1]:2", Some(EcnCodepoint::Ect0), &long),
            ] {
                let message = Relayed {
                    label: b"x",
                    path: DatagramPath {
                        peer: peer.parse().unwrap(),
                        local: "192.0.2.1:443".parse().unwrap(),
                        ecn,
                    },
                    bytes,
                };
                one.try_send(&message).unwrap();
                assert_eq!(other.receive(&mut buffer).await.unwrap(), Some(message));
            }
            // An end that reads nothing refuses some time.
            let message = Relayed {
                label: &[1; LONGEST_LABEL],
                path: DatagramPath {
                    peer: "127.0.0.1:1".parse().unwrap(),
                    local: "127.0.0.1:2".parse().unwrap(),
                    ecn: None,
                },
                bytes: &long,
            };
            let refused = (0..10_000).find_map(|_| one.try_send(&message).err());
            assert_eq!(refused.unwrap().kind(), io::ErrorKind::WouldBlock);
            let too_long = Relayed {
                label: &[1; LONGEST_LABEL + 1],
                ..message
            };
            let error = one.try_send(&too_long).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            // What has been sent is received, and nothing more can be.
            other.stop_receiving();
            let error = one.try_send(&message).unwrap_err();
            assert_ne!(error.kind(), io::ErrorKind::WouldBlock);
            while let Some(read) = other.receive(&mut buffer).await.unwrap() {
                assert_eq!(read, message);
            }
            drop(one);
            let error = other.try_send(&message).unwrap_err();
            assert_ne!(error.kind(), io::ErrorKind::WouldBlock);
        });
    }

    proptest! {
        #[test]
        fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            read(&bytes);
        }
    }
}
