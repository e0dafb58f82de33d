//! Frames that are about the connection and its streams, not their messages (RFC 9113, section 6).

use crate::h2::connection::GoAway;
use crate::h2::frame::{self, FrameHeader};
use crate::h2::receive::{misplaced, wrong_size};
use crate::h2::stream::StreamLookup;
use crate::h2::{Connection, ConnectionError, ErrorCode, Events, MessageError, StreamError};

/// The payload of our PING frames.
const PROBE: [u8; 8] = *b"plimsoll";

impl Connection {
    /// Priorities are deprecated and passed over, except one that is no such frame.
    pub(crate) fn priority<E: Events>(
        &mut self,
        header: FrameHeader,
        events: &mut E,
    ) -> Result<(), ConnectionError> {
        if header.stream == 0 {
            return Err(misplaced(header));
        }
        if header.length != 5 {
            self.fail_stream(header.stream, MessageError::PrioritySize, events);
        }
        Ok(())
    }

    pub(crate) fn rst_stream<E: Events>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        events: &mut E,
    ) -> Result<(), ConnectionError> {
        let code = ErrorCode(u32::from_be_bytes(exactly(header, payload)?));
        match self.streams.find(header.stream) {
            StreamLookup::Idle => Err(misplaced(header)),
            // A server may ask for the rest of a request not to be sent.
            StreamLookup::Ended | StreamLookup::Gone => Ok(()),
            StreamLookup::Open(stream) => {
                let (token, traffic) = (stream.token, stream.traffic);
                self.streams.reset(header.stream);
                events.traffic(token, traffic);
                events.failed(token, &StreamError::Reset { code });
                Ok(())
            }
        }
    }

    pub(crate) fn take_settings<E: Events>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        events: &mut E,
    ) -> Result<(), ConnectionError> {
        if header.stream != 0 {
            return Err(misplaced(header));
        }
        let (entries, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() || (header.is_ack() && !entries.is_empty()) {
            return Err(wrong_size(header, payload));
        }
        if header.is_ack() {
            return Ok(());
        }
        self.peer.begin();
        let old_window = self.peer.stream_window;
        for [a, b, value @ ..] in entries {
            let id = u16::from_be_bytes([*a, *b]);
            self.peer.set(id, u32::from_be_bytes(*value))?;
            self.encoder.resize(self.peer.header_table_bytes);
        }
        self.resize_streams(i64::from(self.peer.stream_window) - i64::from(old_window))?;
        if self.peer.stream_window > old_window {
            events.window_opened(None);
        }
        frame::put_settings_ack(&mut self.output.bytes);
        self.count_answer()
    }

    /// A new initial window changes those of open streams too (section 6.9.2).
    fn resize_streams(&mut self, by: i64) -> Result<(), ConnectionError> {
        if by == 0 {
            return Ok(());
        }
        for stream in self.streams.iter_mut() {
            if !stream.send.change(by) {
                return Err(ConnectionError::WindowOverflow);
            }
            if stream.unsent.is_some() && !stream.is_queued && stream.send.available() > 0 {
                stream.is_queued = true;
                self.sending.push_back(stream.id);
            }
        }
        Ok(())
    }

    /// Sends a PING, whose answer shows that the peer still reads this connection (RFC 9113, section 6.7).
    pub fn probe(&mut self) {
        if !self.is_probing && self.error.is_none() {
            self.is_probing = true;
            frame::put_ping(&mut self.output.bytes, PROBE);
        }
    }

    /// Whether the peer has not answered the [probe](Self::probe) yet.
    pub fn is_probing(&self) -> bool {
        self.is_probing
    }

    pub(crate) fn ping(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
    ) -> Result<(), ConnectionError> {
        if header.stream != 0 {
            return Err(misplaced(header));
        }
        let payload = exactly(header, payload)?;
        if header.is_ack() {
            self.is_probing &= payload != PROBE;
            return Ok(());
        }
        frame::put_ping_ack(&mut self.output.bytes, payload);
        self.count_answer()
    }

    /// A peer that asks faster than it reads would fill our memory.
    fn count_answer(&mut self) -> Result<(), ConnectionError> {
        self.answers += 1;
        let limit = self.settings.limits.unwritten_answers;
        if self.answers > limit {
            return Err(ConnectionError::Flood { limit });
        }
        Ok(())
    }

    pub(crate) fn goaway<E: Events>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        events: &mut E,
    ) -> Result<(), ConnectionError> {
        if header.stream != 0 {
            return Err(misplaced(header));
        }
        let Some(&[a, b, c, d, ref code @ ..]) = payload.first_chunk::<8>() else {
            return Err(wrong_size(header, payload));
        };
        let last_stream = u32::from_be_bytes([a, b, c, d]) & 0x7fff_ffff;
        let code = ErrorCode(u32::from_be_bytes(*code));
        if self
            .goaway
            .is_some_and(|earlier| earlier.last_stream < last_stream)
        {
            return Err(ConnectionError::GoAwayIncreased);
        }
        self.goaway = Some(GoAway { last_stream, code });
        events.going_away(last_stream, code);
        let error = StreamError::GoneAway { code };
        self.fail_streams(|id| id > last_stream, error, events);
        Ok(())
    }

    pub(crate) fn window_update<E: Events>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        events: &mut E,
    ) -> Result<(), ConnectionError> {
        let increment = u32::from_be_bytes(exactly(header, payload)?) & 0x7fff_ffff;
        if header.stream == 0 {
            if increment == 0 {
                return Err(ConnectionError::WindowIncrement);
            }
            if !self.send_window.change(i64::from(increment)) {
                return Err(ConnectionError::WindowOverflow);
            }
            events.window_opened(None);
            return Ok(());
        }
        let stream = match self.streams.find(header.stream) {
            StreamLookup::Open(stream) => stream,
            StreamLookup::Ended | StreamLookup::Gone => return Ok(()),
            StreamLookup::Idle => return Err(misplaced(header)),
        };
        if increment == 0 {
            self.fail_stream(header.stream, MessageError::WindowIncrement, events);
        } else if !stream.send.change(i64::from(increment)) {
            self.fail_stream(header.stream, MessageError::WindowOverflow, events);
        } else if stream.is_streamed {
            events.window_opened(Some(stream.token));
        } else {
            self.queue(header.stream);
        }
        Ok(())
    }
}

/// The payload of a frame that has one length only.
fn exactly<const N: usize>(
    header: FrameHeader,
    payload: &[u8],
) -> Result<[u8; N], ConnectionError> {
    payload.try_into().map_err(|_| wrong_size(header, payload))
}
