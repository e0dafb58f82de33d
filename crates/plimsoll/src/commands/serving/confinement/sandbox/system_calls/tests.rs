use std::fs::File;
use std::net::TcpListener;
use std::process::Command;
use std::thread;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, socket};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use seccompiler::apply_filter;

use super::*;

/// Runs `work` on a thread of its own in the filter.
fn filtered<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let confined = scope.spawn(|| {
            for program in &programs().unwrap() {
                apply_filter(program).unwrap();
            }
            work()
        });
        confined.join().unwrap()
    })
}

#[test]
fn what_servers_do_is_permitted() {
    filtered(|| {
        File::open("/etc/passwd").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        drop(listener);
        socket(AddressFamily::UNIX, SocketType::DGRAM, None).unwrap();
        // A C library begins with clone3(2).
        thread::spawn(|| ()).join().unwrap();
    });
}

#[test]
fn programs_namespaces_and_other_protocols_are_refused() {
    filtered(|| {
        let started = Command::new("true").spawn();
        assert_eq!(started.unwrap_err().raw_os_error(), Some(libc::EPERM));
        let packets = socket(AddressFamily::PACKET, SocketType::RAW, None);
        assert_eq!(packets.unwrap_err(), Errno::PERM);
        #[expect(unsafe_code, reason = "the call fails")]
        // SAFETY: the call is refused, so no thread loses its files.
        let apart = unsafe { unshare_unsafe(UnshareFlags::NEWUSER) };
        assert_eq!(apart.unwrap_err(), Errno::PERM);
        let root = rustix::process::chroot("/");
        assert_eq!(root.unwrap_err(), Errno::PERM);
    });
}

#[test]
fn both_programs_are_short_enough_for_the_kernel() {
    /// `BPF_MAXINSNS`.
    const LONGEST: usize = 4096;

    for program in &programs().unwrap() {
        assert!(program.len() < LONGEST, "{}", program.len());
    }
}
