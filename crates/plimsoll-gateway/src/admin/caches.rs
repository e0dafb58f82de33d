//! What caches keep, and how they are made to forget it.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use plimsoll_server::{Answer, AnswerApi, Request, Response};
use serde::Serialize;

use super::json;
use crate::figures::GatewayFigures;

#[derive(Serialize)]
struct Document {
    caches: Vec<CacheDocument>,
}

#[derive(Serialize)]
struct CacheDocument {
    route: String,
    /// URLs that something is kept of.
    entries: usize,
    bytes: usize,
    /// What became of requests and responses.
    events: BTreeMap<&'static str, u64>,
}

#[derive(Serialize)]
struct Purged {
    /// URLs whose responses are gone.
    purged: usize,
}

/// Answers `GET /caches`, and `DELETE /caches?url=URL`.
pub(crate) fn answer(figures: Arc<GatewayFigures>) -> Arc<AnswerApi> {
    Arc::new(move |request, rest| {
        let response = match (request.method, rest.trim_matches('/')) {
            ("GET" | "HEAD", "") => list(&figures),
            ("DELETE", "") => purge(&figures, request),
            _ => Response::text(
                StatusCode::NOT_FOUND,
                "there are GET /caches and DELETE /caches?url=URL\n",
            ),
        };
        Answer::now(response)
    })
}

fn list(figures: &GatewayFigures) -> Response {
    let caches = figures.stores().into_iter().map(|(route, store)| {
        let (entries, bytes) = store.size();
        CacheDocument {
            route,
            entries,
            bytes,
            events: store.counted().into_iter().collect(),
        }
    });
    json(&Document {
        caches: caches.collect(),
    })
}

/// Forgets a URL, or with `*` at its end all that begin with it.
fn purge(figures: &GatewayFigures, request: &Request<'_>) -> Response {
    let wrong = |text: String| Response::text(StatusCode::BAD_REQUEST, text);
    let mut url = None;
    let query = request.query.unwrap_or_default();
    for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
        if key != "url" {
            return wrong(format!("unknown parameter `{key}`; there is url\n"));
        }
        url = Some(value.into_owned());
    }
    // Nothing is emptied because a parameter was forgotten.
    let Some(url) = url else {
        return wrong(
            "give ?url=http://HOST/PATH, with * at its end for all that begin with it; ?url=* is everything\n"
                .to_owned(),
        );
    };
    let (url, is_prefix) = match url.strip_suffix('*') {
        Some(prefix) => (prefix, true),
        None => (&*url, false),
    };
    let stores = figures.stores();
    let purged = stores.iter().map(|(_, store)| store.purge(url, is_prefix));
    json(&Purged {
        purged: purged.sum(),
    })
}
