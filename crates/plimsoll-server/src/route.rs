//! Routes: which action answers a request.
//!
//! All routes that match a request are compared by how exactly they do: first by host (that one, then
//! the longest `*.` that covers it, then any), then by path (exact, then the longest prefix, then patterns and
//! regular expressions), then by their order in the file. The index gives the same answer as looking at each of them.
//!
//! A request matches routes by the normal form of its path ([`NormalPath`]), which is also what files and mocks are
//! looked up by. A path without a normal form gets a 400 before any route is chosen.

mod conditions;

mod internal;

mod on_status;

mod path;

mod rewrite;

use std::collections::HashMap;
use std::rc::Rc;

use http::StatusCode;
use http::header::{ALLOW, HeaderValue};
use plimsoll_wire::http::{NormalPath, PathRefusal};

use crate::action::{Action, Answer};
use crate::actions::Respond;
use crate::counters::RouteTag;
use crate::message::request::Request;
use crate::message::response::Response;

pub use crate::route::conditions::{FieldCondition, PlaceCondition, RouteConditions};
pub(crate) use crate::route::internal::{AllRoutes, RouteLink, Routed};
pub(crate) use crate::route::on_status::Leading;
pub use crate::route::on_status::{
    OnStatus, StatusPattern, Successor, SuccessorStatus, SuccessorTarget,
};
pub use crate::route::path::{PathCondition, PathError, Pattern};
pub(crate) use crate::route::rewrite::{Rewrite, Rewriting};

use crate::route::path::{RequestPath, key};

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

/// The properties of a request that routes match; a [`Request`] computes them lazily.
pub trait RouteInput {
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
    /// Whether a text with places has one of its values; what is no request of a connection has no places.
    fn meets(&self, _wanted: &PlaceCondition) -> bool {
        false
    }
}

impl RouteInput for Request<'_> {
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

    fn meets(&self, wanted: &PlaceCondition) -> bool {
        wanted.is_met(self)
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
                    paths.exact.entry(key(path)).or_default().push(number);
                }
                PathCondition::Prefix(prefix) => {
                    let prefix = key(prefix).trim_end_matches('/').to_owned();
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
    ///
    /// Fails for a path without a normal form, and for one that would reach another route as a server may read it: with
    /// encoded slashes as separators, or without parameters.
    pub fn find(&self, request: &impl RouteInput) -> Result<Option<&T>, RouteRefusal> {
        let path = NormalPath::parse(request.path())?;
        let found = self.find_path(&path, request);
        if path.is_ambiguous() {
            let others = path.other_readings();
            let others = others.iter().map(|it| self.find_path(it, request));
            agreed(&path, found, others)?;
        }
        Ok(found)
    }

    fn find_path(&self, path: &NormalPath<'_>, request: &impl RouteInput) -> Option<&T> {
        let path = RequestPath::from_normal_path(path);
        if !self.hosts.is_empty()
            && let Some(paths) = self.paths_of(request.host())
            && let Some(found) = self.find_in(paths, &path, request)
        {
            return Some(found);
        }
        for (suffix, paths) in &self.suffixes {
            if conditions::ends_with(request.host(), suffix)
                && let Some(found) = self.find_in(paths, &path, request)
            {
                return Some(found);
            }
        }
        self.find_in(&self.any_host, &path, request)
    }

    fn paths_of(&self, host: &str) -> Option<&Paths> {
        if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return self.hosts.get(&host.to_ascii_lowercase());
        }
        self.hosts.get(host)
    }

    fn find_in(
        &self,
        paths: &Paths,
        path: &RequestPath<'_>,
        request: &impl RouteInput,
    ) -> Option<&T> {
        let first = |numbers: &[usize]| {
            let mut numbers = numbers.iter().map(|number| &self.routes[*number]);
            numbers
                .find(|(conditions, _)| conditions.are_met_besides_path(request))
                .map(|(_, route)| route)
        };
        let folded: &str = &path.folded;
        if let Some(found) = paths.exact.get(folded).and_then(|numbers| first(numbers)) {
            return Some(found);
        }
        if !paths.prefix.is_empty() {
            let mut prefix = paths.longest_candidate(folded.trim_end_matches('/'));
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
        paths
            .patterns
            .iter()
            .map(|number| &self.routes[*number])
            .find(|(conditions, _)| {
                conditions.path.matches(path) && conditions.are_met_besides_path(request)
            })
            .map(|(_, route)| route)
    }

    /// The same as [`find`](Self::find) by looking at each route: what the index is held to.
    pub fn scan(&self, request: &impl RouteInput) -> Result<Option<&T>, RouteRefusal> {
        let path = NormalPath::parse(request.path())?;
        let found = self.scan_path(&path, request);
        if path.is_ambiguous() {
            let others = path.other_readings();
            let others = others.iter().map(|it| self.scan_path(it, request));
            agreed(&path, found, others)?;
        }
        Ok(found)
    }

    /// The first route for CONNECT alone whose conditions are met; such requests have no path.
    fn tunnel(&self, request: &impl RouteInput) -> Option<&T> {
        let mut routes = self.routes.iter();
        let found = routes.find(|(conditions, _)| {
            conditions.methods == ["CONNECT"]
                && conditions.host_matches(request.host())
                && conditions.are_met_besides_path(request)
        });
        found.map(|(_, route)| route)
    }

    fn scan_path(&self, path: &NormalPath<'_>, request: &impl RouteInput) -> Option<&T> {
        let path = RequestPath::from_normal_path(path);
        let mut best: Option<(conditions::Exactness, &T)> = None;
        for (conditions, route) in &self.routes {
            if !conditions.path.matches(&path)
                || !conditions.host_matches(request.host())
                || !conditions.are_met_besides_path(request)
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

/// Refuses a path that servers may read as one of another route.
fn agreed<'r, T: 'r>(
    path: &NormalPath<'_>,
    found: Option<&'r T>,
    others: impl Iterator<Item = Option<&'r T>>,
) -> Result<(), RouteRefusal> {
    let is_other = |other: &T| !found.is_some_and(|found| std::ptr::eq(found, other));
    if !others.flatten().any(is_other) {
        return Ok(());
    }
    Err(if path.has_encoded_slash() {
        RouteRefusal::EncodedSlash
    } else {
        RouteRefusal::Parameters
    })
}

/// Why no route is chosen for a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RouteRefusal {
    /// The path has no normal form.
    #[error(transparent)]
    Path(#[from] PathRefusal),
    /// With its `%2F` or `%5C` as a slash, the path belongs to another route.
    #[error(
        "the path contains `%2F` or `%5C`, and with a slash instead it belongs to another route"
    )]
    EncodedSlash,
    /// Without the parameters of its segments, the path belongs to another route.
    #[error(
        "the path contains `;`, and without what follows it in its segment it belongs to another route"
    )]
    Parameters,
}

/// Methods that `OPTIONS *` reports where no route limits them.
const ANY_METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// The routes of a worker as an action; 404 where none answers.
pub struct Routes {
    index: RouteIndex<Routed>,
    /// For routes that lead requests on.
    _all: Option<Rc<AllRoutes>>,
    missing: Respond,
    allowed: HeaderValue,
}

impl Routes {
    /// Answers by the action of the route that matches, noting its name.
    pub fn new(routes: Vec<(RouteConditions, RouteTag, Rc<dyn Action>)>) -> Self {
        let routes = routes.into_iter();
        let routes = routes.map(|(conditions, tag, action)| (conditions, (Rc::new(tag), action)));
        Self::with_all(routes.collect(), None)
    }

    /// - `all`: these and those that clients do not reach, if some lead requests on.
    pub(crate) fn with_all(
        routes: Vec<(RouteConditions, Routed)>,
        all: Option<Rc<AllRoutes>>,
    ) -> Self {
        let allowed = allowed_methods(&routes);
        Self {
            index: RouteIndex::new(routes),
            _all: all,
            missing: Respond::new(Response::text(StatusCode::NOT_FOUND, "not found\n")),
            allowed,
        }
    }

    /// Responds to a request for the server as a whole rather than for a path (`OPTIONS *`, CONNECT).
    fn of_server(&self, request: &Request<'_>) -> Answer {
        let asked = (request.method == "CONNECT").then(|| self.index.tunnel(request));
        if let Some((tag, action)) = asked.flatten() {
            request.answered_by(tag);
            return action.handle(request);
        }
        let response = if request.method == "OPTIONS" {
            Response::new(StatusCode::NO_CONTENT)
        } else {
            let text = "this server does not open tunnels\n";
            Response::text(StatusCode::METHOD_NOT_ALLOWED, text)
        };
        Answer::now(response.with_field(ALLOW, self.allowed.clone()))
    }
}

/// The methods that some route takes, for `allow`.
fn allowed_methods(routes: &[(RouteConditions, Routed)]) -> HeaderValue {
    let mut all: Vec<&str> = Vec::new();
    for (conditions, (_, action)) in routes {
        let of_action = action.methods().unwrap_or(ANY_METHODS);
        if conditions.methods.is_empty() {
            all.extend(of_action.split(", "));
        } else {
            all.extend(conditions.methods.iter().map(String::as_str));
            if conditions.methods.iter().any(|method| method == "GET") {
                all.push("HEAD");
            }
        }
    }
    all.push("OPTIONS");
    let mut once: Vec<&str> = Vec::new();
    for method in all {
        if !once.contains(&method) {
            once.push(method);
        }
    }
    HeaderValue::from_str(&once.join(", ")).unwrap_or(HeaderValue::from_static(ANY_METHODS))
}

impl Action for Routes {
    fn handle(&self, request: &Request<'_>) -> Answer {
        if !request.path.starts_with('/') {
            return self.of_server(request);
        }
        match self.index.find(request) {
            Ok(Some((tag, action))) => {
                request.answered_by(tag);
                action.handle(request)
            }
            Ok(None) => self.missing.handle(request),
            Err(refusal) => {
                let text = format!("{refusal}\n");
                Answer::now(Response::text(StatusCode::BAD_REQUEST, text))
            }
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
