//! Namespaces by unshare(2), the loopback by rtnetlink(7), settings by proc(5).

use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};
use rustix::process::{getgid, getuid};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::NetworkError;

pub(super) fn enter_own(settings: &[(&str, &str)]) -> Result<(), NetworkError> {
    match unshare(UnshareFlags::NEWNET) {
        Ok(()) => {}
        Err(Errno::PERM) => enter_with_user()?,
        Err(error) => return Err(failed("make a network namespace", error)),
    }
    bring_loopback_up().map_err(|error| failed("bring the loopback interface up", error))?;
    for (name, value) in settings {
        let path = format!("/proc/sys/net/{name}");
        fs::write(&path, value).map_err(|error| failed(&format!("set {path}"), error))?;
    }
    Ok(())
}

/// Number of ports in `ip_local_port_range`; the kernel's default if it cannot be read.
pub(super) fn ephemeral_ports() -> usize {
    const DEFAULT: usize = 28_232;

    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut ends = range
        .split_whitespace()
        .map_while(|end| end.parse::<usize>().ok());
    match (ends.next(), ends.next()) {
        (Some(first), Some(last)) if first <= last => last - first + 1,
        _ => DEFAULT,
    }
}

/// Within a user namespace of its own any process may have a network namespace.
fn enter_with_user() -> Result<(), NetworkError> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNET).map_err(|error| match error {
        Errno::PERM | Errno::ACCESS | Errno::NOSPC => NetworkError::NotPermitted(error.into()),
        error => failed("make a user namespace", error),
    })?;
    // In this order: a group may be mapped only where setgroups(2) is denied (user_namespaces(7)).
    for (file, line) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ] {
        let path = format!("/proc/self/{file}");
        fs::write(&path, line).map_err(|error| failed(&format!("write {path}"), error))?;
    }
    Ok(())
}

fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    #[expect(unsafe_code, reason = "there is no safe way to leave a namespace")]
    // SAFETY: the only flag that is unsafe takes the table of descriptors apart; it is not among them.
    unsafe {
        unshare_unsafe(flags)
    }
}

const RTM_NEWLINK: u16 = 16;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLMSG_ERROR: u16 = 2;
const IFF_UP: u32 = 1;
/// `struct nlmsghdr`.
const HEADER_BYTES: usize = 16;
/// With `struct ifinfomsg` behind it.
const MESSAGE_BYTES: u32 = 32;
/// The loopback is the first interface of every namespace.
const LOOPBACK_INDEX: u32 = 1;

fn bring_loopback_up() -> io::Result<()> {
    // The default protocol of such a socket, 0, is routing.
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let mut message = Vec::new();
    message.extend(MESSAGE_BYTES.to_ne_bytes());
    message.extend(RTM_NEWLINK.to_ne_bytes());
    message.extend((NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
    // Sequence number, port: there is only one request, and the kernel knows whose it is.
    message.extend([0; 8]);
    // Family and type of the device do not matter.
    message.extend([0; 4]);
    message.extend(LOOPBACK_INDEX.to_ne_bytes());
    message.extend(IFF_UP.to_ne_bytes());
    // Which of the flags are to change.
    message.extend(IFF_UP.to_ne_bytes());
    send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0; 1024];
    let (_, length) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
    read_answer(&answer[..length.min(answer.len())])
}

/// The kernel answers with `struct nlmsgerr`: 0, or an error number less than that.
fn read_answer(answer: &[u8]) -> io::Result<()> {
    let kind = answer.get(4..6).and_then(|bytes| bytes.try_into().ok());
    let code = answer
        .get(HEADER_BYTES..HEADER_BYTES + 4)
        .and_then(|bytes| bytes.try_into().ok());
    match (kind.map(u16::from_ne_bytes), code.map(i32::from_ne_bytes)) {
        (Some(NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(NLMSG_ERROR), Some(code)) => Err(io::Error::from_raw_os_error(code.saturating_neg())),
        _ => Err(io::Error::other("the kernel's answer is not one")),
    }
}

fn failed(step: &str, source: impl Into<io::Error>) -> NetworkError {
    NetworkError::Failed {
        step: step.to_owned(),
        source: source.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::thread;

    use super::*;

    #[test]
    fn a_thread_gets_a_network_of_its_own() {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let outside = port.local_addr().unwrap();
        let entered = thread::spawn(move || {
            let entered = enter_own(&[("ipv4/ip_local_port_range", "10000 65535")]);
            if let Err(error) = entered {
                return Some(error);
            }
            assert_eq!(ephemeral_ports(), 55_536);
            // Listeners outside cannot be reached, and every loopback address can be bound.
            assert!(TcpStream::connect(outside).is_err());
            let inside = TcpListener::bind((Ipv4Addr::new(127, 3, 2, 1), 0)).unwrap();
            assert!(TcpStream::connect(inside.local_addr().unwrap()).is_ok());
            None
        });
        // A thread of several may have no user namespace of its own, so this needs privileges.
        match entered.join().unwrap() {
            None => {}
            Some(NetworkError::NotPermitted(_)) => assert!(!getuid().is_root()),
            Some(NetworkError::Failed { step, .. }) => {
                assert!(
                    !getuid().is_root() && step.contains("user namespace"),
                    "{step}"
                );
            }
            Some(NetworkError::Unsupported) => panic!("Linux has them"),
        }
    }

    #[test]
    fn an_answer_is_read_whatever_it_is() {
        let mut answer = [0_u8; 36];
        answer[4..6].copy_from_slice(&NLMSG_ERROR.to_ne_bytes());
        assert!(read_answer(&answer).is_ok());
        answer[16..20].copy_from_slice(&(-1_i32).to_ne_bytes());
        assert_eq!(read_answer(&answer).unwrap_err().raw_os_error(), Some(1));
        assert!(read_answer(&answer[..18]).is_err());
        assert!(read_answer(&[]).is_err());
        answer[16..20].copy_from_slice(&i32::MIN.to_ne_bytes());
        assert!(read_answer(&answer).is_err());
    }
}
