//! Conditions on the path: what they cover, and what two of them have in common.

use super::super::patterns::{branches, literal_start};
use super::super::toml::Keys;

/// A condition on the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::import) enum PathMatch {
    /// `/a`
    Exact(String),
    /// `/a/*`, with its slash.
    Prefix(String),
    /// Any other, as an expression for the whole path.
    Regex(String),
}

/// Whether two conditions have requests in common cannot be seen from them.
#[derive(Debug)]
pub(in crate::import) struct Unclear;

fn is_match(expression: &str, path: &str) -> bool {
    let whole = regex::RegexBuilder::new(&format!("^(?:{expression})$"))
        .case_insensitive(true)
        .build();
    whole.is_ok_and(|it| it.is_match(path))
}

/// What a group for letters with their case has within, if that is the whole expression.
fn sensitive(expression: &str) -> Option<&str> {
    let inner = expression.strip_prefix("(?-i:")?.strip_suffix(')')?;
    // Another group may end it.
    (!inner.contains(['(', ')', '[', '|'])).then_some(inner)
}

impl PathMatch {
    /// A path as Caddy writes it, with `*`; `None` for all paths.
    pub(in crate::import) fn new(text: &str) -> Option<Self> {
        if text == "*" || text == "/*" {
            return None;
        }
        if !text.contains('*') {
            return Some(Self::Exact(text.to_owned()));
        }
        match text.strip_suffix("/*") {
            Some(before) if !before.contains('*') => Some(Self::Prefix(format!("{before}/"))),
            _ => {
                let parts: Vec<_> = text.split('*').map(regex::escape).collect();
                Some(Self::Regex(parts.join(".*")))
            }
        }
    }

    /// The text that all of its paths begin with, in small letters.
    fn start(&self) -> String {
        match self {
            Self::Exact(path) | Self::Prefix(path) => path.to_ascii_lowercase(),
            Self::Regex(expression) => {
                let inner = sensitive(expression).unwrap_or(expression);
                literal_start(inner).to_ascii_lowercase()
            }
        }
    }

    /// Whether one of its paths may begin so, or be a beginning of that.
    pub(in crate::import) fn may_begin_with(&self, start: &str) -> bool {
        let (own, start) = (self.start(), start.to_ascii_lowercase());
        own.starts_with(&start) || start.starts_with(&own)
    }

    /// The beginning, if its paths are all that begin with it.
    fn whole_start(&self) -> Option<String> {
        let is_all = match self {
            Self::Exact(_) => false,
            Self::Prefix(_) => true,
            Self::Regex(expression) => expression
                .strip_suffix(".*")
                .is_some_and(|before| regex::escape(literal_start(before).as_str()) == before),
        };
        is_all.then(|| self.start())
    }

    /// The beginning, if its paths are all that begin with it in these letters.
    fn whole_sensitive_start(&self) -> Option<String> {
        let Self::Regex(expression) = self else {
            return None;
        };
        let before = sensitive(expression)?.strip_suffix(".*")?;
        let start = literal_start(before);
        (regex::escape(&start) == before).then_some(start)
    }

    /// Whether every path of the other one is one of this; no if that is unclear.
    pub(in crate::import) fn covers(&self, other: &Self) -> bool {
        if let (Some(start), Self::Regex(other)) = (self.whole_sensitive_start(), other)
            && let Some(other) = sensitive(other)
        {
            return literal_start(other).starts_with(&start);
        }
        if let Some(start) = self.whole_start() {
            return other.start().starts_with(&start);
        }
        match (self, other) {
            (Self::Regex(expression), Self::Exact(path)) => {
                // An expression is compiled where it may match alone: there may be many of both.
                other.start().starts_with(&self.start()) && is_match(expression, path)
            }
            (Self::Exact(one), Self::Exact(other)) => one.eq_ignore_ascii_case(other),
            (one, other) => one == other,
        }
    }

    /// The paths of both, if it is clear which they are.
    pub(in crate::import) fn overlap(&self, other: &Self) -> Result<Option<Self>, Unclear> {
        if self.covers(other) {
            return Ok(Some(other.clone()));
        }
        if other.covers(self) {
            return Ok(Some(self.clone()));
        }
        let (one, two) = (self.start(), other.start());
        if !one.starts_with(&two) && !two.starts_with(&one) {
            return Ok(None);
        }
        match (self, other) {
            (Self::Regex(expression), Self::Prefix(prefix))
            | (Self::Prefix(prefix), Self::Regex(expression))
                if expression.starts_with(".*") =>
            {
                let both = format!("{}{expression}", regex::escape(prefix));
                Ok(Some(Self::Regex(both)))
            }
            (Self::Prefix(_) | Self::Regex(_), Self::Regex(_))
            | (Self::Regex(_), Self::Prefix(_)) => Err(Unclear),
            _ => Ok(None),
        }
    }

    /// The same below a prefix that is taken off before, such as `/api`.
    pub(in crate::import) fn below(&self, prefix: &str) -> Self {
        match self {
            Self::Exact(path) => Self::Exact(format!("{prefix}{path}")),
            Self::Prefix(path) => Self::Prefix(format!("{prefix}{path}")),
            Self::Regex(path) if path.starts_with(".*") => {
                Self::Regex(format!("{}/{path}", regex::escape(prefix)))
            }
            Self::Regex(path) => Self::Regex(format!("{}{path}", regex::escape(prefix))),
        }
    }

    /// As an expression for the whole path.
    pub(in crate::import) fn to_regex(&self) -> Self {
        Self::Regex(match self {
            Self::Exact(path) => regex::escape(path),
            Self::Prefix(path) => format!("{}.*", regex::escape(path)),
            Self::Regex(path) => path.clone(),
        })
    }

    /// Whether it is a prefix, and this one.
    ///
    /// - `text`: without a slash at its end.
    pub(in crate::import) fn is_prefix(&self, text: &str) -> bool {
        matches!(self, Self::Prefix(prefix) if prefix.trim_end_matches('/') == text)
    }

    pub(in crate::import) fn set(&self, keys: &mut Keys) {
        match self {
            Self::Exact(path) => keys.text("path", path),
            Self::Prefix(path) => keys.text("prefix", path),
            Self::Regex(path) => keys.text("regex", path),
        }
    }
}

/// An expression that may match a part, as expressions for whole paths.
pub(in crate::import) fn whole_paths(expression: &str) -> Vec<PathMatch> {
    // Letters are compared without regard to case anyway.
    let expression = expression.strip_prefix("(?i)").unwrap_or(expression);
    // In a class brackets and bars are characters: the whole is right, though nothing can be seen from it.
    if expression.contains('[') && expression.contains('|') {
        return vec![PathMatch::Regex(format!(".*(?:{expression}).*"))];
    }
    let whole = branches(expression).into_iter().map(|branch| {
        let begun = match branch.strip_prefix('^') {
            Some(rest) => rest.to_owned(),
            None => format!(".*{branch}"),
        };
        PathMatch::Regex(match begun.strip_suffix('$') {
            Some(rest) if !rest.ends_with('\\') => rest.to_owned(),
            _ => format!("{begun}.*"),
        })
    });
    whole.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_conditions_of_routes() {
        for (text, expected) in [
            ("/a", Some(PathMatch::Exact("/a".to_owned()))),
            ("/a/*", Some(PathMatch::Prefix("/a/".to_owned()))),
            ("/a*", Some(PathMatch::Regex("/a.*".to_owned()))),
            ("*.php", Some(PathMatch::Regex(".*\\.php".to_owned()))),
            ("/*", None),
        ] {
            assert_eq!(PathMatch::new(text), expected, "{text}");
        }
        let prefix = |text: &str| PathMatch::Prefix(text.to_owned());
        assert!(prefix("/a/").covers(&prefix("/A/b/")));
        assert!(!prefix("/a/b/").covers(&prefix("/a/")));
        assert!(!prefix("/a/").covers(&PathMatch::Exact("/a".to_owned())));
        let sensitive = |text: &str| PathMatch::Regex(format!("(?-i:{text})"));
        assert!(sensitive("/a.*").covers(&sensitive("/ab/.*")));
        assert!(!sensitive("/a.*").covers(&sensitive("/Ab/.*")));
        assert!(!sensitive("/a.*").covers(&prefix("/a/")));
        assert!(!sensitive("/(a).*").covers(&sensitive("/a.*")));
        let is_apart =
            |one: &str, other: &str| matches!(sensitive(one).overlap(&sensitive(other)), Ok(None));
        assert!(is_apart("/a.*", "/b.*"));
        assert!(!is_apart("/a.*", "/A.*"));
        assert!(!is_apart("/a.*", "/.*b"));
    }
}
