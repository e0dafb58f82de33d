//! Members and their roles.

use askama::Template;
use axum::extract::{Extension, RawQuery, State};
use axum::response::Response;
use plimsoll_monitor::store::{Role, StoreError, User, UserEdit, UserId};

use crate::admin::guard::Me;
use crate::admin::monitors::failed;
use crate::admin::overview::refused;
use crate::admin::shell::{Shell, When, missing, page, redirect};
use crate::admin::{oidc, password};
use crate::api::is_name;
use crate::state::Api;

/// A member.
#[derive(Debug)]
struct Row {
    id: i64,
    name: String,
    role: &'static str,
    seen: Option<When>,
    has_totp: bool,
    is_me: bool,
    may_change: bool,
}

#[derive(Template)]
#[template(path = "admin/members.html")]
struct MembersPage {
    s: Shell,
    rows: Vec<Row>,
    roles: Vec<&'static str>,
    /// A name and a password that was made for it, which is shown once.
    made: Option<(String, String)>,
}

/// Admins manage members below an owner; owners manage all.
fn may_change(me: &Me, role: Role) -> bool {
    role <= me.user.role
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
    made: Option<(String, String)>,
) -> Result<Response, Response> {
    let handle = &api.handle;
    let users = handle.store.users(handle.org).await.map_err(refused)?;
    let rows = users.into_iter().map(|user| Row {
        id: user.id.0,
        role: user.role.name(),
        seen: user.seen.map(When::from_timestamp),
        has_totp: user.totp.is_some(),
        is_me: user.id == me.user.id,
        may_change: may_change(me, user.role),
        name: user.name,
    });
    let roles = Role::ALL.into_iter().filter(|role| may_change(me, *role));
    Ok(page(&MembersPage {
        s: Shell::new(me, "/admin/members", "Members").done(query),
        rows: rows.collect(),
        roles: roles.map(Role::name).collect(),
        made,
    }))
}

pub(super) async fn add(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
) -> Result<Response, Response> {
    let name = me.form.get("name").to_owned();
    let role = Role::named(me.form.get("role")).filter(|role| may_change(&me, *role));
    let Some(role) = role else {
        return Err(failed(&me, "You cannot give this role.".to_owned()));
    };
    if !is_name(&name) {
        return Err(failed(&me, "A name has 1 to 100 characters.".to_owned()));
    }
    let (password, hash) = made(&me).await?;
    let handle = &api.handle;
    let added = handle
        .store
        .add_user(handle.org, &name, role, (hash, true), false, me.now)
        .await;
    match added {
        Ok(_) => {}
        Err(StoreError::Conflict) => {
            return Err(failed(
                &me,
                format!("There is a member named {name} already."),
            ));
        }
        Err(error) => return Err(refused(error)),
    }
    note(&api, &me, "member.add", &name).await?;
    shown(&api, &me, None, Some((name, password))).await
}

/// A password and its hash.
async fn made(me: &Me) -> Result<(String, String), Response> {
    let password = password::generate().map_err(|error| failed(me, error.to_string()))?;
    let hash = password::hashed(password.clone()).await;
    let hash = hash.map_err(|error| failed(me, error.to_string()))?;
    Ok((password, hash))
}

async fn note(api: &Api, me: &Me, action: &str, name: &str) -> Result<(), Response> {
    let noted = api.handle.note(&me.actor, action, name, me.now).await;
    noted.map_err(refused)
}

/// Another role, a new password, or removal.
pub(super) async fn change(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
) -> Result<Response, Response> {
    let handle = &api.handle;
    let id = me.form.get("id").parse().ok().map(UserId);
    let users = handle.store.users(handle.org).await.map_err(refused)?;
    let Some(user) = users.into_iter().find(|user| Some(user.id) == id) else {
        return Err(missing().await);
    };
    if !may_change(&me, user.role) {
        return Err(failed(&me, "Only an owner can change an owner.".to_owned()));
    }
    match me.form.get("action") {
        "role" => role(&api, &me, &user).await,
        "reset" => {
            let (password, hash) = made(&me).await?;
            let edit = UserEdit {
                password: Some((hash, true)),
                totp: Some(None),
                ends_sessions: true,
                ..UserEdit::default()
            };
            let edited = handle.store.edit_user(handle.org, user.id, edit).await;
            edited.map_err(refused)?;
            // A link that another person made ends with it.
            let audit = me.actor.audit("member.reset", &user.name);
            let ended = oidc::end_links(handle, user.id, audit, me.now).await;
            ended.map_err(refused)?;
            shown(&api, &me, None, Some((user.name, password))).await
        }
        "remove" => {
            let removed = handle.store.remove_user(handle.org, user.id).await;
            owner_stays(&me, removed)?;
            note(&api, &me, "member.remove", &user.name).await?;
            Ok(redirect("/admin/members?done=deleted"))
        }
        _ => Err(missing().await),
    }
}

async fn role(api: &Api, me: &Me, user: &User) -> Result<Response, Response> {
    let role = Role::named(me.form.get("role")).filter(|role| may_change(me, *role));
    let Some(role) = role else {
        return Err(failed(me, "You cannot give this role.".to_owned()));
    };
    let edit = UserEdit {
        role: Some(role),
        ..UserEdit::default()
    };
    let handle = &api.handle;
    let edited = handle.store.edit_user(handle.org, user.id, edit).await;
    owner_stays(me, edited)?;
    note(api, me, "member.role", &user.name).await?;
    Ok(redirect("/admin/members?done=saved"))
}

fn owner_stays(me: &Me, outcome: Result<bool, StoreError>) -> Result<(), Response> {
    match outcome {
        Ok(_) => Ok(()),
        Err(StoreError::Conflict) => Err(failed(
            me,
            "This is the last owner. Make another member an owner first.".to_owned(),
        )),
        Err(error) => Err(refused(error)),
    }
}
