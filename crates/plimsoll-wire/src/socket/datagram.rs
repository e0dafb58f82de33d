//! A UDP socket that reports the local address and the ECN bits of each datagram, and sends by them.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};

use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use tokio::io::Interest;
use tokio::net::UdpSocket;

pub use quinn_udp::EcnCodepoint;

/// A UDP socket of one task.
///
/// The system may join datagrams of one peer on their way in; here each comes by itself.
#[derive(Debug)]
pub struct DatagramSocket {
    socket: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
}

/// Datagrams that one system call takes: a sixteenth of its cost per datagram is small beside handling one.
const BATCH: usize = 16;

/// Bytes of the longest, or of several that the system has joined.
const LONGEST: usize = 64 * 1024;

/// Memory for what is received at a time; the system gives it room as it is first used.
pub struct DatagramBuffer {
    memory: Box<[u8]>,
    meta: [RecvMeta; BATCH],
}

impl Default for DatagramBuffer {
    fn default() -> Self {
        Self {
            memory: vec![0; BATCH * LONGEST].into_boxed_slice(),
            meta: [RecvMeta::default(); BATCH],
        }
    }
}

impl fmt::Debug for DatagramBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatagramBuffer").finish_non_exhaustive()
    }
}

impl DatagramBuffer {
    /// Receives what there is, without waiting; returns how many places of it are filled.
    pub(crate) fn fill(
        &mut self,
        state: &UdpSocketState,
        socket: quinn_udp::UdpSockRef<'_>,
    ) -> io::Result<usize> {
        let mut rest = &mut *self.memory;
        let mut buffers: [IoSliceMut<'_>; BATCH] = std::array::from_fn(|_| {
            let (place, after) = std::mem::take(&mut rest).split_at_mut(LONGEST);
            rest = after;
            IoSliceMut::new(place)
        });
        state.recv(socket, &mut buffers, &mut self.meta)
    }

    /// Hands every datagram of the first `count` places to `receive`.
    pub(crate) fn each(&self, count: usize, mut receive: impl FnMut(&RecvMeta, &[u8])) {
        let places = self.meta.iter().zip(self.memory.chunks(LONGEST));
        for (meta, place) in places.take(count) {
            let received = &place[..meta.len.min(LONGEST)];
            if received.is_empty() {
                receive(meta, received);
            }
            for datagram in received.chunks(meta.stride.max(1)) {
                receive(meta, datagram);
            }
        }
    }
}

/// Source and destination of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatagramPath {
    /// The sender.
    pub peer: SocketAddr,
    /// The address that it was sent to, also where the socket is bound to every address.
    pub local: SocketAddr,
    /// Its ECN bits, unless they are zero (RFC 3168).
    pub ecn: Option<EcnCodepoint>,
}

impl DatagramSocket {
    /// Takes a bound socket over; within a runtime.
    pub fn new(socket: std::net::UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let socket = UdpSocket::from_std(socket)?;
        let state = UdpSocketState::new((&socket).into())?;
        allow_fragments(&socket);
        let local = socket.local_addr()?;
        Ok(Self {
            socket,
            state,
            local,
        })
    }

    /// The local address.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Waits until there may be something to be read: datagrams, or an error about one that was sent.
    pub async fn readable(&self) -> io::Result<()> {
        // The system reports an error, such as that of a closed port, without saying that there is something to be read.
        let either = Interest::READABLE.add(Interest::ERROR);
        self.socket.ready(either).await.map(|_| ())
    }

    /// Reads what has come and hands each datagram to `receive`; fails with `WouldBlock` if nothing has.
    ///
    /// One system call takes several datagrams. Other errors are about a datagram that was sent before, such as that its
    /// peer does not listen.
    pub fn try_receive(
        &self,
        buffer: &mut DatagramBuffer,
        mut receive: impl FnMut(DatagramPath, &[u8]),
    ) -> io::Result<()> {
        let mut receive_if = |interest| {
            self.socket
                .try_io(interest, || buffer.fill(&self.state, (&self.socket).into()))
        };
        // One after the other: the runtime takes no two interests here.
        let count = match receive_if(Interest::READABLE) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => receive_if(Interest::ERROR),
            received => received,
        }?;
        buffer.each(count, |meta, bytes| {
            let ip = meta.dst_ip.unwrap_or(self.local.ip());
            let path = DatagramPath {
                peer: meta.addr,
                local: SocketAddr::new(ip, self.local.port()),
                ecn: meta.ecn,
            };
            receive(path, bytes);
        });
        Ok(())
    }

    /// Maximum number of datagrams of one length that one [`try_send`](Self::try_send) takes.
    pub fn most_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// Sends one datagram, or several to one peer, if the system takes them at once.
    ///
    /// - `from`: the address that it is sent from, where the socket has several.
    /// - `segment`: the length of each datagram in `bytes`, of which the last may be shorter; all of it is one without.
    pub fn try_send(
        &self,
        to: SocketAddr,
        from: Option<IpAddr>,
        ecn: Option<EcnCodepoint>,
        bytes: &[u8],
        segment: Option<usize>,
    ) -> io::Result<()> {
        let transmit = Transmit {
            destination: to,
            ecn,
            contents: bytes,
            segment_size: segment,
            src_ip: from,
        };
        // Not by way of the runtime, which does not know of a new socket that it can be written to.
        self.state.try_send((&self.socket).into(), &transmit)
    }
}

/// Datagrams that are longer than a packet are sent in fragments, as by any socket: what is forwarded may be long. Over
/// IPv6 the crate forbids it for good.
#[cfg(target_os = "linux")]
pub(crate) fn allow_fragments(socket: &impl std::os::fd::AsFd) {
    use rustix::net::sockopt::{Ipv4PathMtuDiscovery, set_ip_mtu_discover};
    // A socket of IPv6 alone has no such option.
    set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::WANT).ok();
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn allow_fragments(_: &impl std::os::fd::AsFd) {}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(address: &str) -> DatagramSocket {
        DatagramSocket::new(std::net::UdpSocket::bind(address).unwrap()).unwrap()
    }

    async fn next(socket: &DatagramSocket) -> Vec<(DatagramPath, Vec<u8>)> {
        let mut buffer = DatagramBuffer::default();
        let mut received = Vec::new();
        while received.is_empty() {
            socket.readable().await.unwrap();
            let read = socket.try_receive(&mut buffer, |path, bytes| {
                received.push((path, bytes.to_vec()));
            });
            let is_early = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
            assert!(read.as_ref().map_or_else(is_early, |()| true), "{read:?}");
        }
        received
    }

    #[test]
    fn datagrams_have_both_addresses_and_their_ecn_bits() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let (server, client) = (bound("0.0.0.0:0"), bound("127.0.0.1:0"));
            let at = |ip: [u8; 4], socket: &DatagramSocket| {
                SocketAddr::from((ip, socket.local().port()))
            };
            let long = vec![b'x'; 60_000];
            for (bytes, ecn) in [
                (&b"hello"[..], None),
                (b"", None),
                (&long, Some(EcnCodepoint::Ect0)),
                (b"full", Some(EcnCodepoint::Ce)),
            ] {
                // The whole network 127.0.0.0/8 is this machine.
                let to = at([127, 0, 0, 7], &server);
                client.try_send(to, None, ecn, bytes, None).unwrap();
                let received = next(&server).await;
                let path = DatagramPath {
                    peer: client.local(),
                    local: to,
                    ecn,
                };
                assert_eq!(received, [(path, bytes.to_vec())]);
                let from = Some(path.local.ip());
                server
                    .try_send(path.peer, from, ecn, b"reply", None)
                    .unwrap();
                let [(reply, _)] = &next(&client).await[..] else {
                    panic!("there is one reply");
                };
                assert_eq!((reply.peer, reply.ecn), (to, ecn));
            }
        });
    }
}
