//! The HTTP interface: ours, and those of Gatus and Healthchecks.

mod declared;

mod definitions;

mod query;

mod body;

mod write;

mod tokens;

mod openapi;

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

mod healthchecks;

mod metrics;

use http::Method;
use plimsoll_monitor::store::Scope;

use crate::access::Audience;
use crate::access::routes::Routes;
use crate::state::Api;

pub(crate) use crate::api::monitors::{budget_left, measured};
pub(crate) use crate::api::tokens::{add as add_token, is_name, revoke as revoke_token};
pub(crate) use crate::api::write::encoded;

/// The routes of the API.
pub(crate) fn routes(api: &Api) -> Routes {
    Routes::new(api)
        .merge(reading(api))
        .merge(writing(api))
        .merge(managing(api))
        .merge(definitions::routes(api))
        .merge(of_agents(api))
        .merge(of_gatus(api))
        .merge(healthchecks::routes(api))
        .merge(public(api))
}

fn of_monitor(rest: &str) -> String {
    format!("/api/v1/monitors/{{key}}{rest}")
}

fn reading(api: &Api) -> Routes {
    let reader = Audience::Reader;
    Routes::new(api)
        .get(reader, "/api/v1/monitors", monitors::list)
        .get(reader, &of_monitor(""), monitors::one)
        .get(reader, &of_monitor("/results"), monitors::results)
        .get(reader, &of_monitor("/uptime"), monitors::uptime)
        .get(reader, &of_monitor("/latency"), monitors::latency)
        .get(reader, "/api/v1/incidents", incidents::list)
        .get(reader, "/api/v1/incidents/{id}", incidents::one)
        .get(reader, "/api/v1/notices", notices::list)
        .get(reader, "/api/v1/regions", agent::regions)
        .get(reader, "/api/v1/processes", agent::processes)
        .get(reader, "/api/v1/discovery", agent::discovery)
        .get(reader, "/api/v1/on-call", oncall::list)
        .get(reader, "/api/v1/declared-incidents", declared::list)
        .get(reader, "/api/v1/declared-incidents/{id}", declared::one)
}

fn writing(api: &Api) -> Routes {
    let writer = Audience::Scope(Scope::Write);
    let one = "/api/v1/declared-incidents/{id}";
    Routes::new(api)
        .post(writer, "/api/v1/monitors", write::create)
        .post(writer, "/api/v1/monitors/bulk", write::bulk)
        .get(writer, "/api/v1/monitors/export", write::export)
        .on(Method::PUT, writer, &of_monitor(""), write::replace)
        .on(Method::PATCH, writer, &of_monitor(""), write::patch)
        .on(Method::DELETE, writer, &of_monitor(""), write::remove)
        .post(writer, "/api/v1/declared-incidents", declared::declare)
        .on(Method::PATCH, writer, one, declared::edit)
        .post(writer, &of_monitor("/check-now"), actions::check_now)
        .post(writer, &of_monitor("/pause"), actions::pause)
        .post(writer, &of_monitor("/resume"), actions::resume)
        .post(writer, &of_monitor("/acknowledge"), actions::acknowledge)
        .post(writer, &of_monitor("/resolve"), actions::resolve)
        .post(writer, &of_monitor("/status"), actions::status)
        .get(writer, "/probe", probe::probe)
}

fn managing(api: &Api) -> Routes {
    let manager = Audience::Scope(Scope::Admin);
    let (token, subscriber) = ("/api/v1/tokens/{id}", "/api/v1/subscribers/{id}");
    Routes::new(api)
        .get(manager, "/api/v1/tokens", tokens::list)
        .post(manager, "/api/v1/tokens", tokens::create)
        .on(Method::DELETE, manager, token, tokens::remove)
        .get(manager, "/api/v1/audit", tokens::audit)
        .get(manager, "/api/v1/subscribers", subscribers::list)
        .on(Method::DELETE, manager, subscriber, subscribers::remove)
}

fn of_agents(api: &Api) -> Routes {
    Routes::new(api)
        .get(Audience::Agent, "/api/v1/agent/work", agent::fetch)
        .post(Audience::Agent, "/api/v1/agent/results", agent::report)
}

fn of_gatus(api: &Api) -> Routes {
    let (user, public) = (Audience::GatusUser, Audience::GatusPublic);
    let (badge, secret) = (Audience::Everyone, Audience::OwnSecret);
    let all = "/api/v1/endpoints";
    let one = |rest: &str| format!("{all}/{{key}}/{rest}");
    Routes::new(api)
        .get(user, &format!("{all}/statuses"), gatus::statuses)
        .get(user, &one("statuses"), gatus::one)
        .get(public, &one("uptimes/{duration}"), gatus::uptime)
        .get(
            public,
            &one("response-times/{duration}"),
            gatus::response_time,
        )
        .get(
            public,
            &one("response-times/{duration}/history"),
            gatus::history,
        )
        .post(secret, &one("external"), gatus::external)
        .get(badge, &one("health/badge.svg"), gatus::health_badge)
        .get(badge, &one("health/badge.shields"), gatus::health_shields)
        .get(
            badge,
            &one("uptimes/{duration}/badge.svg"),
            gatus::uptime_badge,
        )
        .get(
            badge,
            &one("response-times/{duration}/badge.svg"),
            gatus::response_time_badge,
        )
}

fn public(api: &Api) -> Routes {
    let (everyone, secret) = (Audience::Everyone, Audience::OwnSecret);
    let signal = "/ping/{token}/{signal}";
    let of_slug = "/ping/{key}/{slug}/{signal}";
    Routes::new(api)
        .get(everyone, "/api/v1/openapi.json", openapi::document)
        .get(everyone, "/api/v1/config", gatus::config)
        .get(everyone, "/api/v1/suites/statuses", gatus::suites)
        .get(everyone, "/health", gatus::health)
        .get(everyone, "/metrics", metrics::metrics)
        .get(everyone, &of_monitor("/badge.svg"), monitors::badge)
        .get(
            everyone,
            "/api/v1/tags/{tag}/badge.svg",
            monitors::tag_badge,
        )
        .get(secret, "/on-call/{file}", oncall::calendar)
        .get(secret, "/ping/{token}", ping::success)
        .post(secret, "/ping/{token}", ping::success)
        .get(secret, signal, ping::signal)
        .post(secret, signal, ping::signal)
        .get(secret, of_slug, ping::signal_of_slug)
        .post(secret, of_slug, ping::signal_of_slug)
}
