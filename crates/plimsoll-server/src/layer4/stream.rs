//! Handlers of whole connections, chosen by their first bytes.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use plimsoll_model::Clock;
use tokio::io::{AsyncRead, ReadBuf};

use crate::action::LocalFuture;
use crate::counters::Cut;
use crate::message::connection::ConnectionInfo;
use crate::stream::Stream;
use crate::worker::ConnectionGuard;
use crate::worker::context::WorkerContext;
use crate::worker::drain::DrainSignal;
use crate::worker::timer::Timer;

/// Takes connections that are not HTTP.
pub trait StreamHandler {
    /// Decides what serves a connection. Called at once, before anything is read, and again each time more has come, for
    /// as long as it [needs more](Inspection::NeedMore).
    ///
    /// A protocol in which the server speaks first is decided without any bytes. Must not block.
    fn inspect(&self, first: FirstBytes<'_>) -> Inspection;
}

/// The first bytes of a connection, so far.
#[derive(Debug, Clone, Copy)]
pub struct FirstBytes<'a> {
    /// All bytes from the first on.
    pub bytes: &'a [u8],
    /// No more can be waited for: the limit is reached, the time is over, or the client has sent its last byte. The
    /// connection is closed if they are not enough.
    pub is_final: bool,
    /// The connection.
    pub connection: &'a ConnectionInfo,
}

/// The decision about a connection.
pub enum Inspection {
    /// More bytes are needed.
    NeedMore,
    /// It is served so; its stream begins with the first byte, whatever was looked at.
    Decided(ServeStream),
    /// It is closed.
    Rejected,
}

/// Serves one connection until the future ends, which closes it.
pub type ServeStream = Box<dyn FnOnce(Accepted) -> LocalFuture<()>>;

impl fmt::Debug for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NeedMore => "NeedMore",
            Self::Decided(_) => "Decided",
            Self::Rejected => "Rejected",
        })
    }
}

/// A connection as it was accepted.
#[derive(Debug)]
pub struct Accepted {
    /// Its bytes from the first on.
    pub stream: Stream,
    /// Both addresses and its number.
    pub connection: Rc<ConnectionInfo>,
    /// Begins when the engine drains: the connection should then end in order.
    pub drain: DrainSignal,
}

/// Makes one handler for each worker; called on the worker, once for each generation of the configuration.
pub type MakeStreamHandler = dyn Fn(&WorkerContext) -> Rc<dyn StreamHandler> + Send + Sync;

/// Bytes that a handler may look at.
const MOST_FIRST_BYTES: usize = 64 * 1024;

/// Serves one connection.
pub(crate) async fn serve_stream(
    handler: Rc<dyn StreamHandler>,
    stream: Stream,
    place: ConnectionGuard,
    connection: Rc<ConnectionInfo>,
) {
    let mut first = Inspecting {
        stream,
        bytes: Vec::new(),
        connection,
    };
    match first.decide(&*handler, &place).await {
        Ok(serve) => {
            let timeout = place.worker.limits().write_timeout;
            let stream = first.stream.with_read_ahead(first.bytes);
            let serving = serve(Accepted {
                stream: stream.with_write_timeout(timeout),
                connection: first.connection,
                drain: place.worker.drain.clone(),
            });
            serving.await;
        }
        Err(Some(cut)) => place.worker.counters.cut(cut),
        Err(None) => {}
    }
    drop(place);
}

/// A connection of which it is not decided what serves it.
struct Inspecting {
    stream: Stream,
    bytes: Vec<u8>,
    connection: Rc<ConnectionInfo>,
}

/// The outcome of waiting for more bytes.
enum Waited {
    Read,
    /// The client has sent its last byte.
    End,
    Late,
    /// Nothing has come, and the engine drains.
    Drained,
}

impl Inspecting {
    /// The handler of the connection, or why it is closed.
    async fn decide(
        &mut self,
        handler: &dyn StreamHandler,
        place: &ConnectionGuard,
    ) -> Result<ServeStream, Option<Cut>> {
        let worker = &place.worker;
        let deadline = worker.clock.now() + worker.limits().header_timeout;
        let mut timer = None;
        let mut last = None;
        loop {
            let inspection = handler.inspect(FirstBytes {
                bytes: &self.bytes,
                is_final: last.is_some(),
                connection: &self.connection,
            });
            match (inspection, last) {
                (Inspection::Decided(serve), _) => return Ok(serve),
                (Inspection::Rejected, _) => return Err(None),
                (Inspection::NeedMore, Some(cut)) => return Err(cut),
                (Inspection::NeedMore, None) => {}
            }
            let timer = timer.get_or_insert_with(|| Timer::new(deadline));
            let waited = poll_fn(|cx| {
                place.watch(cx.waker());
                if let Poll::Ready(waited) = self.poll_read(cx, place) {
                    return Poll::Ready(waited);
                }
                if self.bytes.is_empty() && worker.draining().is_some() {
                    return Poll::Ready(Waited::Drained);
                }
                timer
                    .poll_passed(cx, deadline, &worker.clock)
                    .map(|()| Waited::Late)
            });
            last = match waited.await {
                Waited::Read if self.bytes.len() < MOST_FIRST_BYTES => None,
                Waited::Read => Some(Some(Cut::FirstBytes)),
                // A client that breaks off concerns only itself.
                Waited::End => Some(None),
                Waited::Late => Some(Some(Cut::HeaderTimeout)),
                Waited::Drained => return Err(None),
            };
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, place: &ConnectionGuard) -> Poll<Waited> {
        let memory = &mut *place.worker.memory.borrow_mut();
        let room = MOST_FIRST_BYTES - self.bytes.len();
        let room = room.min(memory.input.len());
        let mut buffer = ReadBuf::new(&mut memory.input[..room]);
        Pin::new(&mut self.stream)
            .poll_read(cx, &mut buffer)
            .map(|read| {
                self.bytes.extend_from_slice(buffer.filled());
                if read.is_ok() && !buffer.filled().is_empty() {
                    Waited::Read
                } else {
                    Waited::End
                }
            })
    }
}
