//! A request in the form that the `h3` crate takes.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Method, Uri};
use plimsoll_wire::h2::EncodedRequest;

/// One whole request; clones share it.
#[derive(Debug, Clone)]
pub struct Http3Request {
    parts: Arc<RequestParts>,
}

#[derive(Debug)]
struct RequestParts {
    method: Method,
    uri: Uri,
    fields: HeaderMap,
    body: Bytes,
}

impl Http3Request {
    /// The rules for fields are those of HTTP/2 (RFC 9114, section 4.2), which `request` was checked by.
    ///
    /// `None` if its authority or its path is none that the `http` crate knows.
    pub(crate) fn from_encoded(request: &EncodedRequest) -> Option<Self> {
        let mut method = Method::GET;
        let mut uri = Uri::builder();
        let mut fields = HeaderMap::new();
        for (name, value) in request.headers() {
            match name {
                b":method" => method = Method::from_bytes(value).ok()?,
                b":scheme" => uri = uri.scheme(value),
                b":authority" => uri = uri.authority(value),
                b":path" => uri = uri.path_and_query(value),
                _ => {
                    let name = HeaderName::from_bytes(name).ok()?;
                    fields.append(name, HeaderValue::from_bytes(value).ok()?);
                }
            }
        }
        Some(Self {
            parts: Arc::new(RequestParts {
                method,
                uri: uri.build().ok()?,
                fields,
                body: Bytes::copy_from_slice(request.body()),
            }),
        })
    }

    pub(super) fn head(&self) -> http::Request<()> {
        let mut head = http::Request::new(());
        head.method_mut().clone_from(&self.parts.method);
        head.uri_mut().clone_from(&self.parts.uri);
        head.headers_mut().clone_from(&self.parts.fields);
        head
    }

    pub(super) fn body(&self) -> Option<Bytes> {
        Some(self.parts.body.clone()).filter(|body| !body.is_empty())
    }

    pub(super) fn is_head(&self) -> bool {
        self.parts.method == Method::HEAD
    }
}
