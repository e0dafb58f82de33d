//! The content of a request until an action takes it, and notes about the request.

use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::counters::RouteTag;
use crate::message::body::{BodySender, RequestBody, WithheldTrailers};
use crate::message::interim::Interims;

/// The content of a request until an action takes it, and what is noted about the request.
#[derive(Debug, Default)]
pub(crate) struct Content {
    pub(crate) source: RefCell<ContentSource>,
    /// Its announced length in bytes; 0 without content.
    pub(super) length: Option<u64>,
    pub(super) notes: RefCell<Notes>,
    /// That of the same request, kept to be answered later: what is noted there holds.
    pub(super) kept: OnceCell<Rc<Content>>,
    pub(super) interims: OnceCell<Rc<Interims>>,
    /// Trailers that no reader of the content gets.
    pub(super) withheld: RefCell<WithheldTrailers>,
    pub(crate) held: RefCell<Held>,
}

/// Values that are kept until the response to a request is sent or its client is gone.
pub(crate) type Held = Vec<Box<dyn Any>>;

#[derive(Debug, Default)]
pub(crate) enum ContentSource {
    /// No content, or it was taken.
    #[default]
    None,
    /// It is still on the connection; so many bytes, if that is known.
    Unread(Option<u64>),
    /// It was taken, and the connection must hand it over.
    Taken(BodySender),
    /// That of a request that is kept.
    Kept(RequestBody),
}

/// Notes about a request by the actions that handle it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notes {
    /// The route that answers.
    pub(crate) route: Option<Rc<RouteTag>>,
    /// The request's name in logs.
    pub(crate) request_id: Option<Rc<str>>,
    /// The trace that it is a part of.
    pub(crate) trace: Option<TraceNote>,
    /// The user, by its credentials.
    pub(crate) user: Option<Rc<str>>,
    /// What is proved about the user.
    pub(crate) claims: Option<Rc<dyn ProvedClaims>>,
    /// Upstream of the request.
    pub(crate) upstream: Option<UpstreamNote>,
    /// Path and query as the client sent them, where another path has been put in their place.
    pub(crate) sent_target: Option<Rc<str>>,
    /// Routes and paths that it was led to after the first.
    pub(crate) led: Vec<Arc<str>>,
    /// Its content, where a layer has read it ahead.
    pub(crate) content: Option<Bytes>,
    /// Its content, while guards check the request of which one is enough.
    pub(crate) apart: Option<Rc<ContentApart>>,
}

/// The content of a request whose guards each get it without, since one of several is to let it pass.
#[derive(Debug)]
pub(crate) struct ContentApart {
    pub(super) source: RefCell<ContentSource>,
    pub(super) is_admitted: Cell<bool>,
}

impl ContentApart {
    /// Whether the request has got it back.
    pub(crate) fn is_admitted(&self) -> bool {
        self.is_admitted.get()
    }
}

/// What a token or a session proves about the sender of a request, by the names of its claims.
pub trait ProvedClaims: fmt::Debug {
    /// Appends the value of a claim as it may stand in a header field; false if there is none.
    fn write(&self, name: &str, out: &mut Vec<u8>) -> bool;
}

/// The trace that a request is a part of (W3C Trace Context).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceNote {
    /// The trace.
    pub trace: u128,
    /// The span of this server, which is the parent of those further in.
    pub span: u64,
    /// The span of the client, if the trace is the client's.
    pub parent: Option<u64>,
    /// Whether it is to be recorded.
    pub is_sampled: bool,
}

/// Upstream and server of a forwarded request, for the access log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamNote {
    /// The name of the upstream.
    pub upstream: Arc<str>,
    /// The server that was tried last.
    pub server: Arc<str>,
    /// Number of attempts.
    pub attempts: u32,
    /// Name lookup, connection and handshake, if a connection was opened for the last attempt.
    pub connect: Option<Duration>,
    /// From the start of the last attempt to the head of its response, if there was one.
    pub head: Option<Duration>,
}

impl Content {
    /// That of a request without any.
    pub(crate) fn none() -> Self {
        Self {
            length: Some(0),
            ..Self::default()
        }
    }

    /// Content that is still on the connection.
    ///
    /// - `length`: bytes of it, if that is announced.
    pub(crate) fn unread(length: Option<u64>) -> Self {
        Self {
            source: RefCell::new(ContentSource::Unread(length)),
            length,
            ..Self::default()
        }
    }

    /// That of the same request where it was kept last: what is noted there holds.
    #[inline]
    pub(super) fn latest(&self) -> &Self {
        let mut latest = self;
        while let Some(kept) = latest.kept.get() {
            latest = kept;
        }
        latest
    }

    /// Queue of interim responses, if the action may send some.
    #[inline]
    pub(crate) fn interims(&self) -> Option<&Rc<Interims>> {
        self.latest().interims.get()
    }

    /// The same, made on first use.
    pub(crate) fn make_interims(&self) -> &Rc<Interims> {
        self.latest().interims.get_or_init(Rc::default)
    }

    /// The notes so far.
    pub(crate) fn notes(&self) -> Notes {
        self.latest().notes.borrow().clone()
    }

    /// The name of the route that answers; can be taken once.
    #[inline]
    pub(crate) fn take_route(&self) -> Option<Rc<RouteTag>> {
        self.latest().notes.borrow_mut().route.take()
    }

    /// None, for the same request: with what is noted about it.
    pub(super) fn continued(&self) -> Self {
        Self {
            source: RefCell::default(),
            length: Some(0),
            notes: self.notes.clone(),
            kept: OnceCell::new(),
            interims: self.interims.clone(),
            withheld: RefCell::default(),
            held: RefCell::default(),
        }
    }

    /// That of the same request, if it is kept to be answered later.
    pub(crate) fn kept(&self) -> Option<Rc<Self>> {
        self.kept.get().cloned()
    }
}
