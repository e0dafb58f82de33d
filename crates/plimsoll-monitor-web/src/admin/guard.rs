//! The session, the role and the CSRF token of a request for an admin page. Behind every page: the fields that protect it.

use std::net::IpAddr;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY,
    STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{Method, StatusCode};
use plimsoll_model::Clock;
use plimsoll_monitor::config::ApiToken;
use plimsoll_monitor::manage::Actor;
use plimsoll_monitor::store::{Role, Session, User};
use plimsoll_monitor::time::Timestamp;

use crate::admin::form::Form;
use crate::admin::shell::{message, redirect};
use crate::cookies::Cookie;
use crate::request::{address_of, client_of, is_tls};
use crate::state::Api;

/// Bytes of a form: monitors with all their keys, or a postmortem.
const MOST_FORM: usize = 1024 * 1024;

/// The cookie of a session, for as long as that lasts.
pub(super) const SESSION: Cookie<'static> = Cookie {
    name: "plimsoll-admin",
    path: "/admin",
    age: Duration::from_hours(7 * 24),
};

/// Style, script and pictures of the pages only; nothing inline (W3C Content Security Policy, level 3).
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
     connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The signed-in user of a request.
#[derive(Debug, Clone)]
pub(super) struct Me {
    pub(super) user: User,
    pub(super) session: Session,
    /// The token that forms of this session carry.
    pub(super) csrf: String,
    pub(super) actor: Actor,
    /// The typed fields, if the request is a form.
    pub(super) form: Form,
    /// The address of the client, and whether it came by TLS.
    pub(super) client: IpAddr,
    pub(super) is_tls: bool,
    pub(super) now: Timestamp,
}

impl Me {
    pub(super) fn may(&self, role: Role) -> bool {
        self.user.role >= role
    }
}

/// The token of forms of a cookie: only who has the cookie can compute it.
pub(crate) fn csrf_of(purpose: &str, cookie: &str) -> String {
    let hash = ApiToken::hash_of(&format!("csrf {purpose} {cookie}"));
    BASE64_URL_SAFE_NO_PAD.encode(hash)
}

/// Whether two tokens are the same, in constant time of their hashes.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    !one.is_empty() && ApiToken::hash_of(one) == ApiToken::hash_of(other)
}

/// Admits requests of users with the role.
pub(crate) async fn admit(
    api: &Api,
    role: Role,
    mut request: Request,
) -> Result<Request, Response> {
    let now = Timestamp::from_system(api.clock.wall());
    let is_form = request.method() == Method::POST;
    let path = request.uri().path().to_owned();
    let is_tls = is_tls(request.headers(), request.extensions());
    let cookie = SESSION.read(request.headers(), is_tls).map(str::to_owned);
    let found = match &cookie {
        None => None,
        Some(cookie) => {
            let hash = ApiToken::hash_of(cookie);
            match api.handle.store.session(api.handle.org, hash, now).await {
                Ok(found) => found,
                Err(error) => return Err(unavailable(&error.to_string())),
            }
        }
    };
    let (Some((session, user)), Some(cookie)) = (found, cookie) else {
        if is_form {
            return Err(message(
                StatusCode::UNAUTHORIZED,
                "The session is over",
                "Sign in again, then repeat what you did.",
            ));
        }
        let next = path_and_query(&request);
        return Err(redirect(&format!("/admin/sign-in?{next}")));
    };
    let csrf = csrf_of("session", &cookie);
    let mut form = Form::default();
    if is_form {
        let body = std::mem::replace(request.body_mut(), Body::empty());
        let Ok(content) = to_bytes(body, MOST_FORM).await else {
            return Err(message(
                StatusCode::PAYLOAD_TOO_LARGE,
                "The form is too long",
                "A form may have 1 MiB.",
            ));
        };
        form = Form::parse(&content);
        if !is_same(form.get("csrf"), &csrf) {
            return Err(message(
                StatusCode::FORBIDDEN,
                "The form is not of this session",
                "Go back, load the page again and repeat what you did.",
            ));
        }
    }
    if user.role < role {
        return Err(message(
            StatusCode::FORBIDDEN,
            "Your role does not permit this",
            &format!(
                "It needs the role {}; yours is {}.",
                role.name(),
                user.role.name()
            ),
        ));
    }
    let is_own = path.starts_with("/admin/account") || path == "/admin/sign-out";
    if user.must_change && !is_own {
        return Err(redirect("/admin/account?done=must-change"));
    }
    let actor = Actor {
        name: user.name.clone(),
        address: address_of(request.extensions()),
    };
    let client = client_of(request.extensions());
    request.extensions_mut().insert(Me {
        user,
        session,
        csrf,
        actor,
        form,
        client,
        is_tls,
        now,
    });
    Ok(request)
}

/// `next=/admin/…`, where the sign-in leads.
fn path_and_query(request: &Request) -> String {
    let target = request
        .uri()
        .path_and_query()
        .map_or("/admin", |target| target.as_str());
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("next", target);
    query.finish()
}

fn unavailable(why: &str) -> Response {
    message(
        StatusCode::SERVICE_UNAVAILABLE,
        "The store is not available",
        why,
    )
}

/// Adds what every response of the admin pages has.
pub(super) async fn protect(request: Request, next: Next) -> Response {
    let is_tls = is_tls(request.headers(), request.extensions());
    protected(next.run(request).await.into_response(), is_tls)
}

/// The response with what every one of the admin pages has.
pub(super) fn protected(mut response: Response, is_tls: bool) -> Response {
    let fields = response.headers_mut();
    let all: [(HeaderName, &'static str); 4] = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "same-origin"),
    ];
    for (name, value) in all {
        fields.insert(name, HeaderValue::from_static(value));
    }
    if !fields.contains_key(CACHE_CONTROL) {
        fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    if is_tls {
        let value = HeaderValue::from_static("max-age=31536000");
        fields.insert(STRICT_TRANSPORT_SECURITY, value);
    }
    response
}
