//! `_redirects` and `_headers`, compiled: which rule holds for a request, and what it says. Pure.
//!
//! Lines are read by `plimsoll_formats::site` (`parse_redirects`, `parse_header_rules`), and `Rules::compile` makes rules of them;
//! `reload` has both done again when a file changes.

pub(crate) mod reload;

pub(crate) mod links;

pub(crate) mod refresh;

mod pattern;

mod index;

mod alternatives;

mod loops;

mod reach;

use std::fmt::Write;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use plimsoll_formats::Remark;
use plimsoll_formats::site::{Dialect, HeaderRule, Lenient, RedirectRule};

use crate::rules::alternatives::{Alternatives, parameters};
use crate::rules::index::PathIndex;
use crate::rules::pattern::{Captured, For, HostPattern, Pattern, Reading, TooManyPlaces};

/// The rules of a site.
#[derive(Debug)]
pub(crate) struct Rules {
    redirects: Vec<Redirect>,
    redirect_index: PathIndex,
    /// By the slots of the index.
    alternatives: Vec<Alternatives>,
    has_forced: bool,
    headers: Vec<Headers>,
    header_index: PathIndex,
    /// By the slots of the index, the numbers of `headers`.
    of_paths: Vec<Vec<usize>>,
    depends_on_host: bool,
    dialect: Dialect,
}

#[derive(Debug)]
struct Redirect {
    rule: RedirectRule,
    pattern: Pattern,
}

#[derive(Debug)]
struct Headers {
    host: Option<HostPattern>,
    pattern: Pattern,
    fields: Vec<(HeaderName, String)>,
    unset: Vec<HeaderName>,
}

/// The values that rules match.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RuleInput<'a> {
    /// Without its port.
    pub(crate) host: &'a str,
    /// Decoded, with its slash.
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
}

/// The outcome of a rule for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleOutcome {
    /// 200 and 404 answer with what is at the target.
    pub(crate) status: u16,
    /// With the query of the request, if it has none of its own.
    pub(crate) to: String,
}

/// Lines that are reported for one reason, at most.
const MOST_DOUBTS: usize = 20;

impl Rules {
    /// Compiles what was read; rules that cannot be compiled are left out and reported.
    pub(crate) fn compile(
        redirects: Lenient<RedirectRule>,
        headers: Lenient<HeaderRule>,
        dialect: Dialect,
    ) -> (Self, Vec<Remark>, Vec<Remark>) {
        let (mut of_redirects, mut of_headers) = (redirects.remarks, headers.remarks);
        let mut rules = Self {
            redirects: Vec::new(),
            redirect_index: PathIndex::new(Reading::new(dialect, For::Redirects)),
            alternatives: Vec::new(),
            has_forced: false,
            headers: Vec::new(),
            header_index: PathIndex::new(Reading::new(dialect, For::Headers)),
            of_paths: Vec::new(),
            depends_on_host: false,
            dialect,
        };
        for mut rule in redirects.entries {
            // Requests are compared decoded.
            rule.from = decoded(&rule.from);
            match Pattern::new(&rule.from, dialect, For::Redirects) {
                Ok(pattern) => rules.add_redirect(Redirect { rule, pattern }),
                Err(error) => of_redirects.push(Remark::line(rule.line, error.to_string())),
            }
        }
        for rule in headers.entries {
            let line = rule.line;
            match Headers::new(rule, dialect) {
                Ok(headers) => rules.add_headers(headers),
                Err(error) => of_headers.push(Remark::line(line, error.to_string())),
            }
        }
        (rules, of_redirects, of_headers)
    }

    fn add_redirect(&mut self, redirect: Redirect) {
        let at = self.redirects.len();
        let slot = self.redirect_index.insert(&redirect.pattern, at);
        if self.alternatives.len() <= slot {
            self.alternatives
                .resize_with(slot + 1, Alternatives::default);
        }
        self.alternatives[slot].add(&redirect.rule, at);
        self.has_forced |= redirect.rule.is_forced;
        self.redirects.push(redirect);
    }

    fn add_headers(&mut self, headers: Headers) {
        let at = self.headers.len();
        let slot = self.header_index.insert(&headers.pattern, at);
        if self.of_paths.len() <= slot {
            self.of_paths.resize_with(slot + 1, Vec::new);
        }
        self.of_paths[slot].push(at);
        self.depends_on_host |= headers.host.is_some();
        self.headers.push(headers);
    }

    /// What is probably not meant, though the rules say it: circles, and rules that are never used. Nothing is left out for
    /// it. Takes time that grows with the number of rules, and looks for files: not for threads that serve.
    ///
    /// - `exists`: whether there is a file at a path; such a path leads no further where files come first.
    /// - `is_stale`: other rules hold by now, and the result is not needed.
    pub(crate) fn doubts(
        &self,
        exists: &dyn Fn(&str) -> bool,
        is_stale: &dyn Fn() -> bool,
    ) -> Vec<Remark> {
        let mut doubts = first_lines(loops::find(self, exists, is_stale));
        doubts.extend(first_lines(reach::unused(self)));
        doubts
    }

    /// Number of redirects.
    pub(crate) fn redirects(&self) -> usize {
        self.redirects.len()
    }

    /// Number of rules for header fields.
    pub(crate) fn headers(&self) -> usize {
        self.headers.len()
    }

    /// The outcome of the first redirect that holds.
    ///
    /// - `is_there`: there is a file at the path.
    pub(crate) fn redirect(&self, input: RuleInput<'_>, is_there: bool) -> Option<RuleOutcome> {
        let first = self.first(input, is_there)?;
        self.redirects[first].outcome(input)
    }

    /// The number of the first redirect that holds.
    fn first(&self, input: RuleInput<'_>, is_there: bool) -> Option<usize> {
        let mut first = usize::MAX;
        let mut visit = |slot: usize, bound: &mut usize| {
            self.alternatives[slot].first(input, is_there, bound);
        };
        self.redirect_index
            .search(input.path, &mut first, &mut visit);
        (first < self.redirects.len()).then_some(first)
    }

    /// Whether a redirect may take the place of a file.
    pub(crate) fn has_forced(&self) -> bool {
        self.has_forced
    }

    /// Whether the outcome depends on the host.
    pub(crate) fn depends_on_host(&self) -> bool {
        self.depends_on_host
    }

    /// The rules for header fields that hold for a request, in their order, with what their places stand for.
    fn headers_of(&self, input: RuleInput<'_>) -> Vec<(usize, Captured)> {
        let mut found = Vec::new();
        let mut visit = |slot: usize, _: &mut usize| found.extend(&self.of_paths[slot]);
        let mut no_bound = usize::MAX;
        self.header_index
            .search(input.path, &mut no_bound, &mut visit);
        found.sort_unstable();
        let holds = |at: usize| {
            let headers = &self.headers[at];
            let mut captured = match &headers.host {
                Some(host) => host.captures(input.host)?,
                None => Captured::new(),
            };
            captured.extend(headers.pattern.captures(input.path)?);
            Some((at, captured))
        };
        found.into_iter().filter_map(holds).collect()
    }

    /// A text that is the same for all requests that [`apply`](Self::apply) does the same for; empty where that is
    /// nothing.
    pub(crate) fn headers_key(&self, input: RuleInput<'_>) -> String {
        let mut key = String::new();
        for (at, captured) in self.headers_of(input) {
            write!(key, " {at}").expect("a String takes everything");
            for (_, value) in &self.headers[at].fields {
                let filled = pattern::filled(value, &captured, false);
                if filled != *value {
                    write!(key, " {filled:?}").expect("a String takes everything");
                }
            }
        }
        key
    }

    /// Changes what the server would say of a path.
    pub(crate) fn apply(&self, input: RuleInput<'_>, fields: &mut HeaderMap) {
        let mut set = Vec::new();
        for (at, captured) in self.headers_of(input) {
            let headers = &self.headers[at];
            for name in &headers.unset {
                fields.remove(name);
            }
            for (name, value) in &headers.fields {
                let value = pattern::filled(value, &captured, false);
                let Ok(value) = HeaderValue::from_str(&value) else {
                    continue;
                };
                // The first takes the place of what the server says, later ones stand beside it.
                if set.contains(name) {
                    fields.append(name, value);
                } else {
                    fields.insert(name, value);
                    set.push(name.clone());
                }
            }
        }
    }
}

/// A path of a rule without its escapes. Those of `*`, `:` and `/` stay: decoded, they would be places or separators.
fn decoded(path: &str) -> String {
    let mut pieces = path.split('%');
    let mut kept = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let code = piece.get(..2).unwrap_or_default();
        let stays = ["2A", "3A", "2F"]
            .iter()
            .any(|it| it.eq_ignore_ascii_case(code));
        kept.push_str(if stays { "%25" } else { "%" });
        kept.push_str(piece);
    }
    match percent_encoding::percent_decode_str(&kept).decode_utf8() {
        Ok(text) => text.into_owned(),
        Err(_) => path.to_owned(),
    }
}

/// The first few remarks, and the number of the others.
fn first_lines(mut remarks: Vec<Remark>) -> Vec<Remark> {
    let others = remarks.len().saturating_sub(MOST_DOUBTS);
    if others > 0 {
        remarks.truncate(MOST_DOUBTS);
        remarks.push(Remark::whole(format!("{others} more lines like these")));
    }
    remarks
}

impl Redirect {
    fn outcome(&self, input: RuleInput<'_>) -> Option<RuleOutcome> {
        let rule = &self.rule;
        let is_host = |host: &String| host.eq_ignore_ascii_case(input.host);
        if !rule.host.as_ref().is_none_or(is_host) {
            return None;
        }
        let mut captured = self.pattern.captures(input.path)?;
        if !rule.query.is_empty() {
            let parameters = parameters(input.query?);
            for (name, wanted) in &rule.query {
                let value = parameters.get(name.as_str())?;
                match wanted.strip_prefix(':') {
                    Some(place) => captured.push((place.to_owned(), value.clone())),
                    None if value == wanted => {}
                    None => return None,
                }
            }
        }
        let mut to = pattern::filled(&rule.to, &captured, true);
        if to.starts_with('/') {
            // Two slashes would name another host.
            to = format!("/{}", to.trim_start_matches('/'));
        }
        if rule.query.is_empty()
            && let Some(query) = input.query
            && !to.contains('?')
        {
            let (path, fragment) = match to.split_once('#') {
                Some((path, fragment)) => (path, Some(fragment)),
                None => (&*to, None),
            };
            let fragment = fragment.map(|fragment| format!("#{fragment}"));
            to = format!("{path}?{query}{}", fragment.unwrap_or_default());
        }
        Some(RuleOutcome {
            status: rule.status,
            to,
        })
    }
}

/// Why a rule for header fields cannot be used.
#[derive(Debug, thiserror::Error)]
enum HeadersError {
    #[error(transparent)]
    Pattern(#[from] TooManyPlaces),
    #[error("`{0}` is no name of a header field")]
    Name(String),
}

impl Headers {
    fn new(rule: HeaderRule, dialect: Dialect) -> Result<Self, HeadersError> {
        let path = decoded(&rule.path);
        let name = |name: &str| {
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| HeadersError::Name(name.to_owned()))
        };
        let fields = rule
            .fields
            .into_iter()
            .map(|(key, value)| Ok((name(&key)?, value)));
        Ok(Self {
            host: rule.host.map(|host| HostPattern::new(&host)).transpose()?,
            pattern: Pattern::new(&path, dialect, For::Headers)?,
            fields: fields.collect::<Result<_, HeadersError>>()?,
            unset: rule
                .unset
                .iter()
                .map(|key| name(key))
                .collect::<Result<_, _>>()?,
        })
    }
}

#[cfg(test)]
mod tests;
