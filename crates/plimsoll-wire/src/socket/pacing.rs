//! Pacing of TCP connections that do not leave the machine.

use socket2::SockRef;

/// Keeps `socket` from pacing what it sends, if the system's congestion control would: BBR does
/// (draft-ietf-ccwg-bbr, section 5.6.2).
///
/// For a socket of the loopback, before it connects or accepts; what a listener accepts has what the
/// listener has. There is nothing on a loopback to be careful of, and each pause is a timer: a file of
/// 10 MB costs its sender three times as much.
///
/// Where the kernel refuses, the system's choice stays.
pub fn keep_from_pacing(socket: &SockRef<'_>) {
    #[cfg(target_os = "linux")]
    if is_paced(socket) {
        // Reno is in every kernel and permitted to everybody (tcp(7)).
        socket.set_tcp_congestion(b"reno").ok();
    }
    #[cfg(not(target_os = "linux"))]
    let _ = socket;
}

#[cfg(target_os = "linux")]
fn is_paced(socket: &SockRef<'_>) -> bool {
    socket
        .tcp_congestion()
        .is_ok_and(|name| name.starts_with(b"bbr"))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn only_bbr_is_replaced_and_what_is_accepted_has_the_same() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let socket = SockRef::from(&listener);
        // Which ones a kernel has differs; those that it lacks or keeps for root cannot be tested.
        for (name, kept) in [("reno", true), ("cubic", true), ("bbr", false)] {
            match socket.set_tcp_congestion(name.as_bytes()) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::PermissionDenied => continue,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => panic!("{name}: {error}"),
            }
            keep_from_pacing(&socket);
            let has = String::from_utf8(socket.tcp_congestion().unwrap()).unwrap();
            let has = has.trim_end_matches('\0');
            assert_eq!(has, if kept { name } else { "reno" });
            let _client = TcpStream::connect(address).unwrap();
            let (accepted, _) = listener.accept().unwrap();
            let inherited = SockRef::from(&accepted).tcp_congestion().unwrap();
            assert!(inherited.starts_with(has.as_bytes()));
        }
    }
}
