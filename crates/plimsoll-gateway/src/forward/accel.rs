//! `X-Accel-Redirect`: a server says which path responds in its place, as nginx has it.

use http::HeaderMap;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, EXPIRES, HeaderName,
    HeaderValue, SET_COOKIE,
};
use plimsoll_server::HandOver;
use plimsoll_wire::http::FieldList;

const REDIRECT: &str = "x-accel-redirect";

/// Beginning of the names of fields that a server writes for the gateway alone.
const PREFIX: &[u8] = b"x-accel-";

/// Fields that hold for the content of the other path too.
const KEPT: [HeaderName; 6] = [
    ACCEPT_RANGES,
    CACHE_CONTROL,
    CONTENT_DISPOSITION,
    CONTENT_TYPE,
    EXPIRES,
    SET_COOKIE,
];

/// The path that a response names, if it names one; takes the fields that are for the gateway out of the others.
pub(super) fn hand_over(fields: &mut FieldList) -> Option<HandOver> {
    // What is no path is found nowhere.
    let path = fields.get(REDIRECT);
    let path = path.map(|value| String::from_utf8_lossy(value).into_owned());
    fields.retain(|name, _| {
        let beginning = name.get(..PREFIX.len());
        !beginning.is_some_and(|it| it.eq_ignore_ascii_case(PREFIX))
    });
    let path = path?;
    let mut kept = HeaderMap::new();
    for (name, value) in &*fields {
        let name = KEPT
            .iter()
            .find(|kept| name.eq_ignore_ascii_case(kept.as_str().as_bytes()));
        if let (Some(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
            kept.append(name.clone(), value);
        }
    }
    Some(HandOver { path, fields: kept })
}

/// Whether a response is to reach the client as it comes, by `X-Accel-Buffering: no`; takes that field out of the others.
pub(super) fn refuses_buffering(fields: &mut FieldList) -> bool {
    const BUFFERING: &str = "x-accel-buffering";
    let refuses = fields
        .get(BUFFERING)
        .is_some_and(|it| it.eq_ignore_ascii_case(b"no"));
    fields.retain(|name, _| !name.eq_ignore_ascii_case(BUFFERING.as_bytes()));
    refuses
}
