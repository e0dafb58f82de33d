//! The configuration that is served, for operators: as TOML, with secrets masked.

use std::sync::Arc;

use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};

use crate::action::Answer;
use crate::content::ConfigContent;
use crate::message::response::{Response, ResponseBody};
use crate::observe::admin::{AdminMethod, AdminPath};

/// `/config`: the file that was compiled.
pub(super) fn path(content: &ConfigContent) -> AdminPath {
    let shown = content.masked().to_toml();
    AdminPath {
        path: "/config",
        method: AdminMethod::Get,
        answer: Arc::new(move |_| {
            let response = Response::new(StatusCode::OK)
                .with_field(CONTENT_TYPE, HeaderValue::from_static("application/toml"))
                .with_field(CACHE_CONTROL, HeaderValue::from_static("no-store"))
                .with_body(ResponseBody::Bytes(shown.clone().into()));
            Answer::now(response)
        }),
    }
}
