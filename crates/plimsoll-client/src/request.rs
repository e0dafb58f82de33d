//! A request, encoded once and sent as often as needed.

use std::sync::Arc;

use plimsoll_wire::h1::{HeadError, RequestHead};
use plimsoll_wire::h2;

/// One whole request as it goes over connections of one protocol; clones share its bytes.
#[derive(Debug, Clone)]
pub struct Request {
    bytes: Arc<Vec<u8>>,
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

    /// Writes other bytes in place of its own: head and body of a request with the same method, for
    /// HTTP/1.
    ///
    /// Memory is reused unless a clone still needs it.
    pub fn rewrite(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let bytes = Arc::make_mut(&mut self.bytes);
        bytes.clear();
        write(bytes);
    }

    /// Gives it other values, if it is encoded for HTTP/2; the method stays.
    pub fn rewrite_http2(&mut self) -> Option<h2::Rewrite<'_>> {
        self.http2.as_mut().map(h2::EncodedRequest::rewrite)
    }

    /// Makes it a copy of `base` with other fields: each in the place of those of its name, or added.
    ///
    /// Memory is reused unless a clone still needs it.
    ///
    /// - `fields`: names in lowercase, no control characters in values.
    pub fn copy_with<'a>(
        &mut self,
        base: &Self,
        fields: impl Iterator<Item = (&'a str, &'a [u8])> + Clone,
    ) {
        self.method.clone_from(&base.method);
        if let Some(source) = &base.http2 {
            let own = self.http2.get_or_insert_with(|| source.clone());
            let mut rewrite = own.rewrite_as(source);
            for (name, value) in fields {
                rewrite.set(name, value);
            }
            return;
        }
        self.http2 = None;
        self.rewrite(|out| {
            let (head, rest) = base.split_head();
            for line in head.split_inclusive(|byte| *byte == b'\n') {
                let is_replaced = |(name, _): (&str, &[u8])| is_field(line, name);
                if !fields.clone().any(is_replaced) {
                    out.extend_from_slice(line);
                }
            }
            for (name, value) in fields {
                for part in [name.as_bytes(), b": ", value, b"\r\n"] {
                    out.extend_from_slice(part);
                }
            }
            out.extend_from_slice(rest);
        });
    }

    /// What stands in the request line, or `:path`.
    pub fn target(&self) -> &[u8] {
        match &self.http2 {
            Some(http2) => http2.value(h2::EncodedRequest::PATH),
            None => self
                .bytes
                .split(|byte| *byte == b' ')
                .nth(1)
                .unwrap_or_default(),
        }
    }

    /// The value of `host`, or of `:authority`.
    pub fn host(&self) -> &[u8] {
        match &self.http2 {
            Some(http2) => http2.value(h2::EncodedRequest::AUTHORITY),
            None => self.field("host").unwrap_or_default(),
        }
    }

    /// The value of the first field of that lowercase name.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        if let Some(http2) = &self.http2 {
            let mut headers = http2.headers();
            let found = headers.find(|(candidate, _)| *candidate == name.as_bytes());
            return found.map(|(_, value)| value);
        }
        let mut lines = self
            .split_head()
            .0
            .split_inclusive(|byte| *byte == b'\n')
            .skip(1);
        let line = lines.find(|line| is_field(line, name))?;
        Some(line[name.len() + 1..].trim_ascii())
    }

    /// The lines of the head, and what follows them: the empty line and the body.
    fn split_head(&self) -> (&[u8], &[u8]) {
        let mut windows = self.bytes.windows(4);
        let end = windows.position(|window| window == b"\r\n\r\n");
        self.bytes
            .split_at(end.map_or(self.bytes.len(), |end| end + 2))
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

/// Whether a line of a head is a field of that lowercase name.
fn is_field(line: &[u8], name: &str) -> bool {
    line.split_at_checked(name.len())
        .is_some_and(|(start, rest)| {
            start.eq_ignore_ascii_case(name.as_bytes()) && rest.starts_with(b":")
        })
}
