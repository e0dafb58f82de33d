//! `oidc` of a route: browsers sign in at a provider of `OpenID` Connect, and come back with a session in a cookie.
//!
//! The flow is that of `plimsoll_client::oidc`. Nothing is stored here: the secrets of a sign-in that is under way, and the
//! session with the claims of its user, are sealed in cookies of the browser, which the server behind never gets.

mod page;

mod seal;

mod session;

mod sign_in;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::StatusCode;
use plimsoll_client::jwt::RequiredClaim;
use plimsoll_client::oidc::{OidcClient, OidcError, OidcProvider};
use plimsoll_server::{
    Action, Answer, FieldEdits, Notice, Notices, ProvedClaims, Request, RequestGuard, Response,
    Severity, WorkerContext,
};

pub(crate) use self::seal::Seals;
use crate::guards::{GuardCounts, GuardOutcome};
use crate::jwt::{TokenCache, VerifiedToken, seconds, without_cookies};

/// Settings of `oidc`.
#[derive(Debug)]
pub(crate) struct OidcPlan {
    pub(crate) client: OidcClient,
    pub(crate) provider: Arc<OidcProvider>,
    /// Scheme and host of the site, without a slash at the end.
    pub(crate) url: String,
    /// Path that the provider sends browsers back to.
    pub(crate) callback: String,
    /// Path that ends a session.
    pub(crate) logout: String,
    pub(crate) seals: Arc<Seals>,
    /// The name of the cookie of a session; those of sign-ins begin with it.
    pub(crate) cookie: String,
    /// Of a session.
    pub(crate) lifetime: Duration,
    /// Claims that a user has to have.
    pub(crate) required: Vec<RequiredClaim>,
    /// Names of the claims that a session keeps.
    pub(crate) kept: Vec<String>,
    /// Claims of the endpoint `userinfo` are taken too.
    pub(crate) has_userinfo: bool,
    pub(crate) counts: Arc<GuardCounts>,
    pub(crate) notices: Notices,
    /// The provider failed last, which was reported.
    pub(crate) has_failed: AtomicBool,
}

/// Sessions that each worker remembers.
const CACHED: usize = 1024;

/// The guard of `oidc`.
#[derive(Debug)]
pub(crate) struct OidcGuard(pub(crate) Arc<OidcPlan>);

impl RequestGuard for OidcGuard {
    fn over(&self, worker: &WorkerContext, inner: Rc<dyn Action>) -> Rc<dyn Action> {
        Rc::new(SigningIn {
            plan: Arc::clone(&self.0),
            worker: worker.worker(),
            sessions: RefCell::new(TokenCache::new(CACHED)),
            inner,
        })
    }
}

/// Lets another action answer requests with a session, and sends others to the provider.
struct SigningIn {
    plan: Arc<OidcPlan>,
    worker: usize,
    sessions: RefCell<TokenCache>,
    inner: Rc<dyn Action>,
}

impl Action for SigningIn {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let plan = &self.plan;
        if request.path == plan.callback {
            return sign_in::finish(plan, self.worker, request);
        }
        if request.path == plan.logout {
            return sign_in::log_out(plan, request);
        }
        match self.session(request) {
            None => {
                plan.count(self.worker, GuardOutcome::Missing);
                sign_in::begin(plan, self.worker, request)
            }
            Some(session) => self.pass(request, &session),
        }
    }
}

impl SigningIn {
    /// The session of a request, from the memory of the worker or opened now.
    fn session(&self, request: &Request<'_>) -> Option<Rc<VerifiedToken>> {
        let now = seconds();
        let plan = &self.plan;
        let mut sealed = session::cookies(request, &plan.cookie);
        sealed.find_map(|sealed| {
            let remembered = self.sessions.borrow_mut().find(sealed, |_| true, now);
            let outcome = match remembered {
                Some(_) => GuardOutcome::Remembered,
                None => GuardOutcome::Verified,
            };
            let session = match remembered {
                Some(session) => session,
                None => Rc::new(session::open(plan, sealed, now)?),
            };
            if outcome == GuardOutcome::Verified {
                self.sessions.borrow_mut().keep(sealed, &session);
            }
            plan.count(self.worker, outcome);
            Some(session)
        })
    }

    fn pass(&self, request: &Request<'_>, session: &Rc<VerifiedToken>) -> Answer {
        let plan = &self.plan;
        // The configuration may want others than it did when the session began.
        if let Some(unmet) = plan.unmet(session.claims()) {
            plan.count(self.worker, GuardOutcome::Forbidden);
            return Answer::now(page::forbidden(unmet, &plan.logout));
        }
        if let Some(subject) = session.subject() {
            request.sent_by(subject);
        }
        request.proves(Rc::clone(session) as Rc<dyn ProvedClaims>);
        let is_own = |name: &[u8]| name.starts_with(plan.cookie.as_bytes());
        let edits = without_cookies(request, is_own, FieldEdits::new());
        request.edited(&edits, |request| self.inner.handle(request))
    }
}

impl OidcPlan {
    fn count(&self, worker: usize, outcome: GuardOutcome) {
        self.counts.count(worker, outcome);
    }

    /// The first claim that a user should have and has not.
    fn unmet(&self, claims: &plimsoll_client::jwt::JwtClaims) -> Option<&str> {
        let unmet = self.required.iter().find(|it| !it.is_met(claims));
        unmet.map(|it| it.name.as_str())
    }

    /// The response where the provider fails, which is reported once. What it shows is what the browser brought; where the
    /// provider is and how it fails is in the log alone.
    fn failed(&self, error: &OidcError, status: StatusCode) -> Response {
        if !self.has_failed.swap(true, Ordering::Relaxed) {
            let message = format!("sign-in fails: {error}");
            let notice = Notice::new(Severity::Warning, message).about(&self.client.issuer);
            self.notices.report(&notice);
        }
        if status == StatusCode::BAD_GATEWAY {
            return page::failed(
                status,
                "sign-in fails: the provider does not answer as it should",
            );
        }
        page::failed(
            status,
            &format!("sign-in fails: {}", page::printable(&error.to_string())),
        )
    }

    fn works(&self) {
        self.has_failed.store(false, Ordering::Relaxed);
    }
}
