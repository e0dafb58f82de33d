//! The stream of events that a page listens to: what the site is like now, and again whenever it is another.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use plimsoll_server::StreamError;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::files::live::Live;

/// How often it is looked. A change is reported when it has been the same for as long: files are seldom written
/// alone.
const LOOK: Duration = Duration::from_millis(100);

/// Looks after which a comment is sent, for those on the way that close what is silent.
const SILENT: u32 = 150;

pub(super) struct Events {
    live: Arc<Live>,
    looks: Interval,
    last_sent: Option<String>,
    last: Option<String>,
    silent: u32,
}

impl Events {
    pub(super) fn new(live: Arc<Live>) -> Self {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            live,
            looks,
            last_sent: None,
            last: None,
            silent: 0,
        }
    }

    /// The event to send after a look, if any.
    fn look(&mut self) -> Option<String> {
        let state = self.live.state();
        let last = self.last.replace(state.clone());
        if last.as_ref() == Some(&state) && self.last_sent.as_ref() != Some(&state) {
            self.silent = 0;
            let text = format!("data: {state}\n\n");
            self.last_sent = Some(state);
            return Some(text);
        }
        self.silent += 1;
        if self.silent < SILENT {
            return None;
        }
        self.silent = 0;
        Some(":\n\n".to_owned())
    }
}

impl Body for Events {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        loop {
            ready!(self.looks.poll_tick(cx));
            if self.live.is_over() {
                return Poll::Ready(None);
            }
            if let Some(text) = self.look() {
                return Poll::Ready(Some(Ok(Frame::data(Bytes::from(text)))));
            }
        }
    }
}
