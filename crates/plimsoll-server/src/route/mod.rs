//! Routes: which action answers a request.
//!
//! All routes that match a request are compared by how exactly they do: first by host (that one, then
//! the longest `*.` that covers it, then any), then by path (exact, then the longest prefix, then patterns and
//! regular expressions), then by their order in the file. The index gives the same answer as looking at each of them.

mod conditions;

mod path;

use std::collections::HashMap;
use std::rc::Rc;

use http::StatusCode;

use crate::action::{Action, Answer};
use crate::actions::Respond;
use crate::counters::RouteTag;
use crate::request::Request;
use crate::response::Response;

pub use crate::route::conditions::{FieldCondition, RouteConditions};
pub use crate::route::path::{PathCondition, PathError, Pattern};

use crate::route::path::normalized;

/// Routes of one worker, compiled for looking up.
#[derive(Debug)]
pub struct RouteIndex<T> {
    routes: Vec<(RouteConditions, T)>,
    hosts: HashMap<String, Paths>,
    /// Behind their `*`, the longest first.
    suffixes: Vec<(String, Paths)>,
    any_host: Paths,
}

/// The routes of one host by their numbers, each list ascending.
#[derive(Debug, Default)]
struct Paths {
    exact: HashMap<String, Vec<usize>>,
    /// None of them empty.
    prefix: HashMap<String, Vec<usize>>,
    /// The prefix of every path, apart from the others: most servers have only this one, and hashing and comparing
    /// nothing takes its time too.
    root: Vec<usize>,
    /// Bytes of the longest prefix, so that no longer one is looked up.
    longest_prefix: usize,
    patterns: Vec<usize>,
}

impl Paths {
    /// The longest beginning of a path that may be one of the prefixes; it ends where a segment does.
    fn longest_candidate<'a>(&self, path: &'a str) -> &'a str {
        match path.as_bytes().get(..=self.longest_prefix) {
            // A segment also ends where the next byte is a slash.
            Some(head) => {
                let end = head.iter().rposition(|byte| *byte == b'/');
                end.and_then(|end| path.get(..end)).unwrap_or(path)
            }
            None => path,
        }
    }
}

/// What routes look at; a [`Request`] is asked for it lazily.
pub trait Asked {
    /// The method.
    fn method(&self) -> &str;
    /// The host, without the port.
    fn host(&self) -> &str;
    /// The path, percent-escapes untouched.
    fn path(&self) -> &str;
    /// The query, without the question mark.
    fn query(&self) -> Option<&str>;
    /// Whether one of the fields of that name has a value that `test` accepts.
    fn any_field(&self, name: &str, test: &mut dyn FnMut(&[u8]) -> bool) -> bool;
}

impl Asked for Request<'_> {
    fn method(&self) -> &str {
        self.method
    }

    fn host(&self) -> &str {
        Request::host(self)
    }

    fn path(&self) -> &str {
        self.path
    }

    fn query(&self) -> Option<&str> {
        self.query
    }

    fn any_field(&self, name: &str, test: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.headers()
            .any(|(field, value)| field.eq_ignore_ascii_case(name) && test(value))
    }
}

impl<T> RouteIndex<T> {
    /// Compiles `routes`, which are in the order of their file.
    pub fn new(routes: Vec<(RouteConditions, T)>) -> Self {
        let mut index = Self {
            routes: Vec::new(),
            hosts: HashMap::new(),
            suffixes: Vec::new(),
            any_host: Paths::default(),
        };
        for (number, (conditions, _)) in routes.iter().enumerate() {
            let host = conditions.host.as_deref().map(str::to_ascii_lowercase);
            let paths = match host.as_deref().map(|host| (host, host.strip_prefix('*'))) {
                None => &mut index.any_host,
                Some((_, Some(suffix))) => {
                    let at = index.suffixes.iter().position(|(known, _)| known == suffix);
                    let at = at.unwrap_or_else(|| {
                        index.suffixes.push((suffix.to_owned(), Paths::default()));
                        index.suffixes.len() - 1
                    });
                    &mut index.suffixes[at].1
                }
                Some((host, None)) => index.hosts.entry(host.to_owned()).or_default(),
            };
            match &conditions.path {
                PathCondition::Exact(path) => {
                    let path = normalized(path).into_owned();
                    paths.exact.entry(path).or_default().push(number);
                }
                PathCondition::Prefix(prefix) => {
                    let prefix = normalized(prefix.trim_end_matches('/')).into_owned();
                    paths.longest_prefix = paths.longest_prefix.max(prefix.len());
                    if prefix.is_empty() {
                        paths.root.push(number);
                    } else {
                        paths.prefix.entry(prefix).or_default().push(number);
                    }
                }
                PathCondition::Pattern(_) | PathCondition::Regex(_) => paths.patterns.push(number),
            }
        }
        index
            .suffixes
            .sort_by_key(|(suffix, _)| std::cmp::Reverse(suffix.len()));
        index.routes = routes;
        index
    }

    /// The route that answers, if there is one.
    pub fn find(&self, asked: &impl Asked) -> Option<&T> {
        let path = normalized(asked.path());
        if !self.hosts.is_empty()
            && let Some(paths) = self.paths_of(asked.host())
            && let Some(found) = self.find_in(paths, &path, asked)
        {
            return Some(found);
        }
        for (suffix, paths) in &self.suffixes {
            if conditions::ends_with(asked.host(), suffix)
                && let Some(found) = self.find_in(paths, &path, asked)
            {
                return Some(found);
            }
        }
        self.find_in(&self.any_host, &path, asked)
    }

    fn paths_of(&self, host: &str) -> Option<&Paths> {
        if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return self.hosts.get(&host.to_ascii_lowercase());
        }
        self.hosts.get(host)
    }

    fn find_in(&self, paths: &Paths, path: &str, asked: &impl Asked) -> Option<&T> {
        let first = |numbers: &[usize]| {
            let mut numbers = numbers.iter().map(|number| &self.routes[*number]);
            numbers
                .find(|(conditions, _)| conditions.are_met_besides_path(asked))
                .map(|(_, route)| route)
        };
        if let Some(found) = paths.exact.get(path).and_then(|numbers| first(numbers)) {
            return Some(found);
        }
        if path.starts_with('/') {
            if !paths.prefix.is_empty() {
                let mut prefix = paths.longest_candidate(path.trim_end_matches('/'));
                while !prefix.is_empty() {
                    if let Some(found) = paths.prefix.get(prefix).and_then(|it| first(it)) {
                        return Some(found);
                    }
                    prefix = prefix.rsplit_once('/').map_or("", |(shorter, _)| shorter);
                }
            }
            if let Some(found) = first(&paths.root) {
                return Some(found);
            }
        }
        paths
            .patterns
            .iter()
            .map(|number| &self.routes[*number])
            .find(|(conditions, _)| {
                conditions.path.matches(path) && conditions.are_met_besides_path(asked)
            })
            .map(|(_, route)| route)
    }

    /// The same as [`find`](Self::find) by looking at each route: what the index is held to.
    pub fn scan(&self, asked: &impl Asked) -> Option<&T> {
        let path = normalized(asked.path());
        let mut best: Option<(conditions::Exactness, &T)> = None;
        for (conditions, route) in &self.routes {
            if !conditions.path.matches(&path)
                || !conditions.host_matches(asked.host())
                || !conditions.are_met_besides_path(asked)
            {
                continue;
            }
            let exactness = conditions.exactness();
            if best.is_none_or(|(best, _)| exactness > best) {
                best = Some((exactness, route));
            }
        }
        best.map(|(_, route)| route)
    }
}

/// The routes of a worker as an action; 404 where none answers.
pub struct Routes {
    index: RouteIndex<(Rc<RouteTag>, Rc<dyn Action>)>,
    missing: Respond,
}

impl Routes {
    /// Answers by the action of the route that matches, noting its name.
    pub fn new(routes: Vec<(RouteConditions, RouteTag, Rc<dyn Action>)>) -> Self {
        let routes = routes
            .into_iter()
            .map(|(conditions, tag, action)| (conditions, (Rc::new(tag), action)))
            .collect();
        Self {
            index: RouteIndex::new(routes),
            missing: Respond::new(Response::text(StatusCode::NOT_FOUND, "not found\n")),
        }
    }
}

impl Action for Routes {
    fn handle(&self, request: &Request<'_>) -> Answer {
        match self.index.find(request) {
            Some((tag, action)) => {
                request.answered_by(tag);
                action.handle(request)
            }
            None => self.missing.handle(request),
        }
    }
}

impl std::fmt::Debug for Routes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Routes")
            .field("routes", &self.index.routes.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
