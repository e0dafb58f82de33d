//! Content that is passed on as it comes, and collected as a whole.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};

/// Longer content is forwarded but not recorded: an exchange is held in memory until it is complete.
pub(super) const LONGEST: usize = 64 << 20;

/// Content from a server, and what is done once all of it has come.
///
/// If the content breaks off, or the client does not wait for it, the function is dropped uncalled.
pub(crate) struct Tapped<B> {
    content: B,
    gathered: BytesMut,
    is_too_long: bool,
    /// Gone once it is called; not there if the content is too long.
    on_end: Option<Box<dyn FnOnce(Option<Bytes>)>>,
}

impl<B> std::fmt::Debug for Tapped<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tapped")
            .field("gathered", &self.gathered.len())
            .finish_non_exhaustive()
    }
}

impl<B: Body<Data = Bytes> + Unpin> Tapped<B> {
    /// - `on_end`: gets the whole content, or nothing if it is too long.
    pub(crate) fn new(content: B, on_end: impl FnOnce(Option<Bytes>) + 'static) -> Self {
        let mut tapped = Self {
            content,
            gathered: BytesMut::new(),
            is_too_long: false,
            on_end: Some(Box::new(on_end)),
        };
        // Empty content is never polled.
        if tapped.content.is_end_stream() {
            tapped.finish();
        }
        tapped
    }

    fn finish(&mut self) {
        let gathered = std::mem::take(&mut self.gathered).freeze();
        if let Some(on_end) = self.on_end.take() {
            on_end((!self.is_too_long).then_some(gathered));
        }
    }

    fn gather(&mut self, piece: &Bytes) {
        if self.is_too_long || self.gathered.len() + piece.len() > LONGEST {
            self.is_too_long = true;
            self.gathered = BytesMut::new();
        } else {
            self.gathered.extend_from_slice(piece);
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Tapped<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let tapped = self.get_mut();
        let polled = Pin::new(&mut tapped.content).poll_frame(cx);
        match &polled {
            Poll::Pending => return polled,
            Poll::Ready(Some(Err(_))) => tapped.on_end = None,
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(piece) = frame.data_ref() {
                    tapped.gather(piece);
                }
                if tapped.content.is_end_stream() {
                    tapped.finish();
                }
            }
            Poll::Ready(None) => tapped.finish(),
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.content.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::rc::Rc;
    use std::task::Waker;

    use super::*;

    /// Pieces, one after the other; without a length, so that its end shows only when it is polled.
    struct Pieces(VecDeque<Result<Bytes, Infallible>>, bool);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop_front().map(|piece| piece.map(Frame::data)))
        }

        fn is_end_stream(&self) -> bool {
            self.1 && self.0.is_empty()
        }
    }

    type Gathered = Rc<RefCell<Vec<Option<Bytes>>>>;

    fn tapped(pieces: &[Bytes], knows_its_end: bool) -> (Tapped<Pieces>, Gathered) {
        let pieces = pieces.iter().cloned().map(Ok).collect();
        let on_end = Gathered::default();
        let noted = Rc::clone(&on_end);
        let tapped = Tapped::new(Pieces(pieces, knows_its_end), move |content| {
            noted.borrow_mut().push(content);
        });
        (tapped, on_end)
    }

    /// Asks for so many pieces.
    fn poll(tapped: &mut Tapped<Pieces>, times: usize) {
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..times {
            assert!(Pin::new(&mut *tapped).poll_frame(&mut context).is_ready());
        }
    }

    #[test]
    fn what_has_come_whole_is_reported_once() {
        let hello = [Bytes::from_static(b"hel"), Bytes::from_static(b"lo")];
        for (knows_its_end, polls) in [(true, 2), (false, 3), (false, 4)] {
            let (mut tapped, on_end) = tapped(&hello, knows_its_end);
            poll(&mut tapped, polls - 1);
            assert!(polls == 4 || on_end.borrow().is_empty());
            poll(&mut tapped, 1);
            assert_eq!(*on_end.borrow(), [Some(Bytes::from_static(b"hello"))]);
        }
        let (_tapped, on_end) = tapped(&[], true);
        assert_eq!(*on_end.borrow(), [Some(Bytes::new())]);
    }

    #[test]
    fn what_the_client_leaves_is_not_reported_and_what_is_too_long_is_not_gathered() {
        let (mut left, on_end) = tapped(&[Bytes::from_static(b"a")], false);
        poll(&mut left, 1);
        drop(left);
        assert!(on_end.borrow().is_empty());
        let piece = Bytes::from(vec![0; 1 << 20]);
        let (mut long, on_end) = tapped(&vec![piece; 65], true);
        poll(&mut long, 65);
        assert_eq!(long.gathered.capacity(), 0);
        assert_eq!(*on_end.borrow(), [None]);
    }
}
