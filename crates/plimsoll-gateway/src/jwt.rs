//! `jwt` of a route: requests pass with a token (RFC 6750) that an issuer has signed.
//!
//! A token that was verified is remembered by each worker until it expires or the keys of its issuer change, so a request
//! costs a look-up. Keys are fetched beside the requests; a request waits for them only if there are none yet, or if its
//! token names one that is not known.

mod cache;

mod challenge;

mod figures;

mod keys;

mod places;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use http::header::HeaderName;
use plimsoll_client::jwt::{
    JwtClaims, JwtError, JwtRules, JwtValidity, unverified_issuer, verify_typed_jwt,
};
use plimsoll_model::Clock as _;
use plimsoll_server::{Action, Answer, ProvedClaims, Request, RequestGuard, WorkerContext};
use plimsoll_wire::SystemClock;

use crate::guards::{GuardCounts, GuardOutcome, answered};

pub(crate) use self::cache::TokenCache;
pub(crate) use self::challenge::Challenge;
pub(crate) use self::figures::GuardFigures;
use self::keys::{Keeper, KeyWait};
pub(crate) use self::keys::{KeyOrigin, KeyPlan, KeySource, read_file};
pub(crate) use self::places::{TokenPlace, TokenPlaces, without_cookies};

/// Settings of `jwt`.
#[derive(Debug)]
pub(crate) struct JwtPlan {
    /// The issuers, at least one.
    pub(crate) issuers: Vec<IssuerPlan>,
    pub(crate) from: TokenPlaces,
    /// The server gets the token.
    pub(crate) is_passed_on: bool,
    /// Requests without a token pass too.
    pub(crate) is_optional: bool,
    pub(crate) challenge: Challenge,
    /// Verified tokens that each worker remembers.
    pub(crate) cached: usize,
    pub(crate) counts: Arc<GuardCounts>,
}

/// An issuer of accepted tokens, or several with the same keys.
#[derive(Debug)]
pub(crate) struct IssuerPlan {
    /// The type of accepted tokens, by `typ` of their headers; any unless given.
    pub(crate) of_type: Option<String>,
    pub(crate) rules: JwtRules,
    pub(crate) keys: Arc<KeySource>,
}

/// A token that was verified.
#[derive(Debug)]
pub(crate) struct VerifiedToken {
    claims: JwtClaims,
    /// `sub`, if it may stand in a log.
    subject: Option<Rc<str>>,
    validity: JwtValidity,
    /// The number of the issuer, and the version of the keys that it was verified by.
    keys: (usize, u64),
}

impl VerifiedToken {
    /// What a session holds, which no keys are needed for.
    pub(crate) fn of_session(claims: JwtClaims, validity: JwtValidity) -> Self {
        Self {
            subject: claims.shown("sub").map(Rc::from),
            claims,
            validity,
            keys: (0, 0),
        }
    }

    pub(crate) fn claims(&self) -> &JwtClaims {
        &self.claims
    }

    pub(crate) fn subject(&self) -> Option<Rc<str>> {
        self.subject.clone()
    }
}

impl ProvedClaims for VerifiedToken {
    fn write(&self, name: &str, out: &mut Vec<u8>) -> bool {
        let shown = self.claims.shown(name);
        out.extend_from_slice(shown.as_deref().unwrap_or_default().as_bytes());
        shown.is_some()
    }
}

/// The time in seconds since 1970.
pub(crate) fn seconds() -> f64 {
    let since = SystemClock.wall().duration_since(std::time::UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}

/// The guard of `jwt`.
#[derive(Debug)]
pub(crate) struct JwtGuard(pub(crate) Arc<JwtPlan>);

impl RequestGuard for JwtGuard {
    fn over(&self, worker: &WorkerContext, inner: Rc<dyn Action>) -> Rc<dyn Action> {
        let plan = Arc::clone(&self.0);
        let issuers = plan.issuers.iter();
        let keepers = issuers.map(|it| Keeper::start(&it.keys, worker));
        Rc::new(Verifying(Rc::new(Verifier {
            cache: RefCell::new(TokenCache::new(plan.cached)),
            worker: worker.worker(),
            keepers: keepers.collect(),
            plan,
            inner,
        })))
    }

    fn own_fields(&self) -> Vec<HeaderName> {
        self.0.from.fields()
    }
}

/// Lets another action answer requests with a token.
struct Verifying(Rc<Verifier>);

struct Verifier {
    plan: Arc<JwtPlan>,
    /// Of the keys of each issuer.
    keepers: Box<[Keeper]>,
    cache: RefCell<TokenCache>,
    worker: usize,
    inner: Rc<dyn Action>,
}

/// Why a token is not accepted now.
enum Refused {
    /// It is wrong.
    By(JwtError),
    /// Other keys of the issuer of this number may verify it than those of this version, if there are any.
    Keys(usize, u64),
}

impl Action for Verifying {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let verifier = &self.0;
        let plan = &verifier.plan;
        let token = match plan.from.token(request) {
            Ok(Some(token)) => token,
            Ok(None) if plan.is_optional => return verifier.pass_on(request),
            Ok(None) => {
                verifier.count(GuardOutcome::Missing);
                return Answer::now(plan.challenge.missing());
            }
            Err(several) => {
                verifier.count(GuardOutcome::Invalid);
                return Answer::now(plan.challenge.invalid_request(&several.to_string()));
            }
        };
        match verifier.verified(token) {
            Ok(token) => verifier.pass(request, &token),
            Err(Refused::By(error)) => Answer::now(verifier.refusal(&error)),
            Err(Refused::Keys(issuer, version)) => {
                let wait = match verifier.want(issuer, version) {
                    KeyWait::NotNow => return Answer::now(verifier.no_keys(version)),
                    wait => wait,
                };
                let (verifier, token) = (Rc::clone(verifier), token.to_owned());
                let kept = request.into_owned();
                Answer::Later(Box::pin(async move {
                    let answer = match verifier.verified_later(&token, wait).await {
                        Ok(token) => verifier.pass(&kept.request(), &token),
                        Err(Refused::By(error)) => Answer::now(verifier.refusal(&error)),
                        Err(Refused::Keys(_, version)) => Answer::now(verifier.no_keys(version)),
                    };
                    answered(answer).await
                }))
            }
        }
    }

    fn methods(&self) -> Option<&'static str> {
        self.0.inner.methods()
    }
}

impl Verifier {
    fn count(&self, outcome: GuardOutcome) {
        self.plan.counts.count(self.worker, outcome);
    }

    /// The token, from the memory of the worker or verified now.
    fn verified(&self, token: &str) -> Result<Rc<VerifiedToken>, Refused> {
        let now = seconds();
        let is_current = |(issuer, version): (usize, u64)| {
            let issuer = self.plan.issuers.get(issuer);
            issuer.is_some_and(|it| it.keys.version() == version)
        };
        let remembered = self.cache.borrow_mut().find(token, is_current, now);
        if let Some(verified) = remembered {
            self.count(GuardOutcome::Remembered);
            return Ok(verified);
        }
        let (number, issuer) = self.issuer(token).ok_or(Refused::By(JwtError::Issuer))?;
        let rules = &issuer.rules;
        let (keys, version) = issuer.keys.current();
        let keys = keys.ok_or(Refused::Keys(number, version))?;
        let of_type = issuer.of_type.as_deref();
        let claims = verify_typed_jwt(token, &keys, &rules.algorithms, of_type);
        let claims = claims.map_err(|error| match error {
            JwtError::UnknownKey => Refused::Keys(number, version),
            error => Refused::By(error),
        })?;
        let validity = rules.check(&claims, now).map_err(Refused::By)?;
        let verified = Rc::new(VerifiedToken {
            subject: claims.shown("sub").map(Rc::from),
            claims,
            validity,
            keys: (number, version),
        });
        self.cache.borrow_mut().keep(token, &verified);
        self.count(GuardOutcome::Verified);
        Ok(verified)
    }

    /// The issuer that a token says it is of, with its number: the only one, without regard to the token.
    fn issuer(&self, token: &str) -> Option<(usize, &IssuerPlan)> {
        if let [only] = self.plan.issuers.as_slice() {
            return Some((0, only));
        }
        let named = unverified_issuer(token)?;
        let mut issuers = self.plan.issuers.iter().enumerate();
        issuers.find(|(_, it)| it.rules.issuers.contains(&named))
    }

    /// Has the keys of an issuer read again.
    fn want(&self, issuer: usize, version: u64) -> KeyWait {
        let keeper = self.keepers.get(issuer);
        keeper.map_or(KeyWait::NotNow, |keeper| keeper.want(version))
    }

    /// The token, once other keys have been read. A read that was under way may have begun before there was the key of the
    /// token, so another one may follow.
    async fn verified_later(
        &self,
        token: &str,
        wait: KeyWait,
    ) -> Result<Rc<VerifiedToken>, Refused> {
        wait.end().await;
        match self.verified(token) {
            Err(Refused::Keys(issuer, version)) => match self.want(issuer, version) {
                KeyWait::NotNow => Err(Refused::Keys(issuer, version)),
                wait => {
                    wait.end().await;
                    self.verified(token)
                }
            },
            verified => verified,
        }
    }

    fn refusal(&self, error: &JwtError) -> plimsoll_server::Response {
        if matches!(error, JwtError::Claim(_)) {
            self.count(GuardOutcome::Forbidden);
            return self.plan.challenge.forbidden(&error.to_string());
        }
        self.count(GuardOutcome::Invalid);
        self.plan.challenge.invalid_token(&error.to_string())
    }

    /// For a token whose key is not known, or if no key is.
    fn no_keys(&self, version: u64) -> plimsoll_server::Response {
        if version > 0 {
            return self.refusal(&JwtError::UnknownKey);
        }
        self.count(GuardOutcome::Unavailable);
        self.plan.challenge.unavailable()
    }

    fn pass(&self, request: &Request<'_>, verified: &Rc<VerifiedToken>) -> Answer {
        if let Some(subject) = &verified.subject {
            request.sent_by(Rc::clone(subject));
        }
        request.proves(Rc::clone(verified) as Rc<dyn ProvedClaims>);
        self.pass_on(request)
    }

    fn pass_on(&self, request: &Request<'_>) -> Answer {
        if self.plan.is_passed_on {
            return self.inner.handle(request);
        }
        let query = self.plan.from.query_without(request.query);
        let mut request = *request;
        if let Some(query) = &query {
            request.query = Some(query).filter(|it| !it.is_empty()).map(String::as_str);
        }
        let edits = self.plan.from.removing(&request);
        request.edited(&edits, |request| self.inner.handle(request))
    }
}
