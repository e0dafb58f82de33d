//! Middleware: what is done with requests before an action answers them, and with their responses after.
//!
//! Each layer is an action over another one. Those of one place stand in a fixed order, which is that of
//! [`Middleware`]'s fields: the first meets the request first and the response last. A listener's stand
//! outside its routes, a route's inside.

mod addresses;

mod any_of;

mod basic_auth;

mod client_certificate;

mod compress;

mod cors;

mod guard;

mod header_rules;

mod in_flight_limit;

mod limit_key;

mod password_file;

mod password_hash;

mod bandwidth;

mod rate_limit;

mod read_content;

mod request_id;

mod security;

mod trace;

mod trusted_proxies;

mod underscores;

use std::rc::Rc;
use std::sync::Arc;

use crate::action::Action;
use crate::worker::context::WorkerContext;

pub use crate::middleware::addresses::Addresses;
pub use crate::middleware::bandwidth::Bandwidth;
pub use crate::middleware::basic_auth::BasicAuth;
pub use crate::middleware::client_certificate::CertificateRule;
pub use crate::middleware::compress::{
    Coding, Compress, compress, compress_well, preferred_coding,
};
pub use crate::middleware::cors::{Cors, OriginPattern, Origins};
pub use crate::middleware::guard::RequestGuard;
pub use crate::middleware::header_rules::{
    AttributeRewrite, CookieRule, FieldRewrite, FieldValue, HeaderRules, SameSite,
};
pub use crate::middleware::in_flight_limit::{InFlightLimit, InFlightPlan};
pub use crate::middleware::limit_key::LimitKey;
pub(crate) use crate::middleware::password_file::PasswordFile;
pub use crate::middleware::password_hash::{HashError, PasswordHash};
pub use crate::middleware::rate_limit::{RateLimit, RatePlan};
pub use crate::middleware::request_id::RequestIds;
pub use crate::middleware::security::SecurityHeaders;
pub use crate::middleware::trace::Trace;
pub(crate) use crate::middleware::trusted_proxies::BehindProxies;
pub use crate::middleware::trusted_proxies::TrustedProxies;
pub(crate) use crate::middleware::underscores::Spelling;
pub use crate::middleware::underscores::{OwnFields, Underscores};

/// The layers of one listener or one route, each if it is wanted; shared by all workers.
#[derive(Debug, Clone, Default)]
pub struct Middleware {
    /// Gives requests a name.
    pub request_id: Option<Arc<RequestIds>>,
    /// Continues or begins a trace.
    pub trace: Option<Trace>,
    /// Changes header fields of responses.
    pub response_headers: Option<Arc<HeaderRules>>,
    /// Keeps browsers safe.
    pub security_headers: Option<Arc<SecurityHeaders>>,
    /// Lets pages of other origins in.
    pub cors: Option<Arc<Cors>>,
    /// Turns away clients by their address.
    pub addresses: Option<Arc<Addresses>>,
    /// Turns away who asks too often.
    pub rate_limit: Option<Arc<[Arc<RateLimit>]>>,
    /// Turns away who has too many requests in flight.
    pub in_flight_limit: Option<Arc<[Arc<InFlightLimit>]>>,
    /// Turns away who does not show a certificate.
    pub client_certificate: Option<Arc<CertificateRule>>,
    /// Turns away who does not know a password.
    pub basic_auth: Option<Arc<BasicAuth>>,
    /// Guards of other crates, the outermost first.
    pub guards: Vec<Arc<dyn RequestGuard>>,
    /// One of these is enough: the address, a guard that [is enough](RequestGuard::is_enough), or the certificate, the password and
    /// the other guards together.
    pub any_suffices: bool,
    /// Reads content of at most so many bytes before, for places.
    pub read_content: Option<usize>,
    /// Changes header fields of requests.
    pub request_headers: Option<Arc<HeaderRules>>,
    /// Sends content no faster than so.
    pub bandwidth: Option<Bandwidth>,
    /// Makes responses smaller.
    pub compress: Option<Arc<Compress>>,
}

impl Middleware {
    /// The fields of requests that the layers set, remove or trust.
    pub(crate) fn own_fields(&self) -> OwnFields {
        let mut own = OwnFields::default();
        if let Some(ids) = &self.request_id {
            own.push(&ids.field);
        }
        if self.trace.is_some() {
            for name in &trace::FIELDS {
                own.push(name);
            }
        }
        if let Some(rules) = &self.request_headers {
            for name in rules.names() {
                own.push(name);
            }
        }
        for guard in &self.guards {
            for name in guard.own_fields() {
                own.push(&name);
            }
        }
        own
    }

    /// `inner` with all layers over it.
    ///
    /// # Panics
    ///
    /// If there are guards, which are made for a worker: without them each request would pass.
    pub fn over(&self, inner: Rc<dyn Action>) -> Rc<dyn Action> {
        assert!(self.guards.is_empty(), "guards are made for a worker");
        self.layered(None, inner, |action| action)
    }

    /// `inner` with all layers over it.
    pub(crate) fn over_of(&self, worker: &WorkerContext, inner: Rc<dyn Action>) -> Rc<dyn Action> {
        self.layered(Some(worker), inner, |action| action)
    }

    /// The same with one more layer, below those that give the request a name.
    pub(crate) fn over_with(
        &self,
        worker: &WorkerContext,
        inner: Rc<dyn Action>,
        between: impl FnOnce(Rc<dyn Action>) -> Rc<dyn Action>,
    ) -> Rc<dyn Action> {
        self.layered(Some(worker), inner, between)
    }

    fn layered(
        &self,
        worker: Option<&WorkerContext>,
        inner: Rc<dyn Action>,
        between: impl FnOnce(Rc<dyn Action>) -> Rc<dyn Action>,
    ) -> Rc<dyn Action> {
        // From the innermost to the outermost.
        let mut action = inner;
        if let Some(compress) = &self.compress {
            action = Rc::new(compress::Compressing::new(Arc::clone(compress), action));
        }
        if let Some(bandwidth) = self.bandwidth {
            action = Rc::new(bandwidth::Throttled::new(bandwidth, action));
        }
        if let Some(rules) = &self.request_headers {
            action = Rc::new(header_rules::Requests::new(Arc::clone(rules), action));
        }
        if let Some(most) = self.read_content {
            action = Rc::new(read_content::Reading::new(most, action));
        }
        action = self.limited(action, true);
        if self.has_guards() {
            let guarded = self.guarded(worker, &action);
            action = match &self.addresses {
                Some(addresses) if self.any_suffices => {
                    let addresses = Arc::clone(addresses);
                    Rc::new(addresses::Preferring::new(addresses, action, guarded))
                }
                _ => guarded,
            };
        }
        action = self.limited(action, false);
        let is_alone = !self.any_suffices || !self.has_guards();
        if let Some(addresses) = self.addresses.as_ref().filter(|_| is_alone) {
            action = Rc::new(addresses::Admitting::new(Arc::clone(addresses), action));
        }
        if let Some(cors) = &self.cors {
            action = Rc::new(cors::CorsLayer::new(Arc::clone(cors), action));
        }
        if let Some(headers) = &self.security_headers {
            action = Rc::new(security::Secured::new(Arc::clone(headers), action));
        }
        if let Some(rules) = &self.response_headers {
            action = Rc::new(header_rules::Responses::new(Arc::clone(rules), action));
        }
        action = between(action);
        if let Some(trace) = self.trace {
            action = Rc::new(trace::Traced::new(trace, action));
        }
        if let Some(ids) = &self.request_id {
            action = Rc::new(request_id::RequestId::new(Arc::clone(ids), action));
        }
        action
    }

    fn has_guards(&self) -> bool {
        self.client_certificate.is_some() || self.basic_auth.is_some() || !self.guards.is_empty()
    }

    /// `inner` for clients that pass all guards, or one that is enough.
    fn guarded(&self, worker: Option<&WorkerContext>, inner: &Rc<dyn Action>) -> Rc<dyn Action> {
        let is_enough = |guard: &&Arc<dyn RequestGuard>| self.any_suffices && guard.is_enough();
        let (enough, others): (Vec<_>, Vec<_>) = self.guards.iter().partition(is_enough);
        let has_others =
            self.client_certificate.is_some() || self.basic_auth.is_some() || !others.is_empty();
        let Some(worker) = worker.filter(|_| !enough.is_empty()) else {
            return self.guarded_by_all(worker, &others, Rc::clone(inner));
        };
        if let ([only], false) = (enough.as_slice(), has_others) {
            return only.over(worker, Rc::clone(inner));
        }
        any_of::AnyOf::over(inner, |inner| {
            let others =
                has_others.then(|| self.guarded_by_all(Some(worker), &others, Rc::clone(inner)));
            let enough = enough.iter().map(|it| it.over(worker, Rc::clone(inner)));
            others.into_iter().chain(enough).collect()
        })
    }

    /// `inner` for clients that pass the certificate, the password and all these guards.
    fn guarded_by_all(
        &self,
        worker: Option<&WorkerContext>,
        guards: &[&Arc<dyn RequestGuard>],
        inner: Rc<dyn Action>,
    ) -> Rc<dyn Action> {
        let guards = guards.iter().rev();
        let mut action = match worker {
            Some(worker) => guards.fold(inner, |inner, guard| guard.over(worker, inner)),
            None => inner,
        };
        if let Some(auth) = &self.basic_auth {
            if let Some(worker) = worker {
                auth.follow(worker);
            }
            action = Rc::new(basic_auth::Guarded::new(Arc::clone(auth), action));
        }
        if let Some(rule) = &self.client_certificate {
            action = Rc::new(client_certificate::Certified::new(Arc::clone(rule), action));
        }
        action
    }

    /// `inner` with the limits over it whose keys are of a user, who is known once guards have let the request pass; or
    /// with the others, which keep clients from the guards too.
    fn limited(&self, inner: Rc<dyn Action>, are_of_user: bool) -> Rc<dyn Action> {
        let mut action = inner;
        let limits = self.in_flight_limit.iter().flat_map(|it| it.iter());
        let limits = limits.filter(|it| it.key().is_of_user() == are_of_user);
        let limits: Arc<[_]> = limits.cloned().collect();
        if !limits.is_empty() {
            action = Rc::new(in_flight_limit::Counted::new(limits, action));
        }
        let limits = self.rate_limit.iter().flat_map(|it| it.iter());
        let limits = limits.filter(|it| it.key().is_of_user() == are_of_user);
        let limits: Arc<[_]> = limits.cloned().collect();
        if !limits.is_empty() {
            action = Rc::new(rate_limit::Limited::new(limits, action));
        }
        action
    }
}
