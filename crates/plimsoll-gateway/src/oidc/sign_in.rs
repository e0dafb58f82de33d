//! The way to the provider and back.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::StatusCode;
use plimsoll_client::jwt::JwtClaims;
use plimsoll_client::oidc::{OidcError, OidcFlow, OidcUser};
use plimsoll_server::{Answer, Request, Response};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use url::Url;

use super::seal::Kind;
use super::{OidcPlan, page, session};
use crate::guards::GuardOutcome;
use crate::jwt::seconds;

/// How long a sign-in may take, in seconds.
const SIGN_IN: u64 = 600;

/// Sign-ins that a browser has under way at a time, as its tabs may; beyond, all others are given up.
const MOST_SIGN_INS: usize = 8;

/// Bytes of the path that a browser comes back to; a longer one is left out.
const MOST_PATH: usize = 1500;

/// A sign-in that is under way, as the browser keeps it.
struct SignIn {
    flow: OidcFlow,
    /// When it began, in seconds since 1970.
    at: f64,
    /// Path and query that the browser wanted.
    path: String,
}

impl SignIn {
    /// One with secrets of its own; nothing if the system has no randomness.
    fn new(path: &str, now: f64) -> Option<Self> {
        let secret = || {
            let mut bytes = [0; 32];
            SystemRandom::new().fill(&mut bytes).ok()?;
            Some(BASE64_URL_SAFE_NO_PAD.encode(bytes))
        };
        let path = if path.len() > MOST_PATH { "/" } else { path };
        Some(Self {
            flow: flow(secret()?, secret()?, secret()?),
            at: now,
            path: path.to_owned(),
        })
    }

    fn seal(&self, plan: &OidcPlan) -> Option<String> {
        let OidcFlow {
            state,
            nonce,
            verifier,
            ..
        } = &self.flow;
        let (at, path) = (self.at.floor(), &self.path);
        let text = format!("{at}\n{state}\n{nonce}\n{verifier}\n{path}");
        plan.seals.seal(Kind::SignIn, text.as_bytes())
    }

    fn open(plan: &OidcPlan, sealed: &str) -> Option<Self> {
        let text = plan.seals.open(Kind::SignIn, sealed)?;
        let text = String::from_utf8(text).ok()?;
        let mut lines = text.splitn(5, '\n');
        let at = lines.next()?.parse().ok()?;
        let mut line = || Some(lines.next()?.to_owned());
        let flow = flow(line()?, line()?, line()?);
        let path = line()?;
        Some(Self { flow, at, path })
    }
}

fn flow(state: String, nonce: String, verifier: String) -> OidcFlow {
    let challenge = digest(&SHA256, verifier.as_bytes());
    OidcFlow {
        state,
        nonce,
        challenge: BASE64_URL_SAFE_NO_PAD.encode(challenge.as_ref()),
        verifier,
    }
}

/// The name of the cookie of a sign-in: each has one, so that tabs do not disturb each other.
fn cookie_name(plan: &OidcPlan, state: &str) -> String {
    let short: String = state.chars().take(8).collect();
    format!("{}-{short}", plan.cookie)
}

/// The names of the cookies of sign-ins that a request has.
fn sign_ins(plan: &OidcPlan, request: &Request<'_>) -> Vec<String> {
    let start = format!("{}-", plan.cookie);
    let fields = request.values("cookie");
    let names = fields
        .filter_map(|value| std::str::from_utf8(value).ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| Some(pair.trim().split_once('=')?.0));
    let names = names.filter(|name| name.starts_with(&start));
    names.map(str::to_owned).collect()
}

/// Whether a request is the visit of a page, which may be led to another site and back.
fn is_visit(request: &Request<'_>) -> bool {
    let is_read = ["GET", "HEAD"].contains(&request.method) && request.upgrade.is_none();
    let mode = request.header("sec-fetch-mode");
    let accepts = || {
        let accept = request.header("accept").unwrap_or_default();
        let accept = String::from_utf8_lossy(accept);
        accept.contains("text/html")
    };
    is_read && mode.map_or_else(accepts, |mode| mode == b"navigate")
}

/// Sends a browser to the provider; what is no browser gets a 401.
pub(super) fn begin(plan: &Arc<OidcPlan>, worker: usize, request: &Request<'_>) -> Answer {
    if !is_visit(request) {
        return Answer::now(page::unauthorized());
    }
    let query = request.query.map(|it| format!("?{it}"));
    let path = format!("{}{}", request.path, query.unwrap_or_default());
    let others = sign_ins(plan, request);
    let plan = Arc::clone(plan);
    Answer::later(async move {
        let now = seconds();
        let sign_in = SignIn::new(&path, now);
        let sealed = sign_in.as_ref().and_then(|it| it.seal(&plan));
        let (Some(sign_in), Some(sealed)) = (sign_in, sealed) else {
            let message = "the system has no randomness";
            return page::failed(StatusCode::SERVICE_UNAVAILABLE, message);
        };
        let location = plan
            .provider
            .authorization(&plan.client, &sign_in.flow, now);
        match location.await {
            Ok(location) => {
                let name = cookie_name(&plan, &sign_in.flow.state);
                let mut cookies = vec![session::cookie(&name, &sealed, SIGN_IN)];
                if others.len() >= MOST_SIGN_INS {
                    cookies.extend(others.iter().map(|name| session::cookie(name, "", 0)));
                }
                page::redirect(&location, &cookies)
            }
            Err(error) => {
                plan.count(worker, GuardOutcome::Unavailable);
                plan.failed(&error, StatusCode::BAD_GATEWAY)
            }
        }
    })
}

/// What the provider sends a browser back with.
#[derive(Default)]
struct Returned {
    state: String,
    code: Option<String>,
    issuer: Option<String>,
    error: Option<String>,
}

impl Returned {
    fn from_query(query: Option<&str>) -> Self {
        let mut returned = Self::default();
        let query = query.unwrap_or_default();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            let value = value.into_owned();
            match &*name {
                "state" => returned.state = value,
                "code" => returned.code = Some(value),
                "iss" => returned.issuer = Some(value),
                "error" => returned.error = Some(value),
                _ => {}
            }
        }
        returned
    }
}

/// Takes a browser back from the provider, and begins its session.
pub(super) fn finish(plan: &Arc<OidcPlan>, worker: usize, request: &Request<'_>) -> Answer {
    let returned = Returned::from_query(request.query);
    let now = seconds();
    let name = cookie_name(plan, &returned.state);
    let mut kept = session::cookies(request, &name);
    let sign_in = kept.find_map(|sealed| {
        let sign_in = SignIn::open(plan, sealed)?;
        // Another machine may have begun it, whose clock is ahead.
        let is_recent = (now - sign_in.at).abs() < SIGN_IN as f64;
        (is_recent && sign_in.flow.state == returned.state).then_some(sign_in)
    });
    let Some(sign_in) = sign_in else {
        plan.count(worker, GuardOutcome::Invalid);
        let message = format!(
            "the sign-in took too long, or was begun in another browser; begin again at {}/",
            plan.url
        );
        return Answer::now(page::failed(StatusCode::BAD_REQUEST, &message));
    };
    let over = [session::cookie(&name, "", 0)];
    let Some(code) = returned.code.filter(|_| returned.error.is_none()) else {
        plan.count(worker, GuardOutcome::Invalid);
        let error = returned.error.unwrap_or_default();
        let message = format!(
            "the provider refuses the sign-in: {}",
            page::printable(&error)
        );
        let response = page::failed(StatusCode::FORBIDDEN, &message);
        return Answer::now(page::with_cookies(response, &over));
    };
    let plan = Arc::clone(plan);
    Answer::later(async move {
        let response = (code.as_str(), returned.issuer.as_deref());
        let user = plan
            .provider
            .user(&plan.client, &sign_in.flow, response, now);
        let user = match user.await {
            Ok(user) => user,
            Err(error) => {
                plan.count(worker, GuardOutcome::Invalid);
                return page::with_cookies(plan.failed(&error, status_of(&error)), &over);
            }
        };
        plan.works();
        let claims = match claims(&plan, user, now).await {
            Ok(claims) => claims,
            Err(response) => return page::with_cookies(response, &over),
        };
        page::with_cookies(begin_session(&plan, worker, &claims, &sign_in.path), &over)
    })
}

/// A code or a token that is refused is the browser's; anything else the provider's.
fn status_of(error: &OidcError) -> StatusCode {
    match error {
        OidcError::Refused(..) | OidcError::Token(_) => StatusCode::FORBIDDEN,
        OidcError::Unreachable(_) | OidcError::NoEndpoint(_) | OidcError::OtherIssuer(_) => {
            StatusCode::BAD_GATEWAY
        }
    }
}

/// The claims of a user, with those of `userinfo` if they are wanted.
async fn claims(plan: &OidcPlan, user: OidcUser, now: f64) -> Result<JwtClaims, Response> {
    if !plan.has_userinfo {
        return Ok(user.claims);
    }
    let more = plan.provider.userinfo(&plan.client, &user, now).await;
    let more = more.map_err(|error| plan.failed(&error, StatusCode::BAD_GATEWAY))?;
    Ok(user.claims.or(more.unwrap_or_default()))
}

fn begin_session(plan: &OidcPlan, worker: usize, claims: &JwtClaims, path: &str) -> Response {
    if let Some(unmet) = plan.unmet(claims) {
        plan.count(worker, GuardOutcome::Forbidden);
        return page::forbidden(unmet, &plan.logout);
    }
    match session::begin(plan, &claims.only(&plan.kept), seconds()) {
        // The host is that of the configuration, so the path leads nowhere else.
        Ok(cookie) => page::redirect(&format!("{}{path}", plan.url), &[cookie]),
        Err(session::TooLarge) => page::failed(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the claims of the user do not fit into a cookie; name fewer in `keep`",
        ),
    }
}

/// Ends a session here, and at the provider if that has a page for it.
pub(super) fn log_out(plan: &Arc<OidcPlan>, request: &Request<'_>) -> Answer {
    if request.header("sec-fetch-site") == Some(b"cross-site") {
        let message = "another site cannot end the session";
        return Answer::now(page::failed(StatusCode::FORBIDDEN, message));
    }
    let mut names = sign_ins(plan, request);
    names.push(plan.cookie.clone());
    let over: Vec<_> = names
        .iter()
        .map(|name| session::cookie(name, "", 0))
        .collect();
    let plan = Arc::clone(plan);
    Answer::later(async move {
        // Without the provider the session here ends all the same.
        let metadata = plan.provider.metadata(&plan.client, seconds()).await.ok();
        let end = metadata.and_then(|it| it.end_session_endpoint.clone());
        match end {
            Some(end) => page::redirect(end_url(end.as_url(), &plan).as_str(), &over),
            None => page::with_cookies(page::failed(StatusCode::OK, "signed out"), &over),
        }
    })
}

/// `OpenID` Connect RP-Initiated Logout 1.0, section 2.
fn end_url(endpoint: &Url, plan: &OidcPlan) -> Url {
    let mut url = endpoint.clone();
    url.query_pairs_mut()
        .append_pair("client_id", &plan.client.client_id)
        .append_pair("post_logout_redirect_uri", &format!("{}/", plan.url));
    url
}
