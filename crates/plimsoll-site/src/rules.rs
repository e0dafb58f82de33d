//! `_redirects` and `_headers`, compiled: which rule holds for a request, and what it says. Pure.

pub(crate) mod rule_files;

pub(crate) mod links;

pub(crate) mod refresh;

mod loops;

mod pattern;

use std::collections::HashMap;
use std::fmt::Write;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use plimsoll_formats::Remark;
use plimsoll_formats::site::{Dialect, HeaderRule, Lenient, RedirectRule};

use crate::rules::pattern::Pattern;

/// The rules of a site.
#[derive(Debug)]
pub(crate) struct Rules {
    redirects: Vec<Redirect>,
    /// Of those for one path, the first for each.
    statics: HashMap<String, usize>,
    /// The others, by their places.
    dynamics: Vec<usize>,
    headers: Vec<Headers>,
    dialect: Dialect,
}

#[derive(Debug)]
struct Redirect {
    rule: RedirectRule,
    pattern: Pattern,
}

#[derive(Debug)]
struct Headers {
    host: Option<String>,
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

/// Hops of a chain of redirects: browsers and curl follow 20 to 50.
const MOST_HOPS: usize = 20;

impl Rules {
    /// Compiles what was read; rules that lead back to themselves, or cannot be compiled, are left out and reported.
    ///
    /// - `exists`: whether there is a file at a path; such a path leads no further where files come first.
    pub(crate) fn compile(
        redirects: Lenient<RedirectRule>,
        headers: Lenient<HeaderRule>,
        dialect: Dialect,
        exists: &dyn Fn(&str) -> bool,
    ) -> (Self, Vec<Remark>, Vec<Remark>) {
        let (mut of_redirects, mut of_headers) = (redirects.remarks, headers.remarks);
        let mut rules = Self {
            redirects: Vec::new(),
            statics: HashMap::new(),
            dynamics: Vec::new(),
            headers: Vec::new(),
            dialect,
        };
        for mut rule in redirects.entries {
            // Requests are compared decoded.
            rule.from = decoded(&rule.from);
            match Pattern::new(&rule.from, dialect, pattern::For::Redirects) {
                Ok(pattern) => rules.redirects.push(Redirect { rule, pattern }),
                Err(message) => of_redirects.push(Remark::line(rule.line, message)),
            }
        }
        rules.index();
        for (line, chain) in loops::find(&rules, exists) {
            let message = format!("leads back to itself: {}", chain.join(" → "));
            of_redirects.push(Remark::line(line, message));
            rules
                .redirects
                .retain(|redirect| redirect.rule.line != line);
        }
        rules.index();
        for rule in headers.entries {
            let line = rule.line;
            match Headers::new(rule, dialect) {
                Ok(headers) => rules.headers.push(headers),
                Err(message) => of_headers.push(Remark::line(line, message)),
            }
        }
        (rules, of_redirects, of_headers)
    }

    fn index(&mut self) {
        self.statics.clear();
        self.dynamics.clear();
        for (at, Redirect { rule, .. }) in self.redirects.iter().enumerate() {
            let is_plain = rule.is_static() && rule.host.is_none() && rule.query.is_empty();
            if is_plain {
                let key = key(&rule.from, self.dialect).to_owned();
                self.statics.entry(key).or_insert(at);
            } else {
                self.dynamics.push(at);
            }
        }
    }

    /// Number of redirects.
    #[cfg(test)]
    pub(crate) fn redirects(&self) -> usize {
        self.redirects.len()
    }

    /// The first redirect that holds.
    ///
    /// - `is_there`: there is a file at the path.
    pub(crate) fn redirect(&self, input: RuleInput<'_>, is_there: bool) -> Option<RuleOutcome> {
        let allowed = |at: usize| !is_there || self.redirects[at].rule.is_forced;
        let single = self.statics.get(key(input.path, self.dialect)).copied();
        let single = single.filter(|at| allowed(*at));
        for at in self.dynamics.iter().copied().filter(|at| allowed(*at)) {
            if single.is_some_and(|single| single < at) {
                break;
            }
            if let Some(outcome) = self.redirects[at].outcome(input) {
                return Some(outcome);
            }
        }
        self.redirects[single?].outcome(input)
    }

    /// Whether a redirect may take the place of a file.
    pub(crate) fn has_forced(&self) -> bool {
        self.redirects
            .iter()
            .any(|redirect| redirect.rule.is_forced)
    }

    /// Whether the outcome depends on the host.
    pub(crate) fn depends_on_host(&self) -> bool {
        self.headers.iter().any(|headers| headers.host.is_some())
    }

    /// A text that is the same for all requests that [`apply`](Self::apply) does the same for; empty where that is
    /// nothing.
    pub(crate) fn headers_key(&self, input: RuleInput<'_>) -> String {
        let mut key = String::new();
        for (at, headers) in self.headers.iter().enumerate() {
            let is_host = |host: &String| host.eq_ignore_ascii_case(input.host);
            if headers.host.as_ref().is_none_or(is_host)
                && let Some(captured) = headers.pattern.captures(input.path)
            {
                write!(key, " {at}").expect("a String takes everything");
                for (_, value) in &headers.fields {
                    let filled = pattern::filled(value, &captured, false);
                    if filled != *value {
                        write!(key, " {filled:?}").expect("a String takes everything");
                    }
                }
            }
        }
        key
    }

    /// Changes what the server would say of a path.
    pub(crate) fn apply(&self, input: RuleInput<'_>, fields: &mut HeaderMap) {
        let mut set = Vec::new();
        for headers in &self.headers {
            let is_host = |host: &String| host.eq_ignore_ascii_case(input.host);
            if !headers.host.as_ref().is_none_or(is_host) {
                continue;
            }
            let Some(captured) = headers.pattern.captures(input.path) else {
                continue;
            };
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

/// A path as it is compared: for Netlify a slash at the end makes no difference.
fn key(path: &str, dialect: Dialect) -> &str {
    match dialect {
        Dialect::Netlify if path.len() > 1 => path.strip_suffix('/').unwrap_or(path),
        _ => path,
    }
}

impl Redirect {
    fn outcome(&self, input: RuleInput<'_>) -> Option<RuleOutcome> {
        let rule = &self.rule;
        let is_host = |host: &String| host.eq_ignore_ascii_case(input.host);
        if !rule.host.as_ref().is_none_or(is_host) {
            return None;
        }
        let mut captured = self.pattern.captures(input.path)?;
        for (name, wanted) in &rule.query {
            let value = parameter(input.query?, name)?;
            match wanted.strip_prefix(':') {
                Some(place) => captured.push((place.to_owned(), value)),
                None if value == *wanted => {}
                None => return None,
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

/// The value of a parameter, decoded.
fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = query.split('&');
    pairs.find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = value.replace('+', " ");
        let decoded = percent_encoding::percent_decode_str(&value).decode_utf8();
        (key == name)
            .then(|| decoded.map(Into::into).ok())
            .flatten()
    })
}

impl Headers {
    fn new(rule: HeaderRule, dialect: Dialect) -> Result<Self, String> {
        let path = decoded(&rule.path);
        let name = |name: &str| {
            HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| format!("`{name}` is no name of a header field"))
        };
        let fields = rule
            .fields
            .into_iter()
            .map(|(key, value)| Ok((name(&key)?, value)));
        Ok(Self {
            host: rule.host,
            pattern: Pattern::new(&path, dialect, pattern::For::Headers)?,
            fields: fields.collect::<Result<_, String>>()?,
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
