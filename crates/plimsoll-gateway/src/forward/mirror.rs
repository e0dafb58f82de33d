//! Copies of requests for another upstream, whose responses are thrown away.
//!
//! A copy never slows the request down: content that the other server does not take in time ends the copy.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use plimsoll_client::forward::Head;
use plimsoll_model::Clock as _;
use plimsoll_server::BodyError;
use plimsoll_wire::SystemClock;
use plimsoll_wire::http::FieldList;

use crate::upstream::{Event, Upstream};

/// Copies at a time on a worker; further requests are not copied.
const MOST_ACTIVE: usize = 256;

/// Content that may wait to be sent.
const MOST_BYTES: usize = 256 * 1024;

/// Destination and share of request copies.
pub(super) struct Mirror {
    upstream: Rc<Upstream>,
    /// Percent of requests.
    share: u32,
    active: Rc<Cell<usize>>,
}

/// The head of a copy.
pub(super) struct CopiedHead {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) authority: Option<String>,
    pub(super) fields: FieldList,
}

impl Mirror {
    pub(super) fn new(upstream: Rc<Upstream>, share: u32) -> Self {
        Self {
            upstream,
            share,
            active: Rc::default(),
        }
    }

    /// Whether the next request is copied.
    pub(super) fn is_due(&self) -> bool {
        if fastrand::u32(..100) >= self.share {
            return false;
        }
        let has_room = self.active.get() < MOST_ACTIVE;
        if !has_room {
            self.upstream.count(Event::DroppedCopy);
        }
        has_room
    }

    /// Sends a copy.
    ///
    /// - `content`: bytes of the content, if they are known; with 0 there is none, and nothing has to be given.
    ///
    /// Returns where to give the content, if there is any.
    pub(super) fn send(&self, head: CopiedHead, content: Option<u64>) -> Option<CopySender> {
        let channel = Rc::new(RefCell::new(Channel {
            is_ended: content == Some(0),
            left: content,
            ..Channel::default()
        }));
        let body = CopiedBody(Rc::clone(&channel));
        let progress = Progress {
            channel: Rc::clone(&channel),
            seen: 0,
        };
        self.active.set(self.active.get() + 1);
        let active = Active(Rc::clone(&self.active));
        let upstream = Rc::clone(&self.upstream);
        tokio::task::spawn_local(async move {
            let _active = active;
            if exchange(&upstream, &head, body, progress).await.is_none() {
                upstream.count(Event::DroppedCopy);
            }
        });
        (content != Some(0)).then_some(CopySender(channel))
    }
}

/// Counts a copy as long as it is under way.
struct Active(Rc<Cell<usize>>);

impl Drop for Active {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

/// Sends the copy and reads the response to its end; nothing if that fails or takes too long.
async fn exchange(
    upstream: &Upstream,
    head: &CopiedHead,
    body: CopiedBody,
    mut progress: Progress,
) -> Option<()> {
    let now = SystemClock.now();
    let server = upstream.choose(0, None, &[], now)?;
    let timeouts = &upstream.plan.options.timeouts;
    let destination = Rc::clone(server.destination());
    let using = server.begin(now);
    let mut responded = pin!(async {
        let lease = destination.acquire().await.ok()?;
        let head = Head {
            authority: head.authority.as_deref(),
            ..Head::new(&head.method, &head.target, &head.fields)
        };
        let mut exchange = lease.begin(&head, body).ok()?;
        let head = exchange.final_head().await.ok()?;
        Some((exchange, head.status))
    });
    // A slow upload is not the server's fault: while content goes on, or is waited for, the time begins anew.
    let responded = loop {
        match tokio::time::timeout(timeouts.response, responded.as_mut()).await {
            Ok(responded) => break responded,
            Err(_) if progress.goes_on() => {}
            Err(_) => break None,
        }
    };
    let Some((mut exchange, status)) = responded else {
        if !progress.is_left() {
            using.failed();
        }
        return None;
    };
    using.responded(status.as_u16(), SystemClock.now());
    loop {
        match tokio::time::timeout(timeouts.idle, exchange.frame()).await {
            Ok(Some(Ok(_))) => {}
            Ok(None) => return Some(()),
            Ok(Some(Err(_))) | Err(_) => return None,
        }
    }
}

#[derive(Debug, Default)]
struct Channel {
    pieces: VecDeque<Bytes>,
    bytes: usize,
    /// Bytes that are still to be read, if they are known.
    left: Option<u64>,
    /// Pieces that went on to the server.
    taken: u64,
    is_ended: bool,
    /// The content came faster than it was taken.
    is_overrun: bool,
    /// The client broke its content off.
    is_left: bool,
    reader: Option<Waker>,
}

/// What has become of the content of a copy.
struct Progress {
    channel: Rc<RefCell<Channel>>,
    seen: u64,
}

impl Progress {
    /// Whether the server took something since this was asked last, or waits for the client.
    fn goes_on(&mut self) -> bool {
        let channel = self.channel.borrow();
        let has_moved = std::mem::replace(&mut self.seen, channel.taken) != channel.taken;
        let awaits_client = channel.reader.is_some() && !channel.is_ended;
        has_moved || awaits_client
    }

    /// Whether the client broke its content off, which is no failure of the server.
    fn is_left(&self) -> bool {
        self.channel.borrow().is_left
    }
}

/// Takes the content of a request for its copy. Dropped before the end it breaks the copy off.
#[derive(Debug)]
pub(super) struct CopySender(Rc<RefCell<Channel>>);

impl CopySender {
    /// Gives a piece of content.
    pub(super) fn push(&self, piece: &Bytes) {
        let mut channel = self.0.borrow_mut();
        if channel.is_overrun {
            return;
        }
        if channel.bytes + piece.len() > MOST_BYTES {
            channel.is_overrun = true;
            channel.pieces.clear();
        } else {
            channel.bytes += piece.len();
            channel.pieces.push_back(piece.clone());
        }
        channel.wake();
    }

    /// All content was given.
    pub(super) fn end(&self) {
        let mut channel = self.0.borrow_mut();
        channel.is_ended = true;
        channel.wake();
    }
}

impl Drop for CopySender {
    fn drop(&mut self) {
        let mut channel = self.0.borrow_mut();
        channel.is_left |= !channel.is_ended;
        channel.wake();
    }
}

impl Channel {
    const fn is_broken(&self) -> bool {
        self.is_overrun || self.is_left
    }

    fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

/// The content of a copy.
struct CopiedBody(Rc<RefCell<Channel>>);

impl Body for CopiedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let mut channel = self.0.borrow_mut();
        if channel.is_broken() {
            return Poll::Ready(Some(Err(BodyError::Closed)));
        }
        if let Some(piece) = channel.pieces.pop_front() {
            channel.bytes -= piece.len();
            channel.taken += 1;
            channel.left = channel.left.map(|left| left - piece.len() as u64);
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if channel.is_ended {
            return Poll::Ready(None);
        }
        channel.reader = Some(context.waker().clone());
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        let channel = self.0.borrow();
        channel.is_ended && channel.pieces.is_empty() && !channel.is_broken()
    }

    fn size_hint(&self) -> SizeHint {
        let left = self.0.borrow().left;
        left.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}
