//! Paths of which some segments may be any.

use std::fmt;

/// Segments, of which `{name}` stands for any one and, at the end, `{name...}` for what remains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    text: String,
    segments: Vec<Option<String>>,
    has_rest: bool,
    names: Vec<(String, usize)>,
}

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither text nor a place such as {{id}} or, at the end, {{rest...}}")]
pub struct PatternError(String);

impl PathPattern {
    /// - `path`: normalised.
    pub fn new(path: &str) -> Result<Self, PatternError> {
        let mut pattern = Self {
            text: path.to_owned(),
            segments: Vec::new(),
            has_rest: false,
            names: Vec::new(),
        };
        for (number, segment) in path.trim_start_matches('/').split('/').enumerate() {
            let wrong = || PatternError(segment.to_owned());
            if pattern.has_rest {
                return Err(wrong());
            }
            let Some(place) = segment.strip_prefix('{') else {
                if segment.contains(['{', '}']) {
                    return Err(wrong());
                }
                pattern.segments.push(Some(segment.to_owned()));
                continue;
            };
            let place = place.strip_suffix('}').ok_or_else(wrong)?;
            let name = place.strip_suffix("...");
            pattern.has_rest = name.is_some();
            let name = name.unwrap_or(place);
            if name.is_empty() || name.contains(['{', '}']) {
                return Err(wrong());
            }
            pattern.names.push((name.to_owned(), number));
            if !pattern.has_rest {
                pattern.segments.push(None);
            }
        }
        Ok(pattern)
    }

    /// The names of its places, each with the number of its segment, from 0.
    pub fn names(&self) -> &[(String, usize)] {
        &self.names
    }

    /// The prefix of every path that it matches.
    pub fn beginning(&self) -> &str {
        let end = self.text.find('{').unwrap_or(self.text.len());
        self.text.get(..end).unwrap_or_default()
    }

    /// Whether it matches a path, normalised.
    pub fn matches(&self, path: &str) -> bool {
        let mut given = path.trim_start_matches('/').split('/');
        let are_met = self
            .segments
            .iter()
            .all(|wanted| match (wanted, given.next()) {
                (Some(wanted), Some(given)) => wanted == given,
                (None, Some(given)) => !given.is_empty(),
                (_, None) => false,
            });
        are_met && given.next().is_some() == self.has_rest
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_matched() {
        for (pattern, path, expected) in [
            ("/users/{id}", "/users/7", true),
            ("/users/{id}", "/users", false),
            ("/users/{id}", "/users/7/x", false),
            ("/{a}/x/{b}", "/1/x/2", true),
            ("/{a}/x/{b}", "/1/y/2", false),
            ("/files/{rest...}", "/files/a/b", true),
            ("/files/{rest...}", "/files", false),
            ("/", "/", true),
            ("/{a}", "/", false),
        ] {
            let pattern = PathPattern::new(pattern).unwrap();
            assert_eq!(pattern.matches(path), expected, "{pattern} {path}");
            assert!(!expected || path.starts_with(pattern.beginning()));
        }
        for text in ["/{", "/{}", "/a{b}", "/{a...}/b", "/{a}b"] {
            assert!(PathPattern::new(text).is_err(), "{text}");
        }
        let names = PathPattern::new("/a/{b}/{c}").unwrap().names().to_vec();
        assert_eq!(names, [("b".to_owned(), 1), ("c".to_owned(), 2)]);
    }
}
