//! A request, encoded once and sent as often as needed.

use std::sync::Arc;

use plimsoll_model::Protocol;
use plimsoll_wire::h1::{HeadError, RequestHead};
use plimsoll_wire::h2;
use url::Url;

use crate::connect::credentials::basic_authorization;
use crate::http3::Http3Request;
use crate::{Endpoint, Redirect, RequestForm};

/// One whole request as it goes over connections of one protocol; clones share its bytes.
#[derive(Debug, Clone)]
pub struct Request {
    protocol: Protocol,
    /// For HTTP/1.
    bytes: Arc<Vec<u8>>,
    /// For HTTP/2 and HTTP/3, whose requests have the same fields.
    fields: Option<h2::EncodedRequest>,
    /// For HTTP/3, unless the fields were rewritten since.
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
            protocol: Protocol::Http1,
            bytes: head.finish(body).into(),
            fields: None,
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
        let is_host = |name: &str| name.eq_ignore_ascii_case("host");
        let host = headers.iter().find(|(name, _)| is_host(name));
        let authority = host.map_or(authority, |(_, value)| value);
        let mut head = h2::RequestHead::new(method, scheme, authority, path)?;
        for (name, value) in headers.iter().filter(|(name, _)| !is_host(name)) {
            head.field(name, value)?;
        }
        Ok(Self {
            protocol: Protocol::Http2,
            bytes: Arc::default(),
            fields: Some(head.finish(body)),
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
        let request = Self::encode_http2(method, scheme, authority, path, headers, body)?;
        let http3 = request.fields.as_ref().and_then(Http3Request::from_encoded);
        let http3 = http3.ok_or_else(|| h2::HeadError::Path(path.to_owned()))?;
        Ok(Self {
            protocol: Protocol::Http3,
            http3: Some(http3),
            ..request
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

    /// Gives it other values, unless it is encoded for HTTP/1; the method stays.
    pub fn rewrite_fields(&mut self) -> Option<h2::Rewrite<'_>> {
        self.http3 = None;
        self.fields.as_mut().map(h2::EncodedRequest::rewrite)
    }

    /// The URL that it requests from `site`.
    pub fn url(&self, site: &Endpoint) -> Result<Url, url::ParseError> {
        let target = String::from_utf8_lossy(self.target());
        // On its way to a proxy the target is a whole URL.
        if target.starts_with('/') {
            Url::parse(&format!("{}://{}{target}", site.scheme(), site.authority()))
        } else {
            Url::parse(&target)
        }
    }

    /// The request that a redirect of its response leads to: with the method, the fields and the body
    /// that the redirect keeps.
    ///
    /// Each request of a chain is made from the one before it, so credentials that were dropped on the
    /// way to another origin stay dropped.
    ///
    /// - `endpoint`: that of the redirect.
    /// - `form`: how the target for `endpoint` is written.
    pub fn redirected(
        &self,
        redirect: &Redirect,
        endpoint: &Endpoint,
        form: RequestForm,
    ) -> Result<Self, RedirectedError> {
        let own = |name: &str| {
            // Encoding adds a length; the form has the credentials for a proxy.
            !name.starts_with(':')
                && !["content-length", "proxy-authorization"].contains(&name)
                && redirect.keeps_field(name)
        };
        let mut headers = Vec::new();
        for (name, value) in self.fields() {
            let name = String::from_utf8_lossy(name).into_owned();
            if own(&name.to_ascii_lowercase()) {
                headers.push((name, String::from_utf8_lossy(value).into_owned()));
            }
        }
        if let Some((user, password)) = endpoint.credentials()
            && !headers
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
        {
            let value = basic_authorization(user, password);
            headers.push(("authorization".to_owned(), value.expose().to_owned()));
        }
        let has_body = redirect.keeps_body && self.has_body();
        let body = has_body.then(|| self.body());
        let (method, host) = (&redirect.method, endpoint.authority());
        if self.protocol == Protocol::Http1 {
            let target = match form {
                RequestForm::Origin => endpoint.path_and_query().to_owned(),
                RequestForm::Absolute {
                    proxy_authorization,
                } => {
                    headers.extend(proxy_authorization.map(|value| {
                        ("proxy-authorization".to_owned(), value.expose().to_owned())
                    }));
                    endpoint.to_string()
                }
            };
            return Ok(Self::encode(method, &target, host, &headers, body)?);
        }
        let host = match self.host() {
            own if !redirect.is_cross_origin => String::from_utf8_lossy(own).into_owned(),
            _ => host.to_owned(),
        };
        let scheme = endpoint.scheme().name();
        let path = endpoint.path_and_query();
        let encode = match self.protocol {
            Protocol::Http3 => Self::encode_http3,
            _ => Self::encode_http2,
        };
        Ok(encode(method, scheme, &host, path, &headers, body)?)
    }

    /// Names and values of all fields, over HTTP/2 and HTTP/3 with those of the request line.
    fn fields(&self) -> Vec<(&[u8], &[u8])> {
        if let Some(fields) = &self.fields {
            return fields.headers().collect();
        }
        let lines = self.split_head().0.split(|byte| *byte == b'\n').skip(1);
        lines
            .filter_map(|line| {
                let colon = line.iter().position(|byte| *byte == b':')?;
                let (name, value) = line.split_at(colon);
                Some((name, value.get(1..)?.trim_ascii()))
            })
            .collect()
    }

    fn has_body(&self) -> bool {
        self.field("content-length").is_some()
    }

    fn body(&self) -> &[u8] {
        match &self.fields {
            Some(fields) => fields.body(),
            None => self.split_head().1.get(2..).unwrap_or_default(),
        }
    }

    /// The protocol that it is encoded for.
    pub fn protocol(&self) -> Protocol {
        self.protocol
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
        self.protocol = base.protocol;
        self.http3 = None;
        if let Some(source) = &base.fields {
            let own = self.fields.get_or_insert_with(|| source.clone());
            let mut rewrite = own.rewrite_as(source);
            for (name, value) in fields {
                rewrite.set(name, value);
            }
            return;
        }
        self.fields = None;
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

    /// The target of the request line, or `:path`.
    pub fn target(&self) -> &[u8] {
        match &self.fields {
            Some(fields) => fields.value(h2::EncodedRequest::PATH),
            None => self
                .bytes
                .split(|byte| *byte == b' ')
                .nth(1)
                .unwrap_or_default(),
        }
    }

    /// The value of `host`, or of `:authority`.
    pub fn host(&self) -> &[u8] {
        match &self.fields {
            Some(fields) => fields.value(h2::EncodedRequest::AUTHORITY),
            None => self.field("host").unwrap_or_default(),
        }
    }

    /// The value of the first field of that lowercase name.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        if let Some(fields) = &self.fields {
            let mut headers = fields.headers();
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

    /// Head and body as they go over HTTP/1; nothing in a request for another version.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The request as it goes over HTTP/2, if it was encoded for that.
    pub fn http2(&self) -> Option<&h2::EncodedRequest> {
        let fields = self.fields.as_ref();
        fields.filter(|_| self.protocol == Protocol::Http2)
    }

    /// The request as it goes over HTTP/3, if it was encoded for that.
    ///
    /// It is made anew where the values were [rewritten](Self::rewrite_fields); `None` then also means
    /// that they are no request that the `http` crate knows.
    pub fn http3(&self) -> Option<Http3Request> {
        if self.protocol != Protocol::Http3 {
            return None;
        }
        let rewritten = || self.fields.as_ref().and_then(Http3Request::from_encoded);
        self.http3.clone().or_else(rewritten)
    }

    /// Bytes that it takes in memory, roughly.
    pub fn size(&self) -> usize {
        let body = self.fields.as_ref();
        self.bytes.len() + body.map_or(0, |request| request.body().len())
    }

    /// The method.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Whether making it twice has the effect of making it once (RFC 9110, section 9.2.2).
    pub fn is_idempotent(&self) -> bool {
        is_idempotent(&self.method)
    }

    /// Whether the response announces content that it does not have.
    pub fn is_head(&self) -> bool {
        self.method == "HEAD"
    }
}

/// Why the request that a redirect leads to cannot be encoded.
#[derive(Debug, thiserror::Error)]
pub enum RedirectedError {
    /// Over HTTP/1.
    #[error(transparent)]
    Http1(#[from] HeadError),
    /// Over HTTP/2 or HTTP/3.
    #[error(transparent)]
    Http2(#[from] h2::HeadError),
}

/// Whether requests of a method may be made twice with the effect of one (RFC 9110, section 9.2.2).
pub fn is_idempotent(method: &str) -> bool {
    matches!(
        method,
        "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE"
    )
}

/// Whether a line of a head is a field of that lowercase name.
fn is_field(line: &[u8], name: &str) -> bool {
    line.split_at_checked(name.len())
        .is_some_and(|(start, rest)| {
            start.eq_ignore_ascii_case(name.as_bytes()) && rest.starts_with(b":")
        })
}

#[cfg(test)]
mod tests;
