//! Responses that are made once and sent often.

use std::rc::Rc;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use plimsoll_server::{Prepared, Response, ResponseBody};

use crate::worker::sharing::{Allowed, Sharing};

/// A whole response, prepared for everybody; for a page that sends credentials it is made anew.
#[derive(Debug)]
pub(crate) struct PreparedResponse {
    status: StatusCode,
    fields: Vec<(HeaderName, HeaderValue)>,
    content: Bytes,
    prepared: Rc<Prepared>,
}

impl PreparedResponse {
    /// Makes one.
    pub(crate) fn new(
        sharing: &Sharing,
        status: StatusCode,
        fields: Vec<(HeaderName, HeaderValue)>,
        content: Bytes,
    ) -> Self {
        let made = response(sharing, &Allowed::Anybody, status, &fields);
        let prepared = made
            .with_body(ResponseBody::Bytes(content.clone()))
            .prepare();
        Self {
            status,
            fields,
            content,
            prepared,
        }
    }

    /// A line of text.
    pub(crate) fn text(sharing: &Sharing, status: StatusCode, text: impl Into<String>) -> Self {
        let kind = HeaderValue::from_static("text/plain; charset=utf-8");
        Self::new(
            sharing,
            status,
            vec![(CONTENT_TYPE, kind)],
            Bytes::from(text.into()),
        )
    }

    /// Length of its content, in bytes.
    pub(crate) fn length(&self) -> usize {
        self.content.len()
    }

    /// To be sent.
    #[inline]
    pub(crate) fn response(&self, sharing: &Sharing, allowed: &Allowed) -> Response {
        if *allowed == Allowed::Anybody {
            return Response::from(Rc::clone(&self.prepared));
        }
        response(sharing, allowed, self.status, &self.fields)
            .with_body(ResponseBody::Bytes(self.content.clone()))
    }
}

/// A response without content, with these fields and those that every one of a mock has.
pub(crate) fn response(
    sharing: &Sharing,
    allowed: &Allowed,
    status: StatusCode,
    fields: &[(HeaderName, HeaderValue)],
) -> Response {
    let mut response = Response::new(status);
    let is_given = |name: &HeaderName| fields.iter().any(|(given, _)| given == name);
    let always = [
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    for (name, value) in always.into_iter().chain(sharing.fields(allowed)) {
        if !is_given(&name) {
            response = response.with_field(name, value);
        }
    }
    for (name, value) in fields {
        response = response.with_field(name.clone(), value.clone());
    }
    response
}
