//! Targets that depend on the request: of redirects, and of paths in place of others.

use plimsoll_wire::http::NormalPath;
use regex::Regex;

use crate::message::request::Request;
use crate::place::Maps;
use crate::place::location::{LocationError, LocationTemplate, encoded_group};

/// A target in which places such as `{host}` stand for what the request has, and `{1}` and `{name}` for groups of the route's
/// regular expression.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    to: LocationTemplate,
    /// Of the path.
    groups: Option<Regex>,
}

impl Target {
    /// - `groups`: an expression for the path in its normal form.
    pub(crate) fn parse(
        to: &str,
        groups: Option<Regex>,
        maps: &Maps,
    ) -> Result<Self, LocationError> {
        Ok(Self {
            to: LocationTemplate::parse(to, groups.as_ref(), maps)?,
            groups,
        })
    }

    /// The target for a request.
    pub(crate) fn fill(&self, request: &Request<'_>) -> String {
        let path = NormalPath::cleaned(request.path);
        let groups = self.groups.as_ref();
        let groups = groups.and_then(|groups| groups.captures(path.text()));
        self.to.fill(request, &|location, number| {
            encoded_group(groups.as_ref()?, number, location)
        })
    }
}
