//! A request, encoded once and sent as often as needed.

use std::sync::Arc;

use plimsoll_wire::h1::{HeadError, RequestHead};
use plimsoll_wire::h2;

/// One whole request as it goes over connections of one protocol; clones share its bytes.
#[derive(Debug, Clone)]
pub struct Request {
    bytes: Arc<[u8]>,
    http2: Option<h2::EncodedRequest>,
    method: String,
}

impl Request {
    /// Encodes a request for HTTP/1.
    ///
    /// - `target`: what stands in the request line (RFC 9112, section 3.2).
    /// - `host`: the value of the `Host` field, unless `headers` has one.
    /// - `headers`: further fields, in order; they may not frame the body.
    /// - `body`: `None` for a request without one. An empty body announces its length of zero.
    pub fn encode(
        method: &str,
        target: &str,
        host: &str,
        headers: &[(String, String)],
        body: Option<&[u8]>,
    ) -> Result<Self, HeadError> {
        let mut head = RequestHead::new(method, target)?;
        if !headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("host"))
        {
            head.field("host", host)?;
        }
        for (name, value) in headers {
            head.field(name, value)?;
        }
        Ok(Self {
            bytes: head.finish(body).into(),
            http2: None,
            method: method.to_owned(),
        })
    }

    /// Encodes a request for HTTP/2.
    ///
    /// - `path`: path and query, `*` for OPTIONS.
    /// - `authority`: the value of `:authority`, unless `headers` has a `host`, which then takes its
    ///   place (RFC 9113, section 8.3.1).
    /// - `headers`: further fields, in order.
    /// - `body`: as for [`encode`](Self::encode).
    pub fn encode_http2(
        method: &str,
        scheme: &str,
        authority: &str,
        path: &str,
        headers: &[(String, String)],
        body: Option<&[u8]>,
    ) -> Result<Self, h2::HeadError> {
        let is_host = |name: &str| name.eq_ignore_ascii_case("host");
        let host = headers.iter().find(|(name, _)| is_host(name));
        let authority = host.map_or(authority, |(_, value)| value);
        let mut head = h2::RequestHead::new(method, scheme, authority, path)?;
        for (name, value) in headers.iter().filter(|(name, _)| !is_host(name)) {
            head.field(name, value)?;
        }
        Ok(Self {
            bytes: Arc::default(),
            http2: Some(head.finish(body)),
            method: method.to_owned(),
        })
    }

    /// Head and body as they go over HTTP/1; nothing in a request for HTTP/2.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The request as it goes over HTTP/2, if it was encoded for that.
    pub fn http2(&self) -> Option<&h2::EncodedRequest> {
        self.http2.as_ref()
    }

    /// Bytes that it takes in memory, roughly.
    pub fn size(&self) -> usize {
        let http2 = self.http2.as_ref();
        let body = http2.map_or(0, |request| request.body().len());
        self.bytes.len() + body
    }

    /// The method.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Whether the response announces content that it does not have.
    pub fn is_head(&self) -> bool {
        self.method == "HEAD"
    }
}
