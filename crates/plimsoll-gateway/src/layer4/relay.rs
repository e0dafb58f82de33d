//! Bytes both ways between a client and a server, until both have ended.
//!
//! A piece is read into memory that all connections of the worker share and written at once, so a connection on which
//! nothing happens holds no buffer. A direction that keeps filling that memory goes through a pipe instead
//! ([`SplicePipe`]). Each direction ends by itself: the end of what one side sends is passed on, and the other direction
//! goes on.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use plimsoll_client::Stream as ServerStream;
use plimsoll_model::Clock as _;
use plimsoll_server::Stream;
use plimsoll_wire::{SplicePipe, SystemClock, poll_recv, poll_send};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use super::figures::{End, WorkerFigures};

/// Bytes that are read at a time.
const PIECE: usize = 64 * 1024;

/// Whole pieces in a row after which a direction is spliced: 1 MiB, so that what is short stays cheap.
const BULK: u32 = 16;

/// Pipes that are kept for the next connection.
const MOST_PIPES: usize = 32;

/// Memory that the connections of a worker share.
#[derive(Debug)]
pub(crate) struct RelayMemory {
    piece: Box<[u8]>,
    pipes: Vec<SplicePipe>,
}

impl RelayMemory {
    pub(crate) fn new() -> RefCell<Self> {
        RefCell::new(Self {
            piece: vec![0; PIECE].into_boxed_slice(),
            pipes: Vec::new(),
        })
    }

    fn pipe(&mut self) -> Option<SplicePipe> {
        // Without a pipe, as when descriptors run out, bytes are copied.
        self.pipes.pop().or_else(|| SplicePipe::new().ok())
    }

    fn give_back(&mut self, pipe: SplicePipe) {
        // One that holds bytes would give them to another connection.
        if pipe.held() == 0 && self.pipes.len() < MOST_PIPES {
            self.pipes.push(pipe);
        }
    }
}

/// One end of a relay.
#[derive(Debug)]
pub(crate) enum Side {
    Tcp(TcpStream),
    /// A client at a socket in the file system, or whose TLS ends here.
    Client(Box<Stream>),
    /// A server that is spoken to over TLS.
    Server(Box<ServerStream>),
}

impl Side {
    fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Self::Tcp(stream) => Some(stream),
            Self::Client(_) | Self::Server(_) => None,
        }
    }

    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => poll_recv(stream, context, buffer),
            Self::Client(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Server(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }

    fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => poll_send(stream, context, bytes),
            Self::Client(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Server(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    /// Ready once nothing is held back.
    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(_) => Poll::Ready(Ok(())),
            Self::Client(stream) => Pin::new(stream).poll_flush(context),
            Self::Server(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Client(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Server(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }

    /// Has the connection reset when it is closed, so that its peer does not take what it has for everything.
    pub(crate) fn reset(&self) {
        if let Self::Tcp(stream) = self {
            stream.set_zero_linger().ok();
        }
    }
}

/// Why a relay ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RelayEnd {
    /// Both sides ended in order, the client first.
    Client,
    /// Both sides ended in order, the server first.
    Server,
    /// The connection to the client broke.
    ClientReset,
    /// The connection to the server broke.
    ServerReset,
    /// Nothing passed for too long.
    Idle,
}

impl From<RelayEnd> for End {
    fn from(end: RelayEnd) -> Self {
        match end {
            RelayEnd::Client => Self::ClientClosed,
            RelayEnd::Server => Self::ServerClosed,
            RelayEnd::ClientReset => Self::ClientReset,
            RelayEnd::ServerReset => Self::ServerReset,
            RelayEnd::Idle => Self::IdleTimeout,
        }
    }
}

/// How far one direction is.
#[derive(Debug, Default)]
struct Direction {
    /// Bytes that were read and not taken yet, from `written` on.
    pending: Vec<u8>,
    written: usize,
    pipe: Option<SplicePipe>,
    /// Whole pieces in a row.
    whole_pieces: u32,
    moved: u64,
    has_ended: bool,
    is_over: bool,
}

/// Which connection an error is of.
enum Broken {
    Source,
    Target,
}

impl Broken {
    /// Which of two ends it comes to.
    fn end(self, source: RelayEnd, target: RelayEnd) -> RelayEnd {
        match self {
            Self::Source => source,
            Self::Target => target,
        }
    }
}

impl Direction {
    /// Moves bytes until one side has to be waited for; ready once the end was passed on.
    fn poll(
        &mut self,
        source: &mut Side,
        target: &mut Side,
        memory: &RefCell<RelayMemory>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Broken>> {
        if self.is_over {
            return Poll::Ready(Ok(()));
        }
        loop {
            ready!(self.poll_drain(target, memory, context)).map_err(|_| Broken::Target)?;
            if self.has_ended {
                // A client that is gone already does not care.
                ready!(target.poll_shutdown(context)).ok();
                self.is_over = true;
                return Poll::Ready(Ok(()));
            }
            let spliced = match (source.tcp(), &mut self.pipe) {
                (Some(source), Some(pipe)) => Some(pipe.poll_fill(source, context)),
                _ => None,
            };
            match spliced {
                Some(Poll::Ready(filled)) => {
                    let filled = filled.map_err(|_| Broken::Source)?;
                    self.moved += filled as u64;
                    self.has_ended = filled == 0;
                }
                Some(Poll::Pending) => {
                    // An idle connection holds no pipe.
                    self.whole_pieces = 0;
                    if let Some(pipe) = self.pipe.take() {
                        memory.borrow_mut().give_back(pipe);
                    }
                    return Poll::Pending;
                }
                None => ready!(self.poll_copy(source, target, memory, context))?,
            }
        }
    }

    /// Reads a piece and writes what the target takes of it at once.
    fn poll_copy(
        &mut self,
        source: &mut Side,
        target: &mut Side,
        memory: &RefCell<RelayMemory>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Broken>> {
        let memory = &mut *memory.borrow_mut();
        let mut buffer = ReadBuf::new(&mut memory.piece);
        if ready!(source.poll_read(context, &mut buffer)).is_err() {
            return Poll::Ready(Err(Broken::Source));
        }
        let read = buffer.filled();
        self.moved += read.len() as u64;
        self.has_ended = read.is_empty();
        let is_whole = read.len() == PIECE;
        let mut rest = read;
        while !rest.is_empty() {
            match target.poll_write(context, rest) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(Broken::Target)),
                Poll::Ready(Ok(count)) => rest = &rest[count..],
                Poll::Pending => {
                    self.pending.extend_from_slice(rest);
                    break;
                }
            }
        }
        self.whole_pieces = if is_whole { self.whole_pieces + 1 } else { 0 };
        if self.whole_pieces >= BULK && source.tcp().is_some() && target.tcp().is_some() {
            self.pipe = memory.pipe();
        }
        Poll::Ready(Ok(()))
    }

    /// Writes what is held back.
    fn poll_drain(
        &mut self,
        target: &mut Side,
        memory: &RefCell<RelayMemory>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while self.written < self.pending.len() {
            let written = ready!(target.poll_write(context, &self.pending[self.written..]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += written;
        }
        if self.written > 0 {
            self.pending = Vec::new();
            self.written = 0;
        }
        ready!(target.poll_flush(context))?;
        if let (Some(pipe), Some(target)) = (&mut self.pipe, target.tcp()) {
            while pipe.held() > 0 {
                ready!(pipe.poll_drain(target, context))?;
            }
        }
        if self.has_ended
            && let Some(pipe) = self.pipe.take()
        {
            memory.borrow_mut().give_back(pipe);
        }
        Poll::Ready(Ok(()))
    }
}

/// A client and a server, and what passes between them.
#[derive(Debug)]
pub(crate) struct Relay {
    client: Side,
    server: Side,
    to_server: Direction,
    to_client: Direction,
    first_end: Option<RelayEnd>,
    memory: Rc<RefCell<RelayMemory>>,
}

impl Relay {
    /// - `first`: bytes that the server gets before those of the client.
    pub(crate) fn new(
        client: Side,
        server: Side,
        first: Vec<u8>,
        memory: Rc<RefCell<RelayMemory>>,
    ) -> Self {
        Self {
            client,
            server,
            to_server: Direction {
                pending: first,
                ..Direction::default()
            },
            to_client: Direction::default(),
            first_end: None,
            memory,
        }
    }

    /// Bytes read from the client, and bytes read from the server.
    pub(crate) fn moved(&self) -> (u64, u64) {
        (self.to_server.moved, self.to_client.moved)
    }

    /// Moves bytes until both directions are over, one breaks, or nothing passes for `idle`.
    ///
    /// - `figures`: where bytes are counted as they pass.
    pub(crate) async fn run(&mut self, idle: Duration, figures: &WorkerFigures) -> RelayEnd {
        let mut last = SystemClock.now();
        let mut moved = self.moved();
        let mut timer = IdleTimer {
            sleep: Box::pin(tokio::time::sleep_until((last + idle).into())),
            is_watched: false,
        };
        let end = poll_fn(|context| {
            let polled = self.poll(context);
            let now_moved = self.moved();
            if now_moved != moved {
                figures.count_bytes(now_moved.0 - moved.0, now_moved.1 - moved.1);
                moved = now_moved;
                last = SystemClock.now();
            }
            if polled.is_ready() {
                return polled;
            }
            timer
                .poll_over(last, idle, context)
                .map(|()| RelayEnd::Idle)
        })
        .await;
        // A side that got less than the other one sent must not take it for everything.
        match end {
            RelayEnd::ClientReset => self.server.reset(),
            RelayEnd::ServerReset => self.client.reset(),
            RelayEnd::Idle => {
                self.client.reset();
                self.server.reset();
            }
            RelayEnd::Client | RelayEnd::Server => {}
        }
        end
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<RelayEnd> {
        let Self {
            client,
            server,
            to_server,
            to_client,
            first_end,
            memory,
        } = self;
        let upward = to_server.poll(client, server, memory, context);
        if let Poll::Ready(Err(broken)) = upward {
            return Poll::Ready(broken.end(RelayEnd::ClientReset, RelayEnd::ServerReset));
        }
        if upward.is_ready() {
            first_end.get_or_insert(RelayEnd::Client);
        }
        let downward = to_client.poll(server, client, memory, context);
        if let Poll::Ready(Err(broken)) = downward {
            return Poll::Ready(broken.end(RelayEnd::ServerReset, RelayEnd::ClientReset));
        }
        if downward.is_ready() {
            first_end.get_or_insert(RelayEnd::Server);
        }
        match first_end {
            Some(end) if upward.is_ready() && downward.is_ready() => Poll::Ready(*end),
            _ => Poll::Pending,
        }
    }
}

/// Is set again only when it fires, so bytes that pass cost no timer.
struct IdleTimer {
    sleep: Pin<Box<Sleep>>,
    /// The task is woken when it fires.
    is_watched: bool,
}

impl IdleTimer {
    /// Ready once nothing has passed for `idle` since `last`.
    fn poll_over(&mut self, last: Instant, idle: Duration, context: &mut Context<'_>) -> Poll<()> {
        while !self.is_watched || self.sleep.is_elapsed() {
            self.is_watched = true;
            ready!(self.sleep.as_mut().poll(context));
            let deadline = last + idle;
            if SystemClock.now() >= deadline {
                return Poll::Ready(());
            }
            self.sleep.as_mut().reset(deadline.into());
            self.is_watched = false;
        }
        Poll::Pending
    }
}
