//! Conditions of a route on requests.

use crate::message::request::Request;
use crate::place::Template;
use crate::route::{PathCondition, RouteInput};

/// All of these must be met.
#[derive(Debug, Clone)]
pub struct RouteConditions {
    /// A host without port, or `*.` and what it must end in; absent for any.
    pub host: Option<String>,
    /// Methods, in the case they are sent in; empty for any. GET includes HEAD.
    pub methods: Vec<String>,
    /// The path.
    pub path: PathCondition,
    /// Parameters of the query, by their names and values as they are sent.
    pub query: Vec<FieldCondition>,
    /// Header fields.
    pub headers: Vec<FieldCondition>,
    /// Texts with places.
    pub places: Vec<PlaceCondition>,
}

/// A text with places that has to be one of several values.
#[derive(Debug, Clone)]
pub struct PlaceCondition {
    /// The text.
    pub text: Template,
    /// The values; none for any but the empty one.
    pub values: Vec<String>,
}

impl PlaceCondition {
    /// Whether the text is one of the values for a request.
    pub fn is_met(&self, request: &Request<'_>) -> bool {
        let mut text = Vec::new();
        self.text.fill(request, &mut text);
        if self.values.is_empty() {
            return !text.is_empty();
        }
        self.values.iter().any(|value| value.as_bytes() == text)
    }
}

/// A parameter or a field that must be there, perhaps with one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldCondition {
    /// Its name.
    pub name: String,
    /// Its value; absent for any.
    pub value: Option<String>,
}

/// Specificity of a route; the greatest wins, and the first of equals.
pub(super) type Exactness = (u8, usize, u8, usize);

impl RouteConditions {
    /// Every request to `path`.
    pub fn of_path(path: PathCondition) -> Self {
        Self {
            host: None,
            methods: Vec::new(),
            path,
            query: Vec::new(),
            headers: Vec::new(),
            places: Vec::new(),
        }
    }

    pub(super) fn host_matches(&self, host: &str) -> bool {
        match &self.host {
            None => true,
            Some(wanted) => match wanted.strip_prefix('*') {
                Some(suffix) => ends_with(host, suffix),
                None => host.eq_ignore_ascii_case(wanted),
            },
        }
    }

    /// Everything that is neither host nor path.
    #[inline]
    pub(super) fn are_met_besides_path(&self, request: &impl RouteInput) -> bool {
        let method = request.method();
        let is_method = self.methods.is_empty()
            || self
                .methods
                .iter()
                .any(|wanted| wanted == method || (wanted == "GET" && method == "HEAD"));
        is_method
            && self
                .query
                .iter()
                .all(|wanted| wanted.is_in(request.query()))
            && self.headers.iter().all(|wanted| {
                let mut accepts = |value: &[u8]| match &wanted.value {
                    None => true,
                    Some(text) => text.as_bytes() == value,
                };
                request.any_field(&wanted.name, &mut accepts)
            })
            && self.places.iter().all(|wanted| request.meets(wanted))
    }

    pub(super) fn exactness(&self) -> Exactness {
        let (host, length) = match &self.host {
            None => (0, 0),
            Some(host) if host.starts_with('*') => (1, host.len()),
            Some(_) => (2, 0),
        };
        let (path, prefix) = self.path.exactness();
        (host, length, path, prefix)
    }
}

impl FieldCondition {
    /// As it was sent, or as it is meant: applications decode names and values.
    fn is_in(&self, query: Option<&str>) -> bool {
        let is_this = |name: &str, value: &str| {
            name == self.name && self.value.as_ref().is_none_or(|wanted| wanted == value)
        };
        query.unwrap_or_default().split('&').any(|parameter| {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let is_encoded = parameter.contains(['%', '+']);
            is_this(name, value)
                || is_encoded
                    && url::form_urlencoded::parse(parameter.as_bytes())
                        .any(|(name, value)| is_this(&name, &value))
        })
    }
}

/// Whether `host` is something and then `suffix`, whatever its case.
pub(super) fn ends_with(host: &str, suffix: &str) -> bool {
    host.len() > suffix.len()
        && host
            .get(host.len() - suffix.len()..)
            .is_some_and(|end| end.eq_ignore_ascii_case(suffix))
}
