//! The protocol of systemd and similar service managers with the programs that they start: sockets that are handed over, and words about
//! how the program does (`sd_listen_fds(3)`, `sd_notify(3)`).

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use plimsoll_wire::{SystemClock, descriptors};

/// Sockets that were handed over, by their names.
///
/// Must be called once, before the program opens anything.
pub(crate) fn inherited() -> io::Result<Vec<(String, OwnedFd)>> {
    let is_for_us = variable("LISTEN_PID").is_some_and(|pid| pid == std::process::id().to_string());
    let count = variable("LISTEN_FDS");
    let count = count
        .and_then(|count| count.parse().ok())
        .filter(|_| is_for_us);
    let names = variable("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':').filter(|name| !name.is_empty());
    let descriptors = descriptors::inherited(count.unwrap_or(0))?;
    let sockets = descriptors.into_iter().map(|descriptor| {
        let name = names.next().unwrap_or("unknown");
        (name.to_owned(), descriptor)
    });
    Ok(sockets.collect())
}

/// Where words about the program go, if anybody wants them.
#[derive(Debug)]
pub(crate) struct ServiceManager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// It must hear of the program so often.
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// The one that started the program.
    pub(crate) fn of_environment() -> Self {
        let watchdog = variable("WATCHDOG_USEC");
        let is_for_us =
            variable("WATCHDOG_PID").is_none_or(|pid| pid == std::process::id().to_string());
        Self {
            socket: variable("NOTIFY_SOCKET").as_deref().and_then(socket),
            watchdog: watchdog
                .and_then(|text| text.parse().ok())
                .filter(|micros| is_for_us && *micros > 0)
                .map(Duration::from_micros),
        }
    }

    /// How often a sign of life should be sent: twice as often as it must.
    pub(crate) fn alive_every(&self) -> Option<Duration> {
        self.socket.as_ref()?;
        self.watchdog.map(|interval| interval / 2)
    }

    /// Serves from now on; says where, too.
    pub(crate) fn ready(&self, status: &str) {
        self.report(&format!("READY=1\nSTATUS={status}"));
    }

    /// Serves in place of the process that the service manager knows.
    pub(crate) fn took_over(&self, status: &str) {
        let pid = std::process::id();
        self.report(&format!("MAINPID={pid}\nREADY=1\nSTATUS={status}"));
    }

    /// Loads its configuration; [`ready`](Self::ready) ends it.
    pub(crate) fn reloading(&self) {
        let now = SystemClock.monotonic().as_micros();
        self.report(&format!("RELOADING=1\nMONOTONIC_USEC={now}"));
    }

    /// Is about to end.
    pub(crate) fn stopping(&self) {
        self.report("STOPPING=1");
    }

    /// Is alive.
    pub(crate) fn alive(&self) {
        self.report("WATCHDOG=1");
    }

    fn report(&self, words: &str) {
        if let Some((socket, address)) = &self.socket {
            // Whether anybody listens is their business.
            socket.send_to_addr(words.as_bytes(), address).ok();
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the binary, and it says so in its manual"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn socket(path: &str) -> Option<(UnixDatagram, SocketAddr)> {
    let address = match path.strip_prefix('@') {
        Some(name) => abstract_address(name),
        None => SocketAddr::from_pathname(path),
    };
    let socket = UnixDatagram::unbound().ok()?;
    // A notice is rather dropped than waited for.
    socket.set_nonblocking(true).ok()?;
    Some((socket, address.ok()?))
}

/// An address that has no place in the file system.
#[cfg(target_os = "linux")]
fn abstract_address(name: &str) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;

    SocketAddr::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn abstract_address(_name: &str) -> io::Result<SocketAddr> {
    Err(io::ErrorKind::Unsupported.into())
}
