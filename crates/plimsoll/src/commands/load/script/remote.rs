//! Modules that a script imports by https.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::fetch::{Ask, FetchLimits, Fetcher};
use plimsoll_client::{ConnectOptions, ConnectPlan, Connector, ProxyRules};
use plimsoll_k6::{Fetch, ModuleFetchError, ModuleLockError, RemoteModules};
use plimsoll_wire::tls::TlsSettings;
use url::Url;

/// For one module; k6 waits as long.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Longer modules are rejected.
const MOST_BYTES: u64 = 16 << 20;

/// As of k6.
const MOST_REDIRECTS: u32 = 10;

/// - `lock`: the file with their hashes.
/// - `variable`: the value of a variable of the environment.
pub(super) fn modules(
    lock: Option<PathBuf>,
    variable: impl Fn(&str) -> Option<String>,
    proxies: ProxyRules,
) -> Result<RemoteModules, ModuleLockError> {
    let home = || variable("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = variable("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    let folder = cache.map(|cache| cache.join("plimsoll").join("modules"));
    let fetch: Fetch = Box::new(move |url| fetch(url, proxies.clone()));
    RemoteModules::new(folder, lock, fetch)
}

/// Scripts have few modules of this kind: each has a connection of its own.
fn fetch(url: &str, proxies: ProxyRules) -> Result<Vec<u8>, ModuleFetchError> {
    let url = Url::parse(url)?;
    let settings = TlsSettings {
        alpn: vec![b"http/1.1".to_vec()],
        ..TlsSettings::default()
    };
    let plan = ConnectPlan::new(ConnectOptions {
        tls: Some(settings.compile()?),
        proxies,
        timeout: Some(TIMEOUT),
        ..ConnectOptions::default()
    });
    let limits = FetchLimits {
        timeout: TIMEOUT,
        bytes: MOST_BYTES,
        redirects: MOST_REDIRECTS,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let fetcher = Fetcher::over(Connector::new(Arc::new(plan?)), limits);
    let fetching = Box::pin(fetcher.get(&url, Ask::default()));
    let result = tokio::task::LocalSet::new().block_on(&runtime?, fetching);
    let response = result?;
    if response.status != 200 {
        return Err(format!("the server responded with status {}", response.status).into());
    }
    Ok(response.content)
}
