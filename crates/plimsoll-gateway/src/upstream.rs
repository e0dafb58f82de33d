//! Upstreams: servers that requests are forwarded to, as configured and as each worker uses them.

mod ejection;

mod health;

mod key;

mod plan;

mod retry;

mod server;

mod status;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_client::Connector;
use plimsoll_client::forward::Pool;
use plimsoll_model::Clock as _;
use plimsoll_server::WorkerContext;

pub(crate) use self::ejection::Ejection;
pub(crate) use self::health::HealthCheck;
pub(crate) use self::key::{KeySource, cookie};
pub(crate) use self::plan::{ServerPlan, Timeouts, UpstreamOptions, UpstreamPlan};
pub(crate) use self::retry::{Outcome, RetryBudget, RetryCondition, RetryPolicy};
pub(crate) use self::server::{Server, ServerUse};
pub(crate) use self::status::{BOUNDS, ServerStatus, UpstreamStatus};

use crate::balance::{Balancer, Servers, hash};
use crate::figures::GatewayFigures;

/// An upstream as one worker uses it.
pub(crate) struct Upstream {
    pub(crate) plan: Arc<UpstreamPlan>,
    servers: Vec<Rc<Server>>,
    balancer: RefCell<Box<dyn Balancer>>,
    budget: RefCell<RetryBudget>,
    /// What all workers know of the servers.
    status: Arc<UpstreamStatus>,
}

impl Upstream {
    /// The upstream of this worker, shared by every route to it and by every configuration in which it is the same.
    pub(crate) fn of_worker(plan: &Arc<UpstreamPlan>, context: &WorkerContext) -> Rc<Self> {
        let upstream = context.state(plan.identity(), || Self::new(plan, context));
        // The worker's tasks end with each configuration.
        let sweeper = Rc::clone(&upstream);
        context.spawn(async move { sweeper.sweep().await });
        if let Some(check) = plan.options.health.clone()
            && context.worker() == 0
        {
            for (number, server) in upstream.servers.iter().enumerate() {
                let (server, status) = (Rc::clone(server), Arc::clone(&upstream.status));
                let check = check.clone();
                context.spawn(async move { health::watch(&check, &server, &status, number).await });
            }
        }
        upstream
    }

    fn new(plan: &Arc<UpstreamPlan>, context: &WorkerContext) -> Self {
        let figures = context.metrics().figures::<GatewayFigures>();
        let status = figures.upstream(plan, context.clock().now());
        let pool = Pool::new(Connector::new(plan.connect()), plan.options.pool);
        let counts = status.worker();
        let servers = plan.servers.iter().enumerate().map(|(number, server)| {
            let destination = pool.destination(&server.endpoint);
            Rc::new(Server::new(destination, Arc::clone(&counts), number))
        });
        let names: Vec<_> = plan.servers.iter().map(ServerPlan::name).collect();
        let weights = plan.servers.iter().map(|server| server.weight);
        let weighted: Vec<_> = names.iter().map(String::as_str).zip(weights).collect();
        // Workers with one seed would choose the same servers at the same time.
        let seed = fastrand::u64(..);
        Self {
            servers: servers.collect(),
            balancer: RefCell::new(plan.options.balance.make(&weighted, seed)),
            budget: RefCell::new(RetryBudget::new(plan.options.retry.budget)),
            plan: Arc::clone(plan),
            status,
        }
    }

    /// Closes idle connections that are too old, as long as the configuration holds.
    async fn sweep(&self) {
        let mut interval = tokio::time::interval(Duration::from_secs(5));
        loop {
            interval.tick().await;
            for server in &self.servers {
                server.sweep();
            }
        }
    }

    /// The server for a request; `None` if none is available.
    ///
    /// - `key`: what requests have in common that should reach the same server.
    /// - `sticky`: the value of the cookie that names a server.
    /// - `tried`: servers that failed for this request; another one is preferred.
    pub(crate) fn choose(
        &self,
        key: &[u8],
        sticky: Option<&str>,
        tried: &[usize],
        now: Instant,
    ) -> Option<Rc<Server>> {
        let all = Available {
            upstream: self,
            tried,
            now,
            is_panicking: Cell::new(None),
        };
        if let Some(named) = sticky {
            let mut servers = self.servers.iter().enumerate();
            let found = servers
                .find(|(number, server)| server.cookie() == named && all.weight(*number) > 0.0);
            if let Some((_, server)) = found {
                return Some(Rc::clone(server));
            }
        }
        let key = if key.is_empty() { 0 } else { hash(key) };
        let mut balancer = self.balancer.borrow_mut();
        let chosen = balancer.choose(&all, key).or_else(|| {
            let again = Available { tried: &[], ..all };
            balancer.choose(&again, key)
        });
        chosen.map(|number| Rc::clone(&self.servers[number]))
    }

    /// Counts a request towards the budget of retries.
    pub(crate) fn count_request(&self, now: Instant) {
        self.budget.borrow_mut().deposit(now);
    }

    /// Takes one retry from the budget, if there is one.
    pub(crate) fn take_retry(&self, now: Instant) -> bool {
        let is_granted = self.budget.borrow_mut().withdraw(now);
        self.status.count_retry(is_granted);
        is_granted
    }

    /// Notes a response or a failure of a server: it may be ejected, or be trusted again.
    pub(crate) fn observe(&self, server: &Server, is_failure: bool, now: Instant) {
        if let Some(ejection) = &self.plan.options.ejection {
            self.status
                .observe(server.number(), is_failure, ejection, now);
        }
    }
}

/// The servers as a balancer sees them at one moment.
struct Available<'a> {
    upstream: &'a Upstream,
    tried: &'a [usize],
    now: Instant,
    /// Whether too few servers are healthy to heed health; computed once.
    is_panicking: Cell<Option<bool>>,
}

impl Available<'_> {
    fn is_panicking(&self) -> bool {
        if let Some(known) = self.is_panicking.get() {
            return known;
        }
        let upstream = self.upstream;
        let threshold = upstream.plan.options.panic_threshold;
        let is_panicking = upstream.status.healthy_share(self.now) < threshold;
        self.is_panicking.set(Some(is_panicking));
        is_panicking
    }
}

impl Servers for Available<'_> {
    fn len(&self) -> usize {
        self.upstream.servers.len()
    }

    fn weight(&self, server: usize) -> f64 {
        if self.tried.contains(&server) {
            return 0.0;
        }
        let status = &self.upstream.status;
        let weight = status.weight(server, self.now, self.upstream.plan.options.slow_start);
        if weight > 0.0 || !self.is_panicking() {
            return weight;
        }
        f64::from(status.configured_weight(server))
    }

    fn active(&self, server: usize) -> u32 {
        self.upstream.servers[server].active()
    }

    fn latency(&self, server: usize) -> f64 {
        self.upstream.servers[server].latency()
    }
}
