//! Requests as a server reads them: strict where intermediaries disagree.

use std::mem::MaybeUninit;

use httparse::Header;

use crate::h1::chunked::Piece;
use crate::h1::framing::{Framing, TransferEncoding};
use crate::h1::{ChunkedDecoder, DecodeError, Limits};

/// What a server needs to know of a request head to answer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReceivedHead {
    /// The method is HEAD: the response has no content.
    pub is_head: bool,
    /// The client reads another response on this connection.
    pub is_persistent: bool,
}

/// Decodes the requests of one connection from a buffer that its caller fills.
///
/// It refuses what makes two readers of the same bytes see different requests: a length beside a
/// transfer coding, a transfer coding in HTTP/1.0 or without `chunked` at its end, several lengths,
/// a `Host` that is missing or repeated (RFC 9112, sections 3.2, 6.1 and 6.3).
#[derive(Debug)]
pub struct RequestDecoder {
    limits: Limits,
    body: Body,
}

#[derive(Debug)]
enum Body {
    None,
    Length { left: u64 },
    Chunked(ChunkedDecoder),
}

impl RequestDecoder {
    /// A decoder for a new connection.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits: Limits {
                headers: limits.headers.min(Limits::MOST_HEADERS),
                ..limits
            },
            body: Body::None,
        }
    }

    /// Reads a head at the start of `input`; returns it and its length, `None` if it is not all
    /// there yet. Then the body must be skipped with [`skip_body`](Self::skip_body).
    pub fn decode_head(
        &mut self,
        input: &[u8],
    ) -> Result<Option<(ReceivedHead, usize)>, DecodeError> {
        let limit = self.limits.head_bytes;
        let mut storage = [const { MaybeUninit::<Header<'_>>::uninit() }; Limits::MOST_HEADERS];
        let mut request = httparse::Request::new(&mut []);
        let parsed = request.parse_with_uninit_headers(
            &input[..input.len().min(limit)],
            &mut storage[..self.limits.headers],
        );
        let Some(length) = self.limits.head_length(parsed, input.len())? else {
            return Ok(None);
        };
        if has_bare_line_feed(&input[..length]) {
            return Err(DecodeError::Head(httparse::Error::NewLine));
        }
        let minor_version = request.version.unwrap_or_default();
        let framing = Framing::of(request.headers)?;
        let hosts = request
            .headers
            .iter()
            .filter(|header| header.name.eq_ignore_ascii_case("host"))
            .count();
        if hosts > 1 || (hosts == 0 && minor_version == 1) {
            return Err(DecodeError::Host);
        }
        self.body = body_of(&framing, minor_version)?;
        let head = ReceivedHead {
            is_head: request.method == Some("HEAD"),
            is_persistent: !framing.connection_close
                && (minor_version == 1 || framing.connection_keep_alive),
        };
        Ok(Some((head, length)))
    }

    /// Takes body bytes from `input`; returns how many, and whether the body is complete.
    pub fn skip_body(&mut self, input: &[u8]) -> Result<(usize, bool), DecodeError> {
        let (taken, complete) = match &mut self.body {
            Body::None => (0, true),
            Body::Length { left } => {
                let taken =
                    usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
                *left -= taken as u64;
                (taken, *left == 0)
            }
            Body::Chunked(chunked) => {
                let mut at = 0;
                loop {
                    match chunked.decode(&input[at..])? {
                        Piece::Framing => return Ok((input.len(), false)),
                        Piece::Content { end, .. } => at += end,
                        Piece::End { consumed } => break (at + consumed, true),
                    }
                }
            }
        };
        if complete {
            self.body = Body::None;
        }
        Ok((taken, complete))
    }
}

fn body_of(framing: &Framing, minor_version: u8) -> Result<Body, DecodeError> {
    match (framing.transfer_encoding, framing.content_length) {
        (Some(TransferEncoding::Chunked), None) if minor_version == 1 => {
            Ok(Body::Chunked(ChunkedDecoder::new(16 * 1024)))
        }
        (Some(_), _) => Err(DecodeError::TransferEncoding),
        (None, None | Some(0)) => Ok(Body::None),
        (None, Some(left)) => Ok(Body::Length { left }),
    }
}

fn has_bare_line_feed(head: &[u8]) -> bool {
    head.iter()
        .enumerate()
        .any(|(at, byte)| *byte == b'\n' && (at == 0 || head[at - 1] != b'\r'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(text: &str) -> Result<Option<(ReceivedHead, usize)>, DecodeError> {
        RequestDecoder::new(Limits::default()).decode_head(text.as_bytes())
    }

    #[test]
    fn persistence_and_method() {
        let head = |text| decode(text).unwrap().unwrap().0;
        assert!(head("GET / HTTP/1.1\r\nhost: a\r\n\r\n").is_persistent);
        assert!(!head("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").is_persistent);
        assert!(!head("GET / HTTP/1.0\r\n\r\n").is_persistent);
        assert!(head("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n").is_persistent);
        assert!(head("HEAD / HTTP/1.1\r\nhost: a\r\n\r\n").is_head);
        assert_eq!(decode("GET / HTTP/1.1\r\nhost: a\r\n"), Ok(None));
    }

    #[test]
    fn ambiguous_requests_are_refused() {
        let refused = |fields: &str, error| {
            assert_eq!(
                decode(&format!("POST / HTTP/1.1\r\n{fields}\r\n")),
                Err(error),
                "{fields:?}"
            );
        };
        refused("", DecodeError::Host);
        refused("host: a\r\nhost: a\r\n", DecodeError::Host);
        refused(
            "host: a\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n",
            DecodeError::TransferEncoding,
        );
        refused(
            "host: a\r\ntransfer-encoding: gzip\r\n",
            DecodeError::TransferEncoding,
        );
        refused(
            "host: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n",
            DecodeError::ContentLength,
        );
        refused(
            "host: a\nx: y\r\n",
            DecodeError::Head(httparse::Error::NewLine),
        );
        assert_eq!(
            decode("POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n"),
            Err(DecodeError::TransferEncoding)
        );
    }

    #[test]
    fn bodies_are_skipped_to_their_end() {
        let mut decoder = RequestDecoder::new(Limits::default());
        let head = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n";
        assert!(decoder.decode_head(head).unwrap().is_some());
        assert_eq!(decoder.skip_body(b"he"), Ok((2, false)));
        assert_eq!(decoder.skip_body(b"lloGET"), Ok((3, true)));
        let head = b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
        assert!(decoder.decode_head(head).unwrap().is_some());
        assert_eq!(
            decoder.skip_body(b"5\r\nhello\r\n0\r\n\r\nGET"),
            Ok((15, true))
        );
        assert_eq!(decoder.skip_body(b"GET"), Ok((0, true)));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let mut decoder = RequestDecoder::new(Limits::default());
            if let Ok(Some((_, length))) = decoder.decode_head(&bytes) {
                let skipped = decoder.skip_body(&bytes[length..]);
                prop_assert!(skipped.is_err() || skipped.is_ok_and(|(taken, _)| taken <= bytes.len()));
            }
        }
    }
}
