//! All routes: of the API, of the admin pages and of status pages.

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::Response;
use http::Method;
use plimsoll_monitor::engine::Handle;

use crate::access::routes::Routes;
use crate::access::{self, Audience};
use crate::answer::method_not_allowed;
use crate::page::Pages;
use crate::state::Api;
use crate::visit::NoStatusPage;
use crate::{admin, api, visit};

/// All routes.
pub fn router(handle: Handle) -> Router {
    router_with(handle, Arc::default())
}

/// The same with pages that others prepare.
pub(crate) fn router_with(handle: Handle, pages: Arc<Pages>) -> Router {
    let api = Api::new(handle, pages);
    routes(&api)
        .into_router()
        .fallback(visit::at_root)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(map_response(paged))
        .layer(from_fn_with_state(api.clone(), access::locate))
        .with_state(api)
}

/// All routes but those of pages at the root of a host.
fn routes(api: &Api) -> Routes {
    Routes::new(api)
        .merge(api::routes(api))
        .merge(admin::routes(api))
        .merge(of_pages(api))
}

/// A page in place of JSON for browsers where there is no status page.
async fn paged(response: Response) -> Response {
    match response.extensions().get::<NoStatusPage>() {
        Some(none) => admin::no_status_page(none.is_tls),
        None => response,
    }
}

fn of_pages(api: &Api) -> Routes {
    let mut routes = Routes::new(api);
    for path in [
        "/status/{slug}",
        "/status/{slug}/{*rest}",
        "/status/{slug}/",
    ] {
        for method in [
            Method::GET,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
            Method::OPTIONS,
        ] {
            routes = routes.on(method, Audience::Page, path, visit::at_slug);
        }
    }
    routes
}

#[cfg(test)]
mod tests;
