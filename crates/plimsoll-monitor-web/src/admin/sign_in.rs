//! Sign-in and sign-out.

use std::fmt::Display;
use std::time::Duration;

use askama::Template;
use axum::body::to_bytes;
use axum::extract::{Extension, RawQuery, Request, State};
use axum::response::Response;
use http::StatusCode;
use http::header::{HeaderValue, RETRY_AFTER};
use http::request::Parts;
use plimsoll_model::Clock;
use plimsoll_monitor::config::ApiToken;
use plimsoll_monitor::manage::Actor;
use plimsoll_monitor::store::{NewSession, SessionChoice, StoreError, User, UserEdit};
use plimsoll_monitor::time::Timestamp;

use crate::admin::form::Form;
use crate::admin::form_error::FormError;
use crate::admin::guard::{Me, SESSION, csrf_of, is_same};
use crate::admin::password::HashFailure;
use crate::admin::shell::{html, message, redirect};
use crate::admin::{device, password, recovery, totp};
use crate::cookies::Cookie;
use crate::limits::Account;
use crate::random;
use crate::request::{address_of, client_of, is_tls, parameter};
use crate::state::Api;

/// The cookie that ties the form of the sign-in to the browser; it never becomes a session.
const FORM: Cookie<'static> = Cookie {
    name: "plimsoll-form",
    path: "/admin/sign-in",
    age: Duration::from_hours(1),
};

const MOST_FORM: usize = 16 * 1024;

#[derive(Template)]
#[template(path = "admin/sign-in.html")]
struct SignInPage {
    csrf: String,
    next: String,
    name: String,
    error: Option<String>,
    has_users: bool,
    /// The provider of `[oidc]`, and the query of its link.
    provider: Option<(String, String)>,
}

pub(super) async fn show(
    State(api): State<Api>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Response {
    let (request, _) = request.into_parts();
    let next = parameter(query.as_deref(), "next").unwrap_or_default();
    let page = fresh(&api, &request, next, String::new(), None).await;
    page.unwrap_or_else(|error| failed(&error))
}

pub(super) fn failed(why: &impl Display) -> Response {
    message(
        StatusCode::SERVICE_UNAVAILABLE,
        "Sign-in is not possible now",
        &why.to_string(),
    )
}

/// The form with a cookie of its own.
pub(super) async fn fresh(
    api: &Api,
    request: &Parts,
    next: String,
    name: String,
    error: Option<(StatusCode, String)>,
) -> Result<Response, FormError> {
    let access = api.handle.refresh_access().await?;
    let value = random::token().ok_or(FormError::NoRandomNumbers)?;
    let (status, error) = match error {
        None => (StatusCode::OK, None),
        Some((status, error)) => (status, Some(error)),
    };
    let provider = api.handle.board.oidc().map(|plan| {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        (plan.name.clone(), query.append_pair("next", &next).finish())
    });
    let page = SignInPage {
        csrf: csrf_of("sign-in", &value),
        provider,
        next,
        name,
        error,
        has_users: access.has_users,
    };
    let mut response = html(&page, status);
    let is_tls = is_tls(&request.headers, &request.extensions);
    FORM.set(&mut response, &value, is_tls);
    Ok(response)
}

pub(super) async fn sign_in(State(api): State<Api>, request: Request) -> Response {
    let (request, body) = request.into_parts();
    let Ok(content) = to_bytes(body, MOST_FORM).await else {
        return message(StatusCode::PAYLOAD_TOO_LARGE, "The form is too long", "");
    };
    let form = Form::parse(&content);
    let is_tls = is_tls(&request.headers, &request.extensions);
    let tied = FORM.read(&request.headers, is_tls);
    let tied = tied.map(|value| csrf_of("sign-in", value));
    if !tied.is_some_and(|expected| is_same(form.get("csrf"), &expected)) {
        return message(
            StatusCode::FORBIDDEN,
            "The form is too old",
            "Load the page of the sign-in again; it needs cookies.",
        );
    }
    match attempt(&api, &request, &form).await {
        Ok(response) => response,
        Err(error) => {
            let seconds = error.wait.map(|wait| wait.as_secs() + 1);
            let (next, name) = (form.get("next").to_owned(), form.get("name").to_owned());
            let shown = Some((error.status, error.text));
            let page = fresh(&api, &request, next, name, shown).await;
            let mut response = page.unwrap_or_else(|error| failed(&error));
            if let Some(seconds) = seconds {
                let value = HeaderValue::from(seconds);
                response.headers_mut().insert(RETRY_AFTER, value);
            }
            response
        }
    }
}

struct Refusal {
    status: StatusCode,
    text: String,
    wait: Option<Duration>,
}

impl Refusal {
    fn wrong() -> Self {
        Self {
            status: StatusCode::UNAUTHORIZED,
            text: "Name, password or code are wrong.".to_owned(),
            wait: None,
        }
    }

    fn too_many(wait: Duration) -> Self {
        Self {
            status: StatusCode::TOO_MANY_REQUESTS,
            text: format!(
                "Too many attempts. Try again in {}.",
                crate::admin::shell::duration(wait + Duration::from_secs(1))
            ),
            wait: Some(wait),
        }
    }
}

impl From<HashFailure> for Refusal {
    fn from(failure: HashFailure) -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            text: format!("The password was not checked: {failure}."),
            wait: Some(Duration::from_secs(1)),
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            text: error.to_string(),
            wait: None,
        }
    }
}

async fn attempt(api: &Api, request: &Parts, form: &Form) -> Result<Response, Refusal> {
    let now = Timestamp::from_system(api.clock.wall());
    let name = form.get("name");
    let actor = Actor {
        name: name.chars().take(100).collect(),
        address: address_of(&request.extensions),
    };
    let client = client_of(&request.extensions);
    api.attempts
        .count_source(client, now)
        .map_err(Refusal::too_many)?;
    let handle = &api.handle;
    let users = handle.store.users(handle.org).await?;
    let user = users.into_iter().find(|user| user.name == name);
    let device = match &user {
        Some(user) => device::known(api, request, user, now).await?,
        None => None,
    };
    let account = match (&user, &device) {
        (None, _) => Account::Missing(name),
        (Some(_), None) => Account::Member(name),
        (Some(_), Some(device)) => Account::Known { name, device },
    };
    api.attempts
        .count_account(account, now)
        .map_err(Refusal::too_many)?;
    let typed: String = form
        .raw("password")
        .chars()
        .take(password::MOST + 1)
        .collect();
    let is_right = password::check(user.as_ref().map(|user| &user.password), typed).await?;
    let user = match user.filter(|_| is_right) {
        Some(user) if has_code(api, &user, form.get("code"), now).await? => user,
        _ => {
            handle
                .note(&actor, "session.refused", &actor.name, now)
                .await?;
            return Err(Refusal::wrong());
        }
    };
    api.attempts.succeeded(account);
    Ok(open(api, request, &user, form.get("next"), None).await?)
}

/// Opens a session, and leads on.
///
/// - `by`: what signed the user in, if not a password.
pub(super) async fn open(
    api: &Api,
    request: &Parts,
    user: &User,
    next: &str,
    by: Option<&str>,
) -> Result<Response, StoreError> {
    let now = Timestamp::from_system(api.clock.wall());
    let address = address_of(&request.extensions);
    let handle = &api.handle;
    // A session has a new cookie always, so that one that another person set is of no use.
    let value = random::token().ok_or(StoreError::Busy)?;
    let agent = request.headers.get("user-agent");
    let agent = agent.map(|agent| {
        String::from_utf8_lossy(agent.as_bytes())
            .chars()
            .take(200)
            .collect()
    });
    let session = NewSession {
        user: user.id,
        hash: ApiToken::hash_of(&value),
        until: now.plus(SESSION.age),
        address: address.clone(),
        agent: agent.unwrap_or_default(),
    };
    handle.store.open_session(handle.org, session, now).await?;
    let seen = UserEdit {
        seen: Some(now),
        ..UserEdit::default()
    };
    handle.store.edit_user(handle.org, user.id, seen).await?;
    let actor = Actor {
        name: user.name.clone(),
        address,
    };
    let mut entry = actor.audit("session.open", &user.name);
    entry.detail = by.map(str::to_owned);
    handle.store.record_audit(handle.org, entry, now).await?;
    let mut response = redirect(within(next));
    let is_tls = is_tls(&request.headers, &request.extensions);
    SESSION.set(&mut response, &value, is_tls);
    device::remember(&mut response, user, is_tls);
    Ok(response)
}

/// Whether the one-time code is right, if the user needs one. Each is valid once.
async fn has_code(api: &Api, user: &User, code: &str, now: Timestamp) -> Result<bool, StoreError> {
    let Some(secret) = &user.totp else {
        return Ok(true);
    };
    let handle = &api.handle;
    let Some(step) = totp::step_of(secret, code, now) else {
        let is_recovery = !code.is_empty();
        return Ok(is_recovery && recovery::use_up(handle, user.id, code, now).await?);
    };
    handle.store.use_totp_step(handle.org, user.id, step).await
}

/// A path of the admin pages, and of no other site.
pub(super) fn within(next: &str) -> &str {
    let is_plain = next.starts_with("/admin")
        && !next.starts_with("/admin/sign-in")
        && next
            .bytes()
            .all(|byte| (0x21..0x7f).contains(&byte) && byte != b'\\');
    if is_plain { next } else { "/admin" }
}

pub(super) async fn sign_out(State(api): State<Api>, Extension(me): Extension<Me>) -> Response {
    let handle = &api.handle;
    let this = SessionChoice::One(me.session.id);
    if let Err(error) = handle
        .store
        .end_sessions(handle.org, me.user.id, this)
        .await
    {
        return failed(&error);
    }
    let mut response = redirect("/admin/sign-in");
    SESSION.set(&mut response, "", me.is_tls);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_on_stays_within_the_pages() {
        assert_eq!(within("/admin/monitors?q=a"), "/admin/monitors?q=a");
        for other in [
            "",
            "//evil.example",
            "https://evil.example",
            "/admin\r\nx: y",
            "/admin/sign-in",
            "/admin\\..\\",
            "/status",
        ] {
            assert_eq!(within(other), "/admin", "{other}");
        }
    }
}
