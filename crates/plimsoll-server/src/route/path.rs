//! Paths of routes.

use std::borrow::Cow;

use regex::Regex;

/// What the path of a request must be.
#[derive(Debug, Clone)]
pub enum PathCondition {
    /// This path.
    Exact(String),
    /// This path or one below it: `/api` covers `/api` and `/api/x`, but not `/apis`.
    Prefix(String),
    /// Segments, some of them any.
    Pattern(Pattern),
    /// The whole path, by a regular expression.
    Regex(Regex),
}

/// A path whose segments may be `{name}`, for any one, and at the end `{name...}`, for what remains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    segments: Vec<Segment>,
    has_rest: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Text(String),
    Any,
}

/// Why something is no path of a route.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It does not begin with a slash.
    #[error("must begin with `/`")]
    Slash,
    /// A question mark or a fragment.
    #[error("contains `{0}`, which is no part of a path")]
    Character(char),
    /// A place that is not a whole segment, or without a name.
    #[error("`{0}` is neither text nor a place such as {{id}} or, at the end, {{rest...}}")]
    Place(String),
    /// A regular expression that is none.
    #[error("{0}")]
    Regex(String),
}

impl PathCondition {
    /// This path.
    pub fn exact(path: &str) -> Result<Self, PathError> {
        checked(path).map(|path| Self::Exact(path.to_owned()))
    }

    /// This path and those below it.
    pub fn prefix(path: &str) -> Result<Self, PathError> {
        checked(path).map(|path| Self::Prefix(path.to_owned()))
    }

    /// Segments, as [`Pattern`] says.
    pub fn pattern(pattern: &str) -> Result<Self, PathError> {
        let mut segments = Vec::new();
        let mut has_rest = false;
        for segment in checked(pattern)?.split('/').skip(1) {
            let wrong = || PathError::Place(segment.to_owned());
            if has_rest {
                return Err(wrong());
            }
            match segment.strip_prefix('{') {
                None if segment.contains(['{', '}']) => return Err(wrong()),
                None => segments.push(Segment::Text(normalized(segment).into_owned())),
                Some(place) => {
                    let place = place.strip_suffix('}').ok_or_else(wrong)?;
                    let name = place.strip_suffix("...");
                    has_rest = name.is_some();
                    let name = name.unwrap_or(place);
                    if name.is_empty() || name.contains(['{', '}', '.']) {
                        return Err(wrong());
                    }
                    if !has_rest {
                        segments.push(Segment::Any);
                    }
                }
            }
        }
        Ok(Self::Pattern(Pattern {
            text: pattern.to_owned(),
            segments,
            has_rest,
        }))
    }

    /// A regular expression, which must match the whole path.
    pub fn regex(expression: &str) -> Result<Self, PathError> {
        // Compiled by itself first, so that the message is about what was written.
        let compile =
            |text: &str| Regex::new(text).map_err(|error| PathError::Regex(error.to_string()));
        compile(expression)?;
        compile(&format!("^(?:{expression})$")).map(Self::Regex)
    }

    /// - `path`: [`normalized`].
    pub(super) fn matches(&self, path: &str) -> bool {
        match self {
            Self::Exact(wanted) => normalized(wanted) == path,
            Self::Prefix(wanted) => {
                let wanted = normalized(wanted.trim_end_matches('/'));
                path.trim_end_matches('/')
                    .strip_prefix(&*wanted)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                    && path.starts_with('/')
            }
            Self::Pattern(pattern) => pattern.matches(path),
            Self::Regex(expression) => expression.is_match(path),
        }
    }

    pub(super) fn exactness(&self) -> (u8, usize) {
        match self {
            Self::Exact(_) => (2, 0),
            Self::Prefix(prefix) => (1, normalized(prefix.trim_end_matches('/')).len()),
            Self::Pattern(_) | Self::Regex(_) => (0, 0),
        }
    }
}

/// As it was written.
impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl Pattern {
    fn matches(&self, path: &str) -> bool {
        let Some(path) = path.strip_prefix('/') else {
            return false;
        };
        let mut given = path.split('/');
        for segment in &self.segments {
            let Some(given) = given.next() else {
                return false;
            };
            let is_met = match segment {
                Segment::Text(text) => text == given,
                Segment::Any => !given.is_empty(),
            };
            if !is_met {
                return false;
            }
        }
        given.next().is_some() == self.has_rest
    }
}

fn checked(path: &str) -> Result<&str, PathError> {
    if !path.starts_with('/') {
        return Err(PathError::Slash);
    }
    match path
        .chars()
        .find(|character| ['?', '#'].contains(character))
    {
        Some(character) => Err(PathError::Character(character)),
        None => Ok(path),
    }
}

/// The path with those escapes undone that mean nothing (RFC 3986, section 6.2.2.2), so that `/%61` is
/// no way around a route for `/a`.
pub(super) fn normalized(path: &str) -> Cow<'_, str> {
    if !path.contains('%') {
        return Cow::Borrowed(path);
    }
    let mut normal = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('%') {
        normal.push_str(before);
        let byte = after
            .get(..2)
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte {
            Some(byte) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                normal.push(char::from(byte));
            }
            Some(_) => {
                normal.push('%');
                normal.push_str(&after.get(..2).unwrap_or_default().to_ascii_uppercase());
            }
            None => {
                normal.push('%');
                rest = after;
                continue;
            }
        }
        rest = after.get(2..).unwrap_or_default();
    }
    normal.push_str(rest);
    Cow::Owned(normal)
}
