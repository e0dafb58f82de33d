//! `auth = …` in a `[[route]]` or a `[[listen]]`, and in `proxy`: a service authorizes requests.

use std::sync::Arc;

use http::HeaderName;
use plimsoll_server::RequestGuard;
use plimsoll_server::config::{GuardContext, GuardKind, Table, Value, as_text, networks};
use plimsoll_wire::http::FieldClass;

use super::proxy::{headers, path_of, upstream_of};
use super::rules::is_application;
use crate::forward::{AuthorizeGuard, AuthorizePlan, ForwardPlan};
use crate::jwt::GuardFigures;
use crate::upstream::UpstreamPlan;

/// The guard `auth`.
pub(super) const KIND: GuardKind = GuardKind {
    key: "auth",
    compile,
};

/// Subrequests have no parameters.
const NO_SUBREQUESTS: &str =
    "servers that speak FastCGI or uwsgi cannot authorize requests: name a server that speaks HTTP";

/// The keys of `auth` in `proxy`, and `trust`, which in `proxy` stands beside `auth`.
fn compile(value: Value<'_>, context: &GuardContext<'_>) -> Option<Arc<dyn RequestGuard>> {
    let mut table = value.table()?;
    let trusted = match table.take_value("trust") {
        None => Some(Vec::new()),
        Some(value) => networks(value),
    };
    let authorize = authorize(&mut table, context);
    table.finish();
    let (authorize, upstream) = authorize?;
    Some(Arc::new(AuthorizeGuard {
        plan: Arc::new(ForwardPlan {
            trusted: trusted?,
            authorize: Some(authorize),
            ..ForwardPlan::default()
        }),
        upstream,
    }))
}

/// `{ to, path, headers, copy, to_client, relay }`, where path and query of a URL are those of the subrequest.
pub(super) fn authorize(
    table: &mut Table<'_>,
    context: &GuardContext<'_>,
) -> Option<(AuthorizePlan, Arc<UpstreamPlan>)> {
    let is_target = |path: &str| {
        path.starts_with('/') && path.bytes().all(|it| it.is_ascii_graphic() && it != b'#')
    };
    let service = match table.take_value("to") {
        None => {
            table.missing("to", "the name of an upstream or a URL");
            None
        }
        Some(value) => as_text(&value).and_then(|text| {
            // The query is of the subrequest, and no part of the server's address.
            let (address, query) = text.split_at(text.find('?').unwrap_or(text.len()));
            if !is_target(&format!("/{query}")) {
                return value.wrong(
                    "has a query with a blank, `#` or a character beyond ASCII: escape it by %",
                );
            }
            let upstream = upstream_of(&value, address, context, None)?;
            if is_application(&upstream) {
                return value.wrong(NO_SUBREQUESTS);
            }
            Some((format!("{}{query}", path_of(address)), upstream))
        }),
    };
    let path = table.take_value("path").map(|value| {
        let path = as_text(&value)?;
        if is_target(path) {
            Some(path.to_owned())
        } else {
            value.wrong("begins with a slash and has no blanks")
        }
    });
    let mut own = ForwardPlan::default();
    let is_whole = headers(table, context, &mut own);
    let mut names = |key| {
        let Some(value) = table.take_value(key) else {
            return Some(Vec::new());
        };
        let names = value.texts_with(|name| {
            let class = FieldClass::from_name(name.as_bytes());
            let is_valid =
                HeaderName::from_bytes(name.as_bytes()).is_ok() && class == FieldClass::EndToEnd;
            (!is_valid).then(|| format!("`{name}` is not a field that can be copied"))
        })?;
        Some(names.iter().filter_map(|name| name.parse().ok()).collect())
    };
    let (copied, returned) = (names("copy"), names("to_client"));
    let is_relayed = table.boolean("relay").unwrap_or(true);
    let path = match path {
        None => None,
        Some(path) => Some(path?),
    };
    let (target, upstream) = service?;
    let (copied, returned) = (copied?, returned?);
    let plan = AuthorizePlan {
        target: path.unwrap_or(target),
        set: own.set,
        templates: own.templates,
        removed: own.removed,
        copied,
        returned,
        is_relayed,
        counts: context
            .counters
            .figures::<GuardFigures>()
            .counts(KIND.key, context.name),
    };
    is_whole.then_some((plan, upstream))
}
