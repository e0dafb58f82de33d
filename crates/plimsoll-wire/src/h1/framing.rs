//! The header fields that decide the length of a message body (RFC 9112, section 6.3), read. What follows from them is in
//! `request.rs` and `response.rs`.

use httparse::Header;

use crate::h1::DecodeError;
use crate::http::decimal::decimal;

/// The framing fields of one head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Framing {
    pub(crate) content_length: Option<u64>,
    pub(crate) transfer_encoding: Option<TransferEncoding>,
    pub(crate) connection_close: bool,
    pub(crate) connection_keep_alive: bool,
}

/// The codings of `transfer-encoding`, as far as framing cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransferEncoding {
    /// `chunked` alone.
    Chunked,
    /// Others, alone or below it: what comes is neither decoded here nor can it be passed on, since the coding is named
    /// for this connection only.
    Undecoded,
}

impl Framing {
    /// Reads the framing fields out of `headers`.
    pub(crate) fn from_headers(headers: &[Header<'_>]) -> Result<Self, DecodeError> {
        let mut framing = Self::default();
        for header in headers {
            // Lengths first: most header fields differ in them.
            match header.name.len() {
                10 if header.name.eq_ignore_ascii_case("connection") => {
                    framing.connection(header.value);
                }
                14 if header.name.eq_ignore_ascii_case("content-length") => {
                    framing.content_length(header.value)?;
                }
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                    framing.transfer_encoding(header.value)?;
                }
                _ => {}
            }
        }
        Ok(framing)
    }

    fn connection(&mut self, value: &[u8]) {
        for option in elements(value) {
            self.connection_close |= option.eq_ignore_ascii_case(b"close");
            self.connection_keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// Several equal lengths count as one, whether in one field or in more.
    fn content_length(&mut self, value: &[u8]) -> Result<(), DecodeError> {
        for element in value.split(|byte| *byte == b',') {
            let length = decimal(element.trim_ascii()).ok_or(DecodeError::ContentLength)?;
            if self.content_length.is_some_and(|earlier| earlier != length) {
                return Err(DecodeError::ContentLength);
            }
            self.content_length = Some(length);
        }
        Ok(())
    }

    fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), DecodeError> {
        for coding in elements(value) {
            // Nothing may follow `chunked`, and it may not be applied twice.
            if self.transfer_encoding == Some(TransferEncoding::Chunked) {
                return Err(DecodeError::TransferEncoding);
            }
            let is_chunked = coding.eq_ignore_ascii_case(b"chunked");
            self.transfer_encoding = Some(match self.transfer_encoding {
                None if is_chunked => TransferEncoding::Chunked,
                _ => TransferEncoding::Undecoded,
            });
        }
        if self.transfer_encoding.is_none() {
            return Err(DecodeError::TransferEncoding);
        }
        Ok(())
    }
}

/// The non-empty elements of a comma-separated list (RFC 9110, section 5.6.1).
pub(crate) fn elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|byte| *byte == b',')
        .map(<[u8]>::trim_ascii)
        .filter(|element| !element.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framing(fields: &[(&str, &str)]) -> Result<Framing, DecodeError> {
        let headers: Vec<_> = fields
            .iter()
            .map(|(name, value)| Header {
                name,
                value: value.as_bytes(),
            })
            .collect();
        Framing::from_headers(&headers)
    }

    #[test]
    fn equal_lengths_count_once_and_others_are_refused() {
        let length = |value| framing(&[("Content-Length", value)]).map(|f| f.content_length);
        assert_eq!(length("12"), Ok(Some(12)));
        assert_eq!(length("12, 12"), Ok(Some(12)));
        for bad in [
            "",
            "12, 13",
            "+12",
            "-1",
            "0x10",
            "1 2",
            "18446744073709551616",
            ",",
        ] {
            assert_eq!(length(bad), Err(DecodeError::ContentLength), "{bad:?}");
        }
        assert_eq!(
            framing(&[("content-length", "5"), ("content-length", "6")]),
            Err(DecodeError::ContentLength)
        );
    }

    #[test]
    fn chunked_must_be_last_and_once() {
        let coding = |value| framing(&[("Transfer-Encoding", value)]).map(|f| f.transfer_encoding);
        assert_eq!(coding("chunked"), Ok(Some(TransferEncoding::Chunked)));
        assert_eq!(coding("CHUNKED, "), Ok(Some(TransferEncoding::Chunked)));
        for other in ["gzip, chunked", "gzip", "xchunked", "identity"] {
            assert_eq!(
                coding(other),
                Ok(Some(TransferEncoding::Undecoded)),
                "{other}"
            );
        }
        for bad in ["chunked, gzip", "chunked, chunked", "", ","] {
            assert_eq!(coding(bad), Err(DecodeError::TransferEncoding), "{bad:?}");
        }
    }

    #[test]
    fn connection_options_are_a_list() {
        let framing = framing(&[("Connection", "Upgrade, Close")]).unwrap();
        assert!(framing.connection_close);
        assert!(!framing.connection_keep_alive);
    }
}
