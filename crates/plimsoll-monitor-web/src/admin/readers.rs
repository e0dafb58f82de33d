//! The readers of a status page: its subscribers, and links that open it without the password.

use std::time::Duration;

use askama::Template;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::response::Response;
use plimsoll_monitor::store::StoreError;
use plimsoll_monitor::time::Timestamp;

use crate::admin::guard::Me;
use crate::admin::monitors::failed;
use crate::admin::overview::refused;
use crate::admin::shell::{Shell, When, missing, page, redirect};
use crate::api::{encoded, is_name};
use crate::page::{Guard, PagePlan, share, subscribe};
use crate::request::parameter;
use crate::state::Api;

/// Subscribers that are shown; a search finds the others.
const MOST: usize = 200;

#[derive(Debug)]
struct Row {
    id: String,
    address: String,
    means: &'static str,
    /// Names of components; empty for all.
    about: String,
    since: Option<When>,
}

#[derive(Debug)]
struct Link {
    key: String,
    name: String,
    by: String,
    made: When,
    ends: Option<When>,
    is_valid: bool,
}

#[derive(Template)]
#[template(path = "admin/readers.html")]
struct ReadersPage {
    s: Shell,
    /// The slug in paths.
    path: String,
    query: String,
    rows: Vec<Row>,
    count: usize,
    confirmed: usize,
    may_subscribe: bool,
    is_guarded: bool,
    links: Vec<Link>,
    /// A link that was just made, which is shown once.
    made: Option<String>,
}

fn plan_of(api: &Api, slug: &str) -> Option<std::sync::Arc<PagePlan>> {
    let pages = api.handle.board.pages();
    pages.iter().find(|plan| plan.slug == slug).cloned()
}

pub(super) async fn show(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    Path(slug): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Response> {
    shown(&api, &me, &slug, query.as_deref(), None).await
}

async fn shown(
    api: &Api,
    me: &Me,
    slug: &str,
    query: Option<&str>,
    made: Option<String>,
) -> Result<Response, Response> {
    let Some(plan) = plan_of(api, slug) else {
        return Err(missing().await);
    };
    let handle = &api.handle;
    let mut all = subscribe::list(handle).await.map_err(refused)?;
    all.retain(|(_, one)| one.page == slug);
    let (count, confirmed) = (
        all.len(),
        all.iter()
            .filter(|(_, one)| one.confirmed.is_some())
            .count(),
    );
    let searched = parameter(query, "q").unwrap_or_default();
    let sought = searched.to_lowercase();
    let found = all
        .into_iter()
        .filter(|(_, one)| one.address.to_lowercase().contains(&sought));
    let name_of = |key: &String| {
        let known = plan.components().find(|one| one.key == *key);
        known.map_or_else(|| key.clone(), |one| one.name.clone())
    };
    let rows = found.take(MOST).map(|(id, one)| Row {
        id,
        means: one.means.name(),
        about: one
            .components
            .iter()
            .map(name_of)
            .collect::<Vec<_>>()
            .join(", "),
        since: one.confirmed.map(|at| When::from_timestamp(Timestamp(at))),
        address: one.address,
    });
    let rows = rows.collect();
    let links = share::of_page(handle, slug).await.map_err(refused)?;
    let links = links.into_iter().map(|(key, created, share)| Link {
        key,
        is_valid: share.is_valid(me.now),
        ends: share.until().map(When::from_timestamp),
        made: When::from_timestamp(created),
        name: share.name,
        by: share.by,
    });
    let title = format!("Readers of {}", plan.title);
    Ok(page(&ReadersPage {
        s: Shell::new(me, "/admin/pages", title).done(query),
        path: encoded(slug),
        query: searched,
        rows,
        count,
        confirmed,
        may_subscribe: plan.url.is_some() && handle.board.subscriptions().is_some(),
        is_guarded: matches!(plan.guard, Guard::Password(_)),
        links: links.collect(),
        made,
    }))
}

/// Removes a subscriber, or makes or revokes a link.
pub(super) async fn change(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    Path(slug): Path<String>,
) -> Result<Response, Response> {
    let (handle, id) = (&api.handle, me.form.get("id"));
    let here = format!("/admin/pages/{}/readers", encoded(&slug));
    match me.form.get("action") {
        "remove" => {
            let _changing = handle.changing.lock().await;
            let all = subscribe::list(handle).await.map_err(refused)?;
            let is_of_page = |(key, one): &&(String, _)| {
                let one: &subscribe::Subscriber = one;
                *key == id && one.page == slug
            };
            let Some((key, _)) = all.iter().find(is_of_page) else {
                return Err(missing().await);
            };
            let audit = me.actor.audit("subscriber.delete", key);
            let removed = subscribe::remove(handle, key, Some(audit), me.now).await;
            removed.map_err(refused)?;
            Ok(redirect(&format!("{here}?done=deleted")))
        }
        "revoke" => match share::revoke(handle, &me.actor, &slug, id, me.now).await {
            Ok(()) => Ok(redirect(&format!("{here}?done=link-revoked"))),
            Err(StoreError::NotFound(_)) => Err(missing().await),
            Err(error) => Err(refused(error)),
        },
        "share" => share(&api, &me, &slug).await,
        _ => Err(missing().await),
    }
}

async fn share(api: &Api, me: &Me, slug: &str) -> Result<Response, Response> {
    let Some(plan) = plan_of(api, slug) else {
        return Err(missing().await);
    };
    if !matches!(plan.guard, Guard::Password(_)) {
        let why = "Everyone sees this page: only a page with a password needs a link.";
        return Err(failed(me, why.to_owned()));
    }
    let name = me.form.get("name");
    if !is_name(name) {
        return Err(failed(me, "A name has 1 to 100 characters.".to_owned()));
    }
    let until = match me.form.get("days") {
        "" => None,
        days => match days.parse::<u32>() {
            Ok(days @ 1..=3_650) => Some(me.now.plus(Duration::from_hours(24) * days)),
            _ => return Err(failed(me, "A link ends after 1 to 3650 days.".to_owned())),
        },
    };
    let made = share::add(&api.handle, &me.actor, slug, (name, until), me.now).await;
    let token = made.map_err(refused)?;
    let base = plan
        .url
        .clone()
        .unwrap_or_else(|| format!("/status/{slug}"));
    let link = format!("{base}/share/{token}");
    shown(api, me, slug, None, Some(link)).await
}
