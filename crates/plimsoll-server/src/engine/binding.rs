//! The sockets of one listener: bound, inherited, or taken over from another process, and spread over the workers.

use std::io;
use std::os::fd::OwnedFd;

use plimsoll_wire::steer_by_connection_id;

use crate::engine::address::Address;
use crate::engine::handover::{HandedOver, OfferedSockets, spread};
use crate::engine::inherited::Inherited;
use crate::engine::listener::{Sockets, Transport};
use crate::engine::plan::ListenerPlan;
use crate::engine::run::Socket;
use crate::engine::unix_socket::UnixFile;

/// The sockets of each worker; none where there are some already.
pub(super) type PerWorker = Vec<Vec<Socket>>;

/// The sockets that another process has handed over for one listener.
pub(super) struct InheritedSockets {
    pub(super) own: Option<HandedOver>,
    pub(super) quic: Option<HandedOver>,
}

/// The sockets of one listener.
pub(super) struct Binding {
    pub(super) address: Address,
    pub(super) sockets: PerWorker,
    pub(super) held: Option<OfferedSockets>,
    pub(super) quic: PerWorker,
    pub(super) quic_held: Option<OfferedSockets>,
    pub(super) file: Option<UnixFile>,
}

/// Ports that are tried where one must be free for both TCP and UDP.
const PORTS_TRIED: usize = 16;

impl Binding {
    /// - `known`: where it listens already.
    /// - `adds_quic`: HTTP/3 is to be spoken there, and is not yet.
    pub(super) fn new(
        listener: &ListenerPlan,
        known: Option<&Address>,
        adds_quic: bool,
        count: usize,
        inherited: &Inherited,
        taken: InheritedSockets,
    ) -> io::Result<Self> {
        let nothing = || (0..count).map(|_| Vec::new()).collect::<PerWorker>();
        let mut binding = Self {
            address: listener.address.clone(),
            sockets: nothing(),
            held: None,
            quic: nothing(),
            quic_held: None,
            file: None,
        };
        let shares = listener.shares_port;
        let is_quic = listener.serves.transport() == Transport::Quic;
        match (known, taken.own, &listener.address) {
            (Some(known), _, _) => binding.address = known.clone(),
            (None, Some(own), _) if is_quic => {
                let no_port = || io::Error::other("QUIC needs a port");
                let port = own.bound.port().ok_or_else(no_port)?;
                // Connections of the other process go on at its sockets, whose numbers must stay.
                let mut sockets = own.sockets;
                let first = sockets.len();
                let (more, _) = Sockets::bind(Transport::Quic, port, count, true)?;
                sockets.extend(more.into_descriptors());
                binding.address = own.bound;
                binding.hold_steered(sockets, first, count)?;
            }
            (None, Some(own), address) => {
                if let Address::Unix(path) = address {
                    binding.file = Some(UnixFile::at(path)?);
                }
                let mut sockets = own.sockets;
                // Two workers with one socket would both have sessions of one client.
                if let (Transport::Udp, Some(port)) = (own.transport, own.bound.port())
                    && sockets.len() < count
                {
                    let missing = count - sockets.len();
                    let (more, _) = Sockets::bind(Transport::Udp, port, missing, true)?;
                    sockets.extend(more.into_descriptors());
                }
                binding.address = own.bound;
                binding.hold(sockets, count)?;
            }
            (None, None, Address::Unix(path)) => {
                let (sockets, file) = Sockets::bind_unix(path, listener.mode, count, shares)?;
                binding.hold(sockets.into_descriptors(), count)?;
                binding.file = Some(file);
            }
            (None, None, Address::Inherited(name)) => {
                let sockets = inherited.take_sockets(name, count)?;
                if let Some(port) = sockets.port() {
                    binding.address = Address::Port(port);
                }
                binding.hold(sockets.into_descriptors(), count)?;
            }
            (None, None, Address::Port(address)) => {
                let mut tried = 0;
                loop {
                    tried += 1;
                    let transport = listener.serves.transport();
                    let (sockets, port) = Sockets::bind(transport, *address, count, shares)?;
                    if adds_quic {
                        match Sockets::bind(Transport::Quic, port, count, shares) {
                            Ok((quic, _)) => {
                                binding.hold_quic(quic.into_descriptors(), 0, count)?;
                            }
                            // Another program has the port of UDP that belongs to the one of TCP.
                            Err(_) if address.port() == 0 && tried < PORTS_TRIED => continue,
                            Err(error) => return Err(error),
                        }
                    }
                    binding.address = Address::Port(port);
                    let sockets = sockets.into_descriptors();
                    if is_quic {
                        binding.hold_steered(sockets, 0, count)?;
                    } else {
                        binding.hold(sockets, count)?;
                    }
                    return Ok(binding);
                }
            }
        }
        if adds_quic {
            let no_port = || io::Error::other("HTTP/3 needs a port");
            let port = binding.address.port().ok_or_else(no_port)?;
            match taken.quic {
                None => {
                    let (quic, _) = Sockets::bind(Transport::Quic, port, count, shares)?;
                    binding.hold_quic(quic.into_descriptors(), 0, count)?;
                }
                Some(taken) => {
                    // Connections of the other process go on at its sockets, whose numbers must stay.
                    let mut sockets = taken.sockets;
                    let first = sockets.len();
                    let (more, _) = Sockets::bind(Transport::Quic, port, count, true)?;
                    sockets.extend(more.into_descriptors());
                    binding.hold_quic(sockets, first, count)?;
                }
            }
        }
        Ok(binding)
    }

    /// Has the workers read these sockets.
    fn hold(&mut self, sockets: Vec<OwnedFd>, count: usize) -> io::Result<()> {
        self.sockets = spread(&sockets, count)?;
        self.held = Some(OfferedSockets {
            first: 0,
            active: sockets.len(),
            sockets,
        });
        Ok(())
    }

    /// Has the workers read `count` of these sockets for HTTP/3 from `first` on.
    fn hold_quic(&mut self, sockets: Vec<OwnedFd>, first: usize, count: usize) -> io::Result<()> {
        let (per_worker, held) = steered(sockets, first, count)?;
        (self.quic, self.quic_held) = (per_worker, Some(held));
        Ok(())
    }

    /// The same where QUIC is all that is spoken.
    fn hold_steered(
        &mut self,
        sockets: Vec<OwnedFd>,
        first: usize,
        count: usize,
    ) -> io::Result<()> {
        let (per_worker, held) = steered(sockets, first, count)?;
        (self.sockets, self.held) = (per_worker, Some(held));
        Ok(())
    }
}

/// Has the workers read `count` of these sockets from `first` on, and the kernel hand them what is theirs.
fn steered(
    sockets: Vec<OwnedFd>,
    first: usize,
    count: usize,
) -> io::Result<(PerWorker, OfferedSockets)> {
    let own = sockets.get(first..first + count).unwrap_or_default();
    let per_worker = spread(own, count)?;
    if let Some(socket) = own.first() {
        steer_by_connection_id(socket, first, count)?;
    }
    let held = OfferedSockets {
        sockets,
        first,
        active: count,
    };
    Ok((per_worker, held))
}
