//! Serves samples of this machine to others: `GET /v1/targets`, `/v1/sample`, `/v1/samples`, `/openapi.json`.
//!
//! It only reads, and only targets that were allowed. Everything but the description wants the token, if there is one; a
//! server that others can reach has a token and TLS. Requests of one address are limited, and so are event streams and
//! targets at a time.

mod answers;

mod description;

mod open_targets;

mod stream;

mod token;

use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use plimsoll_model::Secret;
use plimsoll_server::{
    Action, Counters, Engine, EngineError, EnginePlan, LimitKey, ListenerPlan, Middleware,
    RateLimit, RatePlan, Serves, WorkerContext,
};
use plimsoll_wire::tls::{CertificateFiles, ServerCertificate, ServerTlsError, server_config};

use self::answers::{AsProblems, Respond};
use self::open_targets::OpenTargets;
use self::token::BearerToken;
use crate::machine::Machine;
use crate::target_name::TargetPattern;

/// The schema of what is served, for `plimsoll schema`.
pub const SCHEMA: &str = include_str!("../../../schemas/observe.v1.json");

/// How to serve samples.
#[derive(Debug, Clone)]
pub struct ObservePlan {
    /// The address; port 0 takes a free one.
    pub address: SocketAddr,
    /// The bearer token of requests.
    pub token: Option<Secret>,
    /// Files of the certificate.
    pub tls: Option<CertificateFiles>,
    /// What may be sampled.
    pub allowed: Vec<TargetPattern>,
    /// Requests per second of one address, on average and in a burst.
    pub requests_per_second: u32,
    /// The machine whose targets are sampled.
    pub machine: Machine,
    /// Version of plimsoll.
    pub version: String,
}

/// Why samples cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum SampleServerError {
    /// Others could reach it, and it has no token or no TLS.
    #[error("{address} can be reached from other machines, and {missing}")]
    Exposed {
        /// The address.
        address: SocketAddr,
        /// What it lacks.
        missing: &'static str,
    },
    /// The certificate is of no use.
    #[error("cannot serve TLS")]
    Tls(#[from] ServerTlsError),
    /// The address cannot be had.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    Random,
}

/// A server of samples, which runs until it is dropped.
pub struct SampleServer {
    address: SocketAddr,
    scheme: &'static str,
    engine: Engine,
}

impl fmt::Debug for SampleServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SampleServer")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// Clients that have a bucket of their own; more share one.
const CLIENTS: usize = 1024;

impl SampleServer {
    /// Starts to serve; requests are answered when this returns.
    pub fn listen(plan: ObservePlan) -> Result<Self, SampleServerError> {
        let is_exposed = !plan.address.ip().to_canonical().is_loopback();
        let missing = match (&plan.token, &plan.tls) {
            (None, None) => Some("it has neither a token nor TLS"),
            (None, Some(_)) => Some("it has no token"),
            (Some(_), None) => Some("it has no TLS"),
            (Some(_), Some(_)) => None,
        };
        if let Some(missing) = missing.filter(|_| is_exposed) {
            return Err(SampleServerError::Exposed {
                address: plan.address,
                missing,
            });
        }
        let tls = plan.tls.map(|files| {
            let certificate = [ServerCertificate::Files(files)];
            server_config(&certificate, None, false, None, None).map(Arc::new)
        });
        let tls = tls.transpose()?;
        let targets = OpenTargets::new(plan.machine, plan.allowed, plan.version)?;
        let token = plan.token.as_ref().map(BearerToken::new).transpose()?;
        let respond = Arc::new((targets, token));
        let limit = RateLimit::new(RatePlan {
            name: "samples",
            key: LimitKey::Address,
            requests: plan.requests_per_second.max(1),
            window: Duration::from_secs(1),
            burst: None,
            at_once: None,
            status: StatusCode::TOO_MANY_REQUESTS,
            clients: CLIENTS,
        });
        let layers = Middleware {
            rate_limit: Some([Arc::new(limit)].into()),
            ..Middleware::default()
        };
        let make = move |_: &WorkerContext| {
            let inner = layers.over(Rc::new(Respond::new(Arc::clone(&respond))));
            Rc::new(AsProblems(inner)) as Rc<dyn Action>
        };
        let serves = Serves::Http {
            action: Arc::new(make),
            tls,
            http2: false,
            http3: None,
        };
        let scheme = serves.scheme();
        let engine = EnginePlan::new(vec![ListenerPlan::new(plan.address, serves)]);
        let engine = Engine::start(&engine, Arc::<Counters>::default())?;
        let address = engine.addresses().first().copied().unwrap_or(plan.address);
        Ok(Self {
            address,
            scheme,
            engine,
        })
    }

    /// Where it serves: `https://10.0.0.7:7070/`.
    pub fn url(&self) -> String {
        format!("{}://{}/", self.scheme, self.address)
    }

    /// Ends once open requests have their answers and event streams their readers no more, or after `timeout`.
    pub fn stop(self, timeout: Duration) {
        self.engine.drain(timeout);
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
