//! A relay of TCP that counts bytes and holds the first ones of the server back.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::clock::wait;

/// A relay that runs until the value is dropped.
pub(super) struct Relay {
    address: SocketAddr,
    counters: Arc<Counters>,
}

#[derive(Default)]
struct Counters {
    to_server: AtomicU64,
    to_client: AtomicU64,
    is_over: AtomicBool,
}

impl Relay {
    /// - `hold`: how long the first bytes of the server are held back on each connection.
    pub(super) fn start(server: SocketAddr, hold: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let counters = Arc::new(Counters::default());
        let shared = Arc::clone(&counters);
        thread::spawn(move || {
            for client in listener.incoming() {
                if shared.is_over.load(Ordering::Acquire) {
                    return;
                }
                if let Ok(client) = client {
                    let counters = Arc::clone(&shared);
                    // A connection that breaks has ended.
                    thread::spawn(move || relay(&client, server, hold, &counters).ok());
                }
            }
        });
        Ok(Self { address, counters })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Bytes sent to the server, and to the client.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let Counters {
            to_server,
            to_client,
            ..
        } = &*self.counters;
        (
            to_server.load(Ordering::Acquire),
            to_client.load(Ordering::Acquire),
        )
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.counters.is_over.store(true, Ordering::Release);
        // Wakes the loop that accepts. A failure changes nothing here.
        TcpStream::connect(self.address).ok();
    }
}

fn relay(
    client: &TcpStream,
    server: SocketAddr,
    hold: Duration,
    counters: &Arc<Counters>,
) -> io::Result<()> {
    let upstream = TcpStream::connect(server)?;
    client.set_nodelay(true)?;
    upstream.set_nodelay(true)?;
    let (from, to) = (client.try_clone()?, upstream.try_clone()?);
    let shared = Arc::clone(counters);
    thread::spawn(move || copy(&from, &to, Duration::ZERO, &shared.to_server).ok());
    copy(&upstream, client, hold, &counters.to_client)
}

/// Copies until one side ends, and then ends the other.
fn copy(
    mut from: &TcpStream,
    mut to: &TcpStream,
    hold: Duration,
    counter: &AtomicU64,
) -> io::Result<()> {
    let mut buffer = [0; 16 * 1024];
    let mut hold = hold;
    loop {
        let read = from.read(&mut buffer).unwrap_or(0);
        if read == 0 {
            return to.shutdown(Shutdown::Write);
        }
        wait(std::mem::take(&mut hold));
        counter.fetch_add(read as u64, Ordering::AcqRel);
        to.write_all(&buffer[..read])?;
    }
}
