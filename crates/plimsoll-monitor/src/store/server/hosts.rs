//! The hosts of a connection URL: a primary and its standbys, one of which is written to at a time.
//!
//! Each attempt at a host has its own limit, and begins with the host that served last: one that is silent, as a machine
//! without power is, must not hold up those that respond.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::Connect;
use tokio::task::JoinHandle;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::{Client, Config, Error, SimpleQueryMessage};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long a host may be silent, where there are others and the URL has no `connect_timeout`.
const SILENCE: Duration = Duration::from_secs(3);

/// The hosts; clones are the same.
#[derive(Clone)]
pub(super) struct Hosts(Arc<Shared>);

struct Shared {
    /// The configuration of each host.
    hosts: Vec<Config>,
    tls: MakeRustlsConnect,
    limit: Duration,
    /// The host that served last.
    last: AtomicUsize,
    /// The server that served last, and its history.
    server: Mutex<Option<String>>,
    /// Whether it became another one since that was last looked at.
    has_changed: AtomicBool,
}

impl Hosts {
    /// - `alone`: how long the only host of a URL may be silent.
    pub(super) fn new(config: &Config, tls: MakeRustlsConnect, alone: Duration) -> Self {
        let mut hosts = split(config);
        let is_one = hosts.len() == 1;
        let limit = config.get_connect_timeout().copied();
        let limit = limit.unwrap_or(if is_one { alone } else { SILENCE });
        for host in &mut hosts {
            host.connect_timeout(limit);
            // A standby that takes no writes is of no use here.
            if !is_one && host.get_target_session_attrs() == TargetSessionAttrs::Any {
                host.target_session_attrs(TargetSessionAttrs::ReadWrite);
            }
        }
        Self(Arc::new(Shared {
            hosts,
            tls,
            limit,
            last: AtomicUsize::new(0),
            server: Mutex::default(),
            has_changed: AtomicBool::new(false),
        }))
    }

    /// How long an attempt at all hosts takes at most.
    pub(super) fn patience(&self) -> Duration {
        let hosts = u32::try_from(self.0.hosts.len()).unwrap_or(u32::MAX);
        self.0.limit.saturating_mul(hosts)
    }

    /// Whether connections lead to another server than before, or to one with another history, since the last call: it may
    /// lack what the former one had acknowledged.
    pub(super) fn take_change(&self) -> bool {
        self.0.has_changed.swap(false, Ordering::Relaxed)
    }
}

impl Connect for Hosts {
    fn connect(
        &self,
        _: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + '_>> {
        Box::pin(async move {
            let shared = &*self.0;
            let (first, count) = (shared.last.load(Ordering::Relaxed), shared.hosts.len());
            let mut failed = None;
            for index in (first..count).chain(0..first) {
                let attempt = shared.attempt(index);
                match tokio::time::timeout(shared.limit, attempt).await {
                    Ok(Ok(connected)) => {
                        shared.last.store(index, Ordering::Relaxed);
                        return Ok(connected);
                    }
                    Ok(Err(error)) => failed = Some(error),
                    Err(_) => {}
                }
            }
            match failed {
                Some(error) => Err(error),
                // All are silent, for which the driver has no error that can be made: the limit of the pool is over too.
                None => std::future::pending().await,
            }
        })
    }
}

impl Shared {
    async fn attempt(&self, index: usize) -> Result<(Client, JoinHandle<()>), Error> {
        let (client, connection) = self.hosts[index].connect(self.tls.clone()).await?;
        let task = tokio::spawn(async move {
            // What fails is the call that waits.
            connection.await.ok();
        });
        self.note(server(&client).await);
        Ok((client, task))
    }

    /// - `server`: `None` if this is not known.
    fn note(&self, server: Option<String>) {
        let mut known = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        if server.is_some() && *known != server {
            let before = std::mem::replace(&mut *known, server);
            self.has_changed
                .fetch_or(before.is_some(), Ordering::Relaxed);
        }
    }
}

/// Which server this is, and its timeline, which every promotion of a standby and every recovery from a backup makes another one;
/// nothing of servers that do not say it.
async fn server(client: &Client) -> Option<String> {
    let sql = "SELECT system_identifier || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) FROM pg_control_system()";
    let rows = client.simple_query(sql).await.ok()?;
    rows.iter().find_map(|row| match row {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    })
}

/// A configuration for each host of one. One that the driver refuses stays whole, so that it says why.
fn split(config: &Config) -> Vec<Config> {
    let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
    let ports = config.get_ports();
    let count = hosts.len().max(addresses.len());
    let fits = |given: usize| given <= 1 || given == count;
    let is_whole = count <= 1
        || !fits(ports.len())
        || (!hosts.is_empty() && !addresses.is_empty() && hosts.len() != addresses.len());
    if is_whole {
        return vec![config.clone()];
    }
    let one = |index: usize| {
        let mut one = without_hosts(config);
        match hosts.get(index) {
            Some(tokio_postgres::config::Host::Tcp(name)) => {
                one.host(name);
            }
            Some(tokio_postgres::config::Host::Unix(path)) => {
                one.host_path(path);
            }
            None => {}
        }
        if let Some(address) = addresses.get(index) {
            one.hostaddr(*address);
        }
        if let Some(port) = ports.get(index).or(ports.first()) {
            one.port(*port);
        }
        one
    };
    (0..count).map(one).collect()
}

/// A configuration without its hosts and ports, which the driver adds to and never removes.
fn without_hosts(config: &Config) -> Config {
    let mut other = Config::new();
    if let Some(user) = config.get_user() {
        other.user(user);
    }
    if let Some(password) = config.get_password() {
        other.password(password);
    }
    if let Some(database) = config.get_dbname() {
        other.dbname(database);
    }
    if let Some(options) = config.get_options() {
        other.options(options);
    }
    if let Some(name) = config.get_application_name() {
        other.application_name(name);
    }
    if let Some(limit) = config.get_tcp_user_timeout() {
        other.tcp_user_timeout(*limit);
    }
    if let Some(interval) = config.get_keepalives_interval() {
        other.keepalives_interval(interval);
    }
    if let Some(retries) = config.get_keepalives_retries() {
        other.keepalives_retries(retries);
    }
    other
        .ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .target_session_attrs(config.get_target_session_attrs())
        .channel_binding(config.get_channel_binding())
        .load_balance_hosts(config.get_load_balance_hosts());
    other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_has_all_settings_but_those_of_the_others() {
        let url = "postgres://ann:secret@a.example,b.example:5433,c.example:5434/monitor?sslmode=require&connect_timeout=7\
                   &application_name=shop&keepalives=0&keepalives_idle=11&keepalives_interval=12&keepalives_retries=13\
                   &tcp_user_timeout=14&channel_binding=require&load_balance_hosts=random&options=-c%20geqo=off\
                   &sslnegotiation=direct";
        let config: Config = url.parse().unwrap();
        let hosts = split(&config);
        let expected = ["a.example:5432", "b.example:5433", "c.example:5434"];
        assert_eq!(hosts.len(), expected.len());
        for (host, place) in hosts.iter().zip(expected) {
            let url = url.replace("a.example,b.example:5433,c.example:5434", place);
            let mut alone: Config = url.parse().unwrap();
            // It is set for all of them later.
            let mut host = host.clone();
            host.connect_timeout(SILENCE);
            alone.connect_timeout(SILENCE);
            assert_eq!(host, alone);
        }
    }

    #[test]
    fn one_port_is_that_of_all_hosts_and_what_does_not_fit_stays_whole() {
        let config: Config = "host=a,b port=99 user=c".parse().unwrap();
        let ports: Vec<_> = split(&config)
            .iter()
            .map(|one| one.get_ports().to_vec())
            .collect();
        assert_eq!(ports, [[99], [99]]);
        for whole in [
            "host=a port=99",
            "host=a,b,c port=1,2",
            "host=a,b hostaddr=10.0.0.1",
        ] {
            let config: Config = whole.parse().unwrap();
            assert_eq!(split(&config), [config], "{whole}");
        }
    }
}
