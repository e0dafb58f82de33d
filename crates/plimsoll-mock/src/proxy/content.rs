//! The content of a response as it comes, read only as fast as the client takes it.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use plimsoll_client::forward;
use plimsoll_server::StreamError;
use tokio::time::Sleep;

/// Content of an exchange, each piece of which has to come within a time.
pub(crate) struct PassedContent {
    content: forward::ResponseBody<Full<Bytes>>,
    /// The announced length of a response to HEAD.
    announced: Option<u64>,
    timeout: Duration,
    timer: Option<Pin<Box<Sleep>>>,
}

impl std::fmt::Debug for PassedContent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PassedContent")
            .field("content", &self.content)
            .finish_non_exhaustive()
    }
}

impl PassedContent {
    pub(super) fn new(
        content: forward::ResponseBody<Full<Bytes>>,
        announced: Option<u64>,
        timeout: Duration,
    ) -> Self {
        Self {
            content,
            announced,
            timeout,
            timer: None,
        }
    }
}

impl Body for PassedContent {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.content).poll_frame(context) {
            this.timer = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let timeout = this.timeout;
        let timer = this
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        timer.as_mut().poll(context).map(|()| {
            let late = std::io::Error::from(std::io::ErrorKind::TimedOut);
            Some(Err(late.into()))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.announced {
            Some(announced) => SizeHint::with_exact(announced),
            None => self.content.size_hint(),
        }
    }
}
