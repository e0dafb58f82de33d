//! A request, encoded once and sent as often as needed.

use std::sync::Arc;

use plimsoll_wire::h1::{HeadError, RequestHead};

/// One whole request as it goes over an HTTP/1 connection; clones share its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    bytes: Arc<Vec<u8>>,
    method: String,
}

impl Request {
    /// Encodes a request.
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
            method: method.to_owned(),
        })
    }

    /// Writes other bytes in place of its own: head and body of a request with the same method.
    ///
    /// Memory is reused unless a clone still needs it.
    pub fn rewrite(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let bytes = Arc::make_mut(&mut self.bytes);
        bytes.clear();
        write(bytes);
    }

    /// Head and body.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
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
