//! Addresses at which nothing answers, each in its own way.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::{Mutex, PoisonError};

use socket2::{Domain, Socket, Type};

/// An address on the loopback without a listener: connecting is refused.
///
/// A socket that is bound to it, and never listens, keeps the port until the program ends. Otherwise the kernel could give
/// the port to a server of another test, which would then get this test's connections.
pub fn refused_address() -> SocketAddr {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket can be made");
    // A test may start a server there later on: an explicit bind is let in beside it, a bind to port 0 is not.
    socket.set_reuse_address(true).expect("a socket can be set");
    socket
        .bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())
        .expect("a port is free");
    let address = socket.local_addr().ok();
    let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    reserved.push(socket);
    address
        .and_then(|address| address.as_socket())
        .expect("a bound socket has an address")
}

/// Sockets that keep ports from other tests of this program.
static RESERVED: Mutex<Vec<Socket>> = Mutex::new(Vec::new());

/// True if this machine has an IPv6 loopback.
pub fn ipv6_available() -> bool {
    TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok()
}

/// A listener whose backlog is full: the kernel drops every SYN, so connecting takes for ever.
#[derive(Debug)]
pub struct FullBacklog {
    address: SocketAddr,
    _listener: Socket,
    _fill: Vec<Socket>,
}

impl FullBacklog {
    /// On `address` at `port`, which may be 0.
    pub fn bind(address: IpAddr, port: u16) -> Self {
        let wanted = SocketAddr::new(address, port);
        let listener = Socket::new(Domain::for_address(wanted), Type::STREAM, None)
            .expect("a socket can be made");
        listener.bind(&wanted.into()).expect("the address is free");
        listener.listen(0).expect("a bound socket can listen");
        let address = listener
            .local_addr()
            .ok()
            .and_then(|address| address.as_socket())
            .expect("a bound socket has an address");
        // A backlog of 0 takes one connection; the others stay half-open and hold their place.
        let fill = (0..4)
            .map(|_| {
                let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)
                    .expect("a socket can be made");
                socket.set_nonblocking(true).expect("a socket can be set");
                match socket.connect(&address.into()) {
                    Ok(()) => {}
                    Err(error) if error.raw_os_error() == Some(IN_PROGRESS) => {}
                    Err(error) => panic!("connect to {address}: {error}"),
                }
                socket
            })
            .collect();
        Self {
            address,
            _listener: listener,
            _fill: fill,
        }
    }

    /// An address where connecting never ends.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

const IN_PROGRESS: i32 = if cfg!(target_os = "linux") { 115 } else { 36 };
