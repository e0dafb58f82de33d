//! Responses of pages: entity tags, compression, what a browser may load.

use axum::body::Body;
use axum::response::Response;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH, LOCATION, REFERRER_POLICY,
    SET_COOKIE, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, StatusCode};

use crate::page::cache::Rendered;

/// Style, script, pictures and connections of the page only; nothing inline (W3C Content Security Policy, level 3).
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
     form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const FRAMED: &str = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors *";

/// How long others may keep a response.
#[derive(Debug, Clone, Copy)]
pub(super) enum Caching {
    /// Its name changes with its content.
    Forever,
    /// A page that everyone may see.
    Briefly,
    /// A page behind a password.
    Private,
    /// A page whose language the reader has just chosen, which a cookie remembers.
    Language(&'static str),
}

/// The content, compressed if the reader takes that; 304 if the reader has it already.
pub(super) fn reply(rendered: &Rendered, fields: &HeaderMap, caching: Caching) -> Response {
    let is_known = fields
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|tag| tag.trim() == rendered.tag || tag.trim() == "*");
    let mut response = if is_known {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        let takes_gzip = fields
            .get(ACCEPT_ENCODING)
            .and_then(|value| value.to_str().ok())
            .is_some_and(takes_gzip);
        let content = if takes_gzip && !rendered.compressed.is_empty() {
            &rendered.compressed
        } else {
            &rendered.content
        };
        let mut response = Response::new(Body::from(content.clone()));
        let answer = response.headers_mut();
        if takes_gzip && !rendered.compressed.is_empty() {
            answer.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let media_type = HeaderValue::from_static(rendered.media_type);
        answer.insert(CONTENT_TYPE, media_type);
        answer.insert(CONTENT_LENGTH, HeaderValue::from(content.len()));
        response
    };
    let answer = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&rendered.tag) {
        answer.insert(ETAG, tag);
    }
    let cache = match caching {
        Caching::Forever => "public, max-age=31536000, immutable",
        Caching::Briefly => "public, max-age=5, stale-while-revalidate=30",
        Caching::Private | Caching::Language(_) => "private, no-cache",
    };
    answer.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    if let Caching::Language(code) = caching {
        let cookie = format!("lang={code}; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax");
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            answer.insert(SET_COOKIE, cookie);
        }
    }
    let vary = HeaderValue::from_static("accept-encoding, accept-language, cookie");
    answer.insert(VARY, vary);
    protect(answer, POLICY);
    response
}

/// Lets caches that many readers share keep a response, and drop it by a key.
///
/// The key is in `Surrogate-Key` (Fastly, Varnish's xkey) and in `Cache-Tag` (Cloudflare, Akamai, bunny.net).
///
/// - `seconds`: how long, unless it is purged (`s-maxage`, RFC 9111, section 5.2.2.10). While this server has no response,
///   the cache may go on with what it has for a day (`stale-if-error`, RFC 5861).
pub(super) fn share(response: &mut Response, seconds: u64, slug: &str) {
    let fields = response.headers_mut();
    let caching = format!(
        "public, max-age=5, s-maxage={seconds}, stale-while-revalidate=30, stale-if-error=86400"
    );
    let key = HeaderValue::from_str(&format!("status-{slug}"));
    if let (Ok(caching), Ok(key)) = (HeaderValue::from_str(&caching), key) {
        fields.insert(CACHE_CONTROL, caching);
        fields.insert(SURROGATE_KEY, key.clone());
        fields.insert(CACHE_TAG, key);
    }
}

const SURROGATE_KEY: HeaderName = HeaderName::from_static("surrogate-key");

const CACHE_TAG: HeaderName = HeaderName::from_static("cache-tag");

fn takes_gzip(value: &str) -> bool {
    value.split(',').any(|coding| {
        let mut parts = coding.split(';');
        let name = parts.next().unwrap_or_default().trim();
        let is_refused = parts.any(|part| matches!(part.trim(), "q=0" | "q=0.0" | "q=0.00"));
        (name.eq_ignore_ascii_case("gzip") || name == "*") && !is_refused
    })
}

fn protect(fields: &mut HeaderMap, policy: &'static str) {
    let all: [(HeaderName, &'static str); 3] = [
        (CONTENT_SECURITY_POLICY, policy),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "same-origin"),
    ];
    for (name, value) in all {
        fields.insert(name, HeaderValue::from_static(value));
    }
}

/// Lets other sites show a response in a frame.
pub(super) fn allow_frames(response: &mut Response) {
    protect(response.headers_mut(), FRAMED);
}

/// A picture that changes only with the configuration.
pub(super) fn picture(media_type: &'static str, content: &[u8]) -> Response {
    let mut response = Response::new(Body::from(content.to_vec()));
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=3600"));
    protect(fields, POLICY);
    response
}

/// Sends the browser elsewhere.
pub(super) fn redirect(status: StatusCode, to: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    if let Ok(to) = HeaderValue::from_str(to) {
        response.headers_mut().insert(LOCATION, to);
    }
    response
}

/// A status with a line of text.
pub(super) fn refused(status: StatusCode, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    let fields = response.headers_mut();
    fields.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    protect(fields, POLICY);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_sent_to_those_that_take_it() {
        assert!(takes_gzip("br, gzip;q=0.5") && takes_gzip("*"));
        assert!(!takes_gzip("br") && !takes_gzip("gzip;q=0, br"));
    }
}
