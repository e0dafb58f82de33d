//! Listening sockets that pass from one process to the next, so that no connection is refused in between.

use std::io;
use std::os::fd::OwnedFd;

use plimsoll_wire::RelayEnd;
use socket2::{Domain, Socket, Type};

use crate::engine::Key;
use crate::engine::address::Address;
use crate::engine::listener::Transport;
use crate::engine::run;

/// The sockets of one listener, as a process hands them over.
#[derive(Debug)]
pub struct HandedOver {
    /// The kind of socket.
    pub transport: Transport,
    /// Configured address.
    pub address: Address,
    /// Of several listeners with the same address, such as port 0, which one.
    pub nth: usize,
    /// Bound address.
    pub bound: Address,
    /// Of the sockets, the first that a worker reads; others are kept so that the numbers of those behind them stay.
    pub first: usize,
    /// Number of sockets that workers read.
    pub active: usize,
    /// In the order in which they were bound.
    pub sockets: Vec<OwnedFd>,
    /// The workers of the process, which go on with sessions of datagrams.
    pub workers: usize,
}

/// Links by which another process passes on datagrams of one listener.
#[derive(Debug)]
pub struct RelayLinks {
    /// Where the configuration says that it listens.
    pub address: Address,
    /// Of several listeners with the same address, which one.
    pub nth: usize,
    /// One to each worker, in their order, for each worker of the other process.
    pub links: Vec<OwnedFd>,
}

/// Links for `workers` workers to `before` workers of another process: those of each worker, and the other ends.
pub(super) fn links(
    workers: usize,
    before: usize,
) -> io::Result<(Vec<Vec<OwnedFd>>, Vec<OwnedFd>)> {
    let mut theirs = Vec::with_capacity(workers * before);
    let ours = (0..workers).map(|_| {
        let of_worker = (0..before).map(|_| {
            let (ours, other) = RelayEnd::pair()?;
            theirs.push(other);
            Ok(ours)
        });
        of_worker.collect::<io::Result<Vec<_>>>()
    });
    let ours = ours.collect::<io::Result<_>>()?;
    Ok((ours, theirs))
}

impl HandedOver {
    pub(super) fn is_for(&self, (transport, address, nth): &Key) -> bool {
        self.transport == *transport && self.address == *address && self.nth == *nth
    }
}

/// The sockets of a listener, for as long as the engine has it.
#[derive(Debug)]
pub(super) struct OfferedSockets {
    pub(super) sockets: Vec<OwnedFd>,
    pub(super) first: usize,
    pub(super) active: usize,
}

impl OfferedSockets {
    /// The sockets that another process gets.
    ///
    /// - `workers`: how many there are.
    pub(super) fn handed_over(
        &self,
        key: &Key,
        bound: &Address,
        workers: usize,
    ) -> io::Result<HandedOver> {
        let sockets = self.sockets.iter().map(OwnedFd::try_clone);
        Ok(HandedOver {
            transport: key.0,
            address: key.1.clone(),
            nth: key.2,
            bound: bound.clone(),
            first: self.first,
            active: self.active,
            sockets: sockets.collect::<io::Result<_>>()?,
            workers,
        })
    }
}

/// A socket as a worker reads it; the descriptor stays as it is.
pub(super) fn socket(descriptor: &OwnedFd) -> io::Result<run::Socket> {
    let socket = Socket::from(descriptor.try_clone()?);
    socket.set_nonblocking(true)?;
    let (domain, kind) = (socket.local_addr()?.domain(), socket.r#type()?);
    match (domain, kind) {
        (Domain::UNIX, Type::STREAM) if socket.is_listener()? => {
            Ok(run::Socket::Unix(socket.into()))
        }
        (Domain::IPV4 | Domain::IPV6, Type::STREAM) if socket.is_listener()? => {
            Ok(run::Socket::Tcp(socket.into()))
        }
        (Domain::IPV4 | Domain::IPV6, Type::DGRAM) => Ok(run::Socket::Udp(socket.into())),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the socket that was handed over does not listen",
        )),
    }
}

/// Gives each of `count` workers its sockets: every one has a reader, and every worker at least one.
pub(super) fn spread(descriptors: &[OwnedFd], count: usize) -> io::Result<Vec<Vec<run::Socket>>> {
    let mut workers: Vec<Vec<run::Socket>> = (0..count).map(|_| Vec::new()).collect();
    for number in 0..descriptors.len().max(count) {
        let taken = socket(&descriptors[number % descriptors.len()])?;
        workers[number % count].push(taken);
    }
    Ok(workers)
}
