//! Classes of HTTP header fields by name: one list for everything that reads, writes or forwards fields.

/// The role of a field name in forwarding, framing and trailers.
///
/// ```text
/// Connection: keep-alive, x-hop      Connection; x-hop is of the connection too, which no list of names can tell
/// TE: trailers                       Hop
/// Content-Length: 5                  ContentLength
/// Host: example.org                  HeadOnly
/// X-Note: 1                          EndToEnd
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldClass {
    /// Begins with a colon: part of the request line or status line in HTTP/2 and HTTP/3, and no field in HTTP/1.
    Pseudo,
    /// Describes an HTTP/1 connection, and is malformed in HTTP/2 and HTTP/3 (RFC 9113, section 8.2.2).
    Connection,
    /// `transfer-encoding`: frames the body in HTTP/1, and is malformed in HTTP/2 and HTTP/3.
    TransferEncoding,
    /// `content-length`.
    ContentLength,
    /// Concerns the next hop only, in every version (RFC 9110, section 7.6.1).
    Hop,
    /// Between a client and the next proxy (RFC 9110, section 11.7).
    ProxyAuthentication,
    /// Forwarded in a head, forbidden in trailers: routing, request modifiers, authentication, content format
    /// (RFC 9110, section 6.5.1).
    HeadOnly,
    /// Forwarded in heads and trailers.
    EndToEnd,
}

impl FieldClass {
    /// The class of a field name, in any case.
    #[inline]
    pub fn of(name: &[u8]) -> Self {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        // Lengths first: most names differ from all of these in them.
        match name.len() {
            2 if is(b"te") => Self::Hop,
            4 if is(b"host") => Self::HeadOnly,
            6 if is(b"expect") => Self::HeadOnly,
            7 if is(b"upgrade") => Self::Connection,
            7 if is(b"trailer") => Self::HeadOnly,
            10 if is(b"connection") || is(b"keep-alive") => Self::Connection,
            13 if is(b"authorization") => Self::HeadOnly,
            14 if is(b"content-length") => Self::ContentLength,
            14 if is(b"http2-settings") => Self::Hop,
            16 if is(b"proxy-connection") => Self::Connection,
            16 if is(b"content-encoding") => Self::HeadOnly,
            17 if is(b"transfer-encoding") => Self::TransferEncoding,
            18 if is(b"proxy-authenticate") => Self::ProxyAuthentication,
            19 if is(b"proxy-authorization") => Self::ProxyAuthentication,
            _ => match name.first() {
                Some(b':') => Self::Pseudo,
                _ => Self::EndToEnd,
            },
        }
    }

    /// Whether the field is malformed in HTTP/2 and HTTP/3. `te` is allowed there with the value `trailers`.
    pub const fn is_connection_specific(self) -> bool {
        matches!(self, Self::Connection | Self::TransferEncoding)
    }

    /// Whether the field says where the body ends.
    pub const fn is_framing(self) -> bool {
        matches!(self, Self::TransferEncoding | Self::ContentLength)
    }

    /// Whether an intermediary removes the field (or writes its own) when it forwards a head.
    pub const fn is_hop_by_hop(self) -> bool {
        matches!(
            self,
            Self::Pseudo
                | Self::Connection
                | Self::TransferEncoding
                | Self::Hop
                | Self::ProxyAuthentication
        )
    }

    /// Whether the field may stand in trailers.
    pub const fn is_allowed_in_trailers(self) -> bool {
        matches!(self, Self::EndToEnd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_classified_in_any_case() {
        for (name, class) in [
            (":path", FieldClass::Pseudo),
            (":a-long-unknown-pseudo-field", FieldClass::Pseudo),
            ("Connection", FieldClass::Connection),
            ("keep-alive", FieldClass::Connection),
            ("Proxy-Connection", FieldClass::Connection),
            ("UPGRADE", FieldClass::Connection),
            ("Transfer-Encoding", FieldClass::TransferEncoding),
            ("Content-Length", FieldClass::ContentLength),
            ("TE", FieldClass::Hop),
            ("HTTP2-Settings", FieldClass::Hop),
            ("Proxy-Authorization", FieldClass::ProxyAuthentication),
            ("proxy-authenticate", FieldClass::ProxyAuthentication),
            ("Host", FieldClass::HeadOnly),
            ("trailer", FieldClass::HeadOnly),
            ("Content-Encoding", FieldClass::HeadOnly),
            ("accept", FieldClass::EndToEnd),
            ("", FieldClass::EndToEnd),
            ("x-a-name-that-is-longer-than-all", FieldClass::EndToEnd),
        ] {
            assert_eq!(FieldClass::of(name.as_bytes()), class, "{name}");
        }
    }

    #[test]
    fn classes_answer_what_forwarding_and_trailers_need() {
        let class = |name: &str| FieldClass::of(name.as_bytes());
        for name in [":path", "connection", "te", "transfer-encoding"] {
            assert!(class(name).is_hop_by_hop(), "{name}");
        }
        for name in ["content-length", "host", "accept"] {
            assert!(!class(name).is_hop_by_hop(), "{name}");
        }
        assert!(class("transfer-encoding").is_connection_specific());
        assert!(!class("te").is_connection_specific());
        assert!(class("content-length").is_framing());
        assert!(!class("authorization").is_allowed_in_trailers());
        assert!(class("grpc-status").is_allowed_in_trailers());
    }
}
