//! Sockets that were opened by the parent process, such as systemd (`sd_listen_fds(3)`).

use std::io;
use std::os::fd::OwnedFd;

use socket2::{Domain, Socket, Type};

use crate::engine::listener::Sockets;

/// Sockets by their names, of which several may be the same.
#[derive(Debug, Default)]
pub struct Inherited {
    sockets: Vec<(String, Socket)>,
}

impl Inherited {
    /// The sockets behind `descriptors`.
    pub fn new(descriptors: impl IntoIterator<Item = (String, OwnedFd)>) -> Self {
        let sockets = descriptors.into_iter();
        Self {
            sockets: sockets
                .map(|(name, descriptor)| (name, Socket::from(descriptor)))
                .collect(),
        }
    }

    /// Their names, in the order in which they were opened.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.sockets.iter().map(|(name, _)| name.as_str())
    }

    /// One socket for each of `count` workers: those of that name in turn, shared if there are fewer.
    pub(crate) fn take_sockets(&self, name: &str, count: usize) -> io::Result<Sockets> {
        let named: Vec<_> = self
            .sockets
            .iter()
            .filter(|(own, _)| own == name)
            .map(|(_, socket)| socket)
            .collect();
        let Some(first) = named.first() else {
            let known: Vec<_> = self.names().collect();
            let known = if known.is_empty() {
                "none was inherited".to_owned()
            } else {
                format!("there are {}", known.join(", "))
            };
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("no socket of that name: {known}"),
            ));
        };
        let (domain, kind) = (domain(first)?, first.r#type()?);
        let mut sockets = Vec::with_capacity(count);
        for socket in named.iter().cycle().take(count) {
            let socket = socket.try_clone()?;
            socket.set_nonblocking(true)?;
            sockets.push(socket);
        }
        let wrong = |text| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        if kind == Type::STREAM && !first.is_listener()? {
            return wrong("the socket is a connection, and does not listen");
        }
        match (domain, kind) {
            (Domain::UNIX, Type::STREAM) => {
                Ok(Sockets::Unix(sockets.into_iter().map(Into::into).collect()))
            }
            (Domain::IPV4 | Domain::IPV6, Type::STREAM) => {
                Ok(Sockets::Tcp(sockets.into_iter().map(Into::into).collect()))
            }
            (Domain::IPV4 | Domain::IPV6, Type::DGRAM) => {
                Ok(Sockets::Udp(sockets.into_iter().map(Into::into).collect()))
            }
            _ => wrong("the socket is neither of TCP, of UDP, nor a stream in the file system"),
        }
    }
}

fn domain(socket: &Socket) -> io::Result<Domain> {
    let address = socket.local_addr()?;
    Ok(address.domain())
}
