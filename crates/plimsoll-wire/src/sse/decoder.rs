//! From bytes to events.

use std::time::Duration;

/// Bounds on what a stream may have us hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a line without its end, and of the data and the type of an event together.
    pub event_bytes: usize,
    /// Bytes of the last event's ID, which goes back to the server in a header field.
    pub id_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            event_bytes: 1 << 20,
            id_bytes: 4096,
        }
    }
}

/// An event of a stream; its texts are UTF-8 unless the server errs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its type; `message` where the stream names none.
    pub kind: &'a [u8],
    /// Its data, lines parted by LF.
    pub data: &'a [u8],
    /// The ID of the last event that had one, this one included; empty if none had.
    pub last_event_id: &'a [u8],
}

/// Takes the events of a stream.
pub trait EventSink {
    /// One that is complete.
    fn event(&mut self, event: Event<'_>);
}

/// A line, an event or an ID is longer than [`Limits`] allow; the rest of the stream is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooLong {
    /// A line, or an event with its type.
    #[error("a line or an event of the stream exceeds {0} bytes")]
    Event(usize),
    /// An ID.
    #[error("the ID of an event exceeds {0} bytes")]
    Id(usize),
}

/// Decodes one stream after the other, and remembers what the next request sends.
///
/// Source: WHATWG HTML, sections 9.2.5 and 9.2.6.
#[derive(Debug, Clone)]
pub struct Decoder {
    limits: Limits,
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    kind: Vec<u8>,
    /// Each line followed by LF.
    data: Vec<u8>,
    id: Vec<u8>,
    /// The ID as of the last event, or of the last empty line without one.
    last_event_id: Vec<u8>,
    retry: Option<Duration>,
    /// The last byte was a CR, so an LF belongs to it.
    after_return: bool,
    /// No line has been read: a byte order mark may come.
    is_first_line: bool,
    error: Option<TooLong>,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl Decoder {
    /// Nothing has come yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            line: Vec::new(),
            kind: Vec::new(),
            data: Vec::new(),
            id: Vec::new(),
            last_event_id: Vec::new(),
            retry: None,
            after_return: false,
            is_first_line: true,
            error: None,
        }
    }

    /// The value of `Last-Event-ID` for the next request; empty if it has none.
    pub fn last_event_id(&self) -> &[u8] {
        &self.last_event_id
    }

    /// The reconnection time that the server wants, if it sent one.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Another stream begins: an event that was not complete is none.
    pub fn restart(&mut self) {
        self.line.clear();
        self.kind.clear();
        self.data.clear();
        self.id.clone_from(&self.last_event_id);
        self.after_return = false;
        self.is_first_line = true;
        self.error = None;
    }

    /// Another stream begins, for somebody who has seen none before.
    pub fn forget(&mut self) {
        self.last_event_id.clear();
        self.retry = None;
        self.restart();
    }

    /// Reads on; fails again once it has failed.
    pub fn decode(&mut self, bytes: &[u8], sink: &mut impl EventSink) -> Result<(), TooLong> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let result = self.decode_lines(bytes, sink);
        self.error = result.err();
        result
    }

    fn decode_lines(&mut self, mut bytes: &[u8], sink: &mut impl EventSink) -> Result<(), TooLong> {
        loop {
            if std::mem::take(&mut self.after_return) {
                match bytes.split_first() {
                    None => {
                        self.after_return = true;
                        return Ok(());
                    }
                    Some((b'\n', rest)) => bytes = rest,
                    Some(_) => {}
                }
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + piece.len() > self.limits.event_bytes {
                return Err(TooLong::Event(self.limits.event_bytes));
            }
            let Some(end) = end else {
                self.line.extend_from_slice(piece);
                return Ok(());
            };
            self.after_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if self.line.is_empty() {
                self.take_line(piece, sink)?;
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(piece);
                self.take_line(&line, sink)?;
                line.clear();
                self.line = line;
            }
        }
    }

    fn take_line(&mut self, line: &[u8], sink: &mut impl EventSink) -> Result<(), TooLong> {
        let line = match line.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) if self.is_first_line => rest,
            _ => line,
        };
        self.is_first_line = false;
        if line.is_empty() {
            self.dispatch(sink);
            return Ok(());
        }
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            // A comment.
            Some(0) => return Ok(()),
            Some(colon) => {
                let value = &line[colon + 1..];
                (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &line[line.len()..]),
        };
        match name {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => {
                self.kind.clear();
                self.kind.extend_from_slice(value);
            }
            b"id" if value.len() > self.limits.id_bytes => {
                return Err(TooLong::Id(self.limits.id_bytes));
            }
            b"id" if !value.contains(&0) => {
                self.id.clear();
                self.id.extend_from_slice(value);
            }
            b"retry" => {
                let millis = str::from_utf8(value).ok();
                let millis = millis.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
                if let Some(millis) = millis.and_then(|text| text.parse().ok()) {
                    self.retry = Some(Duration::from_millis(millis));
                }
            }
            _ => {}
        }
        if self.data.len() + self.kind.len() > self.limits.event_bytes {
            return Err(TooLong::Event(self.limits.event_bytes));
        }
        Ok(())
    }

    fn dispatch(&mut self, sink: &mut impl EventSink) {
        self.last_event_id.clone_from(&self.id);
        if let Some((b'\n', data)) = self.data.split_last() {
            let kind = match self.kind.as_slice() {
                b"" => b"message",
                kind => kind,
            };
            sink.event(Event {
                kind,
                data,
                last_event_id: &self.last_event_id,
            });
        }
        self.data.clear();
        self.kind.clear();
    }
}
