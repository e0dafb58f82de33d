//! The HTTP interface: ours, and those of Gatus and Healthchecks.

pub mod action;

mod answer;

mod declared;

mod query;

mod body;

mod write;

mod tokens;

mod openapi;

mod access;

mod monitors;

mod incidents;

mod notices;

mod actions;

mod agent;

mod ping;

mod subscribers;

mod probe;

mod oncall;

mod gatus;

pub(crate) mod badge;

mod metrics;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{any, delete, get, patch, post, put};
use plimsoll_wire::SystemClock;

use crate::admin::{self, SignInLimits};
use crate::engine::Handle;
use crate::oidc::Providers;
use crate::page::{self, Pages, Sessions};

pub(crate) use crate::api::access::address_of;
pub(crate) use crate::api::answer::{ApiError, method_not_allowed, not_found};
pub(crate) use crate::api::monitors::{budget_left, measured};
pub(crate) use crate::api::tokens::{add as add_token, is_name, revoke as revoke_token};
pub(crate) use crate::api::write::encoded;

/// State that handlers share.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    pub(crate) handle: Handle,
    pub(crate) clock: SystemClock,
    pub(crate) pages: Arc<Pages>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) sign_ins: Arc<SignInLimits>,
    pub(crate) providers: Arc<Providers>,
}

/// All routes.
pub fn router(handle: Handle) -> Router {
    let api = Api {
        handle,
        clock: SystemClock,
        pages: Arc::default(),
        sessions: Arc::default(),
        sign_ins: Arc::default(),
        providers: Arc::default(),
    };
    let gatus = "/api/v1/endpoints";
    let one = |rest: &str| format!("{gatus}/{{key}}/{rest}");
    let monitor = |rest: &str| format!("/api/v1/monitors/{{key}}{rest}");
    let reading = Router::new()
        .route("/api/v1/monitors", get(monitors::list))
        .route(&monitor(""), get(monitors::one))
        .route(&monitor("/results"), get(monitors::results))
        .route(&monitor("/uptime"), get(monitors::uptime))
        .route(&monitor("/latency"), get(monitors::latency))
        .route("/api/v1/incidents", get(incidents::list))
        .route("/api/v1/incidents/{id}", get(incidents::one))
        .route("/api/v1/notices", get(notices::list))
        .route("/api/v1/regions", get(agent::regions))
        .route("/api/v1/on-call", get(oncall::list))
        .route("/api/v1/declared-incidents", get(declared::list))
        .route("/api/v1/declared-incidents/{id}", get(declared::one))
        .route_layer(from_fn_with_state(api.clone(), access::reading));
    let writing = Router::new()
        .route("/api/v1/monitors", post(write::create))
        .route("/api/v1/monitors/bulk", post(write::bulk))
        .route("/api/v1/monitors/export", get(write::export))
        .route(
            &monitor(""),
            put(write::replace)
                .patch(write::patch)
                .delete(write::remove),
        )
        .route("/api/v1/declared-incidents", post(declared::declare))
        .route("/api/v1/declared-incidents/{id}", patch(declared::edit))
        .route(&monitor("/check-now"), post(actions::check_now))
        .route(&monitor("/pause"), post(actions::pause))
        .route(&monitor("/resume"), post(actions::resume))
        .route(&monitor("/acknowledge"), post(actions::acknowledge))
        .route(&monitor("/resolve"), post(actions::resolve))
        .route(&monitor("/status"), post(actions::status))
        .route("/probe", get(probe::probe))
        .route_layer(from_fn_with_state(api.clone(), access::writing));
    let managing = Router::new()
        .route("/api/v1/tokens", get(tokens::list).post(tokens::create))
        .route("/api/v1/tokens/{id}", delete(tokens::remove))
        .route("/api/v1/audit", get(tokens::audit))
        .route("/api/v1/subscribers", get(subscribers::list))
        .route("/api/v1/subscribers/{id}", delete(subscribers::remove))
        .route_layer(from_fn_with_state(api.clone(), access::managing));
    let agents = Router::new()
        .route("/api/v1/agent/work", get(agent::fetch))
        .route("/api/v1/agent/results", post(agent::report))
        .route_layer(from_fn_with_state(api.clone(), access::agent));
    Router::new()
        .merge(agents)
        .merge(reading)
        .merge(writing)
        .merge(managing)
        .merge(admin::router(&api))
        .route("/api/v1/openapi.json", get(openapi::document))
        .route("/on-call/{file}", get(oncall::calendar))
        .route("/health", get(gatus::health))
        .route("/metrics", get(metrics::metrics))
        .route(&monitor("/badge.svg"), get(monitors::badge))
        .route("/ping/{token}", get(ping::success).post(ping::success))
        .route(
            "/ping/{token}/{signal}",
            get(ping::signal).post(ping::signal),
        )
        .route("/api/v1/config", get(gatus::config))
        .route("/api/v1/suites/statuses", get(gatus::suites))
        .route(&format!("{gatus}/statuses"), get(gatus::statuses))
        .route(&one("statuses"), get(gatus::one))
        .route(&one("external"), post(gatus::external))
        .route(&one("health/badge.svg"), get(gatus::health_badge))
        .route(&one("health/badge.shields"), get(gatus::health_shields))
        .route(&one("uptimes/{duration}"), get(gatus::uptime))
        .route(
            &one("uptimes/{duration}/badge.svg"),
            get(gatus::uptime_badge),
        )
        .route(&one("response-times/{duration}"), get(gatus::response_time))
        .route(
            &one("response-times/{duration}/badge.svg"),
            get(gatus::response_time_badge),
        )
        .route(
            &one("response-times/{duration}/history"),
            get(gatus::history),
        )
        .route("/status/{slug}", any(page::at_slug))
        .route("/status/{slug}/{*rest}", any(page::at_slug))
        .route("/status/{slug}/", any(page::at_slug))
        .fallback(page::at_root)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(api)
}
