//! Keys of requests that should reach the same server.

use std::str::FromStr;

use http::HeaderName;
use plimsoll_server::{Maps, Moment, Request, Template};

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
    /// A text with places.
    Template(Template),
}

/// A key source that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not \"source\", \"path\", \"header:NAME\", \"cookie:NAME\" or a text with places, such as {{query:id}}"
)]
pub(crate) struct UnknownKey(String);

impl FromStr for KeySource {
    type Err = UnknownKey;

    fn from_str(text: &str) -> Result<Self, UnknownKey> {
        let unknown = || UnknownKey(text.to_owned());
        if text.contains('{') {
            let template = Template::parse(text, &Maps::default(), Moment::Request);
            let template = template.ok().flatten();
            return template.map(Self::Template).ok_or_else(unknown);
        }
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
    pub(crate) fn key_of(&self, request: &Request<'_>) -> u64 {
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
            Self::Template(template) => {
                let mut text = Vec::new();
                template.fill(request, &mut text);
                return if text.is_empty() { 0 } else { hash(&text) };
            }
            Self::Cookie(name) => request.cookie(name).unwrap_or("").as_bytes(),
        };
        if key.is_empty() { 0 } else { hash(key) }
    }
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
        assert!("{query:id}{client}".parse::<KeySource>().is_ok());
        for wrong in [
            "{nobody}",
            "{status}",
            "",
            "header",
            "header:",
            "header:a b",
            "cookie:",
            "ip",
        ] {
            assert!(wrong.parse::<KeySource>().is_err(), "{wrong}");
        }
    }
}
