//! Bodies of server-sent events whose source is looked at at intervals.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use plimsoll_wire::sse;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::message::response::StreamError;

/// What a source has for its reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextEvent {
    /// An event with this data.
    Data(String),
    /// No event yet.
    Pending,
    /// The stream is over.
    End,
}

/// Where the events of a stream come from.
pub trait EventSource: Unpin {
    /// The event to send now, if any.
    fn next_event(&mut self) -> NextEvent;
}

/// The content of a stream of events: its source is looked at at intervals, and long silence is broken by a comment, for
/// proxies that close what is silent and for servers, which notice by it that the reader has gone.
pub struct EventStreamBody<S> {
    source: S,
    looks: Interval,
    silent: u32,
    most_silent: u32,
}

impl<S: EventSource> EventStreamBody<S> {
    /// Must be called where there is a runtime.
    ///
    /// - `every`: the time between two looks; the first one is at once.
    /// - `most_silent`: looks without an event until a comment is sent.
    pub fn new(source: S, every: Duration, most_silent: u32) -> Self {
        let mut looks = interval(every);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            source,
            looks,
            silent: 0,
            most_silent,
        }
    }

    /// The text to send after a look; `None` for nothing.
    fn look(&mut self) -> Poll<Option<String>> {
        match self.source.next_event() {
            NextEvent::End => Poll::Ready(None),
            NextEvent::Data(data) => {
                self.silent = 0;
                Poll::Ready(Some(sse::encoded_event("", &data)))
            }
            NextEvent::Pending => {
                self.silent += 1;
                if self.silent < self.most_silent {
                    return Poll::Pending;
                }
                self.silent = 0;
                Poll::Ready(Some(sse::COMMENT.to_owned()))
            }
        }
    }
}

impl<S> fmt::Debug for EventStreamBody<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("EventStreamBody");
        shown.field("silent", &self.silent).finish_non_exhaustive()
    }
}

impl<S: EventSource> Body for EventStreamBody<S> {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        loop {
            ready!(self.looks.poll_tick(cx));
            if let Poll::Ready(text) = self.look() {
                return Poll::Ready(text.map(|text| Ok(Frame::data(Bytes::from(text)))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Listed(Vec<NextEvent>);

    impl EventSource for Listed {
        fn next_event(&mut self) -> NextEvent {
            self.0.pop().unwrap_or(NextEvent::End)
        }
    }

    #[tokio::test]
    async fn silence_is_broken_by_comments_until_the_end() {
        let mut events = vec![NextEvent::Data("a\nb".to_owned())];
        events.extend([NextEvent::Pending, NextEvent::Pending, NextEvent::Pending]);
        events.push(NextEvent::Data("c".to_owned()));
        events.reverse();
        let mut body = EventStreamBody::new(Listed(events), Duration::from_millis(1), 2);
        let mut sent = String::new();
        while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await
        {
            let data = frame.unwrap().into_data().unwrap();
            sent.push_str(std::str::from_utf8(&data).unwrap());
        }
        assert_eq!(sent, "data: a\ndata: b\n\n:\n\ndata: c\n\n");
    }
}
