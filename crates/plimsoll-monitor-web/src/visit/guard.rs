//! Access to a page: everyone, users of Gatus, or readers with the password, which a cookie remembers.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::response::{IntoResponse, Response};
use http::header::{AUTHORIZATION, HOST, HeaderValue, ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use plimsoll_model::Clock;
use plimsoll_monitor::config::page::{PagePassword, authorization};
use plimsoll_monitor::time::Timestamp;
use plimsoll_server::BasicAuth;

use crate::access::passwords::{Attempt, attempt};
use crate::answer::not_found;
use crate::cookies::Cookie;
use crate::language::Texts as _;
use crate::page::Guard;
use crate::page::cache::Rendered;
use crate::page::html::{self, Frame};
use crate::page::sessions::SESSION;
use crate::page::share::{self};
use crate::page::snapshot::State;
use crate::request::{client_of, parameter};
use crate::visit::reply::{Caching, redirect, refused, reply};
use crate::visit::{HTML, Visit};

/// Bytes of a form.
const MOST_FORM: usize = 8 * 1024;

impl Visit<'_> {
    pub(super) fn now(&self) -> Timestamp {
        Timestamp::from_system(self.api.clock.wall())
    }

    /// Why the reader may not see the page.
    pub(super) async fn refusal(&self, extensions: &http::Extensions) -> Option<Response> {
        match &self.plan.guard {
            Guard::Open => None,
            Guard::Basic(auth) => self.challenged(auth, extensions).await,
            Guard::Password(password) => {
                let name = self.session_cookie();
                let session = kept(&name).read(self.fields, self.is_secure());
                let (slug, sessions) = (&self.plan.slug, &self.api.sessions);
                if session.is_some_and(|it| sessions.is_valid(slug, password, it, self.now())) {
                    return None;
                }
                if self.is_shared().await {
                    return None;
                }
                // Feed readers and programs have no cookie.
                if self.fields.contains_key(AUTHORIZATION) {
                    return self.challenged(&password.auth, extensions).await;
                }
                Some(self.password_form("password_needed", false))
            }
        }
    }

    /// Why a reader with these credentials by Basic may not see the page.
    async fn challenged(
        &self,
        auth: &BasicAuth,
        extensions: &http::Extensions,
    ) -> Option<Response> {
        let given = self.fields.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        match attempt(self.api, auth, given, client_of(extensions)).await {
            Attempt::Admitted => None,
            Attempt::Wrong => Some(challenge()),
            Attempt::TooMany(wait) => Some(busy(wait)),
        }
    }

    /// Whether the reader comes by TLS, by the URL of the page.
    fn is_secure(&self) -> bool {
        self.url.starts_with("https://")
    }

    fn session_cookie(&self) -> String {
        format!("page-{}", self.plan.slug)
    }

    /// Whether the reader came by a link that is still valid.
    async fn is_shared(&self) -> bool {
        let name = self.share_cookie();
        match kept(&name).read(self.fields, self.is_secure()) {
            Some(token) => self.opens(token).await,
            None => false,
        }
    }

    fn share_cookie(&self) -> String {
        format!("share-{}", self.plan.slug)
    }

    async fn opens(&self, token: &str) -> bool {
        if token.len() != share::LENGTH {
            return false;
        }
        let listed = share::list(&self.api.handle).await;
        let listed = listed.map(|listed| listed.into_iter().map(|(.., share)| share).collect());
        let (sessions, slug) = (&self.api.sessions, &self.plan.slug);
        sessions.opens_share(listed.ok(), slug, token, self.now())
    }

    /// `/share/TOKEN`: the browser keeps the token, and sees the page. It does not stay in the address bar.
    pub(super) async fn shared(&self, token: &str) -> Option<Response> {
        if !matches!(self.plan.guard, Guard::Password(_)) || !self.opens(token).await {
            return None;
        }
        let mut response = redirect(StatusCode::SEE_OTHER, &format!("{}/", self.base));
        self.keep(&mut response, &self.share_cookie(), token);
        Some(response)
    }

    /// Has the browser keep a cookie for the page.
    fn keep(&self, response: &mut Response, name: &str, value: &str) {
        kept(name).set(response, value, self.is_secure());
    }

    fn password_form(&self, message: &'static str, is_bad: bool) -> Response {
        let page = self.message(message, is_bad);
        let mut response = reply(&Rendered::new(HTML, page), self.fields, Caching::Private);
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        response
    }

    fn message(&self, message: &'static str, is_bad: bool) -> String {
        let (style, _) = html::style(self.plan);
        let frame = Frame::new(self.plan, self.t, &self.base, &style, State::Unknown);
        html::message_page(frame, self.t.text(message), is_bad, true)
    }

    pub(super) async fn post(&self, extensions: &http::Extensions, body: Body) -> Response {
        let is_subscription = self.path == "/subscribe" || self.path.starts_with("/subscribe/");
        if self.path != "/sign-in" && !is_subscription {
            return not_found().await.into_response();
        }
        // Mail programs end a subscription by themselves (RFC 8058).
        if !is_same_site(self.fields) && self.path != "/subscribe/stop" {
            return refused(StatusCode::FORBIDDEN, "the form is of another site\n");
        }
        let Ok(content) = to_bytes(body, MOST_FORM).await else {
            return refused(StatusCode::PAYLOAD_TOO_LARGE, "the form is too long\n");
        };
        let content = String::from_utf8_lossy(&content);
        if is_subscription {
            // The forms of a page with a password are behind it; the links of messages are not.
            if self.path == "/subscribe"
                && let Some(refusal) = self.refusal(extensions).await
            {
                return refusal;
            }
            return match self.change_subscription(extensions, &content).await {
                Some(response) => response,
                None => not_found().await.into_response(),
            };
        }
        self.sign_in(extensions, &content).await
    }

    async fn sign_in(&self, extensions: &http::Extensions, form: &str) -> Response {
        let Guard::Password(page) = &self.plan.guard else {
            return redirect(StatusCode::SEE_OTHER, &format!("{}/", self.base));
        };
        let password = parameter(Some(form), "password").unwrap_or_default();
        let given = authorization(&password);
        let attempted = attempt(
            self.api,
            &page.auth,
            Some(given.as_bytes()),
            client_of(extensions),
        );
        match attempted.await {
            Attempt::Admitted => self.signed_in(page),
            Attempt::Wrong => self.password_form("password_wrong", true),
            Attempt::TooMany(wait) => {
                let mut response = self.password_form("password_busy", true);
                *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
                response.headers_mut().insert(RETRY_AFTER, seconds(wait));
                response
            }
        }
    }

    fn signed_in(&self, page: &PagePassword) -> Response {
        let until = self.now().plus(SESSION).0;
        let mut response = redirect(StatusCode::SEE_OTHER, &format!("{}/", self.base));
        if let Some(session) = self.api.sessions.signed(&self.plan.slug, page, until) {
            self.keep(&mut response, &self.session_cookie(), &session);
        }
        response
    }
}

/// A cookie for a page, which may be at the root of its host.
fn kept(name: &str) -> Cookie<'_> {
    Cookie {
        name,
        path: "/",
        age: SESSION,
    }
}

fn challenge() -> Response {
    let mut response = refused(StatusCode::UNAUTHORIZED, "a password is needed\n");
    let value = HeaderValue::from_static("Basic realm=\"status page\", charset=\"UTF-8\"");
    response.headers_mut().insert(WWW_AUTHENTICATE, value);
    response
}

fn busy(wait: Duration) -> Response {
    let why = "too many passwords were tried\n";
    let mut response = refused(StatusCode::TOO_MANY_REQUESTS, why);
    response.headers_mut().insert(RETRY_AFTER, seconds(wait));
    response
}

fn seconds(wait: Duration) -> HeaderValue {
    HeaderValue::from(wait.as_secs().max(1))
}

/// Whether a form was sent by a page of this site: browsers name its origin.
fn is_same_site(fields: &HeaderMap) -> bool {
    let text =
        |value: Option<&HeaderValue>| value.and_then(|it| it.to_str().ok().map(str::to_owned));
    match (text(fields.get(ORIGIN)), text(fields.get(HOST))) {
        (Some(origin), Some(host)) => {
            let origin = origin.split_once("://").map(|(_, rest)| rest.to_owned());
            origin.is_some_and(|origin| origin == host)
        }
        (Some(_), None) => false,
        (None, _) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_other_sites_are_refused() {
        let mut fields = HeaderMap::new();
        assert!(is_same_site(&fields));
        fields.insert(HOST, "a.example:8080".parse().unwrap());
        fields.insert(ORIGIN, "https://a.example:8080".parse().unwrap());
        assert!(is_same_site(&fields));
        fields.insert(ORIGIN, "https://b.example".parse().unwrap());
        assert!(!is_same_site(&fields));
        fields.insert(ORIGIN, "null".parse().unwrap());
        assert!(!is_same_site(&fields));
    }
}
