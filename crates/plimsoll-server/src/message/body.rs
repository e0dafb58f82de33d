//! The content of a request on its way from the connection to its reader.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName};
use http_body::{Body, Frame, SizeHint};
use plimsoll_wire::http::{may_be_trailer, retain_trailers};

use crate::counters::WorkerCounters;

/// The content of one request, in pieces.
///
/// It stays on its worker and has no lock. Once 64 KiB lie in it nothing more is read from the client, so there is never
/// more than that and one read. Trailer fields are its last frame.
#[derive(Debug)]
pub struct RequestBody {
    /// Content that was read ahead, before that of the source.
    ahead: VecDeque<Bytes>,
    /// Trailers that came behind that.
    trailers: Option<HeaderMap>,
    source: Source,
    withheld: WithheldTrailers,
}

/// Trailers that the reader of a body does not get: the fields of their names are not the client's to set, and servers that
/// merge trailers into a head must not find them there.
#[derive(Default)]
pub(crate) struct WithheldTrailers {
    /// Names that layers have set or removed.
    pub(crate) names: Vec<HeaderName>,
    /// Whether another name is withheld.
    pub(crate) rule: Option<Rc<TrailerNames>>,
}

/// Whether trailers of that name are withheld.
pub(crate) type TrailerNames = dyn Fn(&str) -> bool;

impl WithheldTrailers {
    fn withhold(&self, trailers: &mut HeaderMap) {
        retain_trailers(trailers, |name| {
            let mut names = self.names.iter();
            let mut rule = self.rule.iter();
            !names.any(|known| known == name) && !rule.any(|rule| rule(name))
        });
    }
}

impl fmt::Debug for WithheldTrailers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("WithheldTrailers");
        shown.field("names", &self.names).finish_non_exhaustive()
    }
}

#[derive(Debug)]
enum Source {
    Empty,
    Channel(Rc<RefCell<Channel>>),
}

/// Why the content of a request ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The connection or the stream ended within it.
    #[error("the request ended before its content did")]
    Closed,
    /// Its framing was broken, or it was longer than its limit.
    #[error("the content of the request was refused")]
    Refused,
}

/// Content that a connection may lay up before it waits.
const MOST_BYTES: usize = 64 * 1024;

/// Pieces shorter than this are joined in one buffer: chunks of one byte then take no more memory than their content.
const JOINED: usize = 4 * 1024;

#[derive(Debug, Default)]
struct Channel {
    pieces: VecDeque<Bytes>,
    /// Short pieces behind those, joined.
    joined: BytesMut,
    bytes: usize,
    /// `None` while more may come.
    end: Option<Result<(), BodyError>>,
    trailers: Option<HeaderMap>,
    /// So many bytes are still to come, if that is known.
    left: Option<u64>,
    /// A piece was requested that was not there.
    is_wanted: bool,
    /// No more will be read.
    is_abandoned: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
    /// Woken once the reader is gone, while it is the client that is waited for.
    leaving: Option<Waker>,
}

/// The connection's end of a [`RequestBody`].
#[derive(Debug)]
pub(crate) struct BodySender(Rc<RefCell<Channel>>);

impl RequestBody {
    /// No content.
    pub fn empty() -> Self {
        Self {
            ahead: VecDeque::new(),
            trailers: None,
            source: Source::Empty,
            withheld: WithheldTrailers::default(),
        }
    }

    /// Content that comes by the other end.
    ///
    /// - `length`: how much that will be, if it is known.
    pub(crate) fn channel(length: Option<u64>) -> (BodySender, Self) {
        let channel = Rc::new(RefCell::new(Channel {
            left: length,
            ..Channel::default()
        }));
        (
            BodySender(Rc::clone(&channel)),
            Self {
                ahead: VecDeque::new(),
                trailers: None,
                source: Source::Channel(channel),
                withheld: WithheldTrailers::default(),
            },
        )
    }

    /// Buffers content ahead of its reader, which still receives all of it. Returns the whole content if it has at most `most`
    /// bytes.
    pub(crate) async fn read_ahead(&mut self, most: usize) -> Option<Bytes> {
        let (mut pieces, mut bytes) = (VecDeque::new(), 0);
        let is_whole = loop {
            match std::future::poll_fn(|cx| Pin::new(&mut *self).poll_frame(cx)).await {
                None => break true,
                // Its reader finds the same error.
                Some(Err(_)) => break false,
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) => {
                        bytes += piece.len();
                        pieces.push_back(piece);
                        if bytes > most {
                            break false;
                        }
                    }
                    // They are the last frame.
                    Err(frame) => {
                        self.trailers = frame.into_trailers().ok();
                        break true;
                    }
                },
            }
        };
        let whole = is_whole.then(|| match pieces.make_contiguous() {
            [one] => one.clone(),
            several => several.concat().into(),
        });
        self.ahead = pieces;
        whole
    }

    /// The same content without these trailers either.
    pub(crate) fn withholding(mut self, withheld: WithheldTrailers) -> Self {
        self.withheld.names.extend(withheld.names);
        self.withheld.rule = withheld.rule.or(self.withheld.rule.take());
        self
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Self {
            ahead,
            trailers,
            source,
            withheld,
        } = self.get_mut();
        if let Some(piece) = ahead.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        let mut polled = match (trailers.take(), source) {
            (Some(trailers), _) => Poll::Ready(Some(Ok(Frame::trailers(trailers)))),
            (None, Source::Channel(channel)) => channel.borrow_mut().poll_frame(cx),
            (None, Source::Empty) => return Poll::Ready(None),
        };
        if let Poll::Ready(Some(Ok(frame))) = &mut polled
            && let Some(trailers) = frame.trailers_mut()
        {
            withheld.withhold(trailers);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        if !self.ahead.is_empty() || self.trailers.is_some() {
            return false;
        }
        match &self.source {
            Source::Empty => true,
            Source::Channel(channel) => {
                let channel = channel.borrow();
                channel.bytes == 0 && channel.trailers.is_none() && channel.end == Some(Ok(()))
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        let ahead: usize = self.ahead.iter().map(Bytes::len).sum();
        match &self.source {
            Source::Empty => SizeHint::with_exact(ahead as u64),
            Source::Channel(channel) => {
                let channel = channel.borrow();
                let laid_up = (channel.bytes + ahead) as u64;
                channel
                    .left
                    .map_or_else(SizeHint::new, |left| SizeHint::with_exact(laid_up + left))
            }
        }
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let Source::Channel(channel) = &self.source {
            let mut channel = channel.borrow_mut();
            channel.is_abandoned = true;
            channel.pieces.clear();
            channel.joined = BytesMut::new();
            let channel = &mut *channel;
            let wakers = [channel.writer.take(), channel.leaving.take()];
            for waker in wakers.into_iter().flatten() {
                waker.wake();
            }
        }
    }
}

impl Channel {
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let joined = || Some(self.joined.split().freeze()).filter(|joined| !joined.is_empty());
        if let Some(piece) = self.pieces.pop_front().or_else(joined) {
            self.bytes -= piece.len();
            if let Some(writer) = self.writer.take() {
                writer.wake();
            }
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if let Some(trailers) = self.trailers.take() {
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        match self.end {
            Some(Ok(())) => Poll::Ready(None),
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            None => {
                self.is_wanted = true;
                self.reader = Some(cx.waker().clone());
                if let Some(writer) = self.writer.take() {
                    writer.wake();
                }
                Poll::Pending
            }
        }
    }
}

impl BodySender {
    /// Whether the reader is gone.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.0.borrow().is_abandoned
    }

    /// Ready once the reader requested content that has not come.
    pub(crate) fn poll_wanted(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut channel = self.0.borrow_mut();
        if channel.is_wanted {
            // A reader that leaves wants no more.
            let known = channel.leaving.as_ref();
            if !known.is_some_and(|known| known.will_wake(cx.waker())) {
                channel.leaving = Some(cx.waker().clone());
            }
            return Poll::Ready(());
        }
        channel.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Ready as long as there is room.
    pub(crate) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut channel = self.0.borrow_mut();
        if channel.bytes < MOST_BYTES || channel.is_abandoned {
            return Poll::Ready(());
        }
        channel.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Hands content over.
    pub(crate) fn push(&self, piece: Bytes) {
        if piece.len() < JOINED {
            return self.push_slice(&piece);
        }
        self.give(piece.len(), |channel| {
            let joined = channel.joined.split().freeze();
            channel
                .pieces
                .extend([joined, piece].into_iter().filter(|it| !it.is_empty()));
        });
    }

    /// Hands a copy of `piece` over.
    pub(crate) fn push_slice(&self, piece: &[u8]) {
        if piece.len() >= JOINED {
            return self.push(Bytes::copy_from_slice(piece));
        }
        self.give(piece.len(), |channel| {
            channel.joined.extend_from_slice(piece);
        });
    }

    fn give(&self, length: usize, give: impl FnOnce(&mut Channel)) {
        let mut channel = self.0.borrow_mut();
        if channel.is_abandoned {
            return;
        }
        channel.bytes += length;
        channel.left = channel.left.map(|left| left - length as u64);
        give(&mut channel);
        channel.is_wanted = false;
        if let Some(reader) = channel.reader.take() {
            reader.wake();
        }
    }

    /// Says that the whole content has come, with these trailers. Those that belong to a head are left out and counted.
    pub(crate) fn finish(&self, mut trailers: Option<HeaderMap>, counters: &WorkerCounters) {
        if let Some(trailers) = &mut trailers {
            withhold_heads_fields(trailers, counters);
        }
        self.end(Ok(trailers.filter(|trailers| !trailers.is_empty())));
    }

    /// Says that no more will come.
    pub(crate) fn end(&self, end: Result<Option<HeaderMap>, BodyError>) {
        let mut channel = self.0.borrow_mut();
        if channel.end.is_some() {
            return;
        }
        match end {
            Ok(trailers) => {
                channel.trailers = trailers;
                channel.end = Some(Ok(()));
            }
            Err(error) => channel.end = Some(Err(error)),
        }
        if let Some(reader) = channel.reader.take() {
            reader.wake();
        }
    }
}

/// Leaves out trailers that belong to a head, and counts them.
pub(crate) fn withhold_heads_fields(trailers: &mut HeaderMap, counters: &WorkerCounters) {
    retain_trailers(trailers, |name| {
        let passes = may_be_trailer(name.as_bytes());
        if !passes {
            counters.field_dropped();
        }
        passes
    });
}

/// A connection that ends within a body never makes it look whole.
impl Drop for BodySender {
    fn drop(&mut self) {
        self.end(Err(BodyError::Closed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(body: &mut RequestBody) -> Option<Bytes> {
        let mut cx = Context::from_waker(Waker::noop());
        match Pin::new(body).poll_frame(&mut cx) {
            Poll::Ready(Some(Ok(frame))) => frame.into_data().ok(),
            _ => None,
        }
    }

    /// The result of reading ahead once all content has arrived.
    fn read_ahead(body: &mut RequestBody, most: usize) -> Option<Bytes> {
        let mut reading = Box::pin(body.read_ahead(most));
        match reading
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(read) => read,
            Poll::Pending => panic!("there is enough to read"),
        }
    }

    #[test]
    fn content_that_was_read_ahead_comes_whole() {
        let trailers =
            || HeaderMap::from_iter([(HeaderName::from_static("x-sum"), "5".parse().unwrap())]);
        let (sender, mut body) = RequestBody::channel(None);
        sender.push_slice(b"hello");
        sender.push(Bytes::from(vec![b'x'; JOINED]));
        sender.end(Ok(Some(trailers())));
        let whole = read_ahead(&mut body, JOINED + 5).unwrap();
        assert_eq!(whole.len(), JOINED + 5);
        assert!(!body.is_end_stream());
        assert_eq!(frame(&mut body).unwrap(), "hello");
        assert_eq!(frame(&mut body).unwrap().len(), JOINED);
        let mut cx = Context::from_waker(Waker::noop());
        let Poll::Ready(Some(Ok(last))) = Pin::new(&mut body).poll_frame(&mut cx) else {
            panic!("the trailers are lost");
        };
        assert_eq!(last.into_trailers().unwrap(), trailers());
        assert!(body.is_end_stream());

        // More than is wanted stays in order, with the length that was announced.
        let (sender, mut body) = RequestBody::channel(Some(12));
        sender.push_slice(b"hello ");
        assert_eq!(read_ahead(&mut body, 5), None);
        assert_eq!(body.size_hint().exact(), Some(12));
        sender.push_slice(b"world!");
        sender.end(Ok(None));
        assert_eq!(frame(&mut body).unwrap(), "hello ");
        assert_eq!(frame(&mut body).unwrap(), "world!");
        assert!(body.is_end_stream());

        // What breaks off breaks off for the reader too.
        let (sender, mut body) = RequestBody::channel(None);
        sender.push_slice(b"hel");
        drop(sender);
        assert_eq!(read_ahead(&mut body, 5), None);
        assert_eq!(frame(&mut body).unwrap(), "hel");
        let broken = Pin::new(&mut body).poll_frame(&mut cx);
        assert!(matches!(broken, Poll::Ready(Some(Err(BodyError::Closed)))));
    }

    #[test]
    fn short_pieces_are_joined_and_all_keep_their_order() {
        let (sender, mut body) = RequestBody::channel(None);
        let long = vec![b'L'; JOINED];
        let mut sent = Vec::new();
        for _ in 0..1000 {
            sender.push(Bytes::from_static(b"s"));
        }
        sent.extend([b's'; 1000]);
        sender.push_slice(&long);
        sent.extend_from_slice(&long);
        for _ in 0..1000 {
            sender.push_slice(b"t");
        }
        sent.extend([b't'; 1000]);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(sender.poll_room(&mut cx).is_ready());
        sender.end(Ok(None));
        assert!(!body.is_end_stream());
        let pieces: Vec<_> = std::iter::from_fn(|| frame(&mut body)).collect();
        assert_eq!(pieces.len(), 3);
        assert_eq!(pieces.concat(), sent);
        assert!(body.is_end_stream());
    }
}
