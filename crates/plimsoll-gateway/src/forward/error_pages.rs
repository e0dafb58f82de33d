//! Pages in place of the responses to requests that failed.

use bytes::Bytes;
use http::StatusCode;
use http::header::{
    ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, SET_COOKIE, WWW_AUTHENTICATE,
};
use plimsoll_server::{Response, ResponseBody};
use plimsoll_wire::http::FieldList;

/// Pages by the status of the response that they replace.
#[derive(Debug, Clone, Default)]
pub(crate) struct ErrorPages {
    pub(crate) pages: Vec<(ErrorStatus, ErrorPage)>,
    /// Responses of servers are replaced too, not only those of the gateway itself.
    pub(crate) intercepts: bool,
}

/// Which responses a page is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorStatus {
    /// This status.
    Is(StatusCode),
    /// 400 to 499 or 500 to 599, by the first digit.
    Class(u16),
}

/// One page.
#[derive(Debug, Clone)]
pub(crate) struct ErrorPage {
    pub(crate) content: Bytes,
    pub(crate) content_type: HeaderValue,
    /// The status that the client gets instead.
    pub(crate) status: Option<StatusCode>,
}

impl std::str::FromStr for ErrorStatus {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "4xx" => Ok(Self::Class(4)),
            "5xx" => Ok(Self::Class(5)),
            _ => StatusCode::from_bytes(text.as_bytes())
                .ok()
                .filter(|status| status.is_client_error() || status.is_server_error())
                .map(Self::Is)
                .ok_or("is not a status from 400 to 599, \"4xx\" or \"5xx\""),
        }
    }
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
        let find = |wanted| {
            let mut pages = self.pages.iter();
            pages.find(|(known, _)| *known == wanted)
        };
        let found = find(ErrorStatus::Is(status))
            .or_else(|| find(ErrorStatus::Class(status.as_u16() / 100)));
        let (_, page) = found?;
        let response = Response::new(page.status.unwrap_or(status))
            .with_field(CONTENT_TYPE, page.content_type.clone())
            .with_body(ResponseBody::Bytes(page.content.clone()));
        Some(response)
    }
}
