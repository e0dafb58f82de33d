//! Middleware: what is done with requests before an action answers them, and with their responses after.
//!
//! Each layer is an action over another one. Those of one place stand in a fixed order, which is that of
//! [`Middleware`]'s fields: the first meets the request first and the response last. A listener's stand
//! outside its routes, a route's inside.

mod addresses;

mod basic_auth;

mod compress;

mod cors;

mod header_rules;

mod in_flight_limit;

mod limit_key;

mod password_hash;

mod bandwidth;

mod rate_limit;

mod request_id;

mod security;

mod trace;

mod trusted_proxies;

mod underscores;

use std::rc::Rc;
use std::sync::Arc;

use crate::action::Action;

pub use crate::middleware::addresses::Addresses;
pub use crate::middleware::bandwidth::Bandwidth;
pub use crate::middleware::basic_auth::BasicAuth;
pub use crate::middleware::compress::{
    Coding, Compress, compress, compress_well, preferred_coding,
};
pub use crate::middleware::cors::{Cors, Origins};
pub use crate::middleware::header_rules::{
    AttributeRewrite, CookieRule, FieldRewrite, FieldValue, HeaderRules, SameSite,
};
pub use crate::middleware::in_flight_limit::{InFlightLimit, InFlightPlan};
pub use crate::middleware::limit_key::LimitKey;
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
    /// Turns away who does not know a password.
    pub basic_auth: Option<Arc<BasicAuth>>,
    /// Of addresses and passwords one is enough.
    pub any_suffices: bool,
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
        own
    }

    /// `inner` with all layers over it.
    pub fn over(&self, inner: Rc<dyn Action>) -> Rc<dyn Action> {
        self.over_with(inner, |action| action)
    }

    /// The same with one more layer, below those that give the request a name.
    pub(crate) fn over_with(
        &self,
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
        if let Some(auth) = &self.basic_auth {
            let guarded = Rc::new(basic_auth::Guarded::new(
                Arc::clone(auth),
                Rc::clone(&action),
            ));
            action = match &self.addresses {
                Some(addresses) if self.any_suffices => {
                    let addresses = Arc::clone(addresses);
                    Rc::new(addresses::Preferring::new(addresses, action, guarded))
                }
                _ => guarded,
            };
        }
        if let Some(limits) = &self.in_flight_limit {
            let limits = Arc::clone(limits);
            action = Rc::new(in_flight_limit::Counted::new(limits, action));
        }
        if let Some(limits) = &self.rate_limit {
            action = Rc::new(rate_limit::Limited::new(Arc::clone(limits), action));
        }
        let is_alone = !self.any_suffices || self.basic_auth.is_none();
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
}
