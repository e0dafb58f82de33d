//! The announcement of HTTP/3.

/// Value of `alt-svc` that announces HTTP/3 (RFC 7838).
#[derive(Debug)]
pub(crate) struct AltSvc {
    /// A line of HTTP/1.
    pub(crate) line: Vec<u8>,
    pub(crate) value: http::HeaderValue,
}

impl AltSvc {
    /// - `port`: UDP, at the host of the request.
    pub(crate) fn new(port: u16) -> Self {
        // A day, as it is common: a client that finds no server there comes back by TCP at once.
        let value = format!("h3=\":{port}\"; ma=86400");
        Self {
            line: format!("alt-svc: {value}\r\n").into_bytes(),
            value: http::HeaderValue::try_from(value).expect("digits and signs are visible"),
        }
    }
}
