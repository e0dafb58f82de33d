//! Content that is kept while it passes.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use plimsoll_server::StreamError;

/// A response whose content passes to the client; what was kept of it is handed over at its end.
pub(super) struct Kept {
    inner: Pin<Box<dyn Body<Data = Bytes, Error = StreamError>>>,
    /// Absent once it is handed over or given up.
    keeping: Option<Keeping>,
}

struct Keeping {
    content: BytesMut,
    /// Bytes that may be kept.
    limit: usize,
    store: Box<dyn FnOnce(Option<Bytes>)>,
}

impl Kept {
    /// - `limit`: bytes beyond which the content is not kept.
    /// - `store`: gets all of it once it has passed, or nothing as soon as it is known that it cannot be kept. Not called if it
    ///   breaks off.
    pub(super) fn new(
        inner: Pin<Box<dyn Body<Data = Bytes, Error = StreamError>>>,
        limit: usize,
        store: impl FnOnce(Option<Bytes>) + 'static,
    ) -> Self {
        Self {
            inner,
            keeping: Some(Keeping {
                content: BytesMut::new(),
                limit,
                store: Box::new(store),
            }),
        }
    }

    fn note(&mut self, frame: &Frame<Bytes>) {
        let Some(keeping) = &mut self.keeping else {
            return;
        };
        match frame.data_ref() {
            Some(data) if keeping.content.len() + data.len() <= keeping.limit => {
                keeping.content.extend_from_slice(data);
                // A body of known length may not be polled once more.
                if self.inner.is_end_stream() {
                    self.finish();
                }
            }
            // Too long, or trailers, which would be lost.
            _ => {
                if let Some(keeping) = self.keeping.take() {
                    (keeping.store)(None);
                }
            }
        }
    }

    fn finish(&mut self) {
        if let Some(keeping) = self.keeping.take() {
            (keeping.store)(Some(keeping.content.freeze()));
        }
    }
}

impl Body for Kept {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let kept = self.get_mut();
        let polled = kept.inner.as_mut().poll_frame(context);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => kept.note(frame),
            Poll::Ready(Some(Err(_))) => kept.keeping = None,
            Poll::Ready(None) => kept.finish(),
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::VecDeque;
    use std::rc::Rc;

    use http::HeaderMap;
    use http_body_util::BodyExt as _;

    use super::*;

    struct Frames(VecDeque<Result<Frame<Bytes>, StreamError>>);

    impl Body for Frames {
        type Data = Bytes;
        type Error = StreamError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
            Poll::Ready(self.0.pop_front())
        }
    }

    /// What is handed over of content of these frames, of which five bytes may be kept.
    fn kept(frames: Vec<Result<Frame<Bytes>, StreamError>>) -> Vec<Option<Bytes>> {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let noted = Rc::clone(&seen);
        let frames = Box::pin(Frames(frames.into()));
        let mut kept = Kept::new(frames, 5, move |content| noted.borrow_mut().push(content));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async { while let Some(Ok(_)) = kept.frame().await {} });
        seen.take()
    }

    #[test]
    fn content_is_handed_over_whole_or_given_up_at_once() {
        let data = |text: &'static str| Ok(Frame::data(Bytes::from_static(text.as_bytes())));
        let trailers = || Ok(Frame::trailers(HeaderMap::new()));
        let whole = |text: &'static str| [Some(Bytes::from_static(text.as_bytes()))];
        assert_eq!(kept(vec![]), whole(""));
        assert_eq!(kept(vec![data("ab"), data("cde")]), whole("abcde"));
        assert_eq!(kept(vec![data("ab"), data("cdef"), data("g")]), [None]);
        assert_eq!(kept(vec![data("ab"), trailers()]), [None]);
        assert_eq!(kept(vec![data("ab"), Err("cut".into())]), []);
    }
}
