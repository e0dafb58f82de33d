//! Streams of server-sent events, as a rule describes them.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use plimsoll_server::StreamError;
use plimsoll_wire::sse::encoded_event;
use tokio::time::Sleep;

use crate::request::RequestView;
use crate::template::TextTemplate;

/// Events, one after the other.
#[derive(Debug, Clone)]
pub struct EventScript {
    /// At least one.
    pub events: Vec<ScriptedEvent>,
    /// Number of rounds; absent for as long as the client listens.
    pub rounds: Option<u32>,
}

/// One event.
#[derive(Debug, Clone)]
pub struct ScriptedEvent {
    /// Delay after the previous event, or the head.
    pub after: Duration,
    /// Its fields besides its data, as they are sent.
    pub fields: String,
    /// Its data.
    pub data: EventData,
}

/// The data of an event.
#[derive(Debug, Clone)]
pub enum EventData {
    /// This.
    Always(String),
    /// This, made for each request.
    TextTemplate(TextTemplate),
}

impl EventScript {
    /// The content of the response to a request. Must be called where there is a runtime.
    pub(crate) fn stream(&self, request: &RequestView<'_>) -> EventStream {
        let events = self.events.iter().map(|event| {
            let text = match &event.data {
                EventData::Always(data) => encoded_event(&event.fields, data),
                EventData::TextTemplate(written) => {
                    encoded_event(&event.fields, &written.fill(request))
                }
            };
            (event.after, Bytes::from(text))
        });
        EventStream {
            events: events.collect(),
            next: 0,
            rounds: self.rounds,
            wait: None,
        }
    }
}

/// Events as they come.
#[derive(Debug)]
pub(crate) struct EventStream {
    events: Vec<(Duration, Bytes)>,
    next: usize,
    /// That are left; absent if there is no end.
    rounds: Option<u32>,
    wait: Option<Pin<Box<Sleep>>>,
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let this = self.get_mut();
        if this.rounds == Some(0) {
            return Poll::Ready(None);
        }
        let Some((after, bytes)) = this.events.get(this.next) else {
            return Poll::Ready(None);
        };
        if !after.is_zero() {
            let wait = this
                .wait
                .get_or_insert_with(|| Box::pin(tokio::time::sleep(*after)));
            ready!(wait.as_mut().poll(cx));
            this.wait = None;
        }
        let frame = Frame::data(bytes.clone());
        this.next += 1;
        if this.next == this.events.len() {
            this.next = 0;
            this.rounds = this.rounds.map(|rounds| rounds - 1);
        }
        Poll::Ready(Some(Ok(frame)))
    }
}
