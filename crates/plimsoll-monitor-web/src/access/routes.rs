//! Routes with their audiences: none can be added without one.

use axum::Router;
use axum::extract::Request;
use axum::handler::Handler;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use http::Method;

use crate::access::{Audience, Guarded, guard};
use crate::state::Api;

/// Routes, each behind its guard.
pub(crate) struct Routes {
    api: Api,
    router: Router<Api>,
    listed: Vec<Listed>,
}

/// A route as it was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) audience: Audience,
}

impl Routes {
    pub(crate) fn new(api: &Api) -> Self {
        Self {
            api: api.clone(),
            router: Router::new(),
            listed: Vec::new(),
        }
    }

    pub(crate) fn get<H, T>(self, audience: Audience, path: &str, handler: H) -> Self
    where
        H: Handler<T, Api>,
        T: 'static,
    {
        self.on(Method::GET, audience, path, handler)
    }

    pub(crate) fn post<H, T>(self, audience: Audience, path: &str, handler: H) -> Self
    where
        H: Handler<T, Api>,
        T: 'static,
    {
        self.on(Method::POST, audience, path, handler)
    }

    /// Adds a route for one method of a path.
    pub(crate) fn on<H, T>(
        mut self,
        method: Method,
        audience: Audience,
        path: &str,
        handler: H,
    ) -> Self
    where
        H: Handler<T, Api>,
        T: 'static,
    {
        let filter = MethodFilter::try_from(method.clone());
        let filter = filter.expect("the method is one of RFC 9110");
        let guarded = Guarded {
            api: self.api.clone(),
            audience,
        };
        let route = on(filter, handler).route_layer(from_fn_with_state(guarded, guard));
        self.router = self.router.route(path, route);
        self.listed.push(Listed {
            method,
            path: path.to_owned(),
            audience,
        });
        self
    }

    /// Adds a response layer to the routes so far.
    pub(crate) fn layer<F, Fut>(mut self, layer: F) -> Self
    where
        F: Fn(Request, Next) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Response> + Send + 'static,
    {
        self.router = self.router.layer(from_fn(layer));
        self
    }

    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.listed.extend(other.listed);
        self
    }

    /// All routes as they were added.
    #[cfg(test)]
    pub(crate) fn listed(&self) -> &[Listed] {
        &self.listed
    }

    pub(crate) fn into_router(self) -> Router<Api> {
        self.router
    }
}
