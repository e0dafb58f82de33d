//! Which of the sockets that share a UDP port gets a datagram of QUIC.
//!
//! The kernel chooses by the addresses of both ends. A client whose address changes (RFC 9000, section 9) would
//! reach another socket, whose owner knows nothing of its connection; so connection IDs begin with the number of
//! the socket, and the kernel looks at that.

use std::io;
use std::net::UdpSocket;

/// Bytes at the beginning of a connection ID that hold the number of its socket, the most significant first.
pub const SOCKET_NUMBER_BYTES: usize = 2;

/// Has datagrams of established connections of QUIC go to the socket whose number their connection ID begins with,
/// counted from 0 in the order in which the sockets that share the port were bound.
///
/// Other datagrams, and those whose number no socket has, go where they would have gone. Called once, on any of the
/// sockets; does nothing but on Linux.
pub fn steer_by_connection_id(socket: &UdpSocket) -> io::Result<()> {
    system::steer(socket)
}

#[cfg(target_os = "linux")]
mod system {
    use std::io;
    use std::mem::size_of_val;
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;

    use libc::{
        BPF_ABS, BPF_B, BPF_H, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, SO_ATTACH_REUSEPORT_CBPF,
        SOL_SOCKET, c_void, sock_filter, sock_fprog, socklen_t,
    };

    /// No socket has it.
    const NONE: u32 = u32::MAX;

    /// The bit of the first byte that long headers have, whose connection IDs the client may have chosen (RFC 9000,
    /// section 17.2).
    const LONG_HEADER: u32 = 0x80;

    /// What returns the register that values are loaded to.
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

    pub(super) fn steer(socket: &UdpSocket) -> io::Result<()> {
        // Offsets are those within the payload of the datagram.
        let mut program = [
            instruction(BPF_LD | BPF_B | BPF_ABS, 0, 0, 0),
            instruction(BPF_JMP | BPF_JSET | BPF_K, 2, 0, LONG_HEADER),
            instruction(BPF_LD | BPF_H | BPF_ABS, 0, 0, 1),
            instruction(BPF_RET | BPF_A, 0, 0, 0),
            instruction(BPF_RET | BPF_K, 0, 0, NONE),
        ];
        let program = sock_fprog {
            len: 5,
            filter: program.as_mut_ptr(),
        };
        let length = socklen_t::try_from(size_of_val(&program)).map_err(io::Error::other)?;
        #[expect(unsafe_code, reason = "no crate has a safe way to set this option")]
        // SAFETY: the descriptor is that of a socket that is borrowed; the kernel copies the program, which is as
        // long as it says, before the call returns.
        let result = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
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
    use std::net::UdpSocket;

    #[expect(clippy::unnecessary_wraps, reason = "it can fail on Linux")]
    pub(super) fn steer(_socket: &UdpSocket) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::Ipv4Addr;
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
        steer_by_connection_id(&sockets[0]).unwrap();
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
    }
}
