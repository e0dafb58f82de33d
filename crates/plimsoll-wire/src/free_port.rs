//! Ports for programs that cannot choose one and say which: found here, then handed over in their arguments.
//!
//! It needs the standard library only, as tasks of development use the same file.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::net::{TcpListener, UdpSocket};

/// Ports that the system gives to no socket by itself unless configured (`net.ipv4.ip_local_port_range` begins at 32768): a
/// connection, or a server that binds port 0, does not take one before the program listens.
const UNASSIGNED: std::ops::Range<u16> = 20_000..32_768;

/// Random ports that are tried before the system chooses one.
const TRIES: usize = 100;

/// A port of the loopback that is free for TCP and for UDP, and stays so until this value is dropped.
#[derive(Debug)]
pub struct FreePort {
    number: u16,
    _tcp: TcpListener,
    _udp: UdpSocket,
}

impl FreePort {
    /// A random one, so that two processes that look at the same time find different ones.
    ///
    /// # Errors
    ///
    /// The system's, if it has none either.
    pub fn find() -> io::Result<Self> {
        let random = (0..TRIES).find_map(|_| Self::hold(random_port()).ok());
        random.map_or_else(|| Self::hold(0), Ok)
    }

    fn hold(port: u16) -> io::Result<Self> {
        let tcp = TcpListener::bind(("127.0.0.1", port))?;
        let number = tcp.local_addr()?.port();
        Ok(Self {
            number,
            _tcp: tcp,
            _udp: UdpSocket::bind(("127.0.0.1", number))?,
        })
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }
}

/// A port that is free until another process takes it.
///
/// # Errors
///
/// As [`FreePort::find`].
pub fn free_port() -> io::Result<u16> {
    Ok(FreePort::find()?.number())
}

/// Ports that differ, each free until another process takes it.
///
/// # Errors
///
/// As [`FreePort::find`].
pub fn free_ports<const N: usize>() -> io::Result<[u16; N]> {
    // All are held until the last one is found.
    let held: Vec<FreePort> = (0..N).map(|_| FreePort::find()).collect::<Result<_, _>>()?;
    Ok(std::array::from_fn(|index| held[index].number()))
}

fn random_port() -> u16 {
    let random = RandomState::new().build_hasher().finish();
    let offset = random % u64::from(UNASSIGNED.end - UNASSIGNED.start);
    UNASSIGNED.start + u16::try_from(offset).expect("is less than the number of ports")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_free_for_tcp_and_udp_until_it_is_dropped() {
        let held = FreePort::find().unwrap();
        let port = held.number();
        assert!(UNASSIGNED.contains(&port));
        assert!(TcpListener::bind(("127.0.0.1", port)).is_err());
        assert!(UdpSocket::bind(("127.0.0.1", port)).is_err());
        drop(held);
        assert!(TcpListener::bind(("127.0.0.1", port)).is_ok());
    }

    #[test]
    fn ports_found_together_differ() {
        let [one, other] = free_ports().unwrap();
        assert_ne!(one, other);
    }
}
