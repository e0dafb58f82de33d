//! Paths of Express 4 as conditions.

use plimsoll_formats::mockoon::MockoonRule;

use crate::import::when::{When, test};

/// A path of Express.
pub(super) struct Endpoint {
    /// Pieces between slashes.
    segments: Vec<Segment>,
    /// There is a slash at its end, which requests must have then.
    ends_with_slash: bool,
}

enum Segment {
    Text(String),
    Param(String),
    /// A regular expression.
    Pattern(String),
    /// Anything, slashes too.
    Rest,
}

/// A segment of Express 4 as a regular expression: groups, `?`, `+` and `*` mean what they do there.
fn pattern_of(segment: &str) -> Option<String> {
    let mut pattern = String::new();
    let mut rest = segment;
    while let Some(character) = rest.chars().next() {
        rest = rest.get(character.len_utf8()..)?;
        match character {
            ':' => {
                let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
                let end = rest.find(|it| !is_name(it)).unwrap_or(rest.len());
                rest = rest.get(end..)?;
                // Without an expression it is any segment.
                if !rest.starts_with('(') {
                    pattern.push_str("[^/]+?");
                }
            }
            '*' => pattern.push_str(".*"),
            '(' | ')' | '?' | '+' | '|' | '[' | ']' | '-' | '\\' => pattern.push(character),
            '{' | '}' => return None,
            other => pattern.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    regex::Regex::new(&pattern).ok()?;
    Some(pattern)
}

/// A segment of a path that Express understands, but no rule.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` of the path is not known here")]
pub(super) struct UnknownSegment(String);

impl Endpoint {
    pub(super) fn new(path: &str) -> Result<Self, UnknownSegment> {
        let segments = path.split('/').filter(|segment| !segment.is_empty());
        let segments = segments.map(|segment| match segment.strip_prefix(':') {
            _ if segment == "*" || segment == "(.*)" => Ok(Segment::Rest),
            Some(name)
                if name
                    .bytes()
                    .all(|it| it.is_ascii_alphanumeric() || it == b'_') =>
            {
                Ok(Segment::Param(name.to_owned()))
            }
            // Braces mean nothing in Express 4.
            None if !segment.contains(['*', '(', ')', '?', '+', ':']) => {
                Ok(Segment::Text(segment.to_owned()))
            }
            _ => pattern_of(segment)
                .map(Segment::Pattern)
                .ok_or_else(|| UnknownSegment(segment.to_owned())),
        });
        let segments: Vec<Segment> = segments.collect::<Result<_, _>>()?;
        let ends_with_slash = path.ends_with('/') && !segments.is_empty();
        Ok(Self {
            segments,
            ends_with_slash,
        })
    }

    pub(super) fn when(&self, method: &str) -> When {
        let has = |wanted: fn(&Segment) -> bool| self.segments.iter().any(wanted);
        let has_rest = has(|it| matches!(it, Segment::Rest | Segment::Pattern(_)));
        let has_params = has(|it| matches!(it, Segment::Param(_)));
        // In patterns of ours they are places.
        let has_braces = has(|it| matches!(it, Segment::Text(text) if text.contains('{')));
        let mut when = if has_rest || has_params && has_braces {
            When::at_path(&["url_path"], test("regex", self.pattern(None)))
        } else if has_params {
            let segments = self.segments.iter().map(|segment| match segment {
                Segment::Text(text) => format!("/{text}"),
                Segment::Param(name) => format!("/{{{name}}}"),
                Segment::Rest | Segment::Pattern(_) => String::new(),
            });
            let pattern = segments.collect::<String>();
            When::at_path(&["url_path"], test("pattern", pattern))
        } else {
            let segments = self.segments.iter().map(|segment| match segment {
                Segment::Text(text) => format!("/{text}"),
                _ => String::new(),
            });
            let path = segments.collect::<String>();
            When::at_path(
                &["url_path"],
                if path.is_empty() {
                    "/".to_owned()
                } else {
                    path
                },
            )
        };
        if self.ends_with_slash {
            when.ask(&["raw_path"], test("regex", "/$"));
        }
        if !matches!(method, "" | "all") {
            when.ask(&["method"], method.to_ascii_uppercase());
        }
        when
    }

    /// An expression for the whole path, with another one in the place of one name.
    fn pattern(&self, place: Option<(&str, &str)>) -> String {
        let mut pattern = "^".to_owned();
        for segment in &self.segments {
            match (segment, place) {
                (Segment::Text(text), _) => {
                    pattern.push('/');
                    pattern.push_str(&regex::escape(text));
                }
                (Segment::Param(name), Some((wanted, inner))) if name == wanted => {
                    pattern.push_str("/(?:");
                    pattern.push_str(inner);
                    pattern.push(')');
                }
                (Segment::Param(_), _) => pattern.push_str("/[^/]+"),
                (Segment::Pattern(inner), _) => {
                    pattern.push_str("/(?:");
                    pattern.push_str(inner);
                    pattern.push(')');
                }
                (Segment::Rest, _) => pattern.push_str("/.*"),
            }
        }
        pattern.push('$');
        pattern
    }

    /// The condition on what stands in the place of a name.
    pub(super) fn param(&self, name: &str, rule: &MockoonRule) -> Option<When> {
        let is_name = |it: &Segment| matches!(it, Segment::Param(known) if known == name);
        if !self.segments.iter().any(is_name) {
            return None;
        }
        let value = rule.value.as_str();
        // Where it is not bound, it may be met anywhere in what stands there.
        let unbound = || {
            let bare = value.trim_start_matches('^').trim_end_matches('$');
            let before = if value.starts_with('^') { "" } else { "[^/]*" };
            let behind = if value.ends_with('$') { "" } else { "[^/]*" };
            format!("{before}(?:{bare}){behind}")
        };
        let inner = match rule.operator.as_str() {
            "equals" => regex::escape(value),
            "regex" => unbound(),
            "regex_i" => format!("(?i:{})", unbound()),
            _ => return None,
        };
        Some(When::at_path(
            &["url_path"],
            test("regex", self.pattern(Some((name, &inner)))),
        ))
    }
}
