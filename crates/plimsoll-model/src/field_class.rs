//! Classes of HTTP header fields by name: one list for everything that reads, writes or forwards fields.

/// The role of a field name in forwarding and framing. [`may_be_trailer`] is the rule for trailers.
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
    /// Forwarded, and read or rewritten by each intermediary: `host`, `expect`, `trailer`, `authorization`,
    /// `content-encoding`.
    HeadOnly,
    /// Forwarded as it is.
    EndToEnd,
}

impl FieldClass {
    /// The class of a field name, in any case.
    #[inline]
    pub fn from_name(name: &[u8]) -> Self {
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
}

/// Whether a field of that name, in any case, may stand in trailers.
///
/// Fields that say where a message ends, where it goes, how a request or a response is processed, who sends it, or what
/// its content is, must be known before the content (RFC 9110, section 6.5.1). A recipient that merges trailers into the
/// head would take them for those of the head.
pub fn may_be_trailer(name: &[u8]) -> bool {
    let is = |known: &&[u8]| name.eq_ignore_ascii_case(known);
    let begins = |prefix: &&[u8]| {
        let start = name.get(..prefix.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    FieldClass::from_name(name) == FieldClass::EndToEnd
        && !OF_HEADS.iter().any(is)
        && !PREFIXES_OF_HEADS.iter().any(begins)
}

/// Fields of heads beside those that [`FieldClass`] tells apart.
const OF_HEADS: [&[u8]; 20] = [
    // Routing.
    b"alt-svc",
    b"location",
    b"max-forwards",
    // How the request is processed.
    b"cache-control",
    b"pragma",
    b"range",
    // Who sends it.
    b"cookie",
    b"cookie2",
    b"set-cookie",
    b"set-cookie2",
    b"www-authenticate",
    // How the response is processed.
    b"age",
    b"date",
    b"expires",
    b"retry-after",
    b"vary",
    b"warning",
    // What the content is.
    b"accept-ranges",
    b"content-range",
    b"content-type",
];

/// Conditions; authentication and connections of proxies.
const PREFIXES_OF_HEADS: [&[u8]; 2] = [b"if-", b"proxy-"];

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
            assert_eq!(FieldClass::from_name(name.as_bytes()), class, "{name}");
        }
    }

    #[test]
    fn classes_answer_what_forwarding_and_trailers_need() {
        let class = |name: &str| FieldClass::from_name(name.as_bytes());
        for name in [":path", "connection", "te", "transfer-encoding"] {
            assert!(class(name).is_hop_by_hop(), "{name}");
        }
        for name in ["content-length", "host", "accept"] {
            assert!(!class(name).is_hop_by_hop(), "{name}");
        }
        assert!(class("transfer-encoding").is_connection_specific());
        assert!(!class("te").is_connection_specific());
        assert!(class("content-length").is_framing());
    }

    #[test]
    fn fields_of_heads_are_no_trailers() {
        for name in [
            ":path",
            "connection",
            "content-length",
            "Transfer-Encoding",
            "te",
            "trailer",
            "upgrade",
            "http2-settings",
            "host",
            "location",
            "Max-Forwards",
            "expect",
            "cache-control",
            "range",
            "if-match",
            "IF-NONE-MATCH",
            "if-modified-since",
            "if-range",
            "Authorization",
            "cookie",
            "Set-Cookie",
            "www-authenticate",
            "proxy-authorization",
            "proxy-authenticate",
            "Proxy-Anything",
            "age",
            "date",
            "expires",
            "retry-after",
            "vary",
            "warning",
            "content-encoding",
            "content-range",
            "content-type",
        ] {
            assert!(!may_be_trailer(name.as_bytes()), "{name}");
        }
        for name in [
            "grpc-status",
            "grpc-message",
            "grpc-status-details-bin",
            "x-sum",
            "content-digest",
            "repr-digest",
            "etag",
            "last-modified",
            "server-timing",
            "authentication-info",
            "iffy",
            "if",
        ] {
            assert!(may_be_trailer(name.as_bytes()), "{name}");
        }
    }
}
