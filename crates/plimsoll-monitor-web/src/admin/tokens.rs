//! Tokens of the API.

use std::time::Duration;

use askama::Template;
use axum::extract::{Extension, RawQuery, State};
use axum::response::Response;
use plimsoll_monitor::store::Scope;

use crate::admin::guard::Me;
use crate::admin::monitors::failed;
use crate::admin::overview::refused;
use crate::admin::shell::{Shell, When, missing, page, redirect};
use crate::api::{add_token, is_name, revoke_token};
use crate::state::Api;

/// A token.
#[derive(Debug)]
struct Row {
    /// None for one of the file.
    id: Option<i64>,
    name: String,
    scope: &'static str,
    made: Option<When>,
    by: String,
    ends: Option<When>,
    state: &'static str,
    class: &'static str,
}

#[derive(Template)]
#[template(path = "admin/tokens.html")]
struct TokensPage {
    s: Shell,
    rows: Vec<Row>,
    /// A token that was made, which is shown once.
    made: Option<String>,
    scopes: [&'static str; 3],
}

pub(super) async fn list(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    RawQuery(query): RawQuery,
) -> Result<Response, Response> {
    shown(&api, &me, query.as_deref(), None).await
}

async fn shown(
    api: &Api,
    me: &Me,
    query: Option<&str>,
    made: Option<String>,
) -> Result<Response, Response> {
    let handle = &api.handle;
    let of_file = handle.board.tokens();
    let of_file = of_file.iter().map(|token| Row {
        id: None,
        name: token.name.clone(),
        scope: token.scope.name(),
        made: None,
        by: "configuration file".to_owned(),
        ends: None,
        state: "Valid",
        class: "operational",
    });
    let stored = handle.store.tokens(handle.org).await.map_err(refused)?;
    let stored = stored.into_iter().map(|stored| {
        let (state, class) = match stored.revoked {
            Some(_) => ("Revoked", "unknown"),
            None if stored.is_valid(me.now) => ("Valid", "operational"),
            None => ("Expired", "unknown"),
        };
        Row {
            id: stored.is_valid(me.now).then_some(stored.id),
            name: stored.token.name,
            scope: stored.token.scope.name(),
            made: Some(When::from_timestamp(stored.created)),
            by: stored.token.creator,
            ends: stored.token.until.map(When::from_timestamp),
            state,
            class,
        }
    });
    Ok(page(&TokensPage {
        s: Shell::new(me, "/admin/tokens", "API tokens").done(query),
        rows: of_file.chain(stored).collect(),
        made,
        scopes: Scope::ALL.map(Scope::name),
    }))
}

pub(super) async fn add(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
) -> Result<Response, Response> {
    let name = me.form.get("name").to_owned();
    if !is_name(&name) {
        return Err(failed(&me, "A name has 1 to 100 characters.".to_owned()));
    }
    let Some(scope) = Scope::named(me.form.get("scope")) else {
        return Err(failed(&me, "Choose a scope.".to_owned()));
    };
    let days = me.form.get("days");
    let until = match days.parse::<u32>() {
        Ok(days @ 1..=3_650) => Some(me.now.plus(Duration::from_hours(24) * days)),
        _ if days.is_empty() => None,
        _ => return Err(failed(&me, "A token ends after 1 to 3650 days.".to_owned())),
    };
    let made = add_token(&api, &me.actor, name, scope, until).await;
    let (token, _) = made.map_err(|error| failed(&me, error.message()))?;
    shown(&api, &me, None, Some(token)).await
}

pub(super) async fn revoke(State(api): State<Api>, Extension(me): Extension<Me>) -> Response {
    let Ok(id) = me.form.get("id").parse() else {
        return missing().await;
    };
    match revoke_token(&api, &me.actor, id).await {
        Ok(_) => redirect("/admin/tokens?done=revoked"),
        Err(error) => failed(&me, error.message()),
    }
}
