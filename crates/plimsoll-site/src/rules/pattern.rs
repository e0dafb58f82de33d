//! Paths with places: `/news/*`, `/posts/:id`.

use plimsoll_formats::site::Dialect;
use regex::{Regex, RegexBuilder};

use crate::files::path::escaped;

/// A path in which `:name` and `*` stand for any.
#[derive(Debug)]
pub(crate) struct Pattern {
    expression: Regex,
    /// Of its groups, in their order.
    names: Vec<String>,
}

/// The use of a pattern, which decides on its meaning for Netlify.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    Redirects,
    Headers,
}

/// Names with what they stand for.
pub(crate) type Captured = Vec<(String, String)>;

impl Pattern {
    pub(crate) fn new(path: &str, dialect: Dialect, purpose: For) -> Result<Self, String> {
        let mut names = Vec::new();
        let expression = match dialect {
            Dialect::Netlify => netlify(path, &mut names, purpose),
            Dialect::Cloudflare => cloudflare(path, &mut names),
        };
        let ignores_case = dialect == Dialect::Netlify && purpose == For::Headers;
        let expression = RegexBuilder::new(&format!("^{expression}$"))
            .case_insensitive(ignores_case)
            .dot_matches_new_line(true)
            .size_limit(1 << 20)
            .build()
            .map_err(|_| format!("`{path}` has too many places"))?;
        Ok(Self { expression, names })
    }

    /// The values of the placeholders in `path`, which is decoded.
    pub(crate) fn captures(&self, path: &str) -> Option<Captured> {
        let found = self.expression.captures(path)?;
        let groups = found.iter().skip(1);
        let text = groups.map(|group| group.map_or("", |group| group.as_str()).to_owned());
        Some(self.names.iter().cloned().zip(text).collect())
    }
}

/// Whole segments, and at the end the rest; a slash at the end makes no difference.
fn netlify(path: &str, names: &mut Vec<String>, purpose: For) -> String {
    let mut expression = String::new();
    let trimmed = path.trim_end_matches('/');
    let mut segments = trimmed.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        if segment == "*" && (is_last || purpose == For::Headers) {
            names.push("splat".to_owned());
            expression.push_str("(?:/(.*))?");
        } else if let Some(name) = segment.strip_prefix(':').filter(|name| !name.is_empty()) {
            names.push(name.to_owned());
            expression.push_str("/([^/]+)");
        } else {
            expression.push('/');
            let mut literals = segment.split('*');
            expression.push_str(&regex::escape(literals.next().unwrap_or_default()));
            for literal in literals {
                names.push("splat".to_owned());
                expression.push_str("(.*)");
                expression.push_str(&regex::escape(literal));
            }
        }
    }
    expression.push_str("/?");
    expression
}

/// Places anywhere.
fn cloudflare(path: &str, names: &mut Vec<String>) -> String {
    let mut expression = String::new();
    let mut rest = path;
    while let Some(at) = rest.find(['*', ':']) {
        let (before, from) = rest.split_at(at);
        expression.push_str(&regex::escape(before));
        if let Some(after) = from.strip_prefix('*') {
            names.push("splat".to_owned());
            expression.push_str("(.*)");
            rest = after;
            continue;
        }
        let name = place_name(from);
        if name.is_empty() {
            expression.push(':');
        } else {
            names.push(name.to_owned());
            expression.push_str("([^/]+)");
        }
        rest = from.get(1 + name.len()..).unwrap_or_default();
    }
    expression.push_str(&regex::escape(rest));
    expression
}

/// The name behind a colon: a letter, then letters, digits and underscores; empty if there is none.
fn place_name(text: &str) -> &str {
    let name = text.strip_prefix(':').unwrap_or_default();
    let end = name
        .find(|character: char| !(character.is_ascii_alphanumeric() || character == '_'))
        .unwrap_or(name.len());
    let name = name.get(..end).unwrap_or_default();
    if name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        name
    } else {
        ""
    }
}

/// `template` with what its places stand for; a place that nothing stands for stays.
///
/// - `escapes`: what is put in is escaped as a part of a URL.
pub(crate) fn filled(template: &str, captured: &Captured, escapes: bool) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(at) = rest.find(':') {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        let name = place_name(from);
        let value = captured.iter().find(|(known, _)| known == name);
        match value {
            Some((_, value)) if escapes => text.push_str(&escaped(value)),
            Some((_, value)) => text.push_str(value),
            None => text.push_str(from.get(..=name.len()).unwrap_or(":")),
        }
        rest = from.get(1 + name.len()..).unwrap_or_default();
    }
    text.push_str(rest);
    text
}
