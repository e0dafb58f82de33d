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
    Method,
    Name,
    Tag,
}

const KEYS: [(&str, Key); 4] = [
    ("host", Key::Host),
    ("method", Key::Method),
    ("name", Key::Name),
    ("tag", Key::Tag),
];

impl Selector {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not of the form `host=example.org`; known are host, method, name and tag"
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
                let endpoint = &request.endpoint;
                endpoint.authority().eq_ignore_ascii_case(value)
                    || endpoint.host().to_string().eq_ignore_ascii_case(value)
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
}
