//! The servers of the gauntlet: threads and sockets of their own, so that nothing of plimsoll judges itself.

pub(super) mod behaviour;
pub(super) mod log;

mod arrival;
mod http1;
mod http2;
mod relay;
mod tls;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use self::behaviour::{Behaviour, Http2Behaviour};
use self::log::{Log, SharedLog};
use self::relay::Relay;
use self::tls::Terminator;
use crate::Failure;

/// What a set-up is served by.
#[derive(Debug, Clone, Copy)]
pub(super) enum Served {
    Http1(Behaviour),
    Http2(Http2Behaviour),
    /// Over TLS, by a relay that holds the server's first bytes back and counts bytes.
    Tls(Behaviour, Duration),
    /// On one address of several: the others refuse connections.
    OneOfTwoAddresses(Behaviour),
    /// On 127.0.0.9 too.
    TwoAddresses(Behaviour),
}

/// A server that runs until the value is dropped.
pub(super) struct Running {
    log: SharedLog,
    is_over: Arc<AtomicBool>,
    address: SocketAddr,
    other_address: Option<SocketAddr>,
    tls: Option<(Relay, Terminator)>,
}

impl Running {
    /// Starts a server on a port of its own.
    ///
    /// - `program`: plimsoll, which ends TLS.
    /// - `folder`: for its configuration.
    pub(super) fn start(served: Served, program: &Path, folder: &Path) -> Result<Self, Failure> {
        let cannot = |error: io::Error| format!("cannot start a server: {error}");
        let listener = TcpListener::bind("127.0.0.1:0").map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let (log, is_over) = (SharedLog::default(), Arc::new(AtomicBool::new(false)));
        let mut running = Self {
            log: log.clone(),
            is_over: Arc::clone(&is_over),
            address,
            other_address: None,
            tls: None,
        };
        if let Served::TwoAddresses(behaviour) = served {
            let other = TcpListener::bind(("127.0.0.9", address.port())).map_err(cannot)?;
            running.other_address = Some(other.local_addr().map_err(cannot)?);
            let (log, is_over) = (log.clone(), Arc::clone(&is_over));
            thread::spawn(move || http1::serve(&other, behaviour, &log, &is_over));
        }
        match served {
            Served::Http2(behaviour) => {
                thread::spawn(move || http2::serve(&listener, behaviour, &log, &is_over));
            }
            Served::Http1(behaviour)
            | Served::OneOfTwoAddresses(behaviour)
            | Served::TwoAddresses(behaviour)
            | Served::Tls(behaviour, _) => {
                thread::spawn(move || http1::serve(&listener, behaviour, &log, &is_over));
            }
        }
        if let Served::Tls(_, hold) = served {
            let terminator = Terminator::start(program, folder, address)?;
            let relay = Relay::start(terminator.address(), hold).map_err(cannot)?;
            running.tls = Some((relay, terminator));
        }
        Ok(running)
    }

    /// What is loaded.
    pub(super) fn url(&self) -> String {
        match &self.tls {
            Some((relay, _)) => format!("https://{}/", relay.address()),
            None => format!("http://{}/", self.address),
        }
    }

    /// The port of the server.
    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Bytes on the wire under TLS: sent by clients, and to them.
    pub(super) fn wire_bytes(&self) -> Option<(u64, u64)> {
        self.tls.as_ref().map(|(relay, _)| relay.bytes())
    }

    /// What was done until now.
    pub(super) fn log(&self) -> Log {
        let mut log = self.log.lock().clone();
        log.entries.sort_by_key(|entry| entry.read);
        log
    }

    /// Whether each request that was read has ended.
    pub(super) fn is_idle(&self) -> bool {
        let log = self.log.lock();
        log.begun == log.entries.len() as u64
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // Wakes the loops that accept. A failure changes nothing here.
        for address in [Some(self.address), self.other_address]
            .into_iter()
            .flatten()
        {
            TcpStream::connect(address).ok();
        }
    }
}
