//! Which requests of a file are taken.

use super::DescribedRequest;

/// The selection among the requests of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Selector {
    key: Key,
    value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Host,
    Path,
    Method,
    Name,
    Tag,
}

const KEYS: [(&str, Key); 5] = [
    ("host", Key::Host),
    ("path", Key::Path),
    ("method", Key::Method),
    ("name", Key::Name),
    ("tag", Key::Tag),
];

impl Selector {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not of the form `host=example.org`; known are host, path, method, name and tag"
            )
        };
        let (key, value) = text.split_once('=').ok_or_else(wrong)?;
        let known = KEYS.iter().find(|(name, _)| *name == key.trim());
        let (_, key) = known.ok_or_else(wrong)?;
        Ok(Self {
            key: *key,
            value: value.trim().to_owned(),
        })
    }

    /// Whether it names a method.
    pub(super) fn is_by_method(&self) -> bool {
        self.key == Key::Method
    }

    /// Whether for each key that was given one of its values is that of the request.
    pub(super) fn all_match(selectors: &[Self], request: &DescribedRequest) -> bool {
        KEYS.iter().all(|(_, key)| {
            let mut of_key = selectors
                .iter()
                .filter(|selector| selector.key == *key)
                .peekable();
            of_key.peek().is_none() || of_key.any(|selector| selector.matches(request))
        })
    }

    fn matches(&self, request: &DescribedRequest) -> bool {
        let value = self.value.as_str();
        let Some(file) = &request.file else {
            return false;
        };
        match self.key {
            Key::Host => {
                // A log names the host that received the request.
                let (authority, host) = if let Some(host) = &file.host {
                    let name = host
                        .rsplit_once(':')
                        .map_or(host.as_str(), |(name, _)| name);
                    (host.clone(), name.to_owned())
                } else {
                    let endpoint = &request.endpoint;
                    (endpoint.authority().to_owned(), endpoint.host().to_string())
                };
                authority.eq_ignore_ascii_case(value) || host.eq_ignore_ascii_case(value)
            }
            Key::Path => {
                let path = file.url.to_string();
                path.split(['?', '#'])
                    .next()
                    .is_some_and(|path| is_below(path, value))
            }
            Key::Method => file
                .method
                .as_deref()
                .unwrap_or("GET")
                .eq_ignore_ascii_case(value),
            Key::Name => file.name.as_deref() == Some(value),
            Key::Tag => file.tags.iter().any(|tag| tag == value),
        }
    }
}

/// Whether a path is `base` or below it.
fn is_below(path: &str, base: &str) -> bool {
    let path = match path.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |start| rest.split_at(start).1),
        None => path,
    };
    let rest = path.strip_prefix(base.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_have_known_keys() {
        assert_eq!(Selector::parse("host=a").unwrap().key, Key::Host);
        for wrong in ["host", "site=a", ""] {
            assert!(Selector::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_path_includes_what_is_below_it() {
        for (path, base, expected) in [
            ("/api/users", "/api", true),
            ("/api", "/api/", true),
            ("/apis", "/api", false),
            ("/x", "/", true),
            ("http://h/api/x", "/api", true),
            ("http://h", "/api", false),
        ] {
            assert_eq!(is_below(path, base), expected, "{path} below {base}");
        }
    }
}
