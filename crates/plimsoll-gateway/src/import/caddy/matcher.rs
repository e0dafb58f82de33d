//! Matchers: which requests a directive is for.

use plimsoll_model::document::{toml_key, toml_string};

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

/// Paths that may or may not have some in common.
struct Unclear;

/// Which requests; all of its conditions have to be met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Matcher {
    /// Any of these; none is no condition.
    pub(super) paths: Vec<PathMatch>,
    /// `method`, `header`, `query` and `places` of a route.
    pub(super) conditions: Keys,
    /// Networks of clients: those that are let in, or those that are not.
    pub(super) clients: Option<Clients>,
    /// It is by an expression, whose groups have numbers.
    pub(super) has_groups: bool,
    /// Paths that it is not for.
    pub(super) excluded: Vec<PathMatch>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Clients {
    pub(super) networks: Vec<String>,
    pub(super) is_negated: bool,
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

    /// Whether every path of the other one is one of this.
    pub(super) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Prefix(prefix), Self::Prefix(path) | Self::Exact(path)) => path
                .to_ascii_lowercase()
                .starts_with(&prefix.to_ascii_lowercase()),
            (one, other) => one == other,
        }
    }

    /// The paths of both, if it is clear which they are.
    fn overlap(&self, other: &Self) -> Result<Option<Self>, Unclear> {
        if self.covers(other) {
            return Ok(Some(other.clone()));
        }
        if other.covers(self) {
            return Ok(Some(self.clone()));
        }
        match (self, other) {
            (Self::Regex(expression), Self::Prefix(prefix))
            | (Self::Prefix(prefix), Self::Regex(expression))
                if expression.starts_with(".*") =>
            {
                let both = format!("{}{expression}", regex::escape(prefix));
                Ok(Some(Self::Regex(both)))
            }
            (Self::Regex(_), _) | (_, Self::Regex(_)) => Err(Unclear),
            _ => Ok(None),
        }
    }

    /// The same below a prefix that is taken off before, such as `/api`.
    pub(super) fn below(&self, prefix: &str) -> Self {
        match self {
            Self::Exact(path) => Self::Exact(format!("{prefix}{path}")),
            Self::Prefix(path) => Self::Prefix(format!("{prefix}{path}")),
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

    pub(super) fn set(&self, keys: &mut Keys) {
        match self {
            Self::Exact(path) => keys.text("path", path),
            Self::Prefix(path) => keys.text("prefix", path),
            Self::Regex(path) => keys.text("regex", path),
        }
    }

    /// How specific it is: Caddy tries the longest paths of a directive first.
    pub(super) fn length(&self) -> usize {
        match self {
            Self::Exact(path) => path.len() + 1,
            Self::Prefix(path) => path.len(),
            Self::Regex(path) => path.len() / 2,
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
    let mut header = Keys::default();
    let mut query = Keys::default();
    let mut methods = Vec::new();
    for one in conditions {
        let arguments = &one.arguments;
        match one.name.as_str() {
            "path" => {
                for argument in arguments {
                    match PathMatch::new(argument) {
                        Some(path) => made.paths.push(path),
                        None => return Ok(Matcher::default()),
                    }
                }
            }
            "path_regexp" => {
                let expression = arguments.last().map_or("", String::as_str);
                let begun = match expression.strip_prefix('^') {
                    Some(rest) => rest.to_owned(),
                    None => format!(".*{expression}"),
                };
                let whole = match begun.strip_suffix('$') {
                    Some(rest) => rest.to_owned(),
                    None => format!("{begun}.*"),
                };
                made.paths.push(PathMatch::Regex(whole));
                made.has_groups = true;
            }
            "method" => methods.extend(arguments.iter().map(|it| toml_string(it))),
            "header" => {
                let name = one.argument(0);
                let value = one.argument(1);
                let value = match value {
                    "*" | "" if !name.starts_with('!') => "true".to_owned(),
                    value if !value.contains('*') && !name.starts_with('!') => toml_string(value),
                    _ => return Err(condition("header", &arguments.join(" "))),
                };
                header.set(name, value);
            }
            "query" => {
                for argument in arguments {
                    let (name, value) = argument.split_once('=').unwrap_or((argument, "*"));
                    let value = match value {
                        "*" => "true".to_owned(),
                        value => toml_string(value),
                    };
                    query.set(name, value);
                }
            }
            "remote_ip" | "client_ip" => made.clients = Some(clients(one, false)),
            "not" => {
                let negated = match arguments.split_first() {
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
                    "remote_ip" | "client_ip" => made.clients = Some(clients(&negated, true)),
                    "path" => {
                        let paths = negated.arguments.iter();
                        made.excluded
                            .extend(paths.filter_map(|it| PathMatch::new(it)));
                    }
                    name => return Err(condition("not", name)),
                }
            }
            "protocol" if matches!(one.argument(0), "http" | "https") => {
                let scheme = toml_string(one.argument(0));
                made.conditions
                    .set("places", format!("{{ scheme = {scheme} }}"));
            }
            name => return Err(condition(name, "")),
        }
    }
    if !methods.is_empty() {
        let methods = format!("[{}]", methods.join(", "));
        made.conditions.set("method", methods);
    }
    for (key, table) in [("header", header), ("query", query)] {
        if !table.is_empty() {
            made.conditions.set(key, table.inline());
        }
    }
    Ok(made)
}

/// A condition that routes do not have.
fn condition(name: &str, rest: &str) -> Untranslated {
    Untranslated::Condition(format!("{name} {rest}").trim().to_owned())
}

fn clients(condition: &Directive, is_negated: bool) -> Clients {
    /// What Caddy calls `private_ranges`.
    const PRIVATE: [&str; 6] = [
        "192.168.0.0/16",
        "172.16.0.0/12",
        "10.0.0.0/8",
        "127.0.0.0/8",
        "fd00::/8",
        "::1",
    ];
    let networks = condition.arguments.iter().flat_map(|network| {
        if network == "private_ranges" {
            PRIVATE.map(str::to_owned).to_vec()
        } else {
            vec![network.clone()]
        }
    });
    Clients {
        networks: networks.filter(|it| it != "forwarded").collect(),
        is_negated,
    }
}

impl Clients {
    /// `addresses` of a route that serves those who match.
    pub(super) fn addresses(&self, refuses: bool) -> String {
        let networks = self.networks.iter().map(|it| toml_string(it));
        let networks = networks.collect::<Vec<_>>().join(", ");
        let key = if self.is_negated == refuses {
            "allow"
        } else {
            "deny"
        };
        format!("{{ {} = [{networks}] }}", toml_key(key))
    }
}

/// The requests that two matchers have in common.
#[derive(Debug)]
pub(super) enum Overlap {
    None,
    Both(Matcher),
    /// Expressions may have paths in common that they do not show.
    Unknown,
}

impl Matcher {
    /// What both are for.
    pub(super) fn overlap(&self, other: &Self) -> Overlap {
        let mut conditions = self.conditions.clone();
        if conditions.differs_from(&other.conditions) {
            return Overlap::None;
        }
        conditions.inherit(&other.conditions);
        let paths = match (self.paths.as_slice(), other.paths.as_slice()) {
            ([], paths) | (paths, []) => paths.to_vec(),
            (ones, others) => {
                let mut paths = Vec::new();
                for (one, other) in ones
                    .iter()
                    .flat_map(|one| others.iter().map(move |it| (one, it)))
                {
                    match one.overlap(other) {
                        Ok(both) => paths.extend(both),
                        Err(Unclear) => return Overlap::Unknown,
                    }
                }
                if paths.is_empty() {
                    return Overlap::None;
                }
                paths
            }
        };
        Overlap::Both(Self {
            paths,
            conditions,
            clients: self.clients.clone().or_else(|| other.clients.clone()),
            has_groups: self.has_groups || other.has_groups,
            excluded: [self.excluded.clone(), other.excluded.clone()].concat(),
        })
    }

    /// Whether every request of the other one is one of this, as far as paths say so.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.conditions.is_empty()
            && self.clients.is_none()
            && self.excluded.is_empty()
            && (self.paths.is_empty()
                || !other.paths.is_empty()
                    && other
                        .paths
                        .iter()
                        .all(|path| self.paths.iter().any(|it| it.covers(path))))
    }

    /// Both conditions; fails if the paths of one are not within those of the other.
    ///
    /// - `stripped`: a prefix that is taken off before the other one is looked at.
    pub(super) fn and(&self, inner: &Self, stripped: Option<&str>) -> Option<Self> {
        let paths = match (self.paths.as_slice(), inner.paths.as_slice(), stripped) {
            (_, [], _) => self.paths.clone(),
            (_, inner, Some(prefix)) => inner.iter().map(|it| it.below(prefix)).collect(),
            ([], inner, None) => inner.to_vec(),
            (outer, inner, None) => {
                let narrow = |path: &PathMatch| {
                    if outer.iter().any(|it| it.covers(path)) {
                        return Some(path.clone());
                    }
                    // A wider one within a narrower is that.
                    let mut outer = outer.iter();
                    outer.find(|it| path.covers(it)).cloned()
                };
                let paths: Option<Vec<_>> = inner.iter().map(narrow).collect();
                paths?
            }
        };
        let mut conditions = inner.conditions.clone();
        if conditions.differs_from(&self.conditions) {
            return None;
        }
        conditions.inherit(&self.conditions);
        Some(Self {
            paths,
            conditions,
            clients: inner.clients.clone().or_else(|| self.clients.clone()),
            has_groups: inner.has_groups || self.has_groups,
            excluded: [self.excluded.clone(), inner.excluded.clone()].concat(),
        })
    }
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
