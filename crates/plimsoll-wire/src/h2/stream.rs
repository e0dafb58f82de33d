//! The streams of a connection, found by arithmetic.
//!
//! A stream's number decides its slot, and a number whose slot is taken is skipped: the numbers of a
//! client have to rise, not to be without gaps (RFC 9113, section 5.1.1). So nothing is searched,
//! hashed or allocated for a stream.

use crate::h2::flow::{self, ReceiveWindow, SendWindow};
use crate::h2::{EncodedRequest, StreamId};

/// One exchange.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(crate) struct Stream {
    pub(crate) id: u32,
    /// The caller's name for the exchange.
    pub(crate) token: u32,
    state: State,
    pub(crate) has_head: bool,
    /// The method or the status leaves no room for content.
    pub(crate) is_empty: bool,
    /// Waits in the queue of streams that have content to send.
    pub(crate) is_queued: bool,
    /// The caller writes and reads the bodies piece by piece; see [`streamed`](crate::h2::streamed).
    pub(crate) is_streamed: bool,
    /// The request was CONNECT: a 2xx response is followed by bytes, not content.
    pub(crate) is_tunnel: bool,
    /// Of a streamed request: its end is in the output.
    pub(crate) is_sent: bool,
    /// Of a streamed request that goes on: the response came to its end.
    pub(crate) is_received: bool,
    pub(crate) interim_seen: usize,
    pub(crate) receive: ReceiveWindow,
    pub(crate) send: SendWindow,
    /// The value of `content-length`.
    pub(crate) announced: Option<u64>,
    pub(crate) received: u64,
    pub(crate) traffic: Traffic,
    pub(crate) unsent: Option<Unsent>,
}

/// Bytes of an exchange's own frames: HEADERS, CONTINUATION and DATA.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Of the request, as far as it was put into the output.
    pub sent: u64,
    /// Of the response.
    pub received: u64,
}

/// The part of a request's body that no window allowed yet.
#[derive(Debug)]
pub(crate) struct Unsent {
    pub(crate) request: EncodedRequest,
    pub(crate) offset: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The peer ended it.
    Ended,
    /// Either side reset it, or it was never opened; the peer may not know yet.
    Reset,
}

/// The stream that a frame of the peer refers to.
#[derive(Debug)]
pub(crate) enum StreamLookup<'a> {
    /// An exchange under way.
    Open(&'a mut Stream),
    /// The peer had ended it, so nothing may follow.
    Ended,
    /// It is over; what follows was under way and is ignored.
    Gone,
    /// It was never opened, or cannot be.
    Idle,
}

#[derive(Debug)]
pub(crate) struct Streams {
    /// A power of two, more than may be open.
    slots: Box<[Stream]>,
    next_id: u32,
    open: usize,
}

impl Streams {
    /// - `most`: streams open at a time.
    pub(crate) fn new(most: usize) -> Self {
        let slots = (most + most / 4 + 1).next_power_of_two();
        Self {
            slots: (0..slots).map(|_| Stream::unused()).collect(),
            next_id: 1,
            open: 0,
        }
    }

    /// Streams open now.
    pub(crate) fn open_count(&self) -> usize {
        self.open
    }

    /// The open streams.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.slots
            .iter_mut()
            .filter(|stream| stream.state == State::Open)
    }

    /// Opens the next stream; `None` if there are no more numbers.
    ///
    /// The caller sees to it that no more are open than this was made for.
    #[inline]
    pub(crate) fn open(
        &mut self,
        token: u32,
        receive: ReceiveWindow,
        send: SendWindow,
    ) -> Option<&mut Stream> {
        debug_assert!(self.open < self.slots.len());
        while self.slots[self.slot(self.next_id)].state == State::Open {
            self.next_id += 2;
        }
        let id = self.next_id;
        if id > flow::MOST {
            return None;
        }
        self.next_id = id + 2;
        self.open += 1;
        let slot = self.slot(id);
        let stream = &mut self.slots[slot];
        *stream = Stream {
            id,
            token,
            state: State::Open,
            receive,
            send,
            ..Stream::unused()
        };
        Some(stream)
    }

    /// The open stream `id`.
    #[inline]
    pub(crate) fn find_open(&mut self, id: u32) -> Option<&mut Stream> {
        let slot = self.slot(id);
        let stream = &mut self.slots[slot];
        (stream.id == id && stream.state == State::Open).then_some(stream)
    }

    /// Looks `id` up.
    #[inline]
    pub(crate) fn find(&mut self, id: u32) -> StreamLookup<'_> {
        if id.is_multiple_of(2) || id >= self.next_id {
            return StreamLookup::Idle;
        }
        let slot = self.slot(id);
        let stream = &mut self.slots[slot];
        match stream.state {
            _ if stream.id != id => StreamLookup::Gone,
            State::Open => StreamLookup::Open(stream),
            State::Ended => StreamLookup::Ended,
            State::Reset => StreamLookup::Gone,
        }
    }

    /// Closes a stream that the peer ended.
    #[inline]
    pub(crate) fn end(&mut self, id: u32) {
        self.close(id, State::Ended);
    }

    /// Closes a stream that either side reset.
    pub(crate) fn reset(&mut self, id: u32) {
        self.close(id, State::Reset);
    }

    fn close(&mut self, id: u32, state: State) {
        if let Some(stream) = self.find_open(id) {
            stream.state = state;
            stream.unsent = None;
            self.open -= 1;
        }
    }

    #[inline]
    fn slot(&self, id: u32) -> usize {
        (id >> 1) as usize & (self.slots.len() - 1)
    }
}

impl Stream {
    fn unused() -> Self {
        Self {
            id: 0,
            token: 0,
            state: State::Reset,
            has_head: false,
            is_empty: false,
            is_queued: false,
            is_streamed: false,
            is_tunnel: false,
            is_sent: false,
            is_received: false,
            interim_seen: 0,
            receive: ReceiveWindow::new(0),
            send: SendWindow::new(0),
            announced: None,
            received: 0,
            traffic: Traffic::default(),
            unsent: None,
        }
    }

    pub(crate) fn stream_id(&self) -> StreamId {
        StreamId::new(self.id)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn open(streams: &mut Streams, token: u32) -> Option<u32> {
        streams
            .open(token, ReceiveWindow::new(0), SendWindow::new(0))
            .map(|stream| stream.id)
    }

    #[test]
    fn a_number_whose_slot_is_taken_is_skipped() {
        let mut streams = Streams::new(3);
        assert_eq!(open(&mut streams, 0), Some(1));
        assert_eq!(open(&mut streams, 1), Some(3));
        for _ in 0..2 {
            let id = open(&mut streams, 2).unwrap();
            streams.end(id);
        }
        // 9 and 11 have the slots of 1 and 3.
        assert_eq!(open(&mut streams, 3), Some(13));
        assert!(matches!(streams.find(9), StreamLookup::Gone));
        assert!(matches!(streams.find(7), StreamLookup::Ended));
        assert!(matches!(streams.find(15), StreamLookup::Idle));
        assert!(matches!(streams.find(2), StreamLookup::Idle));
        assert!(matches!(streams.find(0), StreamLookup::Idle));
    }

    #[test]
    fn numbers_end() {
        let mut streams = Streams::new(1);
        streams.next_id = flow::MOST;
        assert_eq!(open(&mut streams, 0), Some(flow::MOST));
        streams.end(flow::MOST);
        assert_eq!(open(&mut streams, 0), None);
        assert_eq!(open(&mut streams, 0), None);
    }

    proptest! {
        #[test]
        fn numbers_rise_and_tokens_are_found(
            most in 1_usize..20,
            closed in prop::collection::vec(any::<prop::sample::Index>(), 0..200),
        ) {
            let mut streams = Streams::new(most);
            let mut alive = Vec::new();
            let mut last = 0;
            for (token, close) in (0_u32..).zip(closed) {
                if alive.len() == most {
                    let (id, _) = alive.swap_remove(close.index(most));
                    streams.end(id);
                }
                let id = open(&mut streams, token).unwrap();
                prop_assert!(id > last && id % 2 == 1);
                last = id;
                alive.push((id, token));
                for (id, token) in &alive {
                    prop_assert_eq!(streams.find_open(*id).map(|s| s.token), Some(*token));
                }
                prop_assert_eq!(streams.open_count(), alive.len());
            }
        }
    }
}
