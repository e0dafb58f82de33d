//! `acl`, and the conditions behind `if` and `unless`.

use std::net::IpAddr;

use ipnet::IpNet;
use plimsoll_model::document::toml_string;
use regex::Regex;

use super::super::nginx::Directive;
use super::super::rows::matcher::{Clients, Matcher};
use super::super::rows::paths::{PathMatch, whole_paths};
use super::super::rows::value_maps::ValueMaps;

/// Alternatives of one condition, each of which becomes a route.
const MOST_ALTERNATIVES: usize = 256;

/// Why routes cannot express a condition.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum Unknown {
    /// What it tests.
    #[error("`{0}` has no counterpart among the conditions of routes")]
    Test(String),
    /// Written as alternatives it is too long: their number is a product.
    #[error("written out, the condition has more than {MOST_ALTERNATIVES} alternatives")]
    TooLong,
}

/// What one criterion tests.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    /// `true` or `false` for all.
    Always(bool),
    Path(Vec<PathMatch>),
    /// The place, and the expression for its value.
    Place(String, String),
    Clients(Vec<String>),
    Method(Vec<String>),
    IsSecure,
    /// The lists of users, of which one has to have the password.
    Password(String),
}

/// A test, or its opposite.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Literal {
    test: Test,
    is_negated: bool,
}

/// Any of these, of which all literals have to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition(Vec<Vec<Literal>>);

/// Conditions with names.
#[derive(Debug, Default)]
pub(super) struct Acls<'a>(Vec<&'a Directive>);

impl<'a> Acls<'a> {
    /// The `acl` among lines.
    pub(super) fn of(lines: &'a [Directive]) -> Self {
        Self(lines.iter().filter(|it| it.name == "acl").collect())
    }

    /// The condition that words end with, and the words before it.
    pub(super) fn split<'w>(
        &self,
        words: &'w [String],
    ) -> (&'w [String], Result<Condition, Unknown>) {
        let at = words.iter().position(|it| it == "if" || it == "unless");
        let Some(at) = at else {
            return (words, Ok(Condition::always()));
        };
        let (before, condition) = words.split_at(at);
        let parsed = self.parse(&condition[1..]);
        let parsed = parsed.and_then(|it| {
            if condition[0] == "unless" {
                it.negated()
            } else {
                Ok(it)
            }
        });
        (before, parsed)
    }

    fn parse(&self, words: &[String]) -> Result<Condition, Unknown> {
        let mut any = Condition(Vec::new());
        let mut all = Condition::always();
        let mut rest = words;
        let mut is_negated = false;
        while let Some((word, behind)) = rest.split_first() {
            rest = behind;
            let mut word = word.as_str();
            if word == "or" || word == "||" {
                any.or(std::mem::replace(&mut all, Condition::always()));
                continue;
            }
            while let Some(behind) = word.strip_prefix('!') {
                is_negated = !is_negated;
                word = behind;
            }
            if word.is_empty() {
                continue;
            }
            let term = if word == "{" {
                let end = rest.iter().position(|it| it == "}");
                let end = end.ok_or_else(|| Unknown::Test("{".to_owned()))?;
                let (inner, behind) = rest.split_at(end);
                rest = &behind[1..];
                test(inner)?
            } else {
                self.named(word)?
            };
            let term = if std::mem::take(&mut is_negated) {
                term.negated()?
            } else {
                term
            };
            all = all.and(&term)?;
        }
        any.or(all);
        Ok(any)
    }

    fn named(&self, name: &str) -> Result<Condition, Unknown> {
        let mut own = self.0.iter().filter(|it| it.argument(0) == name).peekable();
        if own.peek().is_none() {
            return test(&[name.to_owned()]);
        }
        let mut any = Condition(Vec::new());
        for acl in own {
            any.or(test(acl.arguments.get(1..).unwrap_or_default())?);
        }
        Ok(any)
    }
}

impl Condition {
    pub(super) fn always() -> Self {
        Self(vec![Vec::new()])
    }

    /// Whether it holds for all requests.
    pub(super) fn is_always(&self) -> bool {
        self.0.iter().any(Vec::is_empty)
    }

    fn of(test: Test) -> Self {
        Self(vec![vec![Literal {
            test,
            is_negated: false,
        }]])
    }

    /// This one or another. A test of the same thing takes the values of both, as of several lines `acl` with one name.
    fn or(&mut self, other: Self) {
        for all in other.0 {
            let is_joined = match all.as_slice() {
                [literal] => self
                    .0
                    .iter_mut()
                    .any(|it| it.len() == 1 && it[0].join(literal)),
                _ => false,
            };
            if !is_joined {
                self.0.push(all);
            }
        }
    }

    fn and(&self, other: &Self) -> Result<Self, Unknown> {
        if self.0.len().saturating_mul(other.0.len()) > MOST_ALTERNATIVES {
            return Err(Unknown::TooLong);
        }
        let pairs = self.0.iter().flat_map(|one| {
            let others = other.0.iter();
            others.map(move |it| [one.clone(), it.clone()].concat())
        });
        Ok(Self(pairs.collect()))
    }

    fn negated(&self) -> Result<Self, Unknown> {
        let mut all = Self::always();
        for conjunction in &self.0 {
            let opposites = conjunction.iter().map(|literal| {
                vec![Literal {
                    is_negated: !literal.is_negated,
                    ..literal.clone()
                }]
            });
            all = all.and(&Self(opposites.collect()))?;
        }
        Ok(all)
    }

    /// The list of users without one of whom a request is turned away, if that is all that it says.
    pub(super) fn unless_password(&self) -> Option<&str> {
        match self.0.as_slice() {
            [all] => match all.as_slice() {
                [
                    Literal {
                        test: Test::Password(list),
                        is_negated: true,
                    },
                ] => Some(list),
                _ => None,
            },
            _ => None,
        }
    }

    /// The names that clients of TLS request, if it is about them alone; all of them, `*.` before ends.
    pub(super) fn names(&self) -> Option<Vec<String>> {
        let mut names = Vec::new();
        for all in &self.0 {
            let [
                Literal {
                    test: Test::Place(place, expression),
                    is_negated: false,
                },
            ] = all.as_slice()
            else {
                return None;
            };
            if place != "{tls.sni}" {
                return None;
            }
            // Of several lines `acl` with one name.
            for part in expression.split("$|") {
                let part = part.strip_suffix('$').unwrap_or(part);
                let inner = part.strip_prefix("^(?i:").or(part.strip_prefix("^(?-i:"));
                let inner = inner?.strip_suffix(')')?;
                for name in inner.split('|') {
                    let name = name.replace("\\.", ".").replace("\\-", "-");
                    match name.strip_prefix(".*.") {
                        Some(end) if !end.contains(['*', '\\']) => names.push(format!("*.{end}")),
                        None if !name.contains(['*', '\\', '(']) => names.push(name),
                        _ => return None,
                    }
                }
            }
        }
        Some(names)
    }

    /// As conditions of routes, of which any may hold.
    pub(super) fn matchers(&self, maps: &mut ValueMaps) -> Result<Vec<Matcher>, Unknown> {
        let mut matchers = Vec::new();
        for all in &self.0 {
            let mut matcher = Some(Matcher::default());
            for literal in all {
                let Some(known) = matcher.take() else {
                    break;
                };
                matcher = literal.add(known, maps)?;
            }
            matchers.extend(matcher);
        }
        Ok(matchers)
    }
}

impl Literal {
    /// Makes it hold where another one does too; false if they test different things.
    fn join(&mut self, other: &Self) -> bool {
        if self.is_negated || other.is_negated {
            return false;
        }
        match (&mut self.test, &other.test) {
            (Test::Path(own), Test::Path(others)) => own.extend_from_slice(others),
            (Test::Clients(own), Test::Clients(others))
            | (Test::Method(own), Test::Method(others)) => {
                own.extend_from_slice(others);
            }
            (Test::Place(place, own), Test::Place(other, expression)) if place == other => {
                *own = format!("{own}|{expression}");
            }
            _ => return false,
        }
        true
    }

    /// A matcher that this holds for too; `None` if no request meets both.
    fn add(&self, mut matcher: Matcher, maps: &mut ValueMaps) -> Result<Option<Matcher>, Unknown> {
        match &self.test {
            Test::Always(is_true) => return Ok((*is_true != self.is_negated).then_some(matcher)),
            Test::Path(paths) if self.is_negated => matcher.excluded.extend(paths.iter().cloned()),
            Test::Path(paths) => {
                let own = Matcher {
                    paths: paths.clone(),
                    ..Matcher::default()
                };
                let both = matcher.overlap(&own);
                return both.map_err(|_| Unknown::Test("path".to_owned()));
            }
            Test::Place(place, expression) => {
                let test = maps.test(place, expression, self.is_negated);
                matcher.places.push(test);
            }
            Test::Method(methods) => {
                let names: Vec<_> = methods.iter().map(|it| regex::escape(it)).collect();
                let expression = format!("^(?:{})$", names.join("|"));
                let test = maps.test("{method}", &expression, self.is_negated);
                matcher.places.push(test);
            }
            Test::Clients(networks) => matcher.clients.push(Clients {
                networks: networks.clone(),
                is_negated: self.is_negated,
            }),
            Test::IsSecure => {
                let scheme = if self.is_negated { "http" } else { "https" };
                let scheme = toml_string(scheme);
                if matcher.scheme.as_ref().is_some_and(|it| *it != scheme) {
                    return Ok(None);
                }
                matcher.scheme = Some(scheme);
            }
            Test::Password(_) => return Err(Unknown::Test("http_auth".to_owned())),
        }
        Ok(Some(matcher))
    }
}

/// The test of a criterion with its flags and values.
fn test(words: &[String]) -> Result<Condition, Unknown> {
    let unknown = || Unknown::Test(words.join(" "));
    let (criterion, rest) = words.split_first().ok_or_else(unknown)?;
    let (name, argument) = match criterion.split_once('(') {
        Some((name, rest)) => (name, rest.strip_suffix(')').ok_or_else(unknown)?),
        None => (criterion.as_str(), ""),
    };
    let mut ignores_case = false;
    let mut method = None;
    let mut values = rest;
    while let Some((flag, behind)) = values.split_first() {
        match flag.as_str() {
            "-i" => ignores_case = true,
            "-n" => {}
            "-m" => {
                method = behind.first().map(String::as_str);
                values = behind.get(1..).unwrap_or_default();
                continue;
            }
            "--" => {
                values = behind;
                break;
            }
            flag if flag.starts_with('-') => return Err(unknown()),
            _ => break,
        }
        values = behind;
    }
    let constant = match name {
        "TRUE" | "HTTP" | "HTTP_1.1" | "always_true" => Some(Test::Always(true)),
        "FALSE" | "always_false" => Some(Test::Always(false)),
        "LOCALHOST" => Some(Test::Clients(vec!["127.0.0.1/8".into(), "::1".into()])),
        "ssl_fc" => Some(Test::IsSecure),
        "http_auth" => Some(Test::Password(argument.to_owned())),
        "METH_GET" => Some(Test::Method(vec!["GET".into(), "HEAD".into()])),
        _ => name
            .strip_prefix("METH_")
            .map(|it| Test::Method(vec![it.to_owned()])),
    };
    if let Some(constant) = constant {
        return Ok(Condition::of(constant));
    }
    let name = name.strip_prefix("req.").unwrap_or(name);
    match name {
        "method" => return Ok(Condition::of(Test::Method(values.to_vec()))),
        "src" => {
            let is_network =
                |it: &String| it.parse::<IpNet>().is_ok() || it.parse::<IpAddr>().is_ok();
            if values.is_empty() || !values.iter().all(is_network) {
                return Err(unknown());
            }
            return Ok(Condition::of(Test::Clients(values.to_vec())));
        }
        _ => {}
    }
    let ends = ["beg", "end", "sub", "reg", "dir", "dom", "str", "found"];
    let (name, kind) = match name.rsplit_once('_') {
        Some((name, kind)) if ends.contains(&kind) => (name, kind),
        _ => (name, method.unwrap_or("str")),
    };
    let place = match name {
        "path" => {
            return paths(kind, values, ignores_case)
                .map(|it| Condition::of(Test::Path(it)))
                .ok_or_else(unknown);
        }
        "hdr" | "fhdr" if argument.eq_ignore_ascii_case("host") => "{host}".to_owned(),
        "hdr" | "fhdr" => format!("{{header:{}}}", field(argument).ok_or_else(unknown)?),
        "cook" => format!("{{cookie:{}}}", field(argument).ok_or_else(unknown)?),
        "url_param" | "urlp" => format!("{{query:{}}}", field(argument).ok_or_else(unknown)?),
        "query" => "{query.string}".to_owned(),
        "url" => "{target}".to_owned(),
        "ssl_fc_sni" | "ssl_sni" => "{tls.sni}".to_owned(),
        "dst_port" => "{port}".to_owned(),
        _ => return Err(unknown()),
    };
    if values.is_empty() && kind != "found" {
        return Err(unknown());
    }
    let is_field = place.starts_with("{header:") && name == "hdr";
    // Hosts have no case.
    let ignores_case = ignores_case || place == "{host}";
    let expression = expression(kind, values, ignores_case, is_field).ok_or_else(unknown)?;
    Ok(Condition::of(Test::Place(place, expression)))
}

/// A name that a place may have.
fn field(name: &str) -> Option<String> {
    let is_name = |it: u8| it.is_ascii_alphanumeric() || b"-_.".contains(&it);
    (!name.is_empty() && name.bytes().all(is_name)).then(|| name.to_ascii_lowercase())
}

/// - `is_list`: the values of a field, which have commas between them, of which any may be meant.
fn expression(kind: &str, values: &[String], ignores_case: bool, is_list: bool) -> Option<String> {
    let flags = if ignores_case { "?i" } else { "?-i" };
    let escaped: Vec<_> = values.iter().map(|it| regex::escape(it)).collect();
    let any = escaped.join("|");
    let (start, end) = if is_list {
        ("(?:^|, *)", "(?:$| *,)")
    } else {
        ("^", "$")
    };
    let text = match kind {
        "found" => ".".to_owned(),
        "str" => format!("{start}({flags}:{any}){end}"),
        "beg" => format!("{start}({flags}:{any})"),
        "end" if !is_list => {
            let ends: Vec<_> = escaped.iter().map(|it| format!(".*{it}")).collect();
            format!("^({flags}:{})$", ends.join("|"))
        }
        "end" => format!("({flags}:{any}){end}"),
        "sub" => format!("({flags}:{any})"),
        "dom" => format!("(?:^|\\.)({flags}:{any})(?:\\.|$)"),
        "reg" => format!("({flags}:{})", values.join("|")),
        _ => return None,
    };
    Regex::new(&text).ok()?;
    Some(text)
}

fn paths(kind: &str, values: &[String], ignores_case: bool) -> Option<Vec<PathMatch>> {
    let cased = |text: String| {
        PathMatch::Regex(if ignores_case {
            text
        } else {
            format!("(?-i:{text})")
        })
    };
    let mut paths = Vec::new();
    for value in values {
        let escaped = regex::escape(value);
        match kind {
            "str" => paths.push(cased(escaped)),
            "beg" => paths.push(cased(format!("{escaped}.*"))),
            "end" => paths.push(cased(format!(".*{escaped}"))),
            "sub" => paths.push(cased(format!(".*{escaped}.*"))),
            "dir" => paths.push(cased(format!(".*/{escaped}(?:/.*)?"))),
            "reg" => {
                Regex::new(value).ok()?;
                for path in whole_paths(value) {
                    match path {
                        PathMatch::Regex(text) => paths.push(cased(text)),
                        other => paths.push(other),
                    }
                }
            }
            _ => return None,
        }
    }
    (!paths.is_empty()).then_some(paths)
}
