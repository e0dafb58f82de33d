//! Connection options of virtual users.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::forward::Speaks;
use plimsoll_client::{
    AddressFilter, ConnectOptions, ConnectPlan, ConnectPlanError, QuicConfig, QuicError,
    QuicOptions,
};
use plimsoll_load::scenario::{ExchangeRecorder, Sinks};
use plimsoll_model::with_causes;
use plimsoll_wire::tls::{ClientConfig, TlsError, TlsSettings, Trust};

use super::Invocation;
use crate::metrics::checks::KnownChecks;
use crate::options::Options;
use crate::protocol::pools::{SecuredCalls, pool};
use crate::protocol::socket::SharedDeflater;
use crate::user::{RunState, WorkerShare};

/// Connection plans of a run.
#[derive(Debug, Clone)]
pub(super) struct Plans {
    /// For each local address, or one for all virtual users.
    sources: Vec<PlansOfSource>,
    /// The version of HTTP of requests.
    speaks: Speaks,
}

#[derive(Debug, Clone)]
struct PlansOfSource {
    requests: Arc<ConnectPlan>,
    /// Of WebSockets, which need HTTP/1.
    sockets: Arc<ConnectPlan>,
    /// Of gRPC, which needs HTTP/2.
    calls: Arc<ConnectPlan>,
    secured: Arc<SecuredCalls>,
}

/// Why options do not make connections.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlansError {
    #[error("{}", with_causes(.0))]
    Tls(#[from] TlsError),
    #[error("HTTP/3: {}", with_causes(.0))]
    Quic(QuicError),
    #[error(transparent)]
    Connect(#[from] ConnectPlanError),
}

impl Plans {
    pub(super) fn new(options: &Options, invocation: &Invocation<'_>) -> Result<Self, PlansError> {
        let compile = |protocols: &[&[u8]]| {
            let settings = tls_settings(options, protocols, invocation.key_log.as_ref());
            settings.compile()
        };
        let speaks = invocation.speaks;
        let tls: [Arc<ClientConfig>; 3] = [
            compile(speaks.alpn())?,
            compile(&[b"http/1.1"])?,
            compile(&[b"h2"])?,
        ];
        let quic = (speaks == Speaks::Http3)
            .then(|| QuicOptions::default().compile(&tls[0], false))
            .transpose()
            .map_err(PlansError::Quic)?;
        let addresses = options.network.local_addresses.iter().map(|it| Some(*it));
        let mut addresses: Vec<_> = addresses.collect();
        if addresses.is_empty() {
            addresses.push(None);
        }
        let filters = [options.network.filter(), invocation.address_filter.clone()];
        let filter = filters.into_iter().flatten().reduce(AddressFilter::and);
        let sources = addresses.into_iter().map(|source| {
            let made = |tls: &Arc<ClientConfig>| ConnectOptions {
                tls: Some(Arc::clone(tls)),
                proxies: invocation.proxies.clone(),
                timeout: Some(Duration::from_secs(30)),
                family: options.network.family,
                address_ttl: Some(options.network.address_ttl),
                address_filter: filter.clone(),
                source,
                ..ConnectOptions::default()
            };
            let plan = |tls, quic: Option<QuicConfig>| {
                let options = ConnectOptions { quic, ..made(tls) };
                ConnectPlan::new(options).map(Arc::new)
            };
            let [requests, sockets, calls] = &tls;
            Ok(PlansOfSource {
                requests: plan(requests, quic.clone())?,
                sockets: plan(sockets, None)?,
                calls: plan(calls, None)?,
                secured: Arc::new(SecuredCalls::new(
                    tls_settings(options, &[b"h2"], invocation.key_log.as_ref()),
                    made(calls),
                )),
            })
        });
        let sources = sources.collect::<Result<_, PlansError>>()?;
        Ok(Self { sources, speaks })
    }

    /// Shared state of a worker's virtual users, for each local address.
    pub(super) fn shares(
        &self,
        shared: &Arc<RunState>,
        sinks: &Rc<RefCell<Sinks>>,
        exchanges: Option<&Rc<ExchangeRecorder>>,
    ) -> Vec<WorkerShare> {
        let checks = KnownChecks::new(shared.checks.clone());
        let checks = Rc::new(RefCell::new(checks));
        let options = &shared.options;
        let deflater = SharedDeflater::default();
        let each = self.sources.iter().map(|plans| WorkerShare {
            sinks: Rc::clone(sinks),
            exchanges: exchanges.cloned(),
            checks: Rc::clone(&checks),
            pool: pool(options, &plans.requests, self.speaks),
            speaks: self.speaks,
            sockets: pool(options, &plans.sockets, Speaks::Http1),
            deflater: deflater.clone(),
            calls: pool(options, &plans.calls, Speaks::Http2),
            secured: Arc::clone(&plans.secured),
        });
        each.collect()
    }
}

/// For the virtual users of setup, teardown and the summary.
pub(super) fn share(shared: &Arc<RunState>, plans: &Plans) -> WorkerShare {
    let sinks = Rc::new(RefCell::new(Sinks::new(shared.registry.clone())));
    let mut each = plans.shares(shared, &sinks, None);
    each.swap_remove(0)
}

fn tls_settings(options: &Options, protocols: &[&[u8]], key_log: Option<&PathBuf>) -> TlsSettings {
    TlsSettings {
        trust: if options.is_insecure {
            Trust::Anyone
        } else {
            Trust::PublicRoots
        },
        versions: options.network.tls_versions,
        ciphers: options.network.ciphers.clone(),
        identities: options.network.identities.clone(),
        alpn: protocols.iter().map(|name| name.to_vec()).collect(),
        key_log: key_log.cloned(),
        ..TlsSettings::default()
    }
}
