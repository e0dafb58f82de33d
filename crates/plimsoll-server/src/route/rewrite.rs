//! Responds as if another path had been requested, of which the client does not learn.

use std::sync::Arc;

use http::StatusCode;

use crate::action::{Action, Answer};
use crate::actions::Target;
use crate::message::request::Request;
use crate::message::response::Response;
use crate::route::RouteLink;

/// Another path for requests, and who responds to them then.
#[derive(Debug, Clone)]
pub(crate) struct Rewrite {
    /// Path, and query if it is to have one.
    pub(crate) to: Target,
    /// The route of this name; without one that which the conditions of all routes lead to.
    pub(crate) route: Option<Arc<str>>,
}

/// The same on a worker.
pub(crate) struct Rewriting {
    plan: Rewrite,
    routes: RouteLink,
}

impl Rewriting {
    pub(crate) fn new(plan: Rewrite, routes: RouteLink) -> Self {
        Self { plan, routes }
    }
}

impl Action for Rewriting {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let failed = |status, text: &str| Answer::now(Response::text(status, text));
        // The listener is gone.
        let Some(routes) = self.routes.routes() else {
            return failed(StatusCode::NOT_FOUND, "not found\n");
        };
        let target = self.plan.to.fill(request);
        if !target.starts_with('/') {
            return failed(StatusCode::NOT_FOUND, "not found\n");
        }
        let request = request.into_owned();
        let led_to = match &self.plan.route {
            Some(name) => Arc::clone(name),
            None => Arc::from(target.as_str()),
        };
        if !request.lead_to(&led_to) {
            let text = "the request was led on too often\n";
            return failed(StatusCode::INTERNAL_SERVER_ERROR, text);
        }
        let request = request.with_target(&target);
        let request = request.request();
        match &self.plan.route {
            Some(name) => routes.respond_by_name(name, &request),
            None => routes.respond(&request),
        }
    }
}
