//! All routes of a listener, for those that lead requests on: routes that clients reach, and internal ones.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};

use http::StatusCode;

use super::{RouteConditions, RouteIndex};
use crate::action::{Action, Answer};
use crate::counters::RouteTag;
use crate::message::request::Request;
use crate::message::response::Response;

/// A route with the name that counters have it by.
pub(crate) type Routed = (Rc<RouteTag>, Rc<dyn Action>);

/// The routes of a listener on a worker, found by their conditions or their names.
pub(crate) struct AllRoutes {
    index: RouteIndex<Routed>,
    names: HashMap<String, Routed>,
}

impl AllRoutes {
    /// - `routes`: with their names, in the order of the file; those of other listeners, which have no conditions here, are
    ///   found by name alone.
    pub(crate) fn new(routes: Vec<(String, Option<RouteConditions>, Routed)>) -> Self {
        let names = routes.iter();
        let names = names
            .map(|(name, _, (tag, action))| (name.clone(), (Rc::clone(tag), Rc::clone(action))));
        let names = names.collect();
        let served = routes.into_iter();
        let served = served.filter_map(|(_, conditions, route)| Some((conditions?, route)));
        Self {
            names,
            index: RouteIndex::new(served.collect()),
        }
    }

    /// The answer of the route for the path of the request.
    pub(crate) fn respond(&self, request: &Request<'_>) -> Answer {
        respond(self.index.find(request).ok().flatten(), request)
    }

    /// The answer of the route of that name, whatever its conditions.
    pub(crate) fn respond_by_name(&self, name: &str, request: &Request<'_>) -> Answer {
        respond(self.names.get(name), request)
    }
}

fn respond(route: Option<&Routed>, request: &Request<'_>) -> Answer {
    let Some((tag, action)) = route else {
        return Answer::now(Response::text(StatusCode::NOT_FOUND, "not found\n"));
    };
    request.answered_by(tag);
    action.handle(request)
}

/// Where the layers of routes find all routes, which are made after them.
#[derive(Debug, Clone, Default)]
pub(crate) struct RouteLink(Rc<OnceCell<Weak<AllRoutes>>>);

impl RouteLink {
    /// Whether a layer has it.
    pub(crate) fn is_used(&self) -> bool {
        Rc::strong_count(&self.0) > 1
    }

    /// Leads to these from now on.
    pub(crate) fn lead_to(&self, routes: &Rc<AllRoutes>) {
        self.0.set(Rc::downgrade(routes)).ok();
    }

    /// The routes, unless their listener is gone.
    pub(crate) fn routes(&self) -> Option<Rc<AllRoutes>> {
        self.0.get()?.upgrade()
    }
}

impl std::fmt::Debug for AllRoutes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AllRoutes")
            .field("routes", &self.names.len())
            .finish_non_exhaustive()
    }
}
