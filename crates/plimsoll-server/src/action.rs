//! The seam of HTTP: what answers requests.

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;

use plimsoll_wire::h1::RequestError;

use crate::message::request::Request;

use crate::message::response::Response;
use crate::stream::Stream;
use crate::version::Version;
use crate::worker::context::WorkerContext;
use crate::worker::drain::DrainSignal;

/// Answers requests; made anew on each worker, so it need be neither `Send` nor `Sync`.
pub trait Action {
    /// The answer to `request`, at once or later.
    ///
    /// Must not block: other connections of the worker wait.
    fn handle(&self, request: &Request<'_>) -> Answer;

    /// The methods it takes, as a value of `allow`; `None` if it takes any.
    fn methods(&self) -> Option<&'static str> {
        None
    }

    /// Called for a request that was refused before it was complete. Only the outermost action of a
    /// listener gets this call, for its log.
    fn refused(&self, _refusal: &Refusal) {}
}

/// A request that could not be read, or must not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The sender.
    pub peer: SocketAddr,
    /// The version of HTTP that it came by, so far as that is known.
    pub version: Version,
    /// Why, and what is answered.
    pub error: RequestError,
}

/// The answer of an action.
pub enum Answer {
    /// It can be sent now.
    Now(Outcome),
    /// It has to be waited for; dropped if the client goes away first. Over HTTP/1 a departure shows by reading, so it is
    /// not noticed while the action has taken the content and lets 64 KiB of it lie.
    Later(LocalFuture<Outcome>),
}

/// A future that stays on its worker.
pub type LocalFuture<T> = Pin<Box<dyn Future<Output = T>>>;

/// The outcome of a request.
pub enum Outcome {
    /// A response; the connection goes on.
    Respond(Response),
    /// `101 Switching Protocols` with the fields of this response, `upgrade` among them, then the stream is
    /// the function's.
    ///
    /// Only where the request has an upgrade. Over HTTP/2 and HTTP/3 that is an extended CONNECT (RFC 8441, RFC 9220),
    /// which is answered with 200. Otherwise the client gets 501, over HTTP/2 and HTTP/3 with the advice to use HTTP/1.1.
    Upgrade(Response, TakeOver),
    /// The stream is the function's at once, without a response: for CONNECT tunnels and faults.
    Raw(TakeOver),
}

/// Takes a connection over; what was read beyond the request comes first from the stream. The signal begins when the
/// engine drains: the connection should then end in order.
pub type TakeOver = Box<dyn FnOnce(Stream, DrainSignal) -> LocalFuture<()>>;

impl Answer {
    /// A response that can be sent now.
    pub fn now(response: impl Into<Response>) -> Self {
        Self::Now(Outcome::Respond(response.into()))
    }

    /// A response that has to be waited for.
    pub fn later(response: impl Future<Output = Response> + 'static) -> Self {
        Self::Later(Box::pin(async { Outcome::Respond(response.await) }))
    }
}

impl Answer {
    /// The same with every response, that of an upgrade too, changed by `change`.
    #[must_use]
    pub fn map(self, change: impl FnOnce(Response) -> Response + 'static) -> Self {
        let change = |outcome| match outcome {
            Outcome::Respond(response) => Outcome::Respond(change(response)),
            Outcome::Upgrade(response, take_over) => Outcome::Upgrade(change(response), take_over),
            Outcome::Raw(take_over) => Outcome::Raw(take_over),
        };
        match self {
            Self::Now(outcome) => Self::Now(change(outcome)),
            Self::Later(later) => Self::Later(Box::pin(async move { change(later.await) })),
        }
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(outcome) => f.debug_tuple("Now").field(outcome).finish(),
            Self::Later(_) => f.write_str("Later"),
        }
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Respond(response) => f.debug_tuple("Respond").field(response).finish(),
            Self::Upgrade(response, _) => f.debug_tuple("Upgrade").field(response).finish(),
            Self::Raw(_) => f.write_str("Raw"),
        }
    }
}

/// Makes one action for each worker; called on the worker, once for each generation of the configuration.
pub type MakeAction = dyn Fn(&WorkerContext) -> Rc<dyn Action> + Send + Sync;
