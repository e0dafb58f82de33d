//! Content that is passed on as it comes, and told as a whole once it has come.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};

/// Longer content is passed on, and told to be too long.
pub(super) const LONGEST: usize = 64 << 20;

/// Content that somebody else sends, and what is done once all of it has come.
///
/// Of content that breaks off, or that the client does not wait for, nothing is told.
pub(super) struct Tapped<B> {
    content: B,
    gathered: BytesMut,
    is_too_long: bool,
    /// Gone once it is told; nothing if the content is too long.
    told: Option<Box<dyn FnOnce(Option<Bytes>)>>,
}

impl<B> std::fmt::Debug for Tapped<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tapped")
            .field("gathered", &self.gathered.len())
            .finish_non_exhaustive()
    }
}

impl<B: Body<Data = Bytes> + Unpin> Tapped<B> {
    /// - `told`: gets the whole content, or nothing if it is too long.
    pub(super) fn new(content: B, told: impl FnOnce(Option<Bytes>) + 'static) -> Self {
        let mut tapped = Self {
            content,
            gathered: BytesMut::new(),
            is_too_long: false,
            told: Some(Box::new(told)),
        };
        // Nobody asks for content that there is none of.
        if tapped.content.is_end_stream() {
            tapped.finish();
        }
        tapped
    }

    fn finish(&mut self) {
        let gathered = std::mem::take(&mut self.gathered).freeze();
        if let Some(told) = self.told.take() {
            told((!self.is_too_long).then_some(gathered));
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
            Poll::Ready(Some(Err(_))) => tapped.told = None,
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

    /// Pieces, one after the other; without a length, so that its end shows only when it is asked for.
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

    type Told = Rc<RefCell<Vec<Option<Bytes>>>>;

    fn tapped(pieces: &[Bytes], knows_its_end: bool) -> (Tapped<Pieces>, Told) {
        let pieces = pieces.iter().cloned().map(Ok).collect();
        let told = Told::default();
        let noted = Rc::clone(&told);
        let tapped = Tapped::new(Pieces(pieces, knows_its_end), move |content| {
            noted.borrow_mut().push(content);
        });
        (tapped, told)
    }

    /// Asks for so many pieces.
    fn poll(tapped: &mut Tapped<Pieces>, times: usize) {
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..times {
            assert!(Pin::new(&mut *tapped).poll_frame(&mut context).is_ready());
        }
    }

    #[test]
    fn what_has_come_whole_is_told_once() {
        let hello = [Bytes::from_static(b"hel"), Bytes::from_static(b"lo")];
        for (knows_its_end, polls) in [(true, 2), (false, 3), (false, 4)] {
            let (mut tapped, told) = tapped(&hello, knows_its_end);
            poll(&mut tapped, polls - 1);
            assert!(polls == 4 || told.borrow().is_empty());
            poll(&mut tapped, 1);
            assert_eq!(*told.borrow(), [Some(Bytes::from_static(b"hello"))]);
        }
        let (_tapped, told) = tapped(&[], true);
        assert_eq!(*told.borrow(), [Some(Bytes::new())]);
    }

    #[test]
    fn what_the_client_leaves_is_not_told_and_what_is_too_long_is_not_gathered() {
        let (mut left, told) = tapped(&[Bytes::from_static(b"a")], false);
        poll(&mut left, 1);
        drop(left);
        assert!(told.borrow().is_empty());
        let piece = Bytes::from(vec![0; 1 << 20]);
        let (mut long, told) = tapped(&vec![piece; 65], true);
        poll(&mut long, 65);
        assert_eq!(long.gathered.capacity(), 0);
        assert_eq!(*told.borrow(), [None]);
    }
}
