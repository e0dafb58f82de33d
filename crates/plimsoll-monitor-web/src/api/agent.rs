//! `/api/v1/agent`: what agents fetch and send. Each reaches only the monitors that it checks.

use axum::body::{Body, to_bytes};
use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, ETAG, HeaderValue, IF_NONE_MATCH};
use http::{HeaderMap, StatusCode};
use plimsoll_model::Clock;
use plimsoll_monitor::agent::report::{MOST_RESULTS, Report};
use plimsoll_monitor::agent::work::{tag, work};
use plimsoll_monitor::engine::Heard;
use plimsoll_monitor::time::Timestamp;
use serde_json::json;

use crate::access::AgentName;
use crate::answer::{Answer, ApiError, json_of, with_type};
use crate::state::Api;

/// Bytes of a report.
const MOST_BODY: usize = 4 * 1024 * 1024;

/// Characters of a version.
const MOST_VERSION: usize = 40;

/// The monitors of an agent as a configuration; 304 if it has them.
pub(super) async fn fetch(
    State(api): State<Api>,
    Extension(AgentName(agent)): Extension<AgentName>,
    fields: HeaderMap,
) -> Response {
    let now = Timestamp::from_system(api.clock.wall());
    let text = work(&api.handle.board, &agent, now);
    let tag = tag(&text);
    let known = fields.get(IF_NONE_MATCH);
    let mut response = if known.is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        with_type(text, "application/toml")
    };
    // It may hold credentials of targets.
    let no_store = HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, no_store);
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

/// Takes results.
pub(super) async fn report(
    State(api): State<Api>,
    Extension(AgentName(agent)): Extension<AgentName>,
    body: Body,
) -> Answer {
    let content = to_bytes(body, MOST_BODY).await;
    let content = content.map_err(|_| ApiError::invalid("body", "is longer than 4 MiB"))?;
    let report: Report = serde_json::from_slice(&content)
        .map_err(|error| ApiError::invalid("body", format!("is no report: {error}")))?;
    if report.results.len() > MOST_RESULTS {
        let message = format!("has more than {MOST_RESULTS} results");
        return Err(ApiError::invalid("results", message));
    }
    let now = Timestamp::from_system(api.clock.wall());
    let heard = Heard {
        at: now,
        version: report.version.chars().take(MOST_VERSION).collect(),
        waiting: report.waiting,
        lost: report.lost,
    };
    let run = report.run;
    let (taken, check_now) = api
        .handle
        .report(&agent, run, report.into_results(now))
        .await?;
    api.handle.board.set_heard(&agent, heard);
    let mut answer = json!({ "taken": taken });
    if !check_now.is_empty() {
        answer["check_now"] = json!(check_now);
    }
    Ok(json_of(&answer))
}

/// What lists further monitors, and how that goes.
pub(super) async fn discovery(State(api): State<Api>) -> Answer {
    let sources = api.handle.board.discovery();
    let sources = sources.iter().map(|source| {
        json!({
            "name": source.name,
            "kind": source.kind,
            "place": source.place,
            "monitors": *source.keys,
            "listed_at": source.listed.map(|at| at.to_string()),
            "error": source.error,
            "problems": source.problems,
        })
    });
    Ok(json_of(&json!({ "sources": sources.collect::<Vec<_>>() })))
}

/// Lists the regions: this process's own, then those of agents. What agents of one region report is the latest, or the sum.
pub(super) async fn regions(State(api): State<Api>) -> Answer {
    let board = &api.handle.board;
    let own = board.region();
    let views = board.views();
    let monitors = |region: &str| {
        let checked = views
            .iter()
            .filter(|view| view.plan.timing.is_some() && view.plan.is_checked_from(region, &own));
        checked.count()
    };
    let mut regions = vec![json!({ "name": &*own, "agent": false, "monitors": monitors(&own) })];
    let agents = board.agents();
    let mut names: Vec<&str> = Vec::new();
    for agent in &*agents {
        if !names.contains(&agent.region.as_str()) {
            names.push(&agent.region);
        }
    }
    for region in names {
        let of_region = agents.iter().filter(|agent| agent.region == region);
        let of_region: Vec<_> = of_region
            .map(|agent| (agent.name.as_str(), board.heard(&agent.name)))
            .collect();
        let heard = || of_region.iter().filter_map(|(_, heard)| heard.as_ref());
        let latest = heard().max_by_key(|heard| heard.at);
        let sum = |part: fn(&Heard) -> u64| latest.map(|_| heard().map(part).sum::<u64>());
        let each = of_region.iter().map(|(name, heard)| {
            let heard = heard.as_ref();
            json!({
                "name": name,
                "seen": heard.map(|heard| heard.at.to_string()),
                "version": heard.map(|heard| heard.version.clone()),
                "waiting": heard.map(|heard| heard.waiting),
                "lost": heard.map(|heard| heard.lost),
            })
        });
        regions.push(json!({
            "name": region,
            "agent": true,
            "monitors": monitors(region),
            "seen": latest.map(|heard| heard.at.to_string()),
            "version": latest.map(|heard| heard.version.clone()),
            "waiting": sum(|heard| heard.waiting),
            "lost": sum(|heard| heard.lost),
            "agents": each.collect::<Vec<_>>(),
        }));
    }
    Ok(json_of(&json!({ "regions": regions })))
}
