//! Keys of requests that should reach the same server.

use std::str::FromStr;

use http::HeaderName;
use plimsoll_server::Request;

use crate::balance::hash;

/// Source of a request's balancing key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum KeySource {
    /// There is none.
    #[default]
    None,
    /// The client's address.
    Source,
    /// The path, without the query.
    Path,
    /// The value of a header field.
    Header(HeaderName),
    /// The value of a cookie.
    Cookie(String),
}

/// A key source that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not \"source\", \"path\", \"header:NAME\" or \"cookie:NAME\"")]
pub(crate) struct UnknownKey(String);

impl FromStr for KeySource {
    type Err = UnknownKey;

    fn from_str(text: &str) -> Result<Self, UnknownKey> {
        let unknown = || UnknownKey(text.to_owned());
        match text.split_once(':') {
            None if text == "source" => Ok(Self::Source),
            None if text == "path" => Ok(Self::Path),
            Some(("header", name)) => name.parse().map(Self::Header).map_err(|_| unknown()),
            Some(("cookie", name)) if !name.is_empty() => Ok(Self::Cookie(name.to_owned())),
            _ => Err(unknown()),
        }
    }
}

impl KeySource {
    /// The hash of a request's key; 0 if it has none.
    pub(crate) fn of(&self, request: &Request<'_>) -> u64 {
        let key = match self {
            Self::None => return 0,
            Self::Source => {
                return match request.peer.ip() {
                    std::net::IpAddr::V4(address) => hash(&address.octets()),
                    std::net::IpAddr::V6(address) => hash(&address.octets()),
                };
            }
            Self::Path => request.path.as_bytes(),
            Self::Header(name) => request.header(name.as_str()).unwrap_or_default(),
            Self::Cookie(name) => cookie(request, name).unwrap_or("").as_bytes(),
        };
        if key.is_empty() { 0 } else { hash(key) }
    }
}

/// The value of the first cookie of that name.
pub(crate) fn cookie<'a>(request: &Request<'a>, name: &str) -> Option<&'a str> {
    let fields = request
        .headers()
        .filter(|(field, _)| field.eq_ignore_ascii_case("cookie"));
    fields
        .filter_map(|(_, value)| std::str::from_utf8(value).ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(known, _)| *known == name)
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_written_as_in_the_file() {
        assert_eq!("source".parse(), Ok(KeySource::Source));
        assert_eq!("path".parse(), Ok(KeySource::Path));
        let user = HeaderName::from_static("x-user");
        assert_eq!("header:X-User".parse(), Ok(KeySource::Header(user)));
        assert_eq!("cookie:id".parse(), Ok(KeySource::Cookie("id".into())));
        for wrong in ["", "header", "header:", "header:a b", "cookie:", "ip"] {
            assert!(wrong.parse::<KeySource>().is_err(), "{wrong}");
        }
    }
}
