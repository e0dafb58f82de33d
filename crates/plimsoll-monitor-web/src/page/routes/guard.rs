//! Access to a page: everyone, users of Gatus, or readers with the password, which a cookie remembers.

use std::net::IpAddr;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, HOST, HeaderValue, ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use plimsoll_model::Clock;
use plimsoll_server::BasicAuth;
use ring::hmac;
use ring::rand::SystemRandom;

use crate::api::{Attempt, attempt, client_of, not_found};
use crate::cookies::Cookie;
use crate::language::Texts as _;
use crate::limits;
use crate::page::Guard;
use crate::page::cache::Rendered;
use crate::page::html::{self, Frame};
use crate::page::routes::reply::{Caching, redirect, refused, reply};
use crate::page::routes::{HTML, SESSION, Visit, parameter};
use crate::page::share::{self, Share};
use crate::page::snapshot::State;
use crate::page::subscribe::{OF_SITE, OF_SOURCE};
use plimsoll_monitor::config::page::{PagePassword, authorization};
use plimsoll_monitor::time::Timestamp;

/// Bytes of a form.
const MOST_FORM: usize = 8 * 1024;

/// Signs sessions, for as long as the program runs, and counts new subscriptions.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    key: OnceLock<hmac::Key>,
    /// New subscriptions by source.
    subscriptions: Mutex<limits::Counts>,
    /// Links of subscribers that were not valid, by source.
    wrong_links: Mutex<limits::Counts>,
    /// The links that were last read, for the time in which the store is away.
    shares: Mutex<Vec<Share>>,
}

impl Sessions {
    fn key(&self) -> Option<&hmac::Key> {
        if let Some(key) = self.key.get() {
            return Some(key);
        }
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok()?;
        Some(self.key.get_or_init(|| key))
    }

    fn signed(&self, slug: &str, password: &PagePassword, until: i64) -> Option<String> {
        let tag = hmac::sign(self.key()?, &content(slug, password, until));
        let tag = BASE64_URL_SAFE_NO_PAD.encode(tag.as_ref());
        Some(format!("{until}.{tag}"))
    }

    fn is_valid(&self, slug: &str, password: &PagePassword, session: &str, now: Timestamp) -> bool {
        let Some((until, tag)) = session.split_once('.') else {
            return false;
        };
        let (Ok(end), Ok(tag)) = (until.parse::<i64>(), BASE64_URL_SAFE_NO_PAD.decode(tag)) else {
            return false;
        };
        let Some(key) = self.key() else {
            return false;
        };
        end > now.0 && hmac::verify(key, &content(slug, password, end), &tag).is_ok()
    }

    /// Whether a source may follow another link of a subscriber.
    pub(super) fn may_follow_links(&self, address: IpAddr, now: Timestamp) -> bool {
        let counts = self.wrong_links.lock();
        let counts = counts.unwrap_or_else(PoisonError::into_inner);
        limits::wait(&counts, &limits::source(address), WRONG_LINKS, now).is_none()
    }

    /// Counts a link that is not valid.
    pub(super) fn followed_wrong_link(&self, address: IpAddr, now: Timestamp) {
        let counts = self.wrong_links.lock();
        let mut counts = counts.unwrap_or_else(PoisonError::into_inner);
        limits::add(&mut counts, &limits::source(address), WRONG_LINKS, now);
    }

    /// Whether a source may leave another address today.
    pub(super) fn may_subscribe(&self, address: IpAddr, now: Timestamp) -> bool {
        let counts = self.subscriptions.lock();
        let mut counts = counts.unwrap_or_else(PoisonError::into_inner);
        let mut add = |name: &str, limit| limits::add(&mut counts, name, limit, now).is_none();
        add(&limits::source(address), OF_SOURCE) && add(&limits::site(address), OF_SITE)
    }
}

/// Links of subscribers that a source may follow in vain, in a minute.
const WRONG_LINKS: (u32, Duration) = (10, Duration::from_mins(1));

/// Signed content of a session: another password of the page ends it.
fn content(slug: &str, password: &PagePassword, until: i64) -> Vec<u8> {
    [format!("{slug} {until} ").as_bytes(), &password.fingerprint].concat()
}

impl Visit<'_> {
    pub(super) fn now(&self) -> Timestamp {
        Timestamp::of(self.api.clock.wall())
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
        let known = &self.api.sessions.shares;
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(listed) = listed {
            *known = listed.into_iter().map(|(.., share)| share).collect();
        }
        let now = self.now();
        known
            .iter()
            .any(|share| share.opens(&self.plan.slug, token, now))
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
    use std::collections::HashMap;
    use std::sync::Arc;

    use super::*;

    fn password(fingerprint: u8) -> PagePassword {
        PagePassword {
            auth: Arc::new(BasicAuth::new("page", HashMap::new()).unwrap()),
            fingerprint: [fingerprint; 32],
        }
    }

    #[test]
    fn sessions_are_of_one_page_with_one_password_and_end() {
        let sessions = Sessions::default();
        let [one, other] = [password(1), password(2)];
        let session = sessions.signed("a", &one, 1_000).unwrap();
        let later = session.replace("1000", "2000");
        assert!(sessions.is_valid("a", &one, &session, Timestamp(999)));
        assert!(!sessions.is_valid("a", &one, &session, Timestamp(1_000)));
        assert!(!sessions.is_valid("b", &one, &session, Timestamp(0)));
        assert!(!sessions.is_valid("a", &other, &session, Timestamp(0)));
        assert!(!sessions.is_valid("a", &one, &later, Timestamp(0)));
        assert!(!Sessions::default().is_valid("a", &one, &session, Timestamp(0)));
    }

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
