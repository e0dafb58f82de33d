//! Reading pieces with the decoder of server-sent events.

use std::time::Duration;

use plimsoll_wire::sse::{Decoder, Event, EventSink, Limits, TooLong};

/// Type, data and last ID of every event.
#[derive(Default)]
struct Seen(Vec<[Vec<u8>; 3]>);

impl EventSink for Seen {
    fn event(&mut self, event: Event<'_>) {
        assert!(event.kind.len() + event.data.len() <= 200);
        assert!(event.last_event_id.len() <= 20);
        let parts = [event.kind, event.data, event.last_event_id];
        self.0.push(parts.map(<[u8]>::to_vec));
    }
}

/// What came of a stream: its events, what broke it off, and what the next one is asked for with.
pub type Outcome = (
    Vec<[Vec<u8>; 3]>,
    Option<TooLong>,
    Vec<u8>,
    Option<Duration>,
);

/// Reads a stream.
pub fn read_events(pieces: &[&[u8]]) -> Outcome {
    let limits = Limits {
        event_bytes: 193,
        id_bytes: 20,
    };
    let mut decoder = Decoder::new(limits);
    let mut seen = Seen::default();
    let results = pieces.iter().map(|piece| decoder.decode(piece, &mut seen));
    let error = results.filter_map(Result::err).next();
    let next = (decoder.last_event_id().to_vec(), decoder.retry());
    (seen.0, error, next.0, next.1)
}
