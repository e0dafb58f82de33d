//! Paths with places: `/news/*`, `/posts/:id`.

use plimsoll_formats::site::Dialect;
use regex::{Regex, RegexBuilder};

use crate::files::path::escaped;

/// A path in which `:name` and `*` stand for any: whole segments, and an end.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(super) segments: Vec<Segment>,
    pub(super) end: PatternEnd,
    reading: Reading,
}

/// How paths are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reading {
    /// Letters in either case are the same.
    pub(super) folds_case: bool,
    /// A slash at the end makes no difference.
    pub(super) ignores_slash: bool,
}

/// A whole segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    /// This text, in lower case where case makes no difference.
    Literal(String),
    /// Any text but an empty one, by a name.
    Place(String),
}

/// What follows the whole segments.
#[derive(Debug)]
pub(super) enum PatternEnd {
    /// Nothing.
    Nothing,
    /// A slash and anything, or nothing.
    Rest,
    /// A part that is no row of whole segments.
    Tail(Tail),
}

/// The part of a pattern from the first segment on that is neither a literal nor a place.
#[derive(Debug, Clone)]
pub(super) struct Tail {
    /// As it is written, so that equal tails are known.
    pub(super) text: String,
    /// Text with which everything that it matches begins, its slash included.
    pub(super) prefix: String,
    /// Text with which everything that it matches ends, a slash at the end apart where that makes no difference.
    pub(super) suffix: String,
    form: TailForm,
}

#[derive(Debug, Clone)]
enum TailForm {
    /// One `*` between the prefix and the suffix.
    Splat,
    /// Anything else.
    Expression {
        expression: Regex,
        names: Vec<String>,
    },
}

/// The use of a pattern, which decides on its meaning for Netlify.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    Redirects,
    Headers,
}

/// Names with what they stand for.
pub(crate) type Captured = Vec<(String, String)>;

/// The name of `*`.
const SPLAT: &str = "splat";

impl Reading {
    pub(super) fn new(dialect: Dialect, purpose: For) -> Self {
        let is_netlify = dialect == Dialect::Netlify;
        Self {
            folds_case: is_netlify && purpose == For::Headers,
            ignores_slash: is_netlify,
        }
    }

    fn literal(self, text: &str) -> String {
        if self.folds_case {
            text.to_lowercase()
        } else {
            text.to_owned()
        }
    }

    fn is_same(self, literal: &str, text: &str) -> bool {
        if self.folds_case {
            text.chars()
                .flat_map(char::to_lowercase)
                .eq(literal.chars())
        } else {
            literal == text
        }
    }
}

/// A path or host that would take too much memory to match.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` has too many places")]
pub(crate) struct TooManyPlaces(String);

impl Pattern {
    pub(crate) fn new(path: &str, dialect: Dialect, purpose: For) -> Result<Self, TooManyPlaces> {
        let reading = Reading::new(dialect, purpose);
        let path = match dialect {
            Dialect::Netlify => path.trim_end_matches('/'),
            Dialect::Cloudflare => path,
        };
        let mut segments = Vec::new();
        let mut rest = path;
        while let Some((segment, after)) = first_segment(rest) {
            let is_last = after.is_empty();
            let whole = match dialect {
                Dialect::Netlify if segment == "*" && is_last => {
                    let end = PatternEnd::Rest;
                    return Ok(Self {
                        segments,
                        end,
                        reading,
                    });
                }
                Dialect::Netlify => netlify_segment(segment),
                Dialect::Cloudflare => cloudflare_segment(segment),
            };
            match whole {
                Some(Segment::Literal(text)) => {
                    segments.push(Segment::Literal(reading.literal(&text)));
                }
                Some(place) => segments.push(place),
                None => {
                    let tail = Tail::new(rest, dialect, reading)
                        .ok_or_else(|| TooManyPlaces(path.to_owned()))?;
                    let end = PatternEnd::Tail(tail);
                    return Ok(Self {
                        segments,
                        end,
                        reading,
                    });
                }
            }
            rest = after;
        }
        let end = PatternEnd::Nothing;
        Ok(Self {
            segments,
            end,
            reading,
        })
    }

    /// The values of the placeholders in `path`, which is decoded.
    pub(crate) fn captures(&self, path: &str) -> Option<Captured> {
        let mut captured = Vec::new();
        let mut rest = path;
        for segment in &self.segments {
            let (text, after) = first_segment(rest)?;
            match segment {
                Segment::Literal(literal) if self.reading.is_same(literal, text) => {}
                Segment::Place(name) if !text.is_empty() => {
                    captured.push((name.clone(), text.to_owned()));
                }
                _ => return None,
            }
            rest = after;
        }
        match &self.end {
            PatternEnd::Nothing if rest.is_empty() => {}
            PatternEnd::Nothing if self.reading.ignores_slash && rest == "/" => {}
            PatternEnd::Rest if rest.is_empty() || rest.starts_with('/') => {
                let text = rest.strip_prefix('/').unwrap_or_default();
                captured.push((SPLAT.to_owned(), text.to_owned()));
            }
            PatternEnd::Nothing | PatternEnd::Rest => return None,
            PatternEnd::Tail(tail) => captured.extend(tail.captures(rest, self.reading)?),
        }
        Some(captured)
    }
}

/// The first segment of a text that begins with a slash, and what follows it; nothing of any other text.
pub(super) fn first_segment(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('/')?;
    let end = text.find('/').unwrap_or(text.len());
    Some(text.split_at(end))
}

/// A segment of which nothing, or the whole, is a place.
fn netlify_segment(segment: &str) -> Option<Segment> {
    match segment.strip_prefix(':').filter(|name| !name.is_empty()) {
        Some(name) => Some(Segment::Place(name.to_owned())),
        None if segment.contains('*') => None,
        None => Some(Segment::Literal(segment.to_owned())),
    }
}

/// The same, where places stand anywhere.
fn cloudflare_segment(segment: &str) -> Option<Segment> {
    let name = place_name(segment);
    if !name.is_empty() && name.len() + 1 == segment.len() {
        return Some(Segment::Place(name.to_owned()));
    }
    let mut places = segment.match_indices(':');
    let has_place = places.any(|(at, _)| !place_name(segment.get(at..).unwrap_or("")).is_empty());
    let is_literal = !has_place && !segment.contains('*');
    is_literal.then(|| Segment::Literal(segment.to_owned()))
}

impl Tail {
    /// - `text`: begins with a slash.
    fn new(text: &str, dialect: Dialect, reading: Reading) -> Option<Self> {
        let mut names = Vec::new();
        let (expression, prefix, suffix) = match dialect {
            Dialect::Netlify => netlify(text, &mut names),
            Dialect::Cloudflare => cloudflare(text, &mut names),
        };
        let has_one_splat = format!("{prefix}*{suffix}") == text;
        let form = if has_one_splat && !reading.folds_case {
            TailForm::Splat
        } else {
            let slash = if reading.ignores_slash { "/?" } else { "" };
            let expression = RegexBuilder::new(&format!("^{expression}{slash}$"))
                .case_insensitive(reading.folds_case)
                .dot_matches_new_line(true)
                .size_limit(1 << 20)
                .build()
                .ok()?;
            TailForm::Expression { expression, names }
        };
        Some(Self {
            text: reading.literal(text),
            prefix: reading.literal(&prefix),
            suffix: reading.literal(&suffix),
            form,
        })
    }

    /// - `text`: empty, or begins with a slash.
    pub(super) fn captures(&self, text: &str, reading: Reading) -> Option<Captured> {
        match &self.form {
            TailForm::Splat => {
                let text = text.strip_prefix(&*self.prefix)?;
                let found = text.strip_suffix(&*self.suffix).or_else(|| {
                    let text = text.strip_suffix('/').filter(|_| reading.ignores_slash)?;
                    text.strip_suffix(&*self.suffix)
                })?;
                Some(vec![(SPLAT.to_owned(), found.to_owned())])
            }
            TailForm::Expression { expression, names } => {
                let found = expression.captures(text)?;
                let groups = found.iter().skip(1);
                let texts = groups.map(|group| group.map_or("", |it| it.as_str()).to_owned());
                Some(names.iter().cloned().zip(texts).collect())
            }
        }
    }
}

/// A host in which `:name` stands for a label, and `*` for anything.
#[derive(Debug)]
pub(crate) struct HostPattern {
    expression: Option<Regex>,
    /// The host itself, or the names of the expression's groups.
    names: Vec<String>,
}

impl HostPattern {
    pub(crate) fn new(host: &str) -> Result<Self, TooManyPlaces> {
        let mut names = Vec::new();
        let (expression, ..) = cloudflare(host, &mut names);
        if names.is_empty() {
            return Ok(Self {
                expression: None,
                names: vec![host.to_owned()],
            });
        }
        // Places in hosts are parts of labels.
        let expression = RegexBuilder::new(&format!("^{}$", expression.replace("[^/]+", "[^/.]+")))
            .case_insensitive(true)
            .size_limit(1 << 20)
            .build()
            .map_err(|_| TooManyPlaces(host.to_owned()))?;
        Ok(Self {
            expression: Some(expression),
            names,
        })
    }

    /// The values of the places in a host.
    pub(crate) fn captures(&self, host: &str) -> Option<Captured> {
        let Some(expression) = &self.expression else {
            let mut known = self.names.iter();
            let is_same = known.any(|known| known.eq_ignore_ascii_case(host));
            return is_same.then(Captured::new);
        };
        let found = expression.captures(host)?;
        let texts = found
            .iter()
            .skip(1)
            .flatten()
            .map(|it| it.as_str().to_owned());
        Some(self.names.iter().cloned().zip(texts).collect())
    }
}

/// The expression of segments, and the texts with which all that it matches begins and ends.
fn netlify(text: &str, names: &mut Vec<String>) -> (String, String, String) {
    let mut expression = String::new();
    let (mut prefix, mut suffix) = (None, String::new());
    let mut rest = text;
    while let Some((segment, after)) = first_segment(rest) {
        rest = after;
        if segment == "*" {
            names.push(SPLAT.to_owned());
            expression.push_str("(?:/(.*))?");
            prefix.get_or_insert_default();
            suffix.clear();
        } else if let Some(name) = segment.strip_prefix(':').filter(|name| !name.is_empty()) {
            names.push(name.to_owned());
            expression.push_str("/([^/]+)");
            prefix.get_or_insert_default();
            suffix.clear();
        } else {
            expression.push('/');
            suffix.push('/');
            let mut literals = segment.split('*');
            let first = literals.next().unwrap_or_default();
            expression.push_str(&regex::escape(first));
            suffix.push_str(first);
            for literal in literals {
                prefix.get_or_insert_with(|| suffix.clone());
                names.push(SPLAT.to_owned());
                expression.push_str("(.*)");
                expression.push_str(&regex::escape(literal));
                literal.clone_into(&mut suffix);
            }
        }
    }
    (expression, prefix.unwrap_or_default(), suffix)
}

/// The same, where places stand anywhere.
fn cloudflare(text: &str, names: &mut Vec<String>) -> (String, String, String) {
    let mut expression = String::new();
    let (mut prefix, mut literal) = (None, String::new());
    let mut rest = text;
    while let Some(at) = rest.find(['*', ':']) {
        let (before, from) = rest.split_at(at);
        literal.push_str(before);
        let name = place_name(from);
        let is_splat = from.starts_with('*');
        if is_splat || !name.is_empty() {
            expression.push_str(&regex::escape(&literal));
            prefix.get_or_insert_with(|| literal.clone());
            literal.clear();
            expression.push_str(if is_splat { "(.*)" } else { "([^/]+)" });
            names.push(if is_splat { SPLAT } else { name }.to_owned());
        } else {
            literal.push(':');
        }
        rest = from.get(1 + name.len()..).unwrap_or_default();
    }
    literal.push_str(rest);
    expression.push_str(&regex::escape(&literal));
    (expression, prefix.unwrap_or_default(), literal)
}

/// The name behind a colon: a letter, then letters, digits and underscores; empty if there is none.
pub(super) fn place_name(text: &str) -> &str {
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
