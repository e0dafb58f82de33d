//! Which operations a path belongs to.

use std::collections::BTreeMap;

use plimsoll_formats::openapi::Api;
use regex::Regex;

use crate::rules::path::normalized;

/// Replaces an escaped slash within a segment.
const ESCAPED_SLASH: char = '\u{0}';

/// A path as routes see it, whose escaped slashes end no segment.
///
/// - `raw`: the same path as it was sent.
pub(super) fn with_slashes(path: &str, raw: &str) -> String {
    let is_escaped = raw.to_ascii_lowercase().contains("%2f");
    let has_mark = path.contains(ESCAPED_SLASH);
    if !is_escaped || has_mark {
        return path.to_owned();
    }
    let segments = raw.split('/').map(|segment| {
        let decoded = percent_encoding::percent_decode_str(segment).decode_utf8_lossy();
        decoded.replace('/', "\u{0}")
    });
    normalized(&segments.collect::<Vec<_>>().join("/"))
}

/// The paths of a document.
#[derive(Debug)]
pub(super) struct Routes {
    /// Those with more that is fixed, sooner, come first.
    all: Vec<Route>,
    /// The paths of servers, the longest first.
    bases: Vec<String>,
}

#[derive(Debug)]
struct Route {
    path: String,
    /// With a group for each place.
    pattern: Regex,
    names: Vec<String>,
    operations: Vec<usize>,
}

/// A path that was found.
#[derive(Debug)]
pub(super) struct MatchedRoute<'r> {
    route: &'r Route,
    /// Names of places with what stands there.
    pub(super) places: Vec<(&'r str, String)>,
}

impl Routes {
    pub(super) fn new(api: &Api) -> Self {
        let mut by_path: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (number, operation) in api.operations.iter().enumerate() {
            by_path.entry(&operation.path).or_default().push(number);
        }
        let routes = by_path.into_iter();
        let mut all: Vec<Route> = routes
            .filter_map(|(path, operations)| Route::new(path, operations))
            .collect();
        all.sort_by_key(|route| {
            let segments = route.path.split('/');
            segments
                .map(|segment| segment.contains('{'))
                .collect::<Vec<_>>()
        });
        let mut bases: Vec<String> = api.bases.iter().map(|base| normalized(base)).collect();
        bases.sort_by_key(|base| std::cmp::Reverse(base.len()));
        Self { all, bases }
    }

    /// The route of a path, below the path of a server or not: of several of one shape that with the method.
    ///
    /// - `path`: with its escapes if a place holds an escaped slash.
    pub(super) fn find(
        &self,
        path: &str,
        has_method: &dyn Fn(&MatchedRoute<'_>) -> bool,
    ) -> Option<MatchedRoute<'_>> {
        let below = self.bases.iter().filter_map(|base| {
            let rest = path.strip_prefix(base.as_str())?;
            rest.starts_with('/').then_some(rest)
        });
        let mut first = None;
        for path in below.chain([path]) {
            for found in self.all.iter().filter_map(|route| route.find(path)) {
                if has_method(&found) {
                    return Some(found);
                }
                first.get_or_insert(found);
            }
        }
        first
    }
}

impl Route {
    fn new(path: &str, operations: Vec<usize>) -> Option<Self> {
        let mut pattern = "^".to_owned();
        let mut names = Vec::new();
        let normal = normalized(path);
        let mut rest = normal.as_str();
        while let Some((before, behind)) = rest.split_once('{') {
            let (name, after) = behind.split_once('}')?;
            pattern.push_str(&regex::escape(before));
            pattern.push_str("([^/]+)");
            names.push(name.to_owned());
            rest = after;
        }
        pattern.push_str(&regex::escape(rest));
        pattern.push('$');
        Some(Self {
            path: path.to_owned(),
            pattern: Regex::new(&pattern).ok()?,
            names,
            operations,
        })
    }

    fn find(&self, path: &str) -> Option<MatchedRoute<'_>> {
        let captures = self.pattern.captures(path)?;
        let values = captures.iter().skip(1).map(|group| {
            let text = group.map_or("", |group| group.as_str());
            text.replace(ESCAPED_SLASH, "/")
        });
        Some(MatchedRoute {
            route: self,
            places: self.names.iter().map(String::as_str).zip(values).collect(),
        })
    }
}

impl MatchedRoute<'_> {
    /// As the document has it.
    pub(super) fn path(&self) -> &str {
        &self.route.path
    }

    /// The number of the operation of a method.
    pub(super) fn operation(&self, api: &Api, method: &str) -> Option<usize> {
        let mut operations = self.route.operations.iter().copied();
        operations.find(|number| api.operations[*number].method == method)
    }

    /// The methods that there are, with commas between them.
    pub(super) fn methods(&self, api: &Api) -> String {
        let operations = self.route.operations.iter();
        let methods = operations.map(|number| api.operations[*number].method.as_str());
        methods.collect::<Vec<_>>().join(", ")
    }
}
