//! The path of a request as the names of files: decoded once, and nothing that leads elsewhere.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use plimsoll_wire::http::{NormalPath, PathRefusal};

/// The names of a path, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SitePath {
    /// Joined by slashes, without one at either end; empty for the root.
    pub(crate) joined: String,
    /// It ends with a slash.
    pub(crate) has_slash: bool,
    /// Slashes followed each other.
    pub(crate) has_gaps: bool,
}

/// Why a path cannot be that of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathError {
    /// It has no normal form.
    #[error(transparent)]
    Refused(#[from] PathRefusal),
    /// A slash or backslash behind an escape, which no file name contains.
    #[error("the path contains `%2F` or `%5C`, which no file name has")]
    Slash,
    /// Bytes that are no UTF-8.
    #[error("the path is not UTF-8")]
    Encoding,
}

impl SitePath {
    /// - `raw`: as it stands in a request, beginning with a slash.
    pub(crate) fn parse(raw: &str) -> Result<Self, PathError> {
        Self::from_normal_path(&NormalPath::parse(raw)?)
    }

    pub(crate) fn from_normal_path(path: &NormalPath<'_>) -> Result<Self, PathError> {
        if path.has_encoded_slash() {
            return Err(PathError::Slash);
        }
        if !path.is_utf8() {
            return Err(PathError::Encoding);
        }
        Ok(Self {
            joined: path.text().trim_matches('/').to_owned(),
            has_slash: path.has_slash(),
            has_gaps: path.has_gaps(),
        })
    }

    /// Whether a name begins with a dot, `.well-known` at the root apart (RFC 8615).
    pub(crate) fn is_hidden(&self) -> bool {
        let mut names = self.joined.split('/').enumerate();
        names.any(|(at, name)| name.starts_with('.') && (at, name) != (0, ".well-known"))
    }

    /// The last of its names.
    pub(crate) fn last(&self) -> &str {
        self.joined.rsplit('/').next().unwrap_or_default()
    }
}

/// Characters to escape in a name within a path (RFC 3986, section 3.3).
const ESCAPED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Names joined by slashes as they stand in a URL, without a slash at either end.
pub(crate) fn escaped(names: &str) -> String {
    utf8_percent_encode(names, ESCAPED).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_decoded_once() {
        for (raw, joined, has_slash, has_gaps) in [
            ("/", "", true, false),
            ("//", "", true, true),
            ("/a", "a", false, false),
            ("/a/", "a", true, false),
            ("/a%20b/%C3%BC", "a b/ü", false, false),
            ("/%2561", "%61", false, false),
            ("//a//b//", "a/b", true, true),
            ("/...", "...", false, false),
        ] {
            let path = SitePath::parse(raw).unwrap();
            let found = (path.joined.as_str(), path.has_slash, path.has_gaps);
            assert_eq!(found, (joined, has_slash, has_gaps), "{raw}");
        }
    }

    #[test]
    fn what_leads_elsewhere_is_refused() {
        for (raw, error) in [
            ("/a/../b", PathError::Refused(PathRefusal::Dots)),
            ("/a%5Cb", PathError::Slash),
            ("/a%", PathError::Refused(PathRefusal::Escape)),
            ("/a%2fb", PathError::Slash),
            ("/%c0%ae%c0%ae/", PathError::Encoding),
            ("/%ff", PathError::Encoding),
        ] {
            assert_eq!(SitePath::parse(raw), Err(error), "{raw}");
        }
    }

    #[test]
    fn hidden_names_are_known_at_every_place() {
        for (raw, is_hidden) in [
            ("/.git/config", true),
            ("/a/.b", true),
            ("/a/b.c", false),
            ("/.well-known/x", false),
            ("/a/.well-known", true),
            ("/.well-known/.x", true),
            ("/%2egit", true),
        ] {
            assert_eq!(
                SitePath::parse(raw).unwrap().is_hidden(),
                is_hidden,
                "{raw}"
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_escaped_comes_back(names in "[^/\\\\\r\n\0]{1,12}(/[^/\\\\\r\n\0]{1,12}){0,3}") {
            let is_dots = |name: &str| matches!(name.split(';').next(), Some("." | ".."));
            prop_assume!(!names.split('/').any(is_dots) && !names.contains("%2F"));
            let path = SitePath::parse(&format!("/{}", escaped(&names))).unwrap();
            prop_assert_eq!(path.joined, names);
        }

        #[test]
        fn no_path_has_names_that_lead_elsewhere(raw in "/[a.%2eEfF5cC0/\\\\]{0,20}") {
            if let Ok(path) = SitePath::parse(&raw) {
                let is_plain = |name: &str| {
                    name != "." && name != ".." && !name.contains(['\\', '\0'])
                };
                prop_assert!(path.joined.split('/').all(is_plain));
            }
        }
    }
}
