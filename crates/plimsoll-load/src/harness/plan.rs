//! The plan of the harness.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::ConnectPlan;
use plimsoll_client::check::CheckPlan;
use plimsoll_model::LoadtestConnections;

/// The workers of one process, and what they check.
#[derive(Debug, Clone)]
pub struct HarnessPlan {
    /// The checks, at least one; workers are spread over them evenly. With shared connections
    /// their requests are encoded for HTTP/2.
    pub checks: Vec<Arc<CheckPlan>>,
    /// How connections are opened.
    pub connect: Arc<ConnectPlan>,
    /// The use of connections. Each thread shares one to each endpoint.
    pub connections: LoadtestConnections,
    /// Workers, at least one.
    pub workers: usize,
    /// Threads that carry them, at least one.
    pub threads: usize,
    /// How long new checks are begun.
    pub duration: Duration,
    /// Over which time workers begin, one after the other.
    pub ramp: Duration,
    /// How long checks under way at the end may still take.
    pub grace: Duration,
    /// How often the state is reported.
    pub tick: Duration,
}
