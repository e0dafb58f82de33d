//! Counts the input of an HTTP/3 connection before the `h3` crate sees it: streams that are reset, frames that
//! bring nothing, frames that are too long.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use h3::error::Code;
use plimsoll_model::Clock;

use crate::counters::{Cut, ResetSide};
use crate::limits::Http3Limits;
use crate::protocol::http3::transport::StreamState;
use crate::worker::ConnectionGuard;

/// The length of a counting window, approximately.
const WINDOW: Duration = Duration::from_secs(10);

/// Frames of unknown types that come with each request: clients send priorities in them (RFC 9218, section 7.2).
const EMPTY_PER_REQUEST: u32 = 2;

/// Reports of the streams of a connection.
pub(super) struct Tap {
    place: Rc<ConnectionGuard>,
    limits: Http3Limits,
    counts: Cell<Counts>,
    tripped: Cell<Option<(Cut, Code)>>,
    /// Streams from this one on are rejected.
    first_rejected: Cell<u64>,
    /// The stream that was accepted last, until it is taken.
    accepted: RefCell<Option<Rc<StreamState>>>,
    /// The stream that would come next.
    next: Cell<u64>,
    /// Streams that ended before they brought a head.
    headless: Cell<usize>,
}

/// Counts since `begun`.
#[derive(Debug, Clone, Copy)]
struct Counts {
    begun: Instant,
    requests: u32,
    resets: u32,
    empty: u32,
}

impl Counts {
    fn since(begun: Instant) -> Self {
        Self {
            begun,
            requests: 0,
            resets: 0,
            empty: 0,
        }
    }
}

impl Tap {
    pub(super) fn new(place: Rc<ConnectionGuard>) -> Self {
        Self {
            limits: place.worker.limits().http3,
            counts: Cell::new(Counts::since(place.worker.clock.now())),
            tripped: Cell::new(None),
            first_rejected: Cell::new(u64::MAX),
            accepted: RefCell::new(None),
            next: Cell::new(0),
            headless: Cell::new(0),
            place,
        }
    }

    /// Why the client is given up, and the code it gets, if it is.
    pub(super) fn tripped(&self) -> Option<(Cut, Code)> {
        self.tripped.get()
    }

    /// The limits of the connection.
    pub(super) fn limits(&self) -> &Http3Limits {
        &self.limits
    }

    /// The stream that would come next.
    pub(super) fn next_stream(&self) -> u64 {
        self.next.get()
    }

    /// Streams that ended before they brought a head.
    pub(super) fn headless(&self) -> usize {
        self.headless.get()
    }

    /// A stream ended before it brought a head.
    pub(super) fn was_headless(&self) {
        self.headless.set(self.headless.get() + 1);
    }

    /// Rejects what is not begun yet: GOAWAY announced that.
    pub(super) fn reject_new(&self) {
        self.first_rejected.set(self.next.get());
    }

    /// The state of the stream that was accepted last.
    pub(super) fn take_accepted(&self) -> Option<Rc<StreamState>> {
        self.accepted.take()
    }

    /// A stream came; whether it is to be served.
    pub(super) fn began(&self, id: u64, stream: &Rc<StreamState>) -> bool {
        if id >= self.first_rejected.get() {
            return false;
        }
        // They come in their order (RFC 9000, section 2.1), each by four.
        self.next.set(id + 4);
        self.accepted.replace(Some(Rc::clone(stream)));
        let mut counts = self.counts.get();
        counts.requests = counts.requests.saturating_add(1);
        self.counts.set(counts);
        true
    }

    /// The client took a request back, or wants no more of its response.
    pub(super) fn was_reset(&self) {
        self.place.worker.counters.http3_reset(ResetSide::Received);
        self.count_reset();
    }

    /// A stream had to be reset for a mistake of the client.
    pub(super) fn provoked(&self) {
        self.place.worker.counters.http3_reset(ResetSide::Provoked);
        self.count_reset();
    }

    fn count_reset(&self) {
        let mut counts = self.counts.get();
        counts.resets += 1;
        let is_too_many = counts.resets > self.limits.resets;
        self.counted(counts, is_too_many, Cut::Http3Resets);
    }

    /// So many frames came that bring nothing.
    pub(super) fn empty(&self, frames: u32) {
        if frames == 0 {
            return;
        }
        let mut counts = self.counts.get();
        counts.empty = counts.empty.saturating_add(frames);
        let usual = counts.requests.saturating_mul(EMPTY_PER_REQUEST);
        let is_too_many = counts.empty > self.limits.empty_frames.saturating_add(usual);
        self.counted(counts, is_too_many, Cut::Http3EmptyFrames);
    }

    fn counted(&self, counts: Counts, is_too_many: bool, cut: Cut) {
        self.counts.set(counts);
        if !is_too_many {
            return;
        }
        let now = self.place.worker.clock.now();
        if now < counts.begun + WINDOW {
            self.trip(cut, Code::H3_EXCESSIVE_LOAD);
        } else {
            self.counts.set(Counts::since(now));
        }
    }

    /// Gives the client up.
    pub(super) fn trip(&self, cut: Cut, code: Code) {
        if self.tripped.get().is_none() {
            self.tripped.set(Some((cut, code)));
            self.place.wake();
        }
    }
}
