//! Sign-in by a provider of `OpenID` Connect.
//!
//! The browser keeps the secrets of a sign-in, in a cookie of ten minutes: the store has nothing of a sign-in that does not
//! end. State, nonce and the verifier of PKCE are hashes of the cookie, so the provider learns none of the others.

mod identity;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Extension, RawQuery, Request, State};
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::StatusCode;
use http::request::Parts;
use plimsoll_model::Clock;
use plimsoll_monitor::config::{ApiToken, OidcPlan};
use plimsoll_monitor::manage::Actor;
use plimsoll_monitor::store::{Session, User};
use plimsoll_monitor::time::Timestamp;
use ring::digest::{SHA256, digest};

use crate::admin::guard::{Me, SESSION, csrf_of, is_same};
use crate::admin::outgoing::apart;
use crate::admin::overview::refused;
use crate::admin::shell::{message, redirect};
use crate::admin::sign_in;
use crate::cookies::Cookie;
use crate::oidc::OidcFlow;
use crate::random;
use crate::request::{address_of, client_of, is_tls, parameter};
use crate::state::Api;

pub(super) use crate::admin::oidc::identity::{Identity, identities, unlink as end_links};

/// The cookie of a sign-in under way, for as long as that may take at the provider.
const COOKIE: Cookie<'static> = Cookie {
    name: "plimsoll-oidc",
    path: "/admin/oidc",
    age: Duration::from_mins(10),
};

/// Characters of a code.
const MOST_CODE: usize = 4_096;

/// Purpose of a sign-in, as its cookie has it.
enum Purpose {
    /// To open a session, and to go on there.
    Session(String),
    /// To link the member of the session.
    Link,
}

impl Purpose {
    fn written(&self) -> String {
        match self {
            Self::Session(next) => format!("s{}", BASE64_URL_SAFE_NO_PAD.encode(next)),
            Self::Link => "l".to_owned(),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if text == "l" {
            return Some(Self::Link);
        }
        let next = BASE64_URL_SAFE_NO_PAD
            .decode(text.strip_prefix('s')?)
            .ok()?;
        Some(Self::Session(String::from_utf8(next).ok()?))
    }
}

fn flow_of(cookie: &str) -> OidcFlow {
    let verifier = csrf_of("oidc-verifier", cookie);
    OidcFlow {
        state: csrf_of("oidc-state", cookie),
        nonce: csrf_of("oidc-nonce", cookie),
        challenge: BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes())),
        verifier,
    }
}

fn off() -> Response {
    message(
        StatusCode::NOT_FOUND,
        "There is no such sign-in",
        "The configuration has no [oidc].",
    )
}

/// Leads the browser to the provider.
pub(super) async fn start(
    State(api): State<Api>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Response {
    let (request, _) = request.into_parts();
    let Some(plan) = api.handle.board.oidc() else {
        return off();
    };
    let now = Timestamp::from_system(api.clock.wall());
    let purpose = match parameter(query.as_deref(), "link") {
        None => {
            let next = parameter(query.as_deref(), "next").unwrap_or_default();
            Purpose::Session(sign_in::within(&next).chars().take(500).collect())
        }
        // Another site cannot know the token, so it cannot link a user of its own.
        Some(token) => match session(&api, &request, now).await {
            Ok(Some((.., csrf))) if is_same(&token, &csrf) => Purpose::Link,
            Ok(_) => return redirect("/admin/sign-in?next=/admin/account"),
            Err(refusal) => return refusal,
        },
    };
    let Some(random) = random::token() else {
        return sign_in::failed(&"The system has no random numbers.");
    };
    let value = format!("{random}.{}", purpose.written());
    let flow = flow_of(&value);
    let providers = Arc::clone(&api.providers);
    let found = apart(move || async move { providers.authorization(&plan, &flow, now).await });
    let mut response = match found.await {
        Ok(url) => redirect(&url),
        Err(error) => return refusal(&api, &request, error.to_string(), now).await,
    };
    let is_tls = is_tls(&request.headers, &request.extensions);
    COOKIE.set(&mut response, &value, is_tls);
    response
}

/// The session of a request, its member, and the token of its forms.
async fn session(
    api: &Api,
    request: &Parts,
    now: Timestamp,
) -> Result<Option<(Session, User, String)>, Response> {
    let is_tls = is_tls(&request.headers, &request.extensions);
    let Some(value) = SESSION.read(&request.headers, is_tls) else {
        return Ok(None);
    };
    let hash = ApiToken::hash_of(value);
    let found = api.handle.store.session(api.handle.org, hash, now).await;
    let found = found.map_err(refused)?;
    Ok(found.map(|(session, user)| (session, user, csrf_of("session", value))))
}

/// Query of the provider's redirect back.
pub(super) async fn callback(
    State(api): State<Api>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Response {
    let (request, _) = request.into_parts();
    let Some(plan) = api.handle.board.oidc() else {
        return off();
    };
    let now = Timestamp::from_system(api.clock.wall());
    let mut response = match finish(&api, plan, query.as_deref(), &request, now).await {
        Ok(response) | Err(Refusal::Response(response)) => response,
        Err(Refusal::Because(why)) => refusal(&api, &request, why, now).await,
    };
    // A sign-in is over with its callback, whatever became of it.
    let is_tls = is_tls(&request.headers, &request.extensions);
    COOKIE.set(&mut response, "", is_tls);
    response
}

enum Refusal {
    Because(String),
    Response(Response),
}

async fn finish(
    api: &Api,
    plan: Arc<OidcPlan>,
    query: Option<&str>,
    request: &Parts,
    now: Timestamp,
) -> Result<Response, Refusal> {
    let because = |why: &str| Refusal::Because(why.to_owned());
    let is_tls = is_tls(&request.headers, &request.extensions);
    let value = COOKIE.read(&request.headers, is_tls);
    let value = value.ok_or_else(|| {
        because("the sign-in took too long, or the browser keeps no cookies; try again")
    })?;
    let flow = flow_of(value);
    let given = |name| parameter(query, name);
    if !given("state").is_some_and(|state| is_same(&state, &flow.state)) {
        return Err(because("the response is of another sign-in; try again"));
    }
    let purpose = value.split_once('.');
    let purpose = purpose.and_then(|(_, purpose)| Purpose::parse(purpose));
    let purpose =
        purpose.ok_or_else(|| because("the cookie of the sign-in is broken; try again"))?;
    if let Some(error) = given("error") {
        let more = given("error_description").unwrap_or_default();
        let why = format!("the provider refused it: {error} {more}");
        return Err(Refusal::Because(why.trim().chars().take(300).collect()));
    }
    let address = address_of(&request.extensions);
    // Every callback makes requests to the provider.
    let client = client_of(&request.extensions);
    if api.attempts.count_source(client, now).is_err() {
        return Err(because("too many attempts; try again in a minute"));
    }
    let code = given("code").filter(|code| code.len() <= MOST_CODE);
    let code = code.ok_or_else(|| because("the provider sent no code"))?;
    let (issuer, providers) = (given("iss"), Arc::clone(&api.providers));
    let asked = Arc::clone(&plan);
    let claims = apart(move || async move {
        let user = providers.user(&asked, &flow, (&code, issuer.as_deref()), now);
        user.await
    });
    let claims = claims
        .await
        .map_err(|error| Refusal::Because(error.to_string()))?;
    let who = claims.email.clone().unwrap_or(claims.subject.clone());
    let actor = Actor {
        name: who.chars().take(100).collect(),
        address,
    };
    match purpose {
        Purpose::Link => {
            let found = session(api, request, now).await;
            let found = found.map_err(Refusal::Response)?;
            let (_, user, _) =
                found.ok_or_else(|| because("the session is over; sign in again"))?;
            let actor = Actor {
                name: user.name.clone(),
                ..actor
            };
            let linked = identity::link(&api.handle, &plan, &claims, (&user, &actor), now).await;
            linked.map_err(|error| Refusal::Because(error.to_string()))?;
            Ok(redirect("/admin/account?done=linked"))
        }
        Purpose::Session(next) => {
            let member = identity::member(&api.handle, &plan, &claims, &actor, now).await;
            let user = member.map_err(|error| Refusal::Because(error.to_string()))?;
            let opened = sign_in::open(api, request, &user, &next, Some(&plan.name)).await;
            opened.map_err(|error| Refusal::Because(error.to_string()))
        }
    }
}

/// The form of the sign-in, with the reason.
async fn refusal(api: &Api, request: &Parts, why: String, now: Timestamp) -> Response {
    let actor = Actor {
        name: String::new(),
        address: address_of(&request.extensions),
    };
    let mut entry = actor.audit("session.refused", "oidc");
    entry.detail = Some(why.clone());
    let noted = api.handle.store.record_audit(api.handle.org, entry, now);
    if let Err(error) = noted.await {
        return sign_in::failed(&error);
    }
    let mut text: String = why.chars().take(400).collect();
    if let Some(first) = text.get(..1).map(str::to_uppercase) {
        text.replace_range(..1, &first);
    }
    let shown = Some((StatusCode::UNAUTHORIZED, format!("{text}.")));
    let page = sign_in::fresh(api, request, String::new(), String::new(), shown).await;
    page.unwrap_or_else(|error| sign_in::failed(&error))
}

/// Ends the links of the member.
pub(super) async fn unlink(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
) -> Result<Response, Response> {
    let audit = me.actor.audit("member.unlink", &me.user.name);
    let ended = identity::unlink(&api.handle, me.user.id, audit, me.now).await;
    ended.map_err(refused)?;
    Ok(redirect("/admin/account?done=unlinked"))
}
