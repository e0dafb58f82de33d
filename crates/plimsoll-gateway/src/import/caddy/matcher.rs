//! Matchers: which requests a directive is for.

use std::net::IpAddr;

use ipnet::IpNet;
use plimsoll_model::document::toml_string;

use super::super::nginx::Directive;
use super::super::toml::Keys;
use super::untranslated::Untranslated;

/// A condition on the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathMatch {
    /// `/a`
    Exact(String),
    /// `/a/*`, with its slash.
    Prefix(String),
    /// Any other, as an expression for the whole path.
    Regex(String),
}

/// Whether two conditions have requests in common cannot be seen from them.
#[derive(Debug)]
pub(super) struct Unclear;

/// Which requests; all of its conditions have to be met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Matcher {
    /// Any of these; none is no condition.
    pub(super) paths: Vec<PathMatch>,
    /// Any of these, as texts of TOML; none is no condition.
    pub(super) methods: Vec<String>,
    /// `header` of a route, with names in small letters.
    pub(super) fields: Keys,
    /// `query` of a route.
    pub(super) query: Keys,
    /// `http` or `https`, as a text of TOML.
    pub(super) scheme: Option<String>,
    /// Where clients have to be, each of them.
    pub(super) clients: Vec<Clients>,
    /// It is by an expression, whose groups have numbers.
    pub(super) has_groups: bool,
    /// Paths that it is not for.
    pub(super) excluded: Vec<PathMatch>,
}

/// Clients in networks, or all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Clients {
    pub(super) networks: Vec<String>,
    pub(super) is_negated: bool,
}

/// The characters that all texts of an expression begin with.
fn literal_start(expression: &str) -> String {
    let mut literal = String::new();
    let mut characters = expression.chars().peekable();
    // Of several branches each may begin in its own way.
    if branches(expression).len() > 1 {
        return literal;
    }
    while let Some(character) = characters.next() {
        let character = match character {
            '\\' => match characters.next() {
                Some(escaped) if !escaped.is_ascii_alphanumeric() => escaped,
                _ => break,
            },
            it if "^$.|?*+()[]{}".contains(it) => break,
            it => it,
        };
        if characters.peek().is_some_and(|it| "?*{".contains(*it)) {
            break;
        }
        literal.push(character);
    }
    literal
}

/// The branches of an expression, which are parted by a `|` that is in no group.
fn branches(expression: &str) -> Vec<&str> {
    let mut branches = Vec::new();
    let (mut depth, mut begun) = (0_usize, 0);
    let mut characters = expression.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => _ = characters.next(),
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '|' if depth == 0 => {
                branches.push(expression.get(begun..at).unwrap_or_default());
                begun = at + 1;
            }
            _ => {}
        }
    }
    branches.push(expression.get(begun..).unwrap_or_default());
    branches
}

fn is_match(expression: &str, path: &str) -> bool {
    let whole = regex::RegexBuilder::new(&format!("^(?:{expression})$"))
        .case_insensitive(true)
        .build();
    whole.is_ok_and(|it| it.is_match(path))
}

impl PathMatch {
    /// A path as Caddy writes it, with `*`; `None` for all paths.
    pub(super) fn new(text: &str) -> Option<Self> {
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
            Self::Regex(expression) => literal_start(expression).to_ascii_lowercase(),
        }
    }

    /// Whether one of its paths may begin so, or be a beginning of that.
    pub(super) fn may_begin_with(&self, start: &str) -> bool {
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

    /// Whether every path of the other one is one of this; no if that is unclear.
    pub(super) fn covers(&self, other: &Self) -> bool {
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
    pub(super) fn overlap(&self, other: &Self) -> Result<Option<Self>, Unclear> {
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
    pub(super) fn below(&self, prefix: &str) -> Self {
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
    pub(super) fn to_regex(&self) -> Self {
        Self::Regex(match self {
            Self::Exact(path) => regex::escape(path),
            Self::Prefix(path) => format!("{}.*", regex::escape(path)),
            Self::Regex(path) => path.clone(),
        })
    }

    /// Whether it is a prefix, and this one.
    ///
    /// - `text`: without a slash at its end.
    pub(super) fn is_prefix(&self, text: &str) -> bool {
        matches!(self, Self::Prefix(prefix) if prefix.trim_end_matches('/') == text)
    }

    pub(super) fn set(&self, keys: &mut Keys) {
        match self {
            Self::Exact(path) => keys.text("path", path),
            Self::Prefix(path) => keys.text("prefix", path),
            Self::Regex(path) => keys.text("regex", path),
        }
    }
}

/// The named matchers of a block, by their names with `@`.
pub(super) struct Named<'d>(Vec<(&'d str, Vec<Directive>)>);

impl<'d> Named<'d> {
    /// Those of a block, behind those around it.
    pub(super) fn within(&self, block: &'d [Directive]) -> Self {
        let mut all = self.0.clone();
        for directive in block.iter().filter(|it| it.name.starts_with('@')) {
            let conditions = match directive.arguments.split_first() {
                // All in one line.
                Some((name, arguments)) => vec![Directive {
                    name: name.clone(),
                    arguments: arguments.to_vec(),
                    ..directive.clone()
                }],
                None => directive.block.clone(),
            };
            all.push((directive.name.as_str(), conditions));
        }
        Self(all)
    }

    pub(super) const fn none() -> Self {
        Self(Vec::new())
    }

    /// Whether a directive has a matcher, and its path if it has one alone.
    pub(super) fn specificity<'a>(&'a self, directive: &'a Directive) -> (bool, Option<&'a str>) {
        let first = directive.argument(0);
        if first.starts_with('/') {
            return (true, Some(first));
        }
        if !first.starts_with('@') {
            return (false, None);
        }
        let known = self.0.iter().rev().find(|(name, _)| *name == first);
        let lines = known.map_or(&[][..], |(_, lines)| lines.as_slice());
        let paths = lines.iter().filter(|it| it.name == "path");
        let mut paths = paths.flat_map(|it| it.arguments.iter().map(String::as_str));
        let path = paths.next();
        (true, path.filter(|_| paths.next().is_none()))
    }

    /// The matcher that the first argument of a directive is, if it is one, and the arguments behind it. Fails with the condition
    /// that has no counterpart.
    pub(super) fn of<'a>(
        &self,
        directive: &'a Directive,
    ) -> Result<(Matcher, &'a [String]), Untranslated> {
        let arguments = directive.arguments.as_slice();
        let Some((first, rest)) = arguments.split_first() else {
            return Ok((Matcher::default(), arguments));
        };
        if first.starts_with('@') {
            let mut known = self.0.iter().rev();
            let found = known.find(|(name, _)| name == first);
            let (_, conditions) = found.ok_or_else(|| Untranslated::Matcher(first.clone()))?;
            return Ok((matcher(conditions)?, rest));
        }
        if first.starts_with('/') && first.contains('%') {
            return Err(Untranslated::Condition(first.clone()));
        }
        if first == "*" || first.starts_with('/') {
            let paths = PathMatch::new(first).into_iter().collect();
            return Ok((
                Matcher {
                    paths,
                    ..Matcher::default()
                },
                rest,
            ));
        }
        Ok((Matcher::default(), arguments))
    }
}

fn matcher(conditions: &[Directive]) -> Result<Matcher, Untranslated> {
    let mut made = Matcher::default();
    let mut is_for_all_paths = false;
    for one in conditions {
        let arguments = &one.arguments;
        match one.name.as_str() {
            "path" if arguments.iter().any(|it| it.contains('%')) => {
                return Err(condition("path", &arguments.join(" ")));
            }
            "path" if made.has_groups => return Err(condition("path_regexp", "beside `path`")),
            "path" => {
                let paths: Vec<_> = arguments.iter().map(|it| PathMatch::new(it)).collect();
                is_for_all_paths |= paths.contains(&None);
                made.paths.extend(paths.into_iter().flatten());
            }
            "path_regexp" if is_for_all_paths || !made.paths.is_empty() => {
                return Err(condition("path_regexp", "beside another"));
            }
            "path_regexp" => {
                let expression = arguments.last().map_or("", String::as_str);
                made.paths.extend(whole_paths(expression));
                made.has_groups = true;
            }
            "method" => {
                let methods = arguments.iter().map(|it| toml_string(it));
                made.methods.extend(methods);
            }
            "header" => {
                let name = one.argument(0).to_ascii_lowercase();
                let value = match one.argument(1) {
                    "*" | "" if !name.starts_with('!') => "true".to_owned(),
                    value if !value.contains('*') && !name.starts_with('!') => toml_string(value),
                    _ => return Err(condition("header", &arguments.join(" "))),
                };
                if made.fields.get(&name).is_some() {
                    // Any of several values would do.
                    return Err(condition("header", &format!("{name} with several values")));
                }
                made.fields.set(&name, value);
            }
            "query" => {
                for argument in arguments {
                    let (name, value) = argument.split_once('=').unwrap_or((argument, "*"));
                    let value = match value {
                        "*" => "true".to_owned(),
                        value => toml_string(value),
                    };
                    if made.query.get(name).is_some() {
                        return Err(condition("query", &format!("{name} with several values")));
                    }
                    made.query.set(name, value);
                }
            }
            "remote_ip" | "client_ip" => made.is_from(clients(one, false)?),
            "not" => made.is_not(one)?,
            "protocol" if matches!(one.argument(0), "http" | "https") => {
                made.scheme = Some(toml_string(one.argument(0)));
            }
            name => return Err(condition(name, "")),
        }
    }
    if is_for_all_paths {
        made.paths.clear();
    }
    Ok(made)
}

/// An expression of Caddy, which may match a part, as expressions for whole paths.
fn whole_paths(expression: &str) -> Vec<PathMatch> {
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

/// A condition that routes do not have.
fn condition(name: &str, rest: &str) -> Untranslated {
    Untranslated::Condition(format!("{name} {rest}").trim().to_owned())
}

fn clients(condition: &Directive, is_negated: bool) -> Result<Clients, Untranslated> {
    let mut networks = Vec::new();
    for network in condition.arguments.iter().filter(|it| *it != "forwarded") {
        for network in networks_of(network) {
            let is_network = network.parse::<IpNet>().is_ok() || network.parse::<IpAddr>().is_ok();
            if !is_network {
                return Err(Untranslated::Condition(format!(
                    "{} {network}",
                    condition.name
                )));
            }
            networks.push(network);
        }
    }
    Ok(Clients {
        networks,
        is_negated,
    })
}

/// A network, or those that Caddy calls `private_ranges`.
pub(super) fn networks_of(text: &str) -> Vec<String> {
    if text == "private_ranges" {
        let ranges = [
            "192.168.0.0/16",
            "172.16.0.0/12",
            "10.0.0.0/8",
            "127.0.0.0/8",
            "fd00::/8",
            "::1/128",
        ];
        return ranges.map(str::to_owned).to_vec();
    }
    vec![text.to_owned()]
}

impl Matcher {
    /// Of several lines of one kind any is enough, or none may be met if they are negated.
    fn is_from(&mut self, clients: Clients) {
        let mut known = self.clients.iter_mut();
        match known.find(|it| it.is_negated == clients.is_negated) {
            Some(known) => known.networks.extend(clients.networks),
            None => self.clients.push(clients),
        }
    }

    fn is_not(&mut self, one: &Directive) -> Result<(), Untranslated> {
        let negated = match one.arguments.split_first() {
            Some((name, rest)) => Directive {
                name: name.clone(),
                arguments: rest.to_vec(),
                ..one.clone()
            },
            None => match one.block.as_slice() {
                [only] => only.clone(),
                _ => return Err(condition("not", "")),
            },
        };
        match negated.name.as_str() {
            "remote_ip" | "client_ip" => self.is_from(clients(&negated, true)?),
            "path" => {
                for path in &negated.arguments {
                    let path = Some(path).filter(|it| !it.contains('%'));
                    let path = path.and_then(|it| PathMatch::new(it));
                    self.excluded
                        .push(path.ok_or_else(|| condition("not", "path"))?);
                }
            }
            "path_regexp" => {
                let expression = negated.arguments.last().map_or("", String::as_str);
                self.excluded.extend(whole_paths(expression));
            }
            name => return Err(condition("not", name)),
        }
        Ok(())
    }

    /// What both are for; `None` if that is nothing.
    pub(super) fn overlap(&self, other: &Self) -> Result<Option<Self>, Unclear> {
        let mut paths = Vec::new();
        match (self.paths.as_slice(), other.paths.as_slice()) {
            ([], some) | (some, []) => paths.extend_from_slice(some),
            (ones, others) => {
                let pairs = ones
                    .iter()
                    .flat_map(|one| others.iter().map(move |it| (one, it)));
                let mut is_unclear = false;
                for (one, other) in pairs {
                    match one.overlap(other) {
                        Ok(both) => paths.extend(both),
                        Err(Unclear) => is_unclear = true,
                    }
                }
                if is_unclear {
                    return Err(Unclear);
                }
                if paths.is_empty() {
                    return Ok(None);
                }
            }
        }
        let methods = match (self.methods.as_slice(), other.methods.as_slice()) {
            ([], some) | (some, []) => some.to_vec(),
            (ones, others) => {
                let both = ones.iter().filter(|it| others.contains(it));
                let both: Vec<_> = both.cloned().collect();
                if both.is_empty() {
                    return Ok(None);
                }
                both
            }
        };
        if self.scheme.is_some() && other.scheme.is_some() && self.scheme != other.scheme {
            return Ok(None);
        }
        let mut clients = self.clients.clone();
        for one in &other.clients {
            let opposite = Clients {
                is_negated: !one.is_negated,
                ..one.clone()
            };
            if clients.contains(&opposite) {
                return Ok(None);
            }
            if !clients.contains(one) {
                clients.push(one.clone());
            }
        }
        Ok(Some(Self {
            paths,
            methods,
            fields: both(&self.fields, &other.fields)?,
            query: both(&self.query, &other.query)?,
            scheme: self.scheme.clone().or_else(|| other.scheme.clone()),
            clients,
            has_groups: self.has_groups || other.has_groups,
            excluded: [self.excluded.clone(), other.excluded.clone()].concat(),
        }))
    }

    /// Whether every request of the other one is one of this; no if that is unclear.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let is_path = |path| self.paths.iter().any(|it: &PathMatch| it.covers(path));
        let has_paths =
            self.paths.is_empty() || !other.paths.is_empty() && other.paths.iter().all(is_path);
        let has_methods = self.methods.is_empty()
            || !other.methods.is_empty()
                && other.methods.iter().all(|it| self.methods.contains(it));
        let has_values = |ours: &Keys, theirs: &Keys| {
            let mut pairs = ours.pairs();
            pairs.all(|(name, value)| theirs.get(name) == Some(value))
        };
        self.excluded.is_empty()
            && has_paths
            && has_methods
            && has_values(&self.fields, &other.fields)
            && has_values(&self.query, &other.query)
            && (self.scheme.is_none() || self.scheme == other.scheme)
            && self.clients.iter().all(|it| other.clients.contains(it))
    }

    /// Paths alone.
    pub(super) fn of_path(path: PathMatch) -> Self {
        Self {
            paths: vec![path],
            ..Self::default()
        }
    }
}

/// The values of both. A field may have two values at a time, which no route asks for.
fn both(ones: &Keys, others: &Keys) -> Result<Keys, Unclear> {
    let mut all = ones.clone();
    for (name, value) in others.pairs() {
        match ones.get(name) {
            None | Some("true") => all.set(name, value),
            Some(known) if known == value || value == "true" => {}
            Some(_) => return Err(Unclear),
        }
    }
    Ok(all)
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
    }
}
