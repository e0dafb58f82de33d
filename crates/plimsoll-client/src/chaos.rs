//! Hostile clients, bounded, for servers of one's own: what a server does about them, and how a client
//! that means well fares meanwhile.
//!
//! A [`Class`] is one kind of hostility, in a file of its own. Every class takes its connections, its
//! sending rate and its end from the `Ground` it runs on, which keeps the [`Bounds`];
//! no bound can be set beyond [`Bounds::MOST`]. Only addresses that [`may_be_attacked`] admits are connected
//! to, unless the plan says that the host is the user's own.

mod bounds;

mod class;

mod permit;

mod door;

mod tally;

mod ground;

mod healthy;

mod frames;

mod http2;

mod slow_headers;

mod slow_body;

mod slow_read;

mod connection_flood;

mod rapid_reset;

mod made_you_reset;

mod continuation_flood;

mod hpack_bomb;

mod settings_flood;

mod ping_flood;

mod empty_data_flood;

mod window_update_flood;

mod smuggling;

mod http3_reset_flood;

mod unspoken;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plimsoll_model::{
    ChaosCase, Clock, Failure, FailureKind, HealthyFigures, HostileFigures, Phase,
};
use plimsoll_wire::SystemClock;
use plimsoll_wire::tls::{TlsError, TlsSettings, Trust};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

pub use self::bounds::{Bounds, BoundsError};
pub use self::class::{Class, UnknownClass};
use self::door::Door;
use self::ground::Ground;
use self::healthy::Healthy;
pub use self::permit::may_be_attacked;
pub use self::unspoken::Unspoken;
use crate::{AddressFamily, Endpoint, Overrides, Resolver};

/// The classes to run, and their target.
#[derive(Debug, Clone)]
pub struct ChaosPlan {
    /// The kind of hostility.
    pub class: Class,
    /// The target; requests are for its path.
    pub endpoint: Endpoint,
    /// Which servers are believed on `https://`.
    pub trust: Trust,
    /// Limits of the attack.
    pub bounds: Bounds,
    /// Addresses that are neither loopback nor private may be connected to as well.
    pub is_own_host: bool,
}

/// The outcome of an attack.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChaosOutcome {
    /// Time for which the hostile clients were active.
    pub elapsed: Duration,
    /// Figures of the hostile clients.
    pub hostile: HostileFigures,
    /// The cases of [`Class::Smuggling`].
    pub cases: Vec<ChaosCase>,
    /// The client that meant well.
    pub healthy: HealthyFigures,
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum ChaosError {
    /// The name has no address.
    #[error("{0}")]
    Resolve(Failure),
    /// The address is neither loopback nor private.
    #[error("{address} is neither a loopback nor a private address")]
    NotPermitted {
        /// The address that the URL resolved to.
        address: SocketAddr,
    },
    /// TLS cannot be set up as configured.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A client that means well is not served.
    #[error("{address} does not serve: {cause}")]
    NotServed {
        /// The expected address.
        address: SocketAddr,
        /// Why not.
        cause: Unspoken,
    },
    /// The class is about a version of HTTP that the server does not speak there.
    #[error("{address} does not speak {protocol}: {cause}")]
    NotSpoken {
        /// The expected address.
        address: SocketAddr,
        /// `HTTP/2` or `HTTP/3`.
        protocol: &'static str,
        /// What came in place of it.
        cause: Unspoken,
    },
    /// A thread or a runtime cannot be had.
    #[error("cannot start")]
    Start(#[source] std::io::Error),
}

/// An attack that may begin: its target was found, may be attacked, and serves.
#[derive(Debug)]
pub struct Prepared {
    plan: ChaosPlan,
    door: Arc<Door>,
}

/// Time for which the healthy client continues after the hostile ones have stopped.
const AFTERMATH: Duration = Duration::from_millis(500);

/// Finds the target and tries it; blocks.
pub fn prepare(plan: ChaosPlan) -> Result<Prepared, ChaosError> {
    let runtime = runtime()?;
    let door = LocalSet::new().block_on(&runtime, async {
        let address = resolve(&plan).await?;
        let settings = TlsSettings {
            trust: plan.trust.clone(),
            ..TlsSettings::default()
        };
        let tls = if plan.endpoint.is_tls() {
            Some(settings.compile()?)
        } else {
            None
        };
        let door = Arc::new(Door::new(&plan, address, tls));
        healthy::try_once(&door)
            .await
            .map_err(|cause| ChaosError::NotServed { address, cause })?;
        if let Some(protocol) = plan.class.protocol() {
            let spoken = match protocol {
                "HTTP/3" => http3_reset_flood::try_once(&door).await,
                _ => http2::try_once(&door).await,
            };
            spoken.map_err(|cause| ChaosError::NotSpoken {
                address,
                protocol,
                cause,
            })?;
        }
        Ok::<_, ChaosError>(door)
    })?;
    Ok(Prepared { plan, door })
}

/// Resolved once: what is checked is what is connected to, whatever the name says later.
async fn resolve(plan: &ChaosPlan) -> Result<SocketAddr, ChaosError> {
    let endpoint = &plan.endpoint;
    let resolver = Resolver::new(AddressFamily::Any, Overrides::default());
    let found = resolver
        .resolve(&endpoint.host(), endpoint.port())
        .await
        .map_err(ChaosError::Resolve)?;
    let port = endpoint.port();
    let addresses = found.addresses.into_iter();
    let addresses: Vec<_> = addresses.map(|ip| SocketAddr::new(ip, port)).collect();
    let forbidden = |address: &&SocketAddr| !plan.is_own_host && !may_be_attacked(address.ip());
    if let Some(&address) = addresses.iter().find(forbidden) {
        return Err(ChaosError::NotPermitted { address });
    }
    for &address in &addresses {
        // Of several, the first that takes a connection.
        if addresses.len() == 1 || TcpStream::connect(address).await.is_ok() {
            return Ok(address);
        }
    }
    addresses.first().copied().ok_or_else(|| {
        let failure = Failure::new(Phase::Dns, FailureKind::NameNotFound);
        ChaosError::Resolve(failure.because("the name has no address"))
    })
}

impl Prepared {
    /// Destination of every connection.
    pub fn address(&self) -> SocketAddr {
        self.door.address()
    }

    /// Lets the hostile clients loose until the bounds end it; blocks.
    ///
    /// - `stop`: called often; true ends it early.
    pub fn run(self, stop: impl Fn() -> bool + Send + Sync) -> Result<ChaosOutcome, ChaosError> {
        let runtime = runtime()?;
        let is_over = AtomicBool::new(false);
        let door = &self.door;
        std::thread::scope(|scope| {
            // On a thread of its own, so that it does not wait for the hostile ones.
            let healthy = std::thread::Builder::new()
                .name("healthy".to_owned())
                .spawn_scoped(scope, || {
                    let runtime = self::runtime()?;
                    let healthy = Healthy::new(door);
                    Ok::<_, ChaosError>(runtime.block_on(healthy.run(&is_over)))
                })
                .map_err(ChaosError::Start)?;
            let ground = Rc::new(Ground::new(Arc::clone(door), self.plan.bounds, &stop));
            let begun = SystemClock.now();
            let cases = LocalSet::new().block_on(&runtime, attack(self.plan.class, &ground));
            let elapsed = SystemClock.now().saturating_duration_since(begun);
            runtime.block_on(aftermath(begun + elapsed + AFTERMATH, &stop));
            is_over.store(true, Ordering::Relaxed);
            let healthy = healthy
                .join()
                .unwrap_or_else(|_| Ok(HealthyFigures::default()))?;
            let mut hostile = ground.tally.figures();
            self.plan.class.unit().clone_into(&mut hostile.unit);
            Ok(ChaosOutcome {
                elapsed,
                hostile,
                cases,
                healthy,
            })
        })
    }
}

async fn aftermath(end: Instant, stop: &impl Fn() -> bool) {
    while !stop() && SystemClock.now() < end {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// As many clients of `class` as the bounds say, until the ground says that it is over.
async fn attack(class: Class, ground: &Rc<Ground<'_>>) -> Vec<ChaosCase> {
    if class == Class::Smuggling {
        return smuggling::attack(ground).await;
    }
    // Not tasks: what they borrow lives only as long as the attack.
    let clients = (0..ground.bounds().connections).map(|_| Box::pin(client(class, ground)));
    futures_util::future::join_all(clients).await;
    Vec::new()
}

/// One hostile client, which comes back as often as it is turned away.
async fn client(class: Class, ground: &Ground<'_>) {
    while ground.goes_on() {
        match class {
            Class::SlowHeaders => slow_headers::attack(ground).await,
            Class::SlowBody => slow_body::attack(ground).await,
            Class::SlowRead => slow_read::attack(ground).await,
            Class::ConnectionFlood => connection_flood::attack(ground).await,
            Class::RapidReset => rapid_reset::attack(ground).await,
            Class::MadeYouReset => made_you_reset::attack(ground).await,
            Class::ContinuationFlood => continuation_flood::attack(ground).await,
            Class::HpackBomb => hpack_bomb::attack(ground).await,
            Class::SettingsFlood => settings_flood::attack(ground).await,
            Class::PingFlood => ping_flood::attack(ground).await,
            Class::EmptyDataFlood => empty_data_flood::attack(ground).await,
            Class::WindowUpdateFlood => window_update_flood::attack(ground).await,
            Class::Http3ResetFlood => http3_reset_flood::attack(ground).await,
            Class::Smuggling => return,
        }
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, ChaosError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ChaosError::Start)
}
