//! The message beside a status, as the field `grpc-message` has it.
//!
//! Source: "gRPC over HTTP2", section "Responses", of grpc.

use http::HeaderValue;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode, percent_encode};

/// All but printable ASCII, and the percent sign.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%');

/// The value of `grpc-message` for a message: bytes that are not printable ASCII are written as `%XX`.
pub fn status_message(message: &[u8]) -> HeaderValue {
    let text = percent_encode(message, ENCODED).to_string();
    HeaderValue::try_from(text).expect("all bytes that no field may have are encoded")
}

/// The message of a value of `grpc-message`.
pub fn read_status_message(value: &[u8]) -> String {
    percent_decode(value).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_percent_encoded() {
        for (message, value) in [
            ("100 % fur dich\n~", "100 %25 fur dich%0A~"),
            ("\u{fc}", "%C3%BC"),
            ("50% ü", "50%25 %C3%BC"),
            ("", ""),
        ] {
            let written = status_message(message.as_bytes());
            assert_eq!(written, value);
            assert_eq!(read_status_message(written.as_bytes()), message);
        }
        assert_eq!(status_message(b"\xff\x7f"), "%FF%7F");
    }
}
