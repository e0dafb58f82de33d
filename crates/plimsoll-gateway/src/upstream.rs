//! Upstreams: servers that requests are forwarded to, as configured and as each worker uses them.

mod breaker;

mod concurrency;

mod durations;

mod discovery;

mod ejection;

mod figures;

mod gradient;

mod health;

mod history;

mod key;

mod plan;

mod retry;

mod server;

mod source_state;

mod status;

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_client::Connector;
use plimsoll_client::forward::Pool;
use plimsoll_model::Clock as _;
use plimsoll_server::{Closing, WorkerContext};
use plimsoll_wire::SystemClock;
use tokio::task::AbortHandle;

pub(crate) use self::breaker::BreakerPlan;
pub(crate) use self::concurrency::{Concurrency, ConcurrencyPlan, Limit, Permit};
pub(crate) use self::discovery::{
    ApiAccess, ConsulPlan, Discovery, DockerPlan, KubernetesPlan, LABEL, ServerFile, ServerScheme,
    ServicePort, ServicesPlan,
};
pub(crate) use self::durations::{BOUNDS, DurationCounts, Durations};
pub(crate) use self::ejection::Ejection;
pub(crate) use self::figures::UpstreamFigures;
pub(crate) use self::gradient::Bounds;
pub(crate) use self::health::{HealthCheck, HealthKind};
pub(crate) use self::history::{History, Recent, Sample};
pub(crate) use self::key::KeySource;
pub(crate) use self::plan::{ServerPlan, Timeouts, Transport, UpstreamOptions, UpstreamPlan};
pub(crate) use self::retry::{Outcome, RetryBudget, RetryCondition, RetryPolicy};
pub(crate) use self::server::{Server, ServerUse};
pub(crate) use self::source_state::SourceStatus;
pub(crate) use self::status::{Event, ServerStatus, Timeout, UpstreamStatus};

use crate::balance::{Balance, Balancer, Servers};
use crate::deadline::Deadlines;
use crate::sampler::Sampler;

/// An upstream as one worker uses it.
pub(crate) struct Upstream {
    pub(crate) plan: Arc<UpstreamPlan>,
    name: Arc<str>,
    /// Opens connections of checks, and looks names up.
    connector: Rc<Connector>,
    pool: Pool,
    set: RefCell<Rc<ServerSet>>,
    /// On this worker servers are checked and discovered.
    is_first: bool,
    budget: RefCell<RetryBudget>,
    /// State of the servers that all workers share.
    status: Arc<UpstreamStatus>,
    /// From the choice of a server to the head of its response.
    pub(crate) response_deadlines: Rc<Deadlines>,
    /// Between two pieces of a response.
    pub(crate) idle_deadlines: Rc<Deadlines>,
    /// From the arrival of a request to the end of its response, over all attempts.
    pub(crate) total_deadlines: Option<Rc<Deadlines>>,
    /// After which a second attempt is made.
    pub(crate) hedge_deadlines: Option<Rc<Deadlines>>,
    pub(crate) concurrency: Option<Rc<Concurrency>>,
    _sampler: Option<Rc<Sampler>>,
    /// The task that closes connections when the worker ends.
    closing: Cell<Option<AbortHandle>>,
}

/// The servers of one version of the server list, with what chooses between them.
struct ServerSet {
    version: u64,
    servers: Vec<Rc<Server>>,
    /// Which of them are backups; empty without any.
    backups: Vec<bool>,
    balancer: RefCell<Box<dyn Balancer>>,
}

impl Upstream {
    /// The upstream of this worker, shared by every route to it and by every configuration in which it is the same.
    pub(crate) fn of_worker(plan: &Arc<UpstreamPlan>, context: &WorkerContext) -> Rc<Self> {
        let mut is_new = false;
        let sampler = Sampler::of_worker(context);
        let upstream = context.state(plan.identity(), || {
            is_new = true;
            Self::new(plan, context, sampler)
        });
        if is_new {
            upstream.renew();
            let closing = close_at_end(Rc::downgrade(&upstream), context.drain().over());
            let closing = tokio::task::spawn_local(closing).abort_handle();
            upstream.closing.set(Some(closing));
            if upstream.is_first {
                // As long as the upstream lives, which may be longer than this configuration.
                let following =
                    discovery::follow(Rc::downgrade(&upstream), plan.options.discovery.clone());
                tokio::task::spawn_local(following);
            }
        }
        // That of another configuration has its servers.
        if plan.options.discovery == Discovery::Fixed {
            upstream.set_servers(&plan.servers);
        }
        // The worker's tasks end with each configuration.
        let sweeper = Rc::clone(&upstream);
        context.spawn(async move { sweeper.sweep().await });
        upstream
    }

    fn new(
        plan: &Arc<UpstreamPlan>,
        context: &WorkerContext,
        sampler: Option<Rc<Sampler>>,
    ) -> Self {
        let figures = context.metrics().figures::<UpstreamFigures>();
        let status = figures.upstream(plan, context.clock().now());
        let timeouts = &plan.options.timeouts;
        Self {
            response_deadlines: Deadlines::start(timeouts.response),
            idle_deadlines: Deadlines::start(timeouts.idle),
            total_deadlines: timeouts.total.map(Deadlines::start),
            hedge_deadlines: plan.options.hedge.map(Deadlines::start),
            concurrency: plan.options.concurrency.as_ref().map(Concurrency::new),
            connector: Rc::new(Connector::new(plan.connect())),
            pool: Pool::new(Connector::new(plan.connect()), plan.options.pool),
            set: RefCell::new(Rc::new(ServerSet {
                version: 0,
                servers: Vec::new(),
                backups: Vec::new(),
                balancer: RefCell::new(plan.options.balance.make(&[], 0)),
            })),
            is_first: context.worker() == 0,
            budget: RefCell::new(RetryBudget::new(plan.options.retry.budget)),
            name: Arc::from(plan.name.as_str()),
            plan: Arc::clone(plan),
            status,
            _sampler: sampler,
            closing: Cell::new(None),
        }
    }

    /// Opens a connection to a server, without TLS if it is one of `tcp://`.
    pub(crate) async fn connect(
        &self,
        server: &Server,
    ) -> Result<plimsoll_client::Connection, plimsoll_client::ConnectFailure> {
        let endpoint = server.destination().endpoint();
        self.connector.connect(endpoint, &SystemClock).await
    }

    pub(crate) const fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Closes idle connections that are too old, as long as the configuration holds.
    async fn sweep(&self) {
        let mut interval = tokio::time::interval(Duration::from_secs(5));
        loop {
            interval.tick().await;
            self.pool.sweep();
            for server in &self.set().servers {
                server.sweep();
            }
        }
    }

    /// Has these servers from now on, on every worker.
    fn set_servers(&self, servers: &[ServerPlan]) {
        if self.status.set_servers(servers) {
            self.renew();
        }
    }

    /// The servers now.
    fn set(&self) -> Rc<ServerSet> {
        let set = self.set.borrow();
        if set.version == self.status.version() {
            return Rc::clone(&set);
        }
        drop(set);
        self.renew()
    }

    /// Makes the set of the current server list; servers that stay keep their connections.
    fn renew(&self) -> Rc<ServerSet> {
        let server_list = self.status.server_list();
        let old = Rc::clone(&self.set.borrow());
        let options = &self.plan.options;
        let servers = server_list.servers.iter().map(|(plan, state)| {
            let known = old.servers.iter().find(|it| it.id() == state.id());
            if let Some(known) = known {
                return Rc::clone(known);
            }
            let destination = self.pool.destination(&plan.endpoint);
            let is_local = options.zone.is_none() || options.zone == plan.zone;
            let is_timed = options.balance == Balance::PeakEwma;
            let server = Server::new(destination, Arc::clone(state), is_local, is_timed);
            let server = Rc::new(server);
            if let Some(check) = options.health.clone()
                && self.is_first
            {
                let connector = Rc::clone(&self.connector);
                let asked = self.pool.destination(&check.endpoint(&plan.endpoint));
                let watching = health::watch(check, connector, asked, Rc::downgrade(&server));
                tokio::task::spawn_local(watching);
            }
            server
        });
        let servers: Vec<_> = servers.collect();
        let names: Vec<_> = server_list
            .servers
            .iter()
            .map(|(plan, _)| plan.name())
            .collect();
        let weights = server_list.servers.iter().map(|(plan, _)| plan.weight);
        let weighted: Vec<_> = names.iter().map(String::as_str).zip(weights).collect();
        let mut backups: Vec<_> = server_list
            .servers
            .iter()
            .map(|(plan, _)| plan.is_backup)
            .collect();
        if !backups.contains(&true) {
            backups.clear();
        }
        // Workers with one seed would choose the same servers at the same time.
        let balancer = options.balance.make(&weighted, fastrand::u64(..));
        let set = Rc::new(ServerSet {
            version: server_list.version,
            servers,
            backups,
            balancer: RefCell::new(balancer),
        });
        *self.set.borrow_mut() = Rc::clone(&set);
        set
    }

    /// The server for a request; `None` if none is available.
    ///
    /// - `key`: hash of what requests have in common that should reach the same server; 0 without any.
    /// - `sticky`: the value of the cookie that names a server.
    /// - `tried`: servers that failed for this request; another one is preferred.
    pub(crate) fn choose(
        &self,
        key: u64,
        sticky: Option<&str>,
        tried: &[usize],
        now: Instant,
    ) -> Option<Rc<Server>> {
        let set = self.set();
        if set.servers.is_empty() {
            return None;
        }
        let all = Available {
            options: &self.plan.options,
            set: &set,
            tried,
            now,
            is_panicking: Cell::new(None),
            is_local_enough: Cell::new(None),
            has_primary: Cell::new(None),
        };
        if let Some(named) = sticky {
            let mut servers = set.servers.iter().enumerate();
            let found = servers
                .find(|(number, server)| server.cookie() == named && all.weight(*number) > 0.0);
            if let Some((_, server)) = found {
                return Some(Rc::clone(server));
            }
        }
        let mut balancer = set.balancer.borrow_mut();
        let chosen = balancer.choose(&all, key).or_else(|| {
            let again = Available {
                tried: &[],
                has_primary: Cell::new(None),
                ..all
            };
            balancer.choose(&again, key)
        });
        chosen.map(|number| Rc::clone(&set.servers[number]))
    }

    /// The server with a number that is [its own](Server::id), if it is still one.
    pub(crate) fn server(&self, id: usize) -> Option<Rc<Server>> {
        let set = self.set();
        set.servers.iter().find(|it| it.id() == id).map(Rc::clone)
    }

    /// Whether any server gets requests.
    pub(crate) fn is_available(&self, now: Instant) -> bool {
        let set = self.set();
        let mut servers = set.servers.iter();
        servers.any(|server| server.state().weight(now, Duration::ZERO) > 0.0)
    }

    /// Counts a request towards the budget of retries.
    pub(crate) fn count_request(&self, now: Instant) {
        self.budget.borrow_mut().deposit(now);
    }

    /// Takes one retry from the budget, if there is one.
    pub(crate) fn take_retry(&self, now: Instant) -> bool {
        let is_granted = self.budget.borrow_mut().withdraw(now);
        self.count(if is_granted {
            Event::Retry
        } else {
            Event::RefusedRetry
        });
        is_granted
    }

    /// Takes one attempt from the budget of retries for a request whose first attempt is still waited for.
    pub(crate) fn take_hedge(&self, now: Instant) -> bool {
        let is_granted = self.budget.borrow_mut().withdraw(now);
        if is_granted {
            self.count(Event::Hedge);
        }
        is_granted
    }

    /// Counts an event.
    pub(crate) fn count(&self, event: Event) {
        self.status.count(event);
    }

    /// Counts an exchange that was ended by a time limit.
    pub(crate) fn count_timeout(&self, timeout: Timeout) {
        self.status.count_timeout(timeout);
    }

    /// Whether the circuit breaker lets a request through.
    pub(crate) fn permit(&self, now: Instant) -> bool {
        self.status.permit(now)
    }

    /// Notes that a server broke a response off behind its head.
    pub(crate) fn broke_off(&self, using: &ServerUse, now: Instant) {
        using.failed();
        if self.plan.options.ejection.is_some() {
            using.server().state().take_back();
        }
        self.observe(using.server(), true, now);
    }

    /// Notes a response or a failure of a server: it may be ejected, or be trusted again, and the circuit breaker may open.
    pub(crate) fn observe(&self, server: &Server, is_failure: bool, now: Instant) {
        self.status.note(is_failure, now);
        if let Some(ejection) = &self.plan.options.ejection {
            let ejected = || {
                let set = self.set();
                let ejected = set.servers.iter().filter(|it| it.state().is_ejected(now));
                (ejected.count() + 1) as f64 / set.servers.len().max(1) as f64
            };
            server.state().observe(is_failure, ejected, ejection, now);
        }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        if let Some(closing) = self.closing.take() {
            closing.abort();
        }
    }
}

/// Closes connections of QUIC when the worker ends, so that servers do not wait for their idle timeouts to end what the
/// gateway's clients have left.
async fn close_at_end(upstream: Weak<Upstream>, worker_is_over: impl Future<Output = Closing>) {
    let closing = worker_is_over.await;
    if let Some(upstream) = upstream.upgrade() {
        upstream.pool.close_http3().await;
    }
    drop(closing);
}

/// The servers as a balancer sees them at one moment.
struct Available<'a> {
    options: &'a UpstreamOptions,
    set: &'a ServerSet,
    tried: &'a [usize],
    now: Instant,
    /// Whether too few servers are healthy to respect health; computed once.
    is_panicking: Cell<Option<bool>>,
    /// Whether the servers of the gateway's zone are enough; computed once.
    is_local_enough: Cell<Option<bool>>,
    /// Whether a server that is no backup can be chosen; computed once.
    has_primary: Cell<Option<bool>>,
}

/// The share of the local servers that have to be available for requests to stay in the zone.
const LOCAL_SHARE: f64 = 0.5;

impl Available<'_> {
    /// The share of servers that are available, of those with a weight.
    fn available_share(&self, is_meant: impl Fn(usize, &Server) -> bool) -> f64 {
        let (mut all, mut available) = (0_u32, 0_u32);
        for (number, server) in self.set.servers.iter().enumerate() {
            let state = server.state();
            if !is_meant(number, server) || state.configured_weight() == 0 {
                continue;
            }
            all += 1;
            available += u32::from(state.weight(self.now, Duration::ZERO) > 0.0);
        }
        f64::from(available) / f64::from(all.max(1))
    }

    fn is_panicking(&self) -> bool {
        if let Some(known) = self.is_panicking.get() {
            return known;
        }
        // Backups are there so that nobody has to send requests to servers that fail.
        let is_panicking = self.set.backups.is_empty()
            && self.available_share(|_, _| true) < self.options.panic_threshold;
        self.is_panicking.set(Some(is_panicking));
        is_panicking
    }

    fn is_backup(&self, number: usize) -> bool {
        self.set.backups.get(number) == Some(&true)
    }

    /// Whether a server is left out because it is a backup, and others are there.
    fn is_spare(&self, number: usize) -> bool {
        if !self.is_backup(number) {
            return false;
        }
        if let Some(known) = self.has_primary.get() {
            return known;
        }
        let mut servers = self.set.servers.iter().enumerate();
        let has_primary = servers.any(|(number, server)| {
            !self.is_backup(number)
                && !self.tried.contains(&server.id())
                && server.state().weight(self.now, Duration::ZERO) > 0.0
        });
        self.has_primary.set(Some(has_primary));
        has_primary
    }

    /// Whether a server is left out because it is in another zone.
    fn is_too_far(&self, server: &Server) -> bool {
        if server.is_local() {
            return false;
        }
        if let Some(known) = self.is_local_enough.get() {
            return known;
        }
        // A local backup does not hold requests back from servers that it stands in for.
        let is_meant = |number, server: &Server| server.is_local() && !self.is_backup(number);
        let is_enough = self.available_share(is_meant) >= LOCAL_SHARE;
        self.is_local_enough.set(Some(is_enough));
        is_enough
    }
}

impl Servers for Available<'_> {
    fn len(&self) -> usize {
        self.set.servers.len()
    }

    fn weight(&self, number: usize) -> f64 {
        let server = &self.set.servers[number];
        if self.tried.contains(&server.id()) || self.is_too_far(server) || self.is_spare(number) {
            return 0.0;
        }
        let state = server.state();
        let weight = state.weight(self.now, self.options.slow_start);
        if weight > 0.0 || !self.is_panicking() {
            return weight;
        }
        f64::from(state.configured_weight())
    }

    fn active(&self, server: usize) -> u32 {
        self.set.servers[server].active()
    }

    fn connections(&self, server: usize) -> u32 {
        self.set.servers[server].connections()
    }

    fn latency(&self, server: usize) -> f64 {
        self.set.servers[server].latency()
    }
}
