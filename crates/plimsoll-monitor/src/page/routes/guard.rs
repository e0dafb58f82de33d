//! Access to a page: everyone, users of Gatus, or readers with the password, which a cookie remembers.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, OnceLock, PoisonError};

use axum::body::{Body, to_bytes};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, HOST, HeaderValue, ORIGIN, SET_COOKIE, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use plimsoll_model::Clock;
use plimsoll_server::BasicAuth;
use ring::hmac;
use ring::rand::SystemRandom;

use crate::api::not_found;
use crate::limits;
use crate::page::Guard;
use crate::page::cache::Rendered;
use crate::page::config::authorization;
use crate::page::html::{self, Frame};
use crate::page::routes::reply::{Caching, redirect, refused, reply};
use crate::page::routes::{HTML, SESSION, Visit, cookie, parameter};
use crate::page::share::{self, Share};
use crate::page::snapshot::State;
use crate::page::subscribe::OF_SOURCE;
use crate::store::timestamp::Timestamp;

/// Bytes of a form.
const MOST_FORM: usize = 8 * 1024;

/// Passwords that an address may try in a minute.
const MOST_TRIES: u32 = 10;

/// Addresses that are counted.
const MOST_ADDRESSES: usize = 10_000;

/// Signs sessions, for as long as the program runs, and counts recent attempts at passwords.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    key: OnceLock<hmac::Key>,
    tries: Mutex<(i64, HashMap<IpAddr, u32>)>,
    /// New subscriptions by source.
    subscriptions: Mutex<limits::Counts>,
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

    fn signed(&self, slug: &str, until: i64) -> Option<String> {
        let tag = hmac::sign(self.key()?, format!("{slug} {until}").as_bytes());
        let tag = BASE64_URL_SAFE_NO_PAD.encode(tag.as_ref());
        Some(format!("{until}.{tag}"))
    }

    fn is_valid(&self, slug: &str, session: &str, now: Timestamp) -> bool {
        let Some((until, tag)) = session.split_once('.') else {
            return false;
        };
        let (Ok(end), Ok(tag)) = (until.parse::<i64>(), BASE64_URL_SAFE_NO_PAD.decode(tag)) else {
            return false;
        };
        let Some(key) = self.key() else {
            return false;
        };
        end > now.0 && hmac::verify(key, format!("{slug} {end}").as_bytes(), &tag).is_ok()
    }

    /// Whether a source may leave another address today.
    pub(super) fn may_subscribe(&self, address: IpAddr, now: Timestamp) -> bool {
        let counts = self.subscriptions.lock();
        let mut counts = counts.unwrap_or_else(PoisonError::into_inner);
        limits::add(&mut counts, &limits::source(address), OF_SOURCE, now).is_none()
    }

    /// Whether an address may try another password in this minute.
    pub(super) fn may_try(&self, address: IpAddr, now: Timestamp) -> bool {
        let mut tries = self.tries.lock().unwrap_or_else(PoisonError::into_inner);
        let minute = now.0.div_euclid(60_000);
        if tries.0 != minute {
            *tries = (minute, HashMap::new());
        }
        if tries.1.len() >= MOST_ADDRESSES && !tries.1.contains_key(&address) {
            return false;
        }
        let count = tries.1.entry(address).or_default();
        *count += 1;
        *count <= MOST_TRIES
    }
}

pub(super) fn peer(extensions: &http::Extensions) -> IpAddr {
    let peer = extensions.get::<SocketAddr>();
    peer.map_or(IpAddr::from([0, 0, 0, 0]), SocketAddr::ip)
}

impl Visit<'_> {
    pub(super) fn now(&self) -> Timestamp {
        Timestamp::of(self.api.clock.wall())
    }

    /// Why the reader may not see the page.
    pub(super) async fn refusal(&self, extensions: &http::Extensions) -> Option<Response> {
        match &self.plan.guard {
            Guard::Open => None,
            Guard::Basic(auth) => match self.admits(auth, extensions).await {
                Some(true) => None,
                Some(false) => Some(challenge()),
                None => Some(busy()),
            },
            Guard::Password(auth) => {
                let name = format!("page-{}", self.plan.slug);
                let session = cookie(self.fields, &name);
                let sessions = &self.api.sessions;
                if session.is_some_and(|it| sessions.is_valid(&self.plan.slug, it, self.now())) {
                    return None;
                }
                if self.is_shared().await {
                    return None;
                }
                // Feed readers and programs have no cookie.
                if self.fields.contains_key(AUTHORIZATION) {
                    return match self.admits(auth, extensions).await {
                        Some(true) => None,
                        Some(false) => Some(challenge()),
                        None => Some(busy()),
                    };
                }
                Some(self.password_form("password_needed", false))
            }
        }
    }

    /// Whether the reader came by a link that is still valid.
    async fn is_shared(&self) -> bool {
        match cookie(self.fields, &self.share_cookie()) {
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
        let secure = if self.url.starts_with("https://") {
            "; Secure"
        } else {
            ""
        };
        let age = SESSION.as_secs();
        let cookie =
            format!("{name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}");
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().insert(SET_COOKIE, cookie);
        }
    }

    async fn admits(&self, auth: &BasicAuth, extensions: &http::Extensions) -> Option<bool> {
        let Some(given) = self.fields.get(AUTHORIZATION) else {
            return Some(false);
        };
        let admitted = auth.admits(given.as_bytes()).await?;
        // Right ones are remembered and cost nothing.
        if !admitted && !self.api.sessions.may_try(peer(extensions), self.now()) {
            return None;
        }
        Some(admitted)
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
        let Guard::Password(auth) = &self.plan.guard else {
            return redirect(StatusCode::SEE_OTHER, &format!("{}/", self.base));
        };
        let password = parameter(Some(form), "password").unwrap_or_default();
        if !self.api.sessions.may_try(peer(extensions), self.now()) {
            let mut response = self.password_form("password_busy", true);
            *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
            return response;
        }
        match auth.admits(authorization(&password).as_bytes()).await {
            Some(true) => self.signed_in(),
            Some(false) => self.password_form("password_wrong", true),
            None => self.password_form("password_busy", true),
        }
    }

    fn signed_in(&self) -> Response {
        let until = self.now().plus(SESSION).0;
        let mut response = redirect(StatusCode::SEE_OTHER, &format!("{}/", self.base));
        if let Some(session) = self.api.sessions.signed(&self.plan.slug, until) {
            self.keep(&mut response, &format!("page-{}", self.plan.slug), &session);
        }
        response
    }
}

fn challenge() -> Response {
    let mut response = refused(StatusCode::UNAUTHORIZED, "a password is needed\n");
    let value = HeaderValue::from_static("Basic realm=\"status page\", charset=\"UTF-8\"");
    response.headers_mut().insert(WWW_AUTHENTICATE, value);
    response
}

fn busy() -> Response {
    refused(
        StatusCode::TOO_MANY_REQUESTS,
        "too many passwords were tried\n",
    )
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
    fn sessions_are_of_one_page_and_end() {
        let sessions = Sessions::default();
        let session = sessions.signed("a", 1_000).unwrap();
        assert!(sessions.is_valid("a", &session, Timestamp(999)));
        assert!(!sessions.is_valid("a", &session, Timestamp(1_000)));
        assert!(!sessions.is_valid("b", &session, Timestamp(0)));
        assert!(!sessions.is_valid("a", &session.replace("1000", "2000"), Timestamp(0)));
        assert!(!Sessions::default().is_valid("a", &session, Timestamp(0)));
    }

    #[test]
    fn an_address_tries_a_few_passwords_a_minute() {
        let sessions = Sessions::default();
        let [one, other] = [[127, 0, 0, 1], [127, 0, 0, 2]].map(IpAddr::from);
        for _ in 0..MOST_TRIES {
            assert!(sessions.may_try(one, Timestamp(0)));
        }
        assert!(!sessions.may_try(one, Timestamp(59_999)));
        assert!(sessions.may_try(other, Timestamp(59_999)));
        assert!(sessions.may_try(one, Timestamp(60_000)));
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
