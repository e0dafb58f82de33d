//! The audit log.

use askama::Template;
use axum::extract::{Extension, RawQuery, State};
use axum::response::Response;

use crate::admin::guard::Me;
use crate::admin::overview::refused;
use crate::admin::shell::{Shell, When, page};
use crate::request::parameter;
use crate::state::Api;

/// Lines of one page.
const MOST: usize = 100;

/// A line.
#[derive(Debug)]
struct Row {
    at: When,
    actor: String,
    address: String,
    action: String,
    object: String,
    detail: String,
}

#[derive(Template)]
#[template(path = "admin/audit.html")]
struct AuditPage {
    s: Shell,
    rows: Vec<Row>,
    next: Option<i64>,
}

pub(super) async fn list(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    RawQuery(query): RawQuery,
) -> Result<Response, Response> {
    let before = parameter(query.as_deref(), "before").and_then(|text| text.parse().ok());
    let handle = &api.handle;
    let found = handle.store.audit(handle.org, before, MOST + 1).await;
    let mut found = found.map_err(refused)?;
    let has_more = found.len() > MOST;
    found.truncate(MOST);
    let next = found.last().filter(|_| has_more).map(|last| last.id);
    let rows = found.into_iter().map(|one| Row {
        at: When::from_timestamp(one.at),
        actor: one.entry.actor,
        address: one.entry.address,
        action: one.entry.action,
        object: one.entry.object,
        detail: one.entry.detail.unwrap_or_default(),
    });
    Ok(page(&AuditPage {
        s: Shell::new(&me, "/admin/audit", "Audit log"),
        rows: rows.collect(),
        next,
    }))
}
