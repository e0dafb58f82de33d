//! A request, checked once and sent as often as needed.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use plimsoll_wire::h2;

/// One whole request; clones share it.
#[derive(Debug, Clone)]
pub struct Http3Request {
    parts: Arc<Parts>,
}

#[derive(Debug)]
struct Parts {
    method: Method,
    uri: Uri,
    fields: HeaderMap,
    body: Option<Bytes>,
}

impl Http3Request {
    /// The rules for fields are those of HTTP/2 (RFC 9114, section 4.2), and so are the errors.
    ///
    /// - `path`: path and query, `*` for OPTIONS.
    pub(crate) fn new(
        method: &str,
        scheme: &str,
        authority: &str,
        path: &str,
        fields: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Result<Self, h2::HeadError> {
        // Checks all of it, connection-specific fields among them.
        let mut head = h2::RequestHead::new(method, scheme, authority, path)?;
        for (name, value) in fields {
            head.field(name, value)?;
        }
        let uri = Uri::builder().scheme(scheme).authority(authority);
        let uri = uri.path_and_query(path).build();
        let mut map = HeaderMap::with_capacity(fields.len() + 1);
        for (name, value) in fields {
            let name = HeaderName::from_bytes(name.as_bytes());
            let name = name.expect("the name was checked");
            let value = HeaderValue::from_bytes(value.as_bytes());
            map.append(name, value.expect("the value was checked"));
        }
        if let Some(body) = body {
            map.insert(http::header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        Ok(Self {
            parts: Arc::new(Parts {
                method: Method::from_bytes(method.as_bytes()).expect("the method was checked"),
                uri: uri.map_err(|_| h2::HeadError::Path(path.to_owned()))?,
                fields: map,
                body: body.map(Bytes::copy_from_slice),
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
        self.parts.body.clone().filter(|body| !body.is_empty())
    }

    pub(super) fn is_head(&self) -> bool {
        self.parts.method == Method::HEAD
    }

    /// Bytes of the body.
    pub(crate) fn body_bytes(&self) -> usize {
        self.parts.body.as_ref().map_or(0, Bytes::len)
    }
}
