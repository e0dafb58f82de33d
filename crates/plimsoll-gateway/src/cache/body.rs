//! Content that is kept while it passes.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use plimsoll_server::StreamError;

/// A response whose content passes to the client; what was kept is handed over at its end.
pub(super) struct Kept {
    inner: Pin<Box<dyn Body<Data = Bytes, Error = StreamError>>>,
    /// Absent once it is handed over or given up.
    keeping: Option<Keeping>,
}

struct Keeping {
    content: BytesMut,
    /// Bytes that may be kept.
    limit: usize,
    store: Box<dyn FnOnce(Bytes)>,
}

impl Kept {
    /// - `limit`: bytes beyond which the content is not kept.
    /// - `store`: gets all of it once it has passed.
    pub(super) fn new(
        inner: Pin<Box<dyn Body<Data = Bytes, Error = StreamError>>>,
        limit: usize,
        store: impl FnOnce(Bytes) + 'static,
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
            _ => self.keeping = None,
        }
    }

    fn finish(&mut self) {
        if let Some(keeping) = self.keeping.take() {
            (keeping.store)(keeping.content.freeze());
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
