//! The sockets of a listener: connections are accepted, admitted, and given to what serves them.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use ipnet::IpNet;
use plimsoll_model::FailureKind;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_local};

use crate::counters::Cut;
use crate::engine::proxied;
use crate::engine::run::Socket;
use crate::message::connection::{Ends, NOWHERE};
use crate::stream::Stream;
use crate::worker::{ConnectionGuard, Worker};

/// Pause after the process ran out of descriptors or memory, so that accepting does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Networks of the proxies of a listener; a reload replaces them.
pub(super) type Proxies = RefCell<Vec<IpNet>>;

/// The sources of connections.
enum Acceptor {
    Tcp {
        listener: TcpListener,
        /// The address of every connection, if it is the same.
        local: Option<SocketAddr>,
    },
    Unix(UnixListener),
}

/// A connection as it was accepted.
pub(super) enum Connected {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Acceptor {
    fn new(socket: Socket) -> io::Result<Self> {
        match socket {
            Socket::Tcp(socket) => {
                let listener = TcpListener::from_std(socket)?;
                let local = listener.local_addr()?;
                let local = Some(local).filter(|local| !local.ip().is_unspecified());
                Ok(Self::Tcp { listener, local })
            }
            Socket::Unix(socket) => UnixListener::from_std(socket).map(Self::Unix),
            Socket::Udp(_) => Err(io::Error::other("the socket takes no connections")),
        }
    }

    async fn accept(&self) -> io::Result<(Connected, Ends)> {
        match self {
            Self::Tcp { listener, local } => {
                let (stream, peer) = listener.accept().await?;
                // A client that is gone already will be noticed when it is read from.
                stream.set_nodelay(true).ok();
                let local = match local {
                    Some(local) => *local,
                    None => stream.local_addr().unwrap_or(NOWHERE),
                };
                Ok((Connected::Tcp(stream), Ends { peer, local }))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let ends = Ends {
                    peer: NOWHERE,
                    local: NOWHERE,
                };
                Ok((Connected::Unix(stream), ends))
            }
        }
    }
}

impl From<Connected> for Stream {
    fn from(connected: Connected) -> Self {
        match connected {
            Connected::Tcp(stream) => Self::tcp(stream),
            Connected::Unix(stream) => Self::unix(stream),
        }
    }
}

/// Accepts connections from each socket.
pub(super) fn accept_all(
    sockets: Vec<Socket>,
    worker: &Rc<Worker>,
    proxies: &Rc<Proxies>,
    stopped: &watch::Receiver<bool>,
    take: impl Fn(Connected, ConnectionGuard, Ends) + 'static,
) -> io::Result<Vec<JoinHandle<()>>> {
    let take = Rc::new(take);
    let listeners = sockets.into_iter().map(Acceptor::new);
    let listeners: Vec<_> = listeners.collect::<io::Result<_>>()?;
    let tasks = listeners.into_iter().map(|listener| {
        let (worker, proxies) = (Rc::clone(worker), Rc::clone(proxies));
        let (stopped, take) = (stopped.clone(), Rc::clone(&take));
        spawn_local(accept(listener, worker, proxies, stopped, take))
    });
    Ok(tasks.collect())
}

/// Accepts connections and gives each to `take`, until it is stopped.
async fn accept(
    listener: Acceptor,
    worker: Rc<Worker>,
    proxies: Rc<Proxies>,
    mut stopped: watch::Receiver<bool>,
    take: Rc<impl Fn(Connected, ConnectionGuard, Ends) + 'static>,
) {
    loop {
        // Connections that wait to be accepted come before the end.
        let accepted = tokio::select! {
            biased;
            accepted = listener.accept() => Some(accepted),
            _ = stopped.changed() => None,
        };
        match accepted {
            None => return,
            Some(Ok((stream, ends))) => {
                let peer = ends.peer;
                let limits = worker.limits();
                let is_proxied = is_within(&proxies.borrow(), peer);
                // Those of a proxy are counted by the client it names; those on this machine have no address.
                let is_local = matches!(stream, Connected::Unix(_));
                let most_of_address = if is_proxied || is_local {
                    usize::MAX
                } else {
                    limits.connections_per_address
                };
                let admitted =
                    worker
                        .admission
                        .admit(peer.ip(), limits.connections, most_of_address);
                match admitted {
                    Ok(()) => {
                        let place = ConnectionGuard::new(Rc::clone(&worker), peer.ip());
                        match stream {
                            Connected::Tcp(stream) if is_proxied => {
                                spawn_local(take_proxied(stream, place, ends, Rc::clone(&take)));
                            }
                            stream => take(stream, place, ends),
                        }
                    }
                    Err(cut) => worker.counters.cut(cut),
                }
            }
            Some(Err(error)) if is_shortage(&error) => {
                worker.counters.cut(Cut::Shortage);
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
            // The client was gone before it was accepted.
            Some(Err(_)) => {}
        }
    }
}

fn is_within(networks: &[IpNet], peer: SocketAddr) -> bool {
    let address = peer.ip().to_canonical();
    networks.iter().any(|network| network.contains(&address))
}

/// Hands a connection on as that of the client its proxy names.
async fn take_proxied(
    mut stream: TcpStream,
    mut place: ConnectionGuard,
    ends: Ends,
    take: Rc<impl Fn(Connected, ConnectionGuard, Ends)>,
) {
    let named = proxied::ends(&mut stream, &place).await;
    let moved = named.and_then(|named| {
        let named = named.map_or(ends, Ends::from);
        if named.peer != ends.peer {
            place.moved(named.peer.ip())?;
        }
        Ok(named)
    });
    match moved {
        Ok(ends) => take(Connected::Tcp(stream), place, ends),
        Err(cut) => place.worker.counters.cut(cut),
    }
}

/// Whether the system will have what it lacks now at another time.
fn is_shortage(error: &io::Error) -> bool {
    FailureKind::from_io(error) == FailureKind::ResourceLimit
}
