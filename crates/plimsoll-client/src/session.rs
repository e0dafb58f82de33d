//! State of one user from one exchange to the next: cookies and authentication challenges.

mod cookies;

mod digest;

use std::sync::Arc;

use http::HeaderMap;
use plimsoll_model::Clock;
use plimsoll_wire::h1::{ResponseHead, ResponseSink};
use plimsoll_wire::h2;

pub use self::cookies::{CookieJar, CookiePlace};
pub use self::digest::{DigestAnswers, DigestLogin};
use crate::check::Observer;
use crate::{Endpoint, Http3Parts, Request, ResponseParts};

/// The kinds of state that users keep.
#[derive(Debug, Clone, Default)]
pub struct SessionPlan {
    /// Whether they keep cookies.
    pub cookies: bool,
    /// Credentials for digest authentication.
    pub digest: Option<Arc<DigestLogin>>,
}

impl SessionPlan {
    /// Whether there is anything to remember.
    pub fn is_empty(&self) -> bool {
        !self.cookies && self.digest.is_none()
    }
}

/// The memory of one user, who makes one exchange at a time.
#[derive(Debug)]
pub struct Session {
    plan: SessionPlan,
    jar: CookieJar,
    /// One per endpoint.
    answers: Vec<DigestAnswers>,
    /// Target of the request that was prepared last.
    host: String,
    target: String,
    cookie: Vec<u8>,
    is_answered: bool,
    wants_again: bool,
    /// Consecutive challenges.
    rounds: u8,
}

/// Maximum number of challenges of one exchange; a nonce can expire on the way, but not always.
const MOST_ROUNDS: u8 = 3;

impl Session {
    /// Nothing has been learnt yet; `None` if there is nothing to remember.
    pub fn new(plan: &SessionPlan) -> Option<Self> {
        (!plan.is_empty()).then(|| Self {
            plan: plan.clone(),
            jar: CookieJar::default(),
            answers: Vec::new(),
            host: String::new(),
            target: String::new(),
            cookie: Vec::new(),
            is_answered: false,
            wants_again: false,
            rounds: 0,
        })
    }

    /// `request` with what the server of `endpoint` gets beside it: `request` itself if that
    /// is nothing.
    ///
    /// Cookies of a `cookie` field in the request go along, unless there is one of the same name.
    ///
    /// - `into`: where it is made; its memory is used again.
    /// - `position`: that of the endpoint among all.
    pub fn dress<'a>(
        &mut self,
        request: &'a Request,
        into: &'a mut Option<Request>,
        endpoint: &Endpoint,
        position: usize,
        clock: &impl Clock,
    ) -> &'a Request {
        self.is_answered = false;
        self.note(request);
        let authorization = self.plan.digest.as_ref().and_then(|login| {
            let answers = self.answers.get_mut(position)?;
            answers.authorization(login, request.method(), &self.target)
        });
        let has_cookies = self.plan.cookies && self.write_cookies(request, endpoint, clock);
        if authorization.is_none() && !has_cookies {
            return request;
        }
        self.is_answered = authorization.is_some();
        let cookie = has_cookies.then_some(("cookie", self.cookie.as_slice()));
        let authorization = authorization.as_ref();
        let authorization = authorization.map(|value| ("authorization", value.expose().as_bytes()));
        let dressed = into.get_or_insert_with(|| request.clone());
        dressed.copy_with(request, cookie.into_iter().chain(authorization));
        dressed
    }

    /// Takes the head of the response to the request that was dressed last.
    pub fn learn<'f>(
        &mut self,
        endpoint: &Endpoint,
        position: usize,
        status: u16,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
        clock: &impl Clock,
    ) {
        self.wants_again = false;
        let mut challenges = Vec::new();
        for (name, value) in fields {
            if self.plan.cookies && name.eq_ignore_ascii_case(b"set-cookie") {
                let place = CookiePlace {
                    host: &self.host,
                    path: path_of(&self.target),
                    is_secure: endpoint.is_tls(),
                };
                self.jar.store_cookie(value, place, clock.wall());
            } else if status == 401 && name.eq_ignore_ascii_case(b"www-authenticate") {
                challenges.push(value);
            }
        }
        if self.plan.digest.is_some() && !challenges.is_empty() {
            if self.answers.len() <= position {
                self.answers
                    .resize_with(position + 1, DigestAnswers::default);
            }
            let is_new = self.answers[position].challenge(challenges.into_iter(), self.is_answered);
            self.wants_again = is_new && self.rounds < MOST_ROUNDS;
        }
        self.rounds = if self.wants_again { self.rounds + 1 } else { 0 };
    }

    /// Whether the response that just came demanded the same request with an authorization; the call
    /// forgets it.
    pub fn wants_again(&mut self) -> bool {
        std::mem::take(&mut self.wants_again)
    }

    /// Keeps where the request goes, in memory that is used again.
    fn note(&mut self, request: &Request) {
        let Self { host, target, .. } = self;
        let authority = String::from_utf8_lossy(request.host());
        host.clear();
        host.push_str(host_of(&authority));
        target.clear();
        target.push_str(&String::from_utf8_lossy(request.target()));
    }

    /// Writes the value of `cookie`; returns whether it differs from that of the request itself.
    fn write_cookies(
        &mut self,
        request: &Request,
        endpoint: &Endpoint,
        clock: &impl Clock,
    ) -> bool {
        let place = CookiePlace {
            host: &self.host,
            path: path_of(&self.target),
            is_secure: endpoint.is_tls(),
        };
        let now = clock.wall();
        self.cookie.clear();
        self.jar.write(place, now, &mut self.cookie);
        if self.cookie.is_empty() {
            return false;
        }
        let own = request.field("cookie").unwrap_or_default();
        for pair in own.split(|byte| *byte == b';').map(<[u8]>::trim_ascii) {
            let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
            if !pair.is_empty() && !self.jar.has(name, place, now) {
                self.cookie.extend_from_slice(b"; ");
                self.cookie.extend_from_slice(pair);
            }
        }
        true
    }
}

/// Has a session learn from a response, and shows it to an observer.
#[derive(Debug)]
pub struct Learning<'a, C> {
    /// The session that learns from the response.
    pub session: &'a mut Session,
    /// The origin of the response.
    pub endpoint: &'a Endpoint,
    /// Its position among all.
    pub position: usize,
    /// A second observer of the response.
    pub observer: Option<&'a mut Observer>,
    /// The dates of cookies.
    pub clock: &'a C,
}

impl<C: Clock> ResponseSink for Learning<'_, C> {
    fn head(&mut self, head: &ResponseHead<'_>) {
        let fields = head.headers.iter();
        let fields = fields.map(|field| (field.name.as_bytes(), field.value));
        let (status, clock) = (head.status, self.clock);
        self.session
            .learn(self.endpoint, self.position, status, fields, clock);
        if let Some(observer) = &mut self.observer {
            ResponseSink::head(*observer, head);
        }
    }

    fn content(&mut self, piece: &[u8]) {
        if let Some(observer) = &mut self.observer {
            observer.content(piece);
        }
    }
}

impl<C: Clock> ResponseParts for Learning<'_, C> {
    fn wants_fields(&self) -> bool {
        true
    }

    fn head(&mut self, head: &h2::ResponseHead<'_>) {
        let (status, clock) = (head.status, self.clock);
        self.session.learn(
            self.endpoint,
            self.position,
            status,
            head.fields.iter(),
            clock,
        );
        if let Some(observer) = &mut self.observer {
            observer.http2_head(head);
        }
    }

    fn content(&mut self, piece: &[u8]) {
        if let Some(observer) = &mut self.observer {
            observer.content(piece);
        }
    }
}

impl<C: Clock> Http3Parts for Learning<'_, C> {
    fn head(&mut self, status: u16, fields: &HeaderMap) {
        let pairs = fields.iter();
        let pairs = pairs.map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
        self.session
            .learn(self.endpoint, self.position, status, pairs, self.clock);
        if let Some(observer) = &mut self.observer {
            observer.http3_head(fields);
        }
    }

    fn content(&mut self, piece: &[u8]) {
        if let Some(observer) = &mut self.observer {
            observer.content(piece);
        }
    }
}

/// The host of an authority, without user and port.
fn host_of(authority: &str) -> &str {
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// The path of a target, which may be a whole URL on its way to a proxy.
fn path_of(target: &str) -> &str {
    let Some((_, rest)) = target.split_once("://") else {
        return target;
    };
    if target.starts_with('/') {
        return target;
    }
    rest.find('/').map_or("/", |start| rest.split_at(start).1)
}

#[cfg(test)]
mod tests;
