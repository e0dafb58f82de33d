//! A request, encoded once and sent as often as needed.

use std::sync::Arc;

use plimsoll_model::Protocol;
use plimsoll_wire::h1::{HeadError, RequestHead};
use plimsoll_wire::h2;

use crate::http3::Http3Request;

/// One whole request as it goes over connections of one protocol; clones share its bytes.
#[derive(Debug, Clone)]
pub struct Request {
    bytes: Arc<[u8]>,
    http2: Option<h2::EncodedRequest>,
    http3: Option<Http3Request>,
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
            http3: None,
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
        let (authority, fields) = without_host(authority, headers);
        let mut head = h2::RequestHead::new(method, scheme, authority, path)?;
        for (name, value) in fields {
            head.field(name, value)?;
        }
        Ok(Self {
            bytes: Arc::default(),
            http2: Some(head.finish(body)),
            http3: None,
            method: method.to_owned(),
        })
    }

    /// Encodes a request for HTTP/3; the parameters are those of [`encode_http2`](Self::encode_http2).
    pub fn encode_http3(
        method: &str,
        scheme: &str,
        authority: &str,
        path: &str,
        headers: &[(String, String)],
        body: Option<&[u8]>,
    ) -> Result<Self, h2::HeadError> {
        let (authority, fields) = without_host(authority, headers);
        let request = Http3Request::new(method, scheme, authority, path, &fields, body)?;
        Ok(Self {
            bytes: Arc::default(),
            http2: None,
            http3: Some(request),
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

    /// The request as it goes over HTTP/3, if it was encoded for that.
    pub fn http3(&self) -> Option<&Http3Request> {
        self.http3.as_ref()
    }

    /// What it was encoded for.
    pub fn protocol(&self) -> Protocol {
        match (&self.http2, &self.http3) {
            (_, Some(_)) => Protocol::Http3,
            (Some(_), None) => Protocol::Http2,
            (None, None) => Protocol::Http1,
        }
    }

    /// Bytes that it takes in memory, roughly.
    pub fn size(&self) -> usize {
        let http2 = self
            .http2
            .as_ref()
            .map_or(0, |request| request.body().len());
        let http3 = self.http3.as_ref().map_or(0, Http3Request::body_bytes);
        self.bytes.len() + http2 + http3
    }

    /// The method.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Whether making it twice has the effect of making it once (RFC 9110, section 9.2.2).
    pub fn is_idempotent(&self) -> bool {
        matches!(
            self.method.as_str(),
            "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE"
        )
    }

    /// Whether the response announces content that it does not have.
    pub fn is_head(&self) -> bool {
        self.method == "HEAD"
    }
}

/// The authority, which a `host` among `headers` takes the place of, and the other fields.
fn without_host<'a>(
    authority: &'a str,
    headers: &'a [(String, String)],
) -> (&'a str, Vec<(&'a str, &'a str)>) {
    let is_host = |name: &str| name.eq_ignore_ascii_case("host");
    let host = headers.iter().find(|(name, _)| is_host(name));
    let fields = headers.iter().filter(|(name, _)| !is_host(name));
    (
        host.map_or(authority, |(_, value)| value),
        fields
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect(),
    )
}
