//! Directives that change the path before others look at it.

use super::super::nginx::Directive;
use super::super::rows::matcher::Matcher;
use super::super::rows::paths::PathMatch;
use super::super::rows::steps::Within;
use super::matcher::Named;

/// Changes of the path, in their order.
#[derive(Debug, Clone, Default)]
pub(super) struct Rewriting(Vec<Change>);

#[derive(Debug, Clone)]
enum Change {
    /// A beginning is taken off.
    Prefix(String),
    /// An end is taken off.
    Suffix(String),
    /// An end is tried.
    Extension(String),
    /// Requests of a matcher get a path that begins so.
    To { from: Matcher, start: String },
    /// Any path may become any other.
    Any,
}

/// Directives that change the path.
const NAMES: [&str; 3] = ["uri", "rewrite", "try_files"];

impl Rewriting {
    /// What has changed the path of requests that come to a block within.
    pub(super) fn within(&self, kind: &Within) -> Self {
        match kind {
            Within::HandlePath(_) if !self.0.is_empty() => Self(vec![Change::Any]),
            _ => self.clone(),
        }
    }

    /// Notes that requests may have passed a block, of which only those of `route` are left without a response.
    pub(super) fn leave(&mut self, block: &Directive) {
        if block.name == "route" && has_change(block) {
            self.0.push(Change::Any);
        }
    }

    /// Takes a directive; false if it does not change the path.
    pub(super) fn add(&mut self, directive: &Directive, named: &Named<'_>) -> bool {
        if !NAMES.contains(&directive.name.as_str()) {
            return false;
        }
        let (matcher, arguments) = named
            .matcher_of(directive)
            .unwrap_or((Matcher::default(), directive.arguments.as_slice()));
        // `rewrite /to` has no matcher, but one argument that looks like it.
        let (matcher, arguments) = match arguments {
            [] => (Matcher::default(), directive.arguments.as_slice()),
            arguments => (matcher, arguments),
        };
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match (directive.name.as_str(), words.as_slice()) {
            ("uri", ["strip_prefix", prefix]) => {
                let prefix = prefix.trim_end_matches('/');
                self.0.push(Change::Prefix(prefix.to_owned()));
            }
            ("uri", ["strip_suffix", suffix]) => self.0.push(Change::Suffix((*suffix).to_owned())),
            ("rewrite", [to]) => self.0.push(Change::To {
                from: matcher,
                start: to.split(['{', '?']).next().unwrap_or_default().to_owned(),
            }),
            ("try_files", files) => {
                for file in files {
                    match file.strip_prefix("{path}") {
                        Some("" | "/") => {}
                        Some(end) => self.0.push(Change::Extension(end.to_owned())),
                        None if file.starts_with('=') => {}
                        None => self.0.push(Change::To {
                            from: Matcher::default(),
                            start: file.split(['{', '?']).next().unwrap_or_default().to_owned(),
                        }),
                    }
                }
            }
            _ => self.0.push(Change::Any),
        }
        true
    }

    /// Requests that may meet a condition once their path is changed, and those that met it before: what keeps clients out is
    /// rather for too many than for too few.
    pub(super) fn before(&self, mut matcher: Matcher) -> Matcher {
        for change in self.0.iter().rev() {
            if matcher.paths.is_empty() && matcher.excluded.is_empty() {
                break;
            }
            // A path that it is not for may become one that it is for.
            matcher.excluded.clear();
            let paths = std::mem::take(&mut matcher.paths);
            let others: Vec<PathMatch> = match change {
                Change::Prefix(prefix) => paths.iter().map(|it| it.below(prefix)).collect(),
                Change::Suffix(end) => paths.iter().map(|it| it.with_end(end)).collect(),
                Change::Extension(end) => {
                    let paths = paths.iter().map(|it| it.without_end(end));
                    paths.flatten().collect()
                }
                Change::To { from, start } => {
                    if !paths.iter().any(|it| it.may_begin_with(start)) {
                        Vec::new()
                    } else if from.paths.is_empty() {
                        continue;
                    } else {
                        from.paths.clone()
                    }
                }
                Change::Any => continue,
            };
            matcher.paths = paths;
            for path in others {
                if !matcher.paths.iter().any(|it| it.covers(&path)) {
                    matcher.paths.push(path);
                }
            }
        }
        matcher
    }
}

fn has_change(block: &Directive) -> bool {
    let mut within = block.block.iter();
    within.any(|it| NAMES.contains(&it.name.as_str()) || has_change(it))
}

impl PathMatch {
    fn with_end(&self, end: &str) -> Self {
        match self {
            Self::Exact(path) => Self::Exact(format!("{path}{end}")),
            Self::Prefix(path) => Self::Prefix(path.clone()),
            Self::Regex(path) => Self::Regex(format!("(?:{path}){}", regex::escape(end))),
        }
    }

    /// The path that this one is tried for by an end.
    fn without_end(&self, end: &str) -> Option<Self> {
        match self {
            Self::Exact(path) => path.strip_suffix(end).map(|it| Self::Exact(it.to_owned())),
            Self::Prefix(_) => None,
            // What the end may be is in the expression.
            Self::Regex(path) => path
                .strip_suffix(&regex::escape(end))
                .map(|it| Self::Regex(it.to_owned())),
        }
    }
}
