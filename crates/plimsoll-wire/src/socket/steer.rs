//! Which of the sockets that share a UDP port gets a datagram of QUIC.
//!
//! The kernel chooses by the addresses of both ends. A client whose address changes (RFC 9000, section 9) would
//! reach another socket, whose owner knows nothing of its connection; so connection IDs begin with the number of
//! the socket, and the kernel looks at that.

use std::io;
use std::os::fd::AsRawFd;

/// Bytes at the beginning of a connection ID that hold the number of its socket, the most significant first.
pub const SOCKET_NUMBER_BYTES: usize = 2;

/// Bytes of such a connection ID.
pub const NUMBERED_ID_BYTES: usize = SOCKET_NUMBER_BYTES + 8;

/// Has datagrams of established connections of QUIC go to the socket whose number their connection ID begins with,
/// counted from 0 in the order in which the sockets that share the port were bound.
///
/// Those that begin a connection go to one of `count` sockets from `first` on, if there are others; else they go where they
/// would have gone, as do those whose number no socket has. The last call on any of the sockets counts; does nothing but
/// on Linux.
///
/// - `first`: sockets before it belong to another process, which has its connections go on and begins none.
pub fn steer_by_connection_id(socket: &impl AsRawFd, first: usize, count: usize) -> io::Result<()> {
    system::steer(socket.as_raw_fd(), first, count)
}

#[cfg(target_os = "linux")]
mod system {
    use std::io;
    use std::mem::size_of_val;
    use std::os::fd::RawFd;

    use libc::{
        BPF_ABS, BPF_ADD, BPF_ALU, BPF_B, BPF_H, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD,
        BPF_MOD, BPF_RET, SO_ATTACH_REUSEPORT_CBPF, SOL_SOCKET, c_void, sock_filter, sock_fprog,
        socklen_t,
    };

    /// No socket has it.
    const NONE: u32 = u32::MAX;

    /// The bit of the first byte that long headers have, whose connection IDs the client may have chosen (RFC 9000,
    /// section 17.2).
    const LONG_HEADER: u32 = 0x80;

    /// Returns the register that values are loaded to.
    const BPF_A: u32 = 0x10;

    const fn instruction(code: u32, if_so: u8, if_not: u8, operand: u32) -> sock_filter {
        sock_filter {
            #[expect(clippy::cast_possible_truncation, reason = "codes have 16 bits")]
            code: code as u16,
            jt: if_so,
            jf: if_not,
            k: operand,
        }
    }

    /// Offset of the connection ID's length in a long header; the ID follows (RFC 8999, section 5.1).
    const ID_LENGTH: u32 = 5;

    /// Bytes of the connection IDs that begin with a number.
    #[expect(clippy::cast_possible_truncation, reason = "there are few")]
    const NUMBERED: u32 = crate::NUMBERED_ID_BYTES as u32;

    pub(crate) fn steer(socket: RawFd, first: usize, count: usize) -> io::Result<()> {
        let [first, count] = [first, count].map(|it| u32::try_from(it).unwrap_or(u32::MAX));
        // Offsets are those within the payload of the datagram.
        let alone = [
            instruction(BPF_LD | BPF_B | BPF_ABS, 0, 0, 0),
            instruction(BPF_JMP | BPF_JSET | BPF_K, 2, 0, LONG_HEADER),
            instruction(BPF_LD | BPF_H | BPF_ABS, 0, 0, 1),
            instruction(BPF_RET | BPF_A, 0, 0, 0),
            instruction(BPF_RET | BPF_K, 0, 0, NONE),
        ];
        let beside_others = [
            instruction(BPF_LD | BPF_B | BPF_ABS, 0, 0, 0),
            instruction(BPF_JMP | BPF_JSET | BPF_K, 2, 0, LONG_HEADER),
            instruction(BPF_LD | BPF_H | BPF_ABS, 0, 0, 1),
            instruction(BPF_RET | BPF_A, 0, 0, 0),
            // A handshake that has begun goes on by the ID that the server chose.
            instruction(BPF_LD | BPF_B | BPF_ABS, 0, 0, ID_LENGTH),
            instruction(BPF_JMP | BPF_JEQ | BPF_K, 0, 2, NUMBERED),
            instruction(BPF_LD | BPF_H | BPF_ABS, 0, 0, ID_LENGTH + 1),
            instruction(BPF_RET | BPF_A, 0, 0, 0),
            // A new one by the ID that the client chose.
            instruction(BPF_LD | BPF_B | BPF_ABS, 0, 0, ID_LENGTH + 1),
            instruction(BPF_ALU | BPF_MOD | BPF_K, 0, 0, count.max(1)),
            instruction(BPF_ALU | BPF_ADD | BPF_K, 0, 0, first),
            instruction(BPF_RET | BPF_A, 0, 0, 0),
        ];
        let mut instructions = if first == 0 {
            alone.to_vec()
        } else {
            beside_others.to_vec()
        };
        let program = sock_fprog {
            len: u16::try_from(instructions.len()).map_err(io::Error::other)?,
            filter: instructions.as_mut_ptr(),
        };
        let length = socklen_t::try_from(size_of_val(&program)).map_err(io::Error::other)?;
        #[expect(unsafe_code, reason = "no crate has a safe way to set this option")]
        // SAFETY: the descriptor is that of a socket that is borrowed; the kernel copies the program, which is as
        // long as it says, before the call returns.
        let result = unsafe {
            libc::setsockopt(
                socket,
                SOL_SOCKET,
                SO_ATTACH_REUSEPORT_CBPF,
                std::ptr::from_ref(&program).cast::<c_void>(),
                length,
            )
        };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;
    use std::os::fd::RawFd;

    #[expect(clippy::unnecessary_wraps, reason = "it can fail on Linux")]
    pub(crate) fn steer(_socket: RawFd, _first: usize, _count: usize) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};
    use std::time::Duration;

    use socket2::{Domain, Socket, Type};

    use super::*;

    #[test]
    fn the_number_in_the_connection_id_chooses_the_socket() {
        let mut port = 0;
        let sockets: Vec<UdpSocket> = (0..4)
            .map(|_| {
                let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
                socket.set_reuse_port(true).unwrap();
                let address = (Ipv4Addr::LOCALHOST, port).into();
                socket
                    .bind(&std::net::SocketAddr::to_owned(&address).into())
                    .unwrap();
                let socket = UdpSocket::from(socket);
                socket
                    .set_read_timeout(Some(Duration::from_secs(20)))
                    .unwrap();
                port = socket.local_addr().unwrap().port();
                socket
            })
            .collect();
        steer_by_connection_id(&sockets[0], 0, 4).unwrap();
        // Each client would be sent to one socket by its address.
        for _ in 0..4 {
            let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            for (number, socket) in (0..4).zip(&sockets) {
                let datagram = [0x40, 0, number, 0xff, 0xff];
                client
                    .send_to(&datagram, (Ipv4Addr::LOCALHOST, port))
                    .unwrap();
                let mut buffer = [0; 16];
                let length = socket.recv(&mut buffer).unwrap();
                assert_eq!(buffer[..length], datagram);
            }
        }
        // What no socket has, and what begins a connection, arrives somewhere.
        for datagram in [[0x40, 9, 9], [0xc0, 0, 0]] {
            let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            client
                .send_to(&datagram, (Ipv4Addr::LOCALHOST, port))
                .unwrap();
            plimsoll_testkit::eventually(|| {
                sockets.iter().any(|socket| {
                    socket.set_nonblocking(true).unwrap();
                    socket.recv(&mut [0; 16]).is_ok()
                })
            });
        }
        // Another process begins connections at the last two, and those of the first two go on.
        steer_by_connection_id(&sockets[2], 2, 2).unwrap();
        for number in 0..8_u8 {
            let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let begins = [0xc0, 0, 0, 0, 1, 8, number, 0, 0];
            let goes_on = [0xe0, 0, 0, 0, 1, 10, 0, number % 4, 0];
            for (datagram, socket) in [(begins, 2 + number % 2), (goes_on, number % 4)] {
                client
                    .send_to(&datagram, (Ipv4Addr::LOCALHOST, port))
                    .unwrap();
                let socket = &sockets[usize::from(socket)];
                socket.set_nonblocking(false).unwrap();
                let mut buffer = [0; 16];
                let length = socket.recv(&mut buffer).unwrap();
                assert_eq!(buffer[..length], datagram);
            }
        }
    }
}
