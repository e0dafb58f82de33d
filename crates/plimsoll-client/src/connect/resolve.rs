//! From a host to its addresses.
//!
//! In this order: overrides given by hand, addresses written as such, `localhost`, the hosts file, the
//! name servers of the system, whose answers are kept as long as their TTL says. Only the last step waits,
//! and only it counts as the dns phase. As with getaddrinfo(3), a name that the hosts file lists with an
//! address of either family is not looked up for the other one.

mod hosts;

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{LookupIpStrategy, NameServerConfig, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::RData;
use plimsoll_model::{Failure, FailureKind, Phase, Side};
use url::Host;

use crate::connect::resolve_override::Overrides;

/// Which addresses are used (`-4`, `-6`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum AddressFamily {
    /// IPv6 and IPv4.
    #[default]
    Any,
    /// IPv4 only.
    Ipv4,
    /// IPv6 only.
    Ipv6,
}

impl AddressFamily {
    /// Whether `address` is of this family.
    pub const fn admits(self, address: IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::Ipv4 => address.is_ipv4(),
            Self::Ipv6 => address.is_ipv6(),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Any => "IP",
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
        }
    }
}

/// Turns hosts into addresses; one per worker, because its tasks live on the worker's runtime.
pub struct Resolver {
    family: AddressFamily,
    overrides: Overrides,
    /// Empty stands for the system's.
    name_servers: Vec<SocketAddr>,
    /// In place of the TTL of answers.
    ttl: Option<Duration>,
    /// The content of the hosts file, read for the first name that needs it.
    hosts: OnceCell<String>,
    /// Reading the system's configuration is left until the first name that needs it.
    lookups: OnceCell<TokioResolver>,
    /// Connections that are opened at the same time share one lookup of their name.
    under_way: RefCell<HashMap<String, Lookup>>,
}

type Lookup = Shared<BoxFuture<'static, Result<Resolved, Failure>>>;

/// The addresses of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// At least one, in order of preference.
    pub addresses: Vec<IpAddr>,
    /// Whether a name was looked up; otherwise there was no dns phase.
    pub looked_up: bool,
    /// Until when the answer of the name servers holds; for ever without one.
    pub valid_until: Option<Instant>,
}

/// The servers of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceRecords {
    /// The records.
    pub records: Vec<ServiceRecord>,
    /// Until when they hold.
    pub valid_until: Instant,
}

/// An SRV record (RFC 2782).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceRecord {
    /// The name of the server, without a dot at its end.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Servers with a higher number stand in for those with a lower one.
    pub priority: u16,
    /// Its share among servers of one priority.
    pub weight: u16,
}

impl Resolver {
    /// Reads nothing yet.
    pub fn new(family: AddressFamily, overrides: Overrides) -> Self {
        Self {
            family,
            overrides,
            name_servers: Vec::new(),
            ttl: None,
            hosts: OnceCell::new(),
            lookups: OnceCell::new(),
            under_way: RefCell::default(),
        }
    }

    /// The same, asking `name_servers` (over UDP, then TCP) instead of the system's; an empty list
    /// means the system's.
    #[must_use]
    pub fn with_name_servers(mut self, name_servers: Vec<SocketAddr>) -> Self {
        self.name_servers = name_servers;
        self
    }

    /// The same, keeping answers for `ttl` instead of their own TTL; `None` keeps them for their own.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Option<Duration>) -> Self {
        self.ttl = ttl;
        self
    }

    /// The addresses of `host` for a connection to `port`, of the family that is wanted.
    ///
    /// Call it within the runtime of the worker. Fails in the phase dns: `name-not-found` if there
    /// is no address, `timeout` if no name server answers.
    pub async fn resolve(&self, host: &Host<&str>, port: u16) -> Result<Resolved, Failure> {
        if let Some(addresses) = self.overrides.find(host, port) {
            return self.known(host, addresses);
        }
        match host {
            Host::Ipv4(address) => self.known(host, &[(*address).into()]),
            Host::Ipv6(address) => self.known(host, &[(*address).into()]),
            Host::Domain(name) if is_localhost(name) => self.known(
                host,
                &[Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()],
            ),
            Host::Domain(name) => match self.listed(name) {
                addresses if addresses.is_empty() => self.look_up(name).await,
                addresses => self.known(host, &addresses),
            },
        }
    }

    /// The addresses of `name` in the hosts file, of the family that is wanted.
    fn listed(&self, name: &str) -> Vec<IpAddr> {
        let hosts = self.hosts.get_or_init(hosts::read);
        let mut addresses = hosts::listed(hosts, name);
        addresses.retain(|address| self.family.admits(*address));
        addresses
    }

    /// The servers of a service, by its SRV records (RFC 2782); none if it is decidedly not available there.
    ///
    /// - `name`: such as `_http._tcp.api.example.org`.
    ///
    /// Fails as [`Self::resolve`] does. The order is that of the answer.
    pub async fn services(&self, name: &str) -> Result<ServiceRecords, Failure> {
        let lookup = self.lookups().srv_lookup(name).await;
        let lookup = lookup.map_err(|error| lookup_failure(name, &error))?;
        let valid_until = lookup.valid_until();
        let records = lookup
            .answers()
            .iter()
            .filter_map(|record| match &record.data {
                RData::SRV(service) => Some(service),
                _ => None,
            });
        // The root as the target says that there is no such service.
        let records = records.filter(|service| !service.target.is_root());
        let records = records.map(|service| ServiceRecord {
            host: service.target.to_utf8().trim_end_matches('.').to_owned(),
            port: service.port,
            priority: service.priority,
            weight: service.weight,
        });
        Ok(ServiceRecords {
            records: records.collect(),
            valid_until,
        })
    }

    fn known(&self, host: &Host<&str>, addresses: &[IpAddr]) -> Result<Resolved, Failure> {
        let addresses: Vec<IpAddr> = addresses
            .iter()
            .copied()
            .filter(|address| self.family.admits(*address))
            .collect();
        if addresses.is_empty() {
            return Err(Failure::new(Phase::Dns, FailureKind::NameNotFound)
                .on(Side::Config)
                .because(format!("{host} has no {} address", self.family.name())));
        }
        Ok(Resolved {
            addresses,
            looked_up: false,
            valid_until: None,
        })
    }

    async fn look_up(&self, name: &str) -> Result<Resolved, Failure> {
        let lookup = self.join_lookup(name);
        let outcome = lookup.clone().await;
        // The first to return ends the sharing; from then on the answer comes from the cache.
        let mut under_way = self.under_way.borrow_mut();
        if under_way
            .get(name)
            .is_some_and(|current| current.ptr_eq(&lookup))
        {
            under_way.remove(name);
        }
        outcome
    }

    fn join_lookup(&self, name: &str) -> Lookup {
        let mut under_way = self.under_way.borrow_mut();
        // A lookup without another holder was abandoned half-way: its time has run on meanwhile.
        if let Some(lookup) = under_way.get(name)
            && lookup.strong_count().is_some_and(|holders| holders > 1)
        {
            return lookup.clone();
        }
        let lookup = look_up(self.lookups().clone(), name.to_owned(), self.family)
            .boxed()
            .shared();
        under_way.insert(name.to_owned(), lookup.clone());
        lookup
    }

    fn lookups(&self) -> &TokioResolver {
        self.lookups.get_or_init(|| {
            let with_config = |name_servers| {
                TokioResolver::builder_with_config(
                    ResolverConfig::from_parts(None, Vec::new(), name_servers),
                    TokioRuntimeProvider::default(),
                )
            };
            let mut builder = if self.name_servers.is_empty() {
                // Without a usable resolv.conf there is still the hosts file.
                TokioResolver::builder_tokio().unwrap_or_else(|_| with_config(Vec::new()))
            } else {
                with_config(self.name_servers.iter().map(name_server).collect())
            };
            builder.options_mut().ip_strategy = match self.family {
                AddressFamily::Any => LookupIpStrategy::Ipv6AndIpv4,
                AddressFamily::Ipv4 => LookupIpStrategy::Ipv4Only,
                AddressFamily::Ipv6 => LookupIpStrategy::Ipv6Only,
            };
            if let Some(ttl) = self.ttl {
                let options = builder.options_mut();
                options.positive_min_ttl = Some(ttl);
                options.positive_max_ttl = Some(ttl);
            }
            builder
                .build()
                .expect("only a resolver with TLS name servers or DNSSEC can fail to build")
        })
    }
}

async fn look_up(
    resolver: TokioResolver,
    name: String,
    family: AddressFamily,
) -> Result<Resolved, Failure> {
    let lookup = resolver
        .lookup_ip(name.as_str())
        .await
        .map_err(|error| lookup_failure(&name, &error))?;
    let addresses: Vec<IpAddr> = lookup
        .iter()
        .filter(|address| family.admits(*address))
        .collect();
    if addresses.is_empty() {
        return Err(Failure::new(Phase::Dns, FailureKind::NameNotFound)
            .because(format!("`{name}` has no {} address", family.name())));
    }
    Ok(Resolved {
        addresses,
        looked_up: true,
        valid_until: Some(lookup.valid_until()),
    })
}

fn name_server(address: &SocketAddr) -> NameServerConfig {
    let mut server = NameServerConfig::udp_and_tcp(address.ip());
    for connection in &mut server.connections {
        connection.port = address.port();
    }
    server
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver")
            .field("family", &self.family)
            .field("overrides", &self.overrides)
            .finish_non_exhaustive()
    }
}

/// RFC 6761, section 6.3: these names are always the loopback, and no name server is queried.
fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
        || name
            .len()
            .checked_sub(".localhost".len())
            .and_then(|start| name.get(start..))
            .is_some_and(|end| end.eq_ignore_ascii_case(".localhost"))
}

fn lookup_failure(name: &str, error: &NetError) -> Failure {
    if error.is_nx_domain() {
        return Failure::new(Phase::Dns, FailureKind::NameNotFound)
            .because(format!("there is no host named `{name}`"));
    }
    if error.is_no_records_found() {
        return Failure::new(Phase::Dns, FailureKind::NameNotFound)
            .because(format!("`{name}` has no address"));
    }
    match error {
        NetError::Timeout => Failure::new(Phase::Dns, FailureKind::Timeout)
            .because(format!("no name server answered for `{name}`")),
        NetError::Io(io) => Failure::from_io(Phase::Dns, io),
        other => Failure::new(Phase::Dns, FailureKind::NameNotFound)
            .because(format!("cannot look up `{name}`: {other}")),
    }
}

#[cfg(test)]
mod tests;
