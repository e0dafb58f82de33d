//! Paths of routes.
//!
//! All are compared with the normal form of a request's path ([`NormalPath`]), and in any case. File systems and
//! upstreams that ignore case then never serve what another route guards.

use std::borrow::Cow;

use plimsoll_wire::http::{NormalPath, PathRefusal, fold_case};
use regex::{Regex, RegexBuilder};

/// A condition on the path of a request.
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
    /// A malformed regular expression.
    #[error("is not a regular expression: {0}")]
    Regex(String),
    /// A path that no request can have, since it is refused.
    #[error("can never match: {0}")]
    Refused(#[from] PathRefusal),
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
                None => segments.push(Segment::Text(key_of_segment(segment)?)),
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

    /// A regular expression, which must match the whole path, in any case; `(?-i:…)` makes a part of it respect case.
    pub fn regex(expression: &str) -> Result<Self, PathError> {
        // Compiled by itself first, so that the message is about what was written.
        let compile = |text: &str| {
            let regex = RegexBuilder::new(text).case_insensitive(true).build();
            regex.map_err(|error| PathError::Regex(in_one_line(&error)))
        };
        compile(expression)?;
        compile(&format!("^(?:{expression})$")).map(Self::Regex)
    }

    pub(super) fn matches(&self, path: &RequestPath<'_>) -> bool {
        match self {
            Self::Exact(wanted) => key(wanted) == path.folded,
            Self::Prefix(wanted) => path
                .folded
                .trim_end_matches('/')
                .strip_prefix(key(wanted.trim_end_matches('/')).trim_end_matches('/'))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
            Self::Pattern(pattern) => pattern.matches(&path.folded),
            Self::Regex(expression) => expression.is_match(&path.text),
        }
    }

    pub(super) fn exactness(&self) -> (u8, usize) {
        match self {
            Self::Exact(_) => (2, 0),
            Self::Prefix(prefix) => (1, key(prefix).trim_end_matches('/').len()),
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

/// The message without the drawing of the place in it, whose last line is an error message by itself.
fn in_one_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

/// The path of a request as routes compare it.
#[derive(Debug)]
pub(super) struct RequestPath<'a> {
    /// Normal, in the case it was sent in.
    pub(super) text: Cow<'a, str>,
    /// Normal, for comparisons in any case.
    pub(super) folded: Cow<'a, str>,
}

impl<'a> RequestPath<'a> {
    pub(super) fn from_normal_path(path: &'a NormalPath<'_>) -> Self {
        Self {
            text: Cow::Borrowed(path.text()),
            folded: path.folded(),
        }
    }
}

/// A path of a route as it is compared: normal, in lower case.
pub(super) fn key(path: &str) -> String {
    NormalPath::cleaned(path).folded().into_owned()
}

fn key_of_segment(segment: &str) -> Result<String, PathError> {
    if segment.is_empty() {
        return Ok(String::new());
    }
    let path = format!("/{segment}");
    let path = NormalPath::parse(&path)?;
    Ok(fold_case(path.text().trim_start_matches('/')).into_owned())
}

fn checked(path: &str) -> Result<&str, PathError> {
    if !path.starts_with('/') {
        return Err(PathError::Slash);
    }
    if let Some(character) = path.chars().find(|it| ['?', '#'].contains(it)) {
        return Err(PathError::Character(character));
    }
    NormalPath::parse(path)?;
    Ok(path)
}
