//! Very many connected UDP sockets, one for each flow, which one task watches.
//!
//! The runtime would need a task and a registration for each. Here all are members of one epoll instance, of which the
//! runtime watches the descriptor: a socket takes four bytes of this program's memory.

use std::io;
use std::net::SocketAddr;

use quinn_udp::EcnCodepoint;

use crate::socket::datagram::DatagramBuffer;

/// A UDP socket that sends to one peer and receives from it alone.
#[derive(Debug)]
pub struct UpstreamSocket(std::net::UdpSocket);

impl UpstreamSocket {
    /// Its own address: the one that its peer sees, unless something on the way replaces it.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// The sockets of one task, by tokens that it chose.
#[derive(Debug)]
pub struct UpstreamSockets(system::Sockets);

impl UpstreamSockets {
    /// None so far; within a runtime. Fails with `Unsupported` but on Linux.
    pub fn new() -> io::Result<Self> {
        system::Sockets::new().map(Self)
    }

    /// A socket to `peer`, from a free port. It is watched until it is dropped.
    pub fn open(&self, peer: SocketAddr, token: u64) -> io::Result<UpstreamSocket> {
        self.0.open(peer, token).map(UpstreamSocket)
    }

    /// Waits until there is something to be read, and adds the tokens of those sockets to `tokens`; no more than some
    /// hundred at a time.
    pub async fn ready(&self, tokens: &mut Vec<u64>) -> io::Result<()> {
        self.0.ready(tokens).await
    }

    /// Reads what has come to `socket` and hands each datagram to `receive`; fails with `WouldBlock` if nothing has.
    ///
    /// Other errors are about a datagram that was sent before, such as that its peer does not listen.
    pub fn try_receive(
        &self,
        socket: &UpstreamSocket,
        buffer: &mut DatagramBuffer,
        receive: impl FnMut(Option<EcnCodepoint>, &[u8]),
    ) -> io::Result<()> {
        self.0.try_receive(&socket.0, buffer, receive)
    }

    /// Sends one datagram, or several, if the system takes them at once.
    ///
    /// - `segment`: the length of each datagram in `bytes`, of which the last may be shorter; all of it is one without.
    pub fn try_send(
        &self,
        socket: &UpstreamSocket,
        ecn: Option<EcnCodepoint>,
        bytes: &[u8],
        segment: Option<usize>,
    ) -> io::Result<()> {
        self.0.try_send(&socket.0, ecn, bytes, segment)
    }

    /// Maximum number of datagrams of one length that one [`try_send`](Self::try_send) takes.
    pub fn most_segments(&self) -> usize {
        self.0.most_segments()
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::io;
    use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
    use std::os::fd::OwnedFd;

    use quinn_udp::{EcnCodepoint, Transmit, UdpSocketState};
    use rustix::buffer::spare_capacity;
    use rustix::event::epoll;
    use rustix::net::{SendFlags, send};
    use tokio::io::unix::AsyncFd;

    use crate::socket::datagram::{DatagramBuffer, allow_fragments};

    /// Events that are taken at a time.
    const MOST_EVENTS: usize = 256;

    #[derive(Debug)]
    pub(crate) struct Sockets {
        epoll: AsyncFd<OwnedFd>,
        /// Capabilities of the system, which are the same for every socket.
        state: UdpSocketState,
    }

    impl Sockets {
        pub(crate) fn new() -> io::Result<Self> {
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            #[expect(
                unsafe_code,
                reason = "the runtime offers no safe way to register a descriptor"
            )]
            // SAFETY: `AsyncFd` owns the `OwnedFd`, which stays open and the same until it is dropped.
            let epoll = unsafe { AsyncFd::register(epoll) }.map_err(io::Error::from)?;
            let probe = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            let state = UdpSocketState::new((&probe).into())?;
            Ok(Self { epoll, state })
        }

        pub(crate) fn open(&self, peer: SocketAddr, token: u64) -> io::Result<UdpSocket> {
            let any = match peer {
                SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
                SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
            };
            let socket = UdpSocket::bind(any)?;
            // Sets its options; the rest is known.
            UdpSocketState::new((&socket).into())?;
            allow_fragments(&socket);
            // Only the peer can send to it then, and one that does not listen is reported.
            socket.connect(peer)?;
            let data = epoll::EventData::new_u64(token);
            epoll::add(&self.epoll, &socket, data, epoll::EventFlags::IN)?;
            Ok(socket)
        }

        pub(crate) async fn ready(&self, tokens: &mut Vec<u64>) -> io::Result<()> {
            let mut events: Vec<epoll::Event> = Vec::with_capacity(MOST_EVENTS);
            loop {
                let mut guard = self.epoll.readable().await?;
                let at_once = rustix::time::Timespec::default();
                epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&at_once))?;
                if !events.is_empty() {
                    tokens.extend(events.drain(..).map(|event| event.data.u64()));
                    return Ok(());
                }
                // Sockets are reported as long as there is something to be read, so now there is not.
                guard.clear_ready();
            }
        }

        pub(crate) fn try_receive(
            &self,
            socket: &UdpSocket,
            buffer: &mut DatagramBuffer,
            mut receive: impl FnMut(Option<EcnCodepoint>, &[u8]),
        ) -> io::Result<()> {
            let count = buffer.fill(&self.state, socket.into())?;
            buffer.each(count, |meta, bytes| receive(meta.ecn, bytes));
            Ok(())
        }

        pub(crate) fn try_send(
            &self,
            socket: &UdpSocket,
            ecn: Option<EcnCodepoint>,
            bytes: &[u8],
            segment: Option<usize>,
        ) -> io::Result<()> {
            if ecn.is_none() && segment.is_none() {
                // The system knows the way of a connected socket, as long as it is not given an address.
                send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
                return Ok(());
            }
            let transmit = Transmit {
                destination: socket.peer_addr()?,
                ecn,
                contents: bytes,
                segment_size: segment,
                src_ip: None,
            };
            self.state.try_send(socket.into(), &transmit)
        }

        pub(crate) fn most_segments(&self) -> usize {
            self.state.max_gso_segments()
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::future::pending;
    use std::io;
    use std::net::{SocketAddr, UdpSocket};

    use quinn_udp::EcnCodepoint;

    use crate::socket::datagram::DatagramBuffer;

    #[derive(Debug)]
    pub(crate) struct Sockets;

    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as on Linux")]
    impl Sockets {
        /// Listeners that open no sockets work.
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self)
        }

        pub(crate) fn open(&self, _: SocketAddr, _: u64) -> io::Result<UdpSocket> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(crate) async fn ready(&self, _: &mut Vec<u64>) -> io::Result<()> {
            pending().await
        }

        pub(crate) fn try_receive(
            &self,
            _: &UdpSocket,
            _: &mut DatagramBuffer,
            _: impl FnMut(Option<EcnCodepoint>, &[u8]),
        ) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(crate) fn try_send(
            &self,
            _: &UdpSocket,
            _: Option<EcnCodepoint>,
            _: &[u8],
            _: Option<usize>,
        ) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(crate) fn most_segments(&self) -> usize {
            1
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn ready_sockets_are_named_and_closed_ones_are_not() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let sockets = UpstreamSockets::new().unwrap();
            let to = peer.local_addr().unwrap();
            let opened: Vec<_> = (0..3)
                .map(|token| sockets.open(to, token).unwrap())
                .collect();
            let mut buffer = DatagramBuffer::default();
            let mut from = Vec::new();
            for (number, socket) in opened.iter().enumerate() {
                let ecn = (number == 1).then_some(EcnCodepoint::Ect0);
                let segment = (number == 2).then_some(2);
                sockets.try_send(socket, ecn, b"hello", segment).unwrap();
                let (length, sender) = peer.recv_from(&mut [0; 16]).unwrap();
                assert_eq!(length, if number == 2 { 2 } else { 5 });
                from.push(sender);
            }
            let mut opened = opened.into_iter();
            let (zero, one, two) = (opened.next(), opened.next(), opened.next());
            let closed = None;
            for sender in &from {
                peer.send_to(b"back", sender).unwrap();
                peer.send_to(b"again", sender).unwrap();
            }
            drop(zero);
            let mut received = Vec::new();
            while received.len() < 4 {
                let mut tokens = Vec::new();
                sockets.ready(&mut tokens).await.unwrap();
                for token in tokens {
                    let socket = [&closed, &one, &two][usize::try_from(token).unwrap()];
                    let socket = socket.as_ref().expect("a closed socket is not watched");
                    let read = sockets.try_receive(socket, &mut buffer, |_, bytes| {
                        received.push((token, bytes.to_vec()));
                    });
                    read.unwrap();
                }
            }
            received.sort();
            let expected =
                [1, 2].map(|token| [(token, b"again".to_vec()), (token, b"back".to_vec())]);
            assert_eq!(received, expected.concat());
            // A peer that does not listen any more is an error of the socket.
            drop(peer);
            let one = one.unwrap();
            sockets.try_send(&one, None, b"x", None).unwrap();
            let mut tokens = Vec::new();
            sockets.ready(&mut tokens).await.unwrap();
            assert_eq!(tokens, [1]);
            let error = sockets.try_receive(&one, &mut buffer, |_, _| {});
            assert_eq!(error.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        });
    }
}
