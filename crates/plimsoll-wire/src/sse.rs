//! Server-sent events without I/O: the event stream of the HTML standard, as its client reads it and a server writes it.
//!
//! Source: WHATWG HTML, section 9.2, "Server-sent events".

mod decoder;

mod encoder;

pub use self::decoder::{Decoder, Event, EventSink, Limits, TooLong};
pub use self::encoder::{COMMENT, encoded_event};

/// The media type of an event stream.
pub const MEDIA_TYPE: &str = "text/event-stream";

/// Whether a content type is that of an event stream, whatever its parameters.
pub fn is_event_stream(content_type: &[u8]) -> bool {
    let end = content_type.iter().position(|byte| *byte == b';');
    let essence = &content_type[..end.unwrap_or(content_type.len())];
    essence
        .trim_ascii()
        .eq_ignore_ascii_case(MEDIA_TYPE.as_bytes())
}

#[cfg(test)]
mod tests;
