//! The least that a relay of datagrams can cost: `udp_relay PORT UPSTREAM_PORT`.
//!
//! One thread and a socket to the upstream for each client. Each system call receives several datagrams (recvmmsg, GRO), and
//! datagrams of one length that came behind each other leave by one (GSO). No balancers, limits, sweeps or counters.

use std::cell::RefCell;
use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::rc::Rc;

use plimsoll_wire::{DatagramBuffer, DatagramSocket};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, LocalOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "usage: udp_relay PORT UPSTREAM_PORT";
    let port =
        |at: usize| -> Result<u16, Box<dyn Error>> { Ok(arguments.get(at).ok_or(usage)?.parse()?) };
    let (port, upstream) = (port(0)?, port(1)?);
    let runtime = Builder::new_current_thread()
        .enable_io()
        .build_local(LocalOptions::default())?;
    runtime.block_on(relay(
        port,
        SocketAddr::from((Ipv4Addr::LOCALHOST, upstream)),
    ))?;
    Ok(())
}

async fn relay(port: u16, upstream: SocketAddr) -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, port))?;
    let front = Rc::new(DatagramSocket::new(socket)?);
    tokio::task::spawn_local(show_ready(
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?,
    ));
    let buffer = Rc::new(RefCell::new(DatagramBuffer::default()));
    let mut backs: HashMap<SocketAddr, Rc<DatagramSocket>> = HashMap::new();
    loop {
        front.readable().await?;
        let mut run = Run::default();
        let received = front.try_receive(&mut buffer.borrow_mut(), |path, bytes| {
            let back = backs.entry(path.peer).or_insert_with(|| {
                let opened =
                    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).and_then(DatagramSocket::new);
                let back = Rc::new(opened.expect("a socket for each client"));
                let (front, buffer) = (Rc::clone(&front), Rc::clone(&buffer));
                tokio::task::spawn_local(answer(Rc::clone(&back), front, path.peer, buffer));
                back
            });
            if !run.takes(path.peer, bytes) {
                run.send(upstream);
                run.begin(path.peer, Rc::clone(back));
            }
            run.add(bytes);
        });
        run.send(upstream);
        match received {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
    }
}

/// Answers who wants to know whether it runs, by TCP at the same port.
async fn show_ready(listener: TcpListener) {
    const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut request = [0; 4096];
        if stream.read(&mut request).await.is_ok() {
            stream.write_all(RESPONSE).await.ok();
        }
    }
}

/// Passes on what the upstream sends to one client.
async fn answer(
    back: Rc<DatagramSocket>,
    front: Rc<DatagramSocket>,
    client: SocketAddr,
    buffer: Rc<RefCell<DatagramBuffer>>,
) {
    while back.readable().await.is_ok() {
        let mut run = Run::default();
        back.try_receive(&mut buffer.borrow_mut(), |_, bytes| {
            if !run.takes(client, bytes) {
                run.send(client);
                run.begin(client, Rc::clone(&front));
            }
            run.add(bytes);
        })
        .ok();
        run.send(client);
    }
}

/// Datagrams of one length behind each other, of which the last may be shorter.
#[derive(Default)]
struct Run {
    by: Option<(SocketAddr, Rc<DatagramSocket>)>,
    bytes: Vec<u8>,
    segment: usize,
    count: usize,
    is_over: bool,
}

impl Run {
    fn takes(&self, of: SocketAddr, bytes: &[u8]) -> bool {
        let Some((peer, socket)) = &self.by else {
            return false;
        };
        *peer == of
            && !self.is_over
            && bytes.len() <= self.segment
            && self.count < socket.most_segments()
            && self.bytes.len() + bytes.len() <= 60_000
    }

    fn begin(&mut self, of: SocketAddr, socket: Rc<DatagramSocket>) {
        *self = Self {
            by: Some((of, socket)),
            ..Self::default()
        };
    }

    fn add(&mut self, bytes: &[u8]) {
        if self.count == 0 {
            self.segment = bytes.len();
        }
        self.is_over = bytes.len() < self.segment;
        self.count += 1;
        self.bytes.extend_from_slice(bytes);
    }

    /// What the system does not take is lost, as on any network.
    fn send(&mut self, to: SocketAddr) {
        if let Some((_, socket)) = self.by.take() {
            let segment = (self.count > 1).then_some(self.segment);
            socket.try_send(to, None, None, &self.bytes, segment).ok();
        }
    }
}
