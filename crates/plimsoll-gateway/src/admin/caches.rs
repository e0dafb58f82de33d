//! What caches keep, and how they are made to forget it.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use plimsoll_model::masked_text;
use plimsoll_server::config::Difference;
use plimsoll_server::{Answer, AnswerApi, AuditLog, Request, Response};
use serde::Serialize;

use super::json;
use crate::cache::{CacheFigures, StoreState};

#[derive(Serialize)]
struct Document {
    caches: Vec<CacheDocument>,
}

#[derive(Serialize)]
struct CacheDocument {
    route: String,
    /// URLs of which responses are stored.
    entries: usize,
    bytes: usize,
    /// Counts of what became of requests and responses.
    events: BTreeMap<&'static str, u64>,
}

#[derive(Serialize)]
struct Purged {
    /// URLs whose responses are gone.
    purged: usize,
}

/// Answers `GET /caches`, and `DELETE /caches?url=URL&route=NAME`.
pub(crate) fn answer(figures: Arc<CacheFigures>, audit: AuditLog) -> Arc<AnswerApi> {
    Arc::new(move |request, rest| {
        let response = match (request.method, rest.trim_matches('/')) {
            ("GET" | "HEAD", "") => list(&figures),
            ("DELETE", "") => {
                let mut changes = Vec::new();
                let response = purge(&figures, request, &mut changes);
                audit.handled(request, &changes, response.status());
                response
            }
            _ => Response::text(
                StatusCode::NOT_FOUND,
                "there are GET /caches and DELETE /caches?url=URL&route=NAME\n",
            ),
        };
        Answer::now(response)
    })
}

fn list(figures: &CacheFigures) -> Response {
    let caches = figures.stores().into_iter().map(|(route, stores)| {
        let state = StoreState::from_stores(&stores);
        CacheDocument {
            route,
            entries: state.entries,
            bytes: state.bytes,
            events: state.events,
        }
    });
    json(&Document {
        caches: caches.collect(),
    })
}

/// Forgets a URL, or with `*` at its end all that begin with it; of one route or of all.
///
/// - `changes`: gets how many of which URL were forgotten.
fn purge(figures: &CacheFigures, request: &Request<'_>, changes: &mut Vec<Difference>) -> Response {
    let (mut url, mut route) = (None, None);
    let query = request.query.unwrap_or_default();
    for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match &*key {
            "url" => url = Some(value),
            "route" => route = Some(value),
            other => {
                let text = format!("unknown parameter `{other}`; there are url and route\n");
                return Response::text(StatusCode::BAD_REQUEST, text);
            }
        }
    }
    // Nothing is emptied because a parameter was forgotten.
    let Some(url) = url else {
        let text = "give ?url=http://HOST/PATH, with * at its end for all that begin with it; ?url=* is everything\n";
        return Response::text(StatusCode::BAD_REQUEST, text);
    };
    let mut stores = figures.stores();
    if let Some(route) = &route {
        stores.retain(|name, _| *name == **route);
        if stores.is_empty() {
            let text = format!("no route `{route}` has a cache\n");
            return Response::text(StatusCode::NOT_FOUND, text);
        }
    }
    let of_route = route.map_or(String::new(), |route| format!(" of route {route}"));
    let path = format!("cache {}{of_route}", masked_text(&url));
    let (url, is_prefix) = match url.strip_suffix('*') {
        Some(prefix) => (prefix, true),
        None => (&*url, false),
    };
    let stores = stores.values().flatten();
    let purged: usize = stores.map(|store| store.purge(url, is_prefix)).sum();
    changes.push(Difference {
        path,
        before: Some(format!("{purged} stored")),
        after: None,
    });
    json(&Purged { purged })
}
