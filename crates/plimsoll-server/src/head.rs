//! What a head of HTTP/2 or HTTP/3 must keep besides the rules of its protocol: the same as one of HTTP/1.

use http::header::{CONTENT_LENGTH, EXPECT, HOST};
use http::request::Parts;
use plimsoll_wire::h1::{RequestError, RequestLimits};

/// Whom the request is for, after what HTTP/1 refuses while decoding.
pub(crate) fn authority<'a>(
    parts: &'a Parts,
    limits: &RequestLimits,
) -> Result<&'a str, RequestError> {
    if parts.headers.len() > limits.headers {
        return Err(RequestError::TooManyFields);
    }
    let target = parts
        .uri
        .path_and_query()
        .map_or(0, |path| path.as_str().len());
    if target > limits.target_bytes {
        return Err(RequestError::TargetTooLong);
    }
    if let Some(length) = parts.headers.get(CONTENT_LENGTH)
        && let Some(length) = length
            .to_str()
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
        && length > limits.body_bytes
    {
        return Err(RequestError::BodyTooLarge);
    }
    let mut hosts = parts.headers.get_all(HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err(RequestError::HostRepeated);
    }
    let host = host
        .map(|host| host.to_str().map_err(|_| RequestError::HostInvalid))
        .transpose()?;
    match (parts.uri.authority(), host) {
        (Some(authority), Some(host)) if !authority.as_str().eq_ignore_ascii_case(host) => {
            Err(RequestError::HostMismatch)
        }
        (Some(authority), _) => Ok(authority.as_str()),
        (None, Some(host)) => Ok(host),
        (None, None) => Err(RequestError::HostMissing),
    }
}

/// Whether the client waits to be asked for its content.
pub(crate) fn is_expected(parts: &Parts) -> bool {
    parts
        .headers
        .get(EXPECT)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}
