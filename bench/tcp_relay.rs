//! The least that a relay of TCP on epoll can cost: `tcp_relay PORT UPSTREAM_PORT [splice]`.
//!
//! One thread, a task and an upstream connection per client; each direction reads into memory that all share and writes it at
//! once, or with `splice` passes a pipe. No routes, balancers, timeouts, counters or log.

use std::cell::RefCell;
use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::net::Ipv4Addr;
use std::task::{Context, Poll, ready};

use plimsoll_wire::{SplicePipe, keep_from_pacing, poll_recv, poll_send};
use socket2::SockRef;
use tokio::io::{AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions};

thread_local! {
    static PIECE: RefCell<Vec<u8>> = RefCell::new(vec![0; 64 * 1024]);
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "usage: tcp_relay PORT UPSTREAM_PORT [splice]";
    let port =
        |at: usize| -> Result<u16, Box<dyn Error>> { Ok(arguments.get(at).ok_or(usage)?.parse()?) };
    let (port, upstream) = (port(0)?, port(1)?);
    let splices = arguments.get(2).is_some_and(|it| it == "splice");
    let runtime = Builder::new_current_thread()
        .enable_io()
        .build_local(LocalOptions::default())?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        keep_from_pacing(&SockRef::from(&listener));
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::task::spawn_local(async move { drop(relay(stream, upstream, splices).await) });
        }
    })
}

async fn relay(mut client: TcpStream, upstream: u16, splices: bool) -> io::Result<()> {
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, upstream)).await?;
    keep_from_pacing(&SockRef::from(&server));
    server.set_nodelay(true)?;
    let new = || Direction::new(splices);
    let (mut up, mut down) = (new()?, new()?);
    poll_fn(|context| {
        let up = up.poll(&client, &server, context)?;
        let down = down.poll(&server, &client, context)?;
        // Drivers close whole connections.
        if up.is_ready() || down.is_ready() {
            return Poll::Ready(io::Result::Ok(()));
        }
        Poll::Pending
    })
    .await?;
    client.shutdown().await?;
    server.shutdown().await
}

struct Direction {
    pending: Vec<u8>,
    pipe: Option<SplicePipe>,
}

impl Direction {
    fn new(splices: bool) -> io::Result<Self> {
        Ok(Self {
            pending: Vec::new(),
            pipe: splices.then(SplicePipe::new).transpose()?,
        })
    }

    /// Ready at the end of what `source` sends.
    fn poll(
        &mut self,
        source: &TcpStream,
        target: &TcpStream,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if let Some(pipe) = &mut self.pipe {
                while pipe.held() > 0 {
                    ready!(pipe.poll_drain(target, context))?;
                }
                if ready!(pipe.poll_fill(source, context))? == 0 {
                    return Poll::Ready(Ok(()));
                }
                continue;
            }
            while !self.pending.is_empty() {
                let written = ready!(poll_send(target, context, &self.pending))?;
                self.pending.drain(..written);
            }
            let read = PIECE.with_borrow_mut(|piece| {
                let mut buffer = ReadBuf::new(piece);
                ready!(poll_recv(source, context, &mut buffer))?;
                let mut rest = buffer.filled();
                let read = rest.len();
                while !rest.is_empty() {
                    match poll_send(target, context, rest)? {
                        Poll::Ready(written) => rest = &rest[written..],
                        Poll::Pending => {
                            self.pending.extend_from_slice(rest);
                            break;
                        }
                    }
                }
                Poll::Ready(io::Result::Ok(read))
            });
            if ready!(read)? == 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}
