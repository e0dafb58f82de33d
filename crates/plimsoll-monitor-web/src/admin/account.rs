//! The signed-in user's own password, one-time codes and sessions.

use askama::Template;
use axum::extract::{Extension, RawQuery, State};
use axum::response::Response;
use http::StatusCode;
use plimsoll_model::Secret;
use plimsoll_monitor::store::{SessionChoice, User, UserEdit};

use crate::admin::agent::browser;
use crate::admin::form_error::FormError;
use crate::admin::guard::Me;
use crate::admin::overview::refused;
use crate::admin::shell::{Shell, When, html, redirect};
use crate::admin::{device, oidc, password, qr_code, recovery, totp};
use crate::limits::Account;
use crate::state::Api;

/// A session.
#[derive(Debug)]
struct Row {
    id: i64,
    created: When,
    seen: When,
    address: String,
    /// Browser and system, and all that the browser said of itself.
    browser: String,
    agent: String,
    is_this: bool,
}

#[derive(Template)]
#[template(path = "admin/account.html")]
struct AccountPage {
    s: Shell,
    must_change: bool,
    has_totp: bool,
    /// A secret for an authenticator app, and its URI.
    secret: String,
    uri: String,
    /// The URI as a QR code.
    picture: Option<String>,
    /// New recovery codes, which are shown once.
    codes: Vec<String>,
    /// How many recovery codes are left.
    left: usize,
    sessions: Vec<Row>,
    /// The name of the provider of `[oidc]`.
    provider: Option<String>,
    /// The addresses there that sign the member in.
    linked: Vec<String>,
}

pub(super) async fn show(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    RawQuery(query): RawQuery,
) -> Result<Response, Response> {
    let shell = Shell::new(&me, "/admin/account", "Account").done(query.as_deref());
    shown(&api, &me, shell, Vec::new()).await
}

async fn shown(api: &Api, me: &Me, shell: Shell, codes: Vec<String>) -> Result<Response, Response> {
    let handle = &api.handle;
    let found = handle.store.sessions(handle.org, me.user.id, me.now).await;
    let sessions = found.map_err(refused)?.into_iter().map(|session| Row {
        id: session.id,
        created: When::from_timestamp(session.created),
        seen: When::from_timestamp(session.seen),
        address: session.address,
        browser: browser(&session.agent),
        agent: session.agent,
        is_this: session.id == me.session.id,
    });
    // The same one again while its code is wrong.
    let typed = totp::parse(me.form.get("secret"));
    let secret = typed.or_else(totp::generate);
    let secret = secret
        .map(|secret| totp::written(&secret))
        .unwrap_or_default();
    let name =
        percent_encoding::utf8_percent_encode(&me.user.name, percent_encoding::NON_ALPHANUMERIC);
    let provider = handle.board.oidc().map(|plan| plan.name.clone());
    let linked = match &provider {
        None => Vec::new(),
        Some(_) => oidc::identities(handle, me.user.id)
            .await
            .map_err(refused)?,
    };
    let status = if shell.is_wrong() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let uri = format!("otpauth://totp/plimsoll:{name}?secret={secret}&issuer=plimsoll");
    let page = AccountPage {
        picture: qr_code::svg(&uri, "QR code of the secret below"),
        uri,
        secret,
        must_change: me.user.must_change,
        has_totp: me.user.totp.is_some() || !codes.is_empty(),
        left: recovery::left(handle, me.user.id).await.map_err(refused)?,
        codes,
        sessions: sessions.collect(),
        provider,
        linked: linked.into_iter().map(oidc::Identity::shown).collect(),
        s: shell,
    };
    Ok(html(&page, status))
}

/// The page with why a form of it was not accepted.
///
/// - `present`: the id of the form's field for the present password.
async fn wrong(api: &Api, me: &Me, error: &FormError, present: &str) -> Result<Response, Response> {
    let field_of = |field: &str| {
        let field = if field == "present" { present } else { field };
        Some(field.to_owned())
    };
    let shell = Shell::new(me, "/admin/account", "Account").refused(Some(error), field_of);
    shown(api, me, shell, Vec::new()).await
}

/// Whether the present password is right; attempts count as those of a sign-in.
async fn is_known(api: &Api, me: &Me) -> Result<(), FormError> {
    let session = me.session.id.to_string();
    let account = Account::Known {
        name: &me.user.name,
        device: &session,
    };
    let attempt = api.attempts.count_source(me.client, me.now);
    if attempt
        .and_then(|()| api.attempts.count_account(account, me.now))
        .is_err()
    {
        return Err(FormError::TooManyAttempts);
    }
    let typed = me.form.raw("present").chars().take(password::MOST + 1);
    match password::check(Some(&me.user.password), typed.collect()).await {
        Ok(true) => {}
        Ok(false) => return Err(FormError::WrongPassword),
        Err(failure) => return Err(FormError::PasswordNotChecked(failure)),
    }
    api.attempts.succeeded(account);
    Ok(())
}

pub(super) async fn password(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
) -> Result<Response, Response> {
    let new = me.form.raw("new").to_owned();
    if let Some(problem) = password::problem(&new) {
        return wrong(&api, &me, &FormError::Field("new", problem), "present").await;
    }
    if new != me.form.raw("again") {
        let error = FormError::Field("again", "The two new passwords differ.".to_owned());
        return wrong(&api, &me, &error, "present").await;
    }
    if new == me.form.raw("present") {
        let error = FormError::Field("new", "The new password is the present one.".to_owned());
        return wrong(&api, &me, &error, "present").await;
    }
    if let Err(error) = is_known(&api, &me).await {
        return wrong(&api, &me, &error, "present").await;
    }
    let hash = match password::hashed(new).await {
        Ok(hash) => hash,
        Err(failure) => {
            let error = FormError::PasswordNotChecked(failure);
            return wrong(&api, &me, &error, "present").await;
        }
    };
    let edit = UserEdit {
        password: Some((hash.clone(), false)),
        ..UserEdit::default()
    };
    let handle = &api.handle;
    let store = &handle.store;
    store
        .edit_user(handle.org, me.user.id, edit)
        .await
        .map_err(refused)?;
    store
        .end_sessions(handle.org, me.user.id, SessionChoice::AllBut(me.session.id))
        .await
        .map_err(refused)?;
    note(&api, &me, "account.password").await?;
    // A new member goes on to the first monitor.
    let mut response = redirect(if me.user.must_change {
        "/admin?done=password"
    } else {
        "/admin/account?done=password"
    });
    // What the browser remembers is of the password before.
    let user = User {
        password: Secret::new(hash),
        ..me.user
    };
    device::remember(&mut response, &user, me.is_tls);
    Ok(response)
}

async fn note(api: &Api, me: &Me, action: &str) -> Result<(), Response> {
    let noted = api
        .handle
        .note(&me.actor, action, &me.user.name, me.now)
        .await;
    noted.map_err(refused)
}

/// The field for the present password in the form of one-time codes.
const fn present_of(me: &Me) -> &'static str {
    if me.user.totp.is_some() {
        "present-off"
    } else {
        "present-on"
    }
}

/// Requires one-time codes from now on, or no longer.
pub(super) async fn totp(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
) -> Result<Response, Response> {
    if let Err(error) = is_known(&api, &me).await {
        return wrong(&api, &me, &error, present_of(&me)).await;
    }
    let (secret, action, done) = if me.form.get("action") == "off" {
        (None, "account.totp-off", "totp-off")
    } else {
        let secret = totp::parse(me.form.get("secret"));
        let is_right = secret
            .as_ref()
            .is_some_and(|secret| totp::step_of(secret, me.form.get("code"), me.now).is_some());
        if !is_right {
            let why = "The code is wrong. Is the clock of the phone right?";
            let error = FormError::Field("code", why.to_owned());
            return wrong(&api, &me, &error, present_of(&me)).await;
        }
        (secret, "account.totp-on", "totp-on")
    };
    let edit = UserEdit {
        totp: Some(secret),
        ..UserEdit::default()
    };
    let handle = &api.handle;
    let edited = handle.store.edit_user(handle.org, me.user.id, edit).await;
    edited.map_err(refused)?;
    note(&api, &me, action).await?;
    if action == "account.totp-on" {
        return with_codes(&api, &me, done).await;
    }
    Ok(redirect(&format!("/admin/account?done={done}")))
}

/// Gives the user new recovery codes, and shows them.
async fn with_codes(api: &Api, me: &Me, done: &str) -> Result<Response, Response> {
    let codes = recovery::renew(&api.handle, me.user.id, me.now).await;
    let codes = codes.map_err(refused)?;
    note(api, me, "account.recovery").await?;
    let shell = Shell::new(me, "/admin/account", "Account");
    let shell = shell.done(Some(&format!("done={done}")));
    shown(api, me, shell, codes).await
}

/// Replaces the recovery codes.
pub(super) async fn renew_codes(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
) -> Result<Response, Response> {
    if let Err(error) = is_known(&api, &me).await {
        return wrong(&api, &me, &error, present_of(&me)).await;
    }
    if me.user.totp.is_none() {
        return wrong(&api, &me, &FormError::NoCodes, present_of(&me)).await;
    }
    with_codes(&api, &me, "recovery").await
}

/// Ends one session, or all but this one.
pub(super) async fn sessions(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
) -> Result<Response, Response> {
    let which = match me.form.get("id").parse() {
        Ok(id) => SessionChoice::One(id),
        Err(_) => SessionChoice::AllBut(me.session.id),
    };
    let handle = &api.handle;
    let ended = handle
        .store
        .end_sessions(handle.org, me.user.id, which)
        .await;
    ended.map_err(refused)?;
    note(&api, &me, "session.end").await?;
    Ok(redirect("/admin/account?done=ended"))
}
