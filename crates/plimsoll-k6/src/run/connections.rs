//! How virtual users connect.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::forward::{Pool, PoolOptions, Speaks};
use plimsoll_client::{ConnectOptions, ConnectPlan, Connector};
use plimsoll_load::scenario::Sinks;
use plimsoll_wire::tls::{TlsSettings, Trust};

use super::Invocation;
use crate::checks::KnownChecks;
use crate::options::Options;
use crate::user::{RunState, WorkerShare};

/// How connections are opened.
#[derive(Debug, Clone)]
pub(super) struct Plans {
    requests: Arc<ConnectPlan>,
    /// Of WebSockets, which need HTTP/1.
    sockets: Arc<ConnectPlan>,
}

impl Plans {
    pub(super) fn new(options: &Options, invocation: &Invocation<'_>) -> Result<Self, String> {
        Ok(Self {
            requests: connect_plan(options, invocation, &[b"h2", b"http/1.1"])?,
            sockets: connect_plan(options, invocation, &[b"http/1.1"])?,
        })
    }

    /// The pools of a worker: for requests, and for WebSockets.
    pub(super) fn pools(&self, options: &Options) -> (Pool, Pool) {
        let requests = pool(options, &self.requests, Speaks::Negotiated);
        (requests, pool(options, &self.sockets, Speaks::Http1))
    }
}

pub(super) fn share(shared: &Arc<RunState>, plans: &Plans) -> WorkerShare {
    let (pool, sockets) = plans.pools(&shared.options);
    WorkerShare {
        sinks: Rc::new(RefCell::new(Sinks::new(shared.registry.clone()))),
        checks: Rc::new(RefCell::new(KnownChecks::new(shared.checks.clone()))),
        pool,
        sockets,
    }
}

fn connect_plan(
    options: &Options,
    invocation: &Invocation<'_>,
    protocols: &[&[u8]],
) -> Result<Arc<ConnectPlan>, String> {
    let settings = TlsSettings {
        trust: if options.is_insecure {
            Trust::Anyone
        } else {
            Trust::PublicRoots
        },
        versions: options.network.tls_versions,
        alpn: protocols.iter().map(|name| name.to_vec()).collect(),
        ..TlsSettings::default()
    };
    let tls = settings.compile().map_err(|error| error.to_string())?;
    let plan = ConnectPlan::new(ConnectOptions {
        tls: Some(tls),
        proxies: invocation.proxies.clone(),
        timeout: Some(Duration::from_secs(30)),
        family: options.network.family,
        address_filter: options.network.filter(),
        ..ConnectOptions::default()
    });
    plan.map(Arc::new).map_err(|error| error.to_string())
}

fn pool(options: &Options, plan: &Arc<ConnectPlan>, speaks: Speaks) -> Pool {
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
        ..PoolOptions::default()
    };
    Pool::new(Connector::new(Arc::clone(plan)), pool)
}
