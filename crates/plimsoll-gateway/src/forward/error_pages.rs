//! Pages in place of the responses to requests that failed.

use bytes::Bytes;
use http::StatusCode;
use http::header::{
    ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, SET_COOKIE, WWW_AUTHENTICATE,
};
use plimsoll_server::{Response, ResponseBody, StatusPattern};
use plimsoll_wire::http::FieldList;

/// Pages by the status of the response that they replace.
#[derive(Debug, Clone, Default)]
pub(crate) struct ErrorPages {
    pub(crate) pages: Vec<(StatusPattern, ErrorPage)>,
    /// Responses of servers are replaced too, not only those of the gateway itself.
    pub(crate) intercepts: bool,
}

/// One page.
#[derive(Debug, Clone)]
pub(crate) struct ErrorPage {
    pub(crate) content: Bytes,
    pub(crate) content_type: HeaderValue,
    /// The status that the client gets instead.
    pub(crate) status: Option<StatusCode>,
}

/// Fields of a replaced response that hold for the page too.
const KEPT: [HeaderName; 4] = [ALLOW, RETRY_AFTER, SET_COOKIE, WWW_AUTHENTICATE];

impl ErrorPages {
    /// The response to a request that the gateway could not forward.
    pub(super) fn replaced(&self, response: Response) -> Response {
        let page = self.page(response.status());
        page.unwrap_or(response)
    }

    /// The page in place of a server's response.
    pub(super) fn intercepted(&self, status: StatusCode, fields: &FieldList) -> Option<Response> {
        if !self.intercepts {
            return None;
        }
        let mut page = self.page(status)?;
        for (name, value) in fields {
            let kept = KEPT
                .into_iter()
                .find(|kept| name.eq_ignore_ascii_case(kept.as_str().as_bytes()));
            if let (Some(name), Ok(value)) = (kept, HeaderValue::from_bytes(value)) {
                page = page.with_field(name, value);
            }
        }
        Some(page)
    }

    /// The most specific page of a status.
    fn page(&self, status: StatusCode) -> Option<Response> {
        let page = StatusPattern::find(&self.pages, status)?;
        let response = Response::new(page.status.unwrap_or(status))
            .with_field(CONTENT_TYPE, page.content_type.clone())
            .with_body(ResponseBody::Bytes(page.content.clone()));
        Some(response)
    }
}
