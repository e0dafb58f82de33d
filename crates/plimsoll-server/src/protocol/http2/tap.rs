//! The frame tap: what lies between the socket and the `h2` crate, looks at the headers of frames as they
//! pass, and counts those that cost the server more than the client.
//!
//! Counts are per connection. Nothing is copied, and the clock is read only when a count reaches its
//! limit: what was counted over more than [`WINDOW`] is forgotten then. A connection that trips the tap
//! reads nothing more; [`TapState::tripped`] says why.

pub(crate) mod frames;

mod sections;

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use plimsoll_model::Clock;
use plimsoll_wire::SystemClock;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use self::frames::{FrameHeader, Frames};
use self::sections::Sections;
use crate::counters::{Cut, ResetSide};
use crate::limits::FloodLimits;
use crate::stream::Stream;
use crate::worker::ConnectionGuard;

/// The length of a counting window, approximately.
const WINDOW: Duration = Duration::from_secs(10);

/// The length of the connection preface (RFC 9113, section 3.4).
const PREFACE_BYTES: usize = 24;

/// Bytes written for which a client may send one more `WINDOW_UPDATE`, or one more PING: those that belong
/// to what it is sent are no flood.
const BYTES_PER_WINDOW_UPDATE: u64 = 8;
const BYTES_PER_PING: u64 = 64;

/// PRIORITY frames that come with each request.
const PRIORITIES_PER_REQUEST: u32 = 2;

/// Bytes to read before closing, so that a reset does not take the last frames with it.
const LINGER_BYTES: usize = 1 << 20;
const LINGER_PIECE: usize = 8 * 1024;

/// A stream that is looked at.
pub(super) struct Tap {
    stream: Stream,
    state: Rc<TapState>,
    incoming: Frames,
    outgoing: Frames,
    sections: Sections,
    counts: Counts,
    /// CONTINUATION frames of the header block that is under way.
    continuations: u32,
    lingered: usize,
    is_shut: bool,
}

/// State that the connection and its tap share.
pub(super) struct TapState {
    place: Rc<ConnectionGuard>,
    limits: FloodLimits,
    tripped: Cell<Option<Cut>>,
    /// Why the `h2` crate gave the client up.
    given_up: Cell<Option<Cut>>,
    /// Since when the socket takes nothing.
    blocked: Cell<Option<Instant>>,
    /// Since when nothing but the client's end is waited for.
    lingering: Cell<Option<Instant>>,
    /// The client has sent its last byte, or knows that it should.
    is_expected_to_end: Cell<bool>,
    /// Streams whose pseudo-fields break the rules.
    malformed: RefCell<Vec<u32>>,
}

/// Counts since `begun`.
#[derive(Debug, Clone, Copy)]
struct Counts {
    begun: Instant,
    written: u64,
    requests: u32,
    pings: u32,
    settings: u32,
    empty_data: u32,
    window_updates: u32,
    priorities: u32,
    resets: u32,
}

impl Counts {
    fn since(begun: Instant) -> Self {
        Self {
            begun,
            written: 0,
            requests: 0,
            pings: 0,
            settings: 0,
            empty_data: 0,
            window_updates: 0,
            priorities: 0,
            resets: 0,
        }
    }
}

impl TapState {
    /// Why the client is given up, if it is.
    pub(super) fn tripped(&self) -> Option<Cut> {
        self.tripped.get()
    }

    /// Why the `h2` crate gave the client up, as far as it is known.
    pub(super) fn given_up(&self) -> Option<Cut> {
        self.given_up.get()
    }

    /// Since when the socket takes nothing.
    pub(super) fn blocked(&self) -> Option<Instant> {
        self.blocked.get()
    }

    /// Since when nothing but the client's end is waited for.
    pub(super) fn lingering(&self) -> Option<Instant> {
        self.lingering.get()
    }

    /// Whether a stream has pseudo-fields that break the rules, which the `h2` crate passes over.
    pub(super) fn is_malformed(&self, stream: u32) -> bool {
        self.malformed.borrow().contains(&stream)
    }

    fn is_malformed_at(&self, stream: u32) {
        let mut malformed = self.malformed.borrow_mut();
        malformed.push(stream);
        if malformed.len() > self.place.worker.limits().http2.provoked_resets {
            self.tripped.set(Some(Cut::Http2ProvokedResets));
        }
    }

    /// The client got GOAWAY.
    pub(super) fn expect_end(&self) {
        self.is_expected_to_end.set(true);
    }
}

impl Tap {
    /// - `now`: when the connection begins.
    pub(super) fn new(
        stream: Stream,
        place: Rc<ConnectionGuard>,
        now: Instant,
    ) -> (Self, Rc<TapState>) {
        let limits = place.worker.limits().http2.floods;
        let state = Rc::new(TapState {
            place,
            limits,
            tripped: Cell::new(None),
            given_up: Cell::new(None),
            blocked: Cell::new(None),
            lingering: Cell::new(None),
            is_expected_to_end: Cell::new(false),
            malformed: RefCell::default(),
        });
        let tap = Self {
            stream,
            state: Rc::clone(&state),
            incoming: Frames::after(PREFACE_BYTES),
            outgoing: Frames::after(0),
            sections: Sections::default(),
            counts: Counts::since(now),
            continuations: 0,
            lingered: 0,
            is_shut: false,
        };
        (tap, state)
    }

    /// Looks at what came.
    #[inline]
    fn read(&mut self, bytes: &[u8]) {
        let Self {
            incoming,
            sections,
            counts,
            continuations,
            state,
            ..
        } = self;
        if let Some(stream) = sections.went_on(bytes) {
            state.is_malformed_at(stream);
        }
        incoming.scan(bytes, |frame, rest| {
            if let Some(stream) = sections.began(frame, rest) {
                state.is_malformed_at(stream);
            }
            if let Some(cut) = count(frame, counts, continuations, state) {
                state.tripped.set(Some(cut));
            }
        });
    }

    /// Looks at what went out.
    #[inline]
    fn wrote(&mut self, bytes: &[u8]) {
        let state = &self.state;
        self.counts.written += bytes.len() as u64;
        self.outgoing.scan(bytes, |frame, rest| match frame.kind {
            frames::RST_STREAM if is_mistake(rest) => {
                state.place.worker.counters.reset(ResetSide::Provoked);
            }
            frames::GOAWAY => {
                let payload = rest.get(..frame.length).unwrap_or_default();
                state.given_up.set(given_up(payload));
            }
            _ => {}
        });
    }
}

/// Counts a frame that came; says if that is too much.
#[inline]
fn count(
    frame: FrameHeader,
    counts: &mut Counts,
    continuations: &mut u32,
    state: &TapState,
) -> Option<Cut> {
    let limits = &state.limits;
    // Data and requests come first: they are the usual case.
    let (is_too_many, cut) = match frame.kind {
        frames::HEADERS => {
            counts.requests = counts.requests.saturating_add(1);
            *continuations = 0;
            return None;
        }
        frames::DATA if frame.length > 0 || frame.flags & frames::END_STREAM != 0 => return None,
        frames::DATA => {
            counts.empty_data += 1;
            (counts.empty_data > limits.empty_data, Cut::Http2EmptyData)
        }
        // Frames of unknown types, such as PRIORITY_UPDATE (RFC 9218, section 7.1), are read over, and cost as much.
        frames::PRIORITY | frames::UNKNOWN.. => {
            counts.priorities += 1;
            let usual = counts.requests.saturating_mul(PRIORITIES_PER_REQUEST);
            let most = limits.priorities.saturating_add(usual);
            (counts.priorities > most, Cut::Http2Priorities)
        }
        frames::RST_STREAM => {
            state.place.worker.counters.reset(ResetSide::Received);
            counts.resets += 1;
            (counts.resets > limits.resets, Cut::Http2Resets)
        }
        frames::SETTINGS => {
            counts.settings += 1;
            (counts.settings > limits.settings, Cut::Http2Settings)
        }
        frames::PING => {
            counts.pings += 1;
            let earned = counts.written / BYTES_PER_PING;
            let most = u64::from(limits.pings).saturating_add(earned);
            (u64::from(counts.pings) > most, Cut::Http2Pings)
        }
        frames::WINDOW_UPDATE => {
            counts.window_updates += 1;
            let earned = counts.written / BYTES_PER_WINDOW_UPDATE;
            let most = u64::from(limits.window_updates).saturating_add(earned);
            let is_too_many = u64::from(counts.window_updates) > most;
            (is_too_many, Cut::Http2WindowUpdates)
        }
        frames::CONTINUATION => {
            *continuations += 1;
            let is_too_many = *continuations > limits.continuations;
            return is_too_many.then_some(Cut::Http2Continuations);
        }
        _ => return None,
    };
    if !is_too_many {
        return None;
    }
    let now = SystemClock.now();
    if now < counts.begun + WINDOW {
        return Some(cut);
    }
    *counts = Counts::since(now);
    None
}

/// Whether a stream was reset for a mistake of the client, by the code.
fn is_mistake(payload: &[u8]) -> bool {
    // PROTOCOL_ERROR, FLOW_CONTROL_ERROR, STREAM_CLOSED, FRAME_SIZE_ERROR, COMPRESSION_ERROR,
    // ENHANCE_YOUR_CALM.
    const MISTAKES: [u32; 6] = [0x1, 0x3, 0x5, 0x6, 0x9, 0xb];
    let code = payload.first_chunk().map(|code| u32::from_be_bytes(*code));
    code.is_some_and(|code| MISTAKES.contains(&code))
}

/// The reason that the `h2` crate gives with its GOAWAY.
fn given_up(payload: &[u8]) -> Option<Cut> {
    match payload.get(8..)? {
        b"too_many_resets" => Some(Cut::Http2Resets),
        b"too_many_internal_resets" => Some(Cut::Http2ProvokedResets),
        b"too_many_continuations" => Some(Cut::Http2Continuations),
        b"too_many_data_frames" => Some(Cut::Http2EmptyData),
        b"header_list_way_too_large" => Some(Cut::Http2HeaderList),
        _ => None,
    }
}

impl AsyncRead for Tap {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.state.tripped.get().is_some() {
            // The caller looks at the state next.
            return Poll::Pending;
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        let read = &buf.filled()[before..];
        if read.is_empty() {
            this.state.expect_end();
        }
        this.read(read);
        if this.state.tripped.get().is_some() {
            // Not one frame of it is to cost anything.
            buf.set_filled(before);
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Tap {
    #[inline]
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.stream).poll_write(cx, buf);
        this.state.note(&result);
        if let Poll::Ready(Ok(written)) = &result {
            this.wrote(&buf[..*written]);
        }
        result
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.stream).poll_write_vectored(cx, bufs);
        this.state.note(&result);
        if let Poll::Ready(Ok(written)) = &result {
            let mut left = *written;
            for buf in bufs {
                let taken = left.min(buf.len());
                this.wrote(&buf[..taken]);
                left -= taken;
            }
        }
        result
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    /// Of a client that goes on sending, what it sends is read and thrown away, so that it comes to read
    /// why the connection ends.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.is_shut {
            ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
            this.is_shut = true;
        }
        if this.state.is_expected_to_end.get() && this.state.tripped.get().is_none() {
            return Poll::Ready(Ok(()));
        }
        if this.state.lingering.get().is_none() {
            this.state.lingering.set(Some(SystemClock.now()));
        }
        let mut piece = [0; LINGER_PIECE];
        while this.lingered < LINGER_BYTES {
            let mut buffer = ReadBuf::new(&mut piece);
            ready!(Pin::new(&mut this.stream).poll_read(cx, &mut buffer))?;
            if buffer.filled().is_empty() {
                break;
            }
            this.lingered += buffer.filled().len();
        }
        Poll::Ready(Ok(()))
    }
}

impl TapState {
    #[inline]
    fn note<T>(&self, written: &Poll<T>) {
        match (written, self.blocked.get()) {
            (Poll::Ready(_), None) | (Poll::Pending, Some(_)) => {}
            (Poll::Ready(_), Some(_)) => self.blocked.set(None),
            (Poll::Pending, None) => self.blocked.set(Some(SystemClock.now())),
        }
    }
}
