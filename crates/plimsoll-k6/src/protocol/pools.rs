//! Pools of connections as k6 has them, and those with certificates that a script gives.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plimsoll_client::forward::{Pool, PoolOptions, Speaks};
use plimsoll_client::{ConnectOptions, ConnectPlan, ConnectPlanError, Connector};
use plimsoll_model::{Secret, with_causes};
use plimsoll_wire::tls::{IdentityText, TlsError, TlsSettings, Trust};

use crate::options::Options;

/// Settings of TLS that are kept; a script that makes more has them compiled each time.
const MOST_SECURED: usize = 64;

/// gRPC with certificates that the script gives to `connect()`.
#[derive(Debug)]
pub(crate) struct SecuredCalls {
    settings: TlsSettings,
    options: ConnectOptions,
    /// Compiled once for all virtual users of a source.
    plans: Mutex<Vec<(CallTls, Arc<ConnectPlan>)>>,
}

/// The parameter `tls` of `connect()`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallTls {
    /// Certificates that servers are trusted by, in PEM; empty for the public ones.
    pub(crate) roots: String,
    /// Certificate and key in PEM.
    pub(crate) identity: Option<(String, Secret)>,
}

/// Why certificates that a script gives cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallTlsError {
    #[error("{}", with_causes(.0))]
    Settings(#[from] TlsError),
    #[error(transparent)]
    Plan(#[from] ConnectPlanError),
}

impl SecuredCalls {
    /// - `settings`: without those certificates.
    /// - `options`: without TLS.
    pub(crate) fn new(settings: TlsSettings, options: ConnectOptions) -> Self {
        Self {
            settings,
            options,
            plans: Mutex::default(),
        }
    }

    /// Connections with these certificates.
    pub(crate) fn pool(&self, options: &Options, tls: &CallTls) -> Result<Pool, CallTlsError> {
        Ok(pool(options, &self.plan(tls)?, Speaks::Http2))
    }

    fn plan(&self, tls: &CallTls) -> Result<Arc<ConnectPlan>, CallTlsError> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, plan)) = plans.iter().find(|(other, _)| other == tls) {
            return Ok(Arc::clone(plan));
        }
        let mut settings = self.settings.clone();
        if !tls.roots.is_empty() && settings.trust != Trust::Anyone {
            settings.trust = Trust::OnlyText {
                name: "tls.cacerts".to_owned(),
                text: tls.roots.clone(),
            };
        }
        if let Some((certificate, key)) = &tls.identity {
            settings.identities = vec![IdentityText {
                name: "tls.cert".to_owned(),
                certificate: certificate.clone(),
                key: key.clone(),
            }];
        }
        let plan = ConnectPlan::new(ConnectOptions {
            tls: Some(settings.compile()?),
            ..self.options.clone()
        });
        let plan = Arc::new(plan?);
        if plans.len() < MOST_SECURED {
            plans.push((tls.clone(), Arc::clone(&plan)));
        }
        Ok(plan)
    }
}

/// A pool with the limits of k6's transport.
pub(crate) fn pool(options: &Options, plan: &Arc<ConnectPlan>, speaks: Speaks) -> Pool {
    let idle = if options.reuses_connections {
        options.batch_per_host.max(1)
    } else {
        0
    };
    let pool = PoolOptions {
        idle,
        speaks,
        idle_timeout: Duration::from_secs(90),
        lifetime: Duration::from_hours(24),
        // Nor does the DNS TTL end a connection in k6.
        follows_ttl: false,
        ..PoolOptions::default()
    };
    Pool::new(Connector::new(Arc::clone(plan)), pool)
}
