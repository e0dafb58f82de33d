//! Keys of stored responses: URLs, with what the configuration adds.

use plimsoll_server::{Request, Scheme};

/// The key of a stored response: the URL, with scheme and host.
pub(super) fn key(request: &Request<'_>, own: Option<&str>) -> String {
    let query = request.query.map_or(0, |query| query.len() + 1);
    let own_length = own.map_or(0, |own| own.len() + 1);
    let mut key = origin_with_room(request, request.path.len() + query + own_length);
    key.push_str(request.path);
    if let Some(query) = request.query {
        key.push('?');
        key.push_str(query);
    }
    with_own(key, own)
}

/// No URL has a blank, so keys with another part are no URLs of other responses.
pub(super) fn with_own(mut key: String, own: Option<&str>) -> String {
    if let Some(own) = own {
        key.push(' ');
        key.push_str(own);
    }
    key
}

pub(super) fn origin(request: &Request<'_>) -> String {
    origin_with_room(request, 0)
}

/// - `room`: bytes that will be appended.
fn origin_with_room(request: &Request<'_>, room: usize) -> String {
    let scheme = match request.scheme {
        Scheme::Http => "http://",
        Scheme::Https => "https://",
    };
    let mut origin = String::with_capacity(scheme.len() + request.authority.len() + room);
    origin.push_str(scheme);
    origin.push_str(request.authority);
    origin.make_ascii_lowercase();
    origin
}

/// The key of a URL of a response, if it has the origin of the request (section 4.4).
pub(super) fn same_origin(origin: &str, location: &str) -> Option<String> {
    let path = if location.starts_with('/') && !location.starts_with("//") {
        location
    } else {
        let path = location.strip_prefix(origin)?;
        if !path.starts_with('/') {
            return None;
        }
        path
    };
    let path = path.split('#').next().unwrap_or(path);
    Some(format!("{origin}{path}"))
}
