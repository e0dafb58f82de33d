//! Lists of short links, loaded again on demand: a path of the admin port.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use plimsoll_server::{AdminMethod, AdminPath, Answer, Response, ResponseBody, SharedStates};

use crate::rules::links::LinkLists;

/// `POST /redirects/refresh` has every list of short links loaded again in a moment.
///
/// - `states`: of the configuration whose sites have the lists.
pub fn refresh_path(states: &SharedStates) -> AdminPath {
    let states = states.clone();
    AdminPath {
        path: "/redirects/refresh",
        method: AdminMethod::Post,
        answer: Arc::new(move |_| {
            let lists = states
                .state(LinkLists::IDENTITY, LinkLists::default)
                .refresh();
            let text = format!("{{\"lists\":{lists}}}\n");
            Answer::now(
                Response::new(StatusCode::ACCEPTED)
                    .with_field(CONTENT_TYPE, HeaderValue::from_static("application/json"))
                    .with_field(CACHE_CONTROL, HeaderValue::from_static("no-store"))
                    .with_body(ResponseBody::Bytes(Bytes::from(text))),
            )
        }),
    }
}
