//! Engines that serve a configuration: gateways, and servers behind them.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use plimsoll_server::config::{Compiler, ConfigProblem, ServerPlan};
use plimsoll_server::{AccessLog, Counters, Engine};

/// An engine with listeners on free ports.
pub(crate) struct Served {
    engine: Engine,
    compiler: Compiler,
    log: Option<AccessLog>,
    /// One for each listener, `[admin]` last.
    pub(crate) addresses: Vec<SocketAddr>,
}

fn compiler() -> Compiler {
    let mut compiler = Compiler::new(Path::new(""), &Arc::<Counters>::default());
    compiler.actions.push(plimsoll_gateway::PROXY);
    compiler.actions.push(plimsoll_gateway::CONNECT);
    compiler.actions.push(crate::allocations::COUNT);
    compiler.actions.push(crate::allocations::PEAK);
    compiler.actions.push(crate::pairs::WATCH);
    compiler.actions.push(crate::pairs::FLOOD);
    compiler.guards.extend(plimsoll_gateway::GUARDS);
    compiler.sections.push(plimsoll_gateway::UPSTREAMS);
    compiler.sections.push(plimsoll_gateway::TRACES);
    compiler.listens.extend(plimsoll_gateway::LISTENS);
    compiler
}

/// Compiles a configuration.
pub(crate) fn compiled(text: &str) -> Result<ServerPlan, Vec<ConfigProblem>> {
    compiler().compile(text)
}

impl Served {
    /// Serves a configuration with one worker.
    pub(crate) fn new(text: &str) -> Self {
        let compiler = compiler();
        let plan = compiler.compile(text).unwrap();
        let engine = Engine::start(&plan.engine, Arc::clone(&compiler.counters)).unwrap();
        let bound = engine.bound(&plan.engine);
        let addresses = bound
            .iter()
            .filter_map(plimsoll_server::Address::port)
            .collect();
        Self {
            engine,
            compiler,
            log: plan.logs.into_iter().next().map(|log| log.log),
            addresses,
        }
    }

    /// The access log of the configuration, which waits to be written.
    pub(crate) fn log(&self) -> Option<AccessLog> {
        self.log.clone()
    }

    /// Serves these routes on one listener in the clear.
    pub(crate) fn routes(routes: &str) -> Self {
        Self::new(&format!("[[listen]]\naddress = \"127.0.0.1:0\"\n{routes}"))
    }

    /// Serves another configuration from now on; listeners keep their addresses.
    pub(crate) fn reload(&mut self, text: &str) {
        let plan = self.compiler.compile(text).unwrap();
        self.engine.reload(&plan.engine).unwrap();
    }

    /// Ends at once, with its connections.
    pub(crate) fn end(self) {
        self.drain(std::time::Duration::ZERO);
    }

    /// Ends once requests in flight have their responses.
    pub(crate) fn drain(self, timeout: std::time::Duration) {
        self.engine.drain(timeout);
    }

    /// Fields and trailers that were dropped.
    pub(crate) fn dropped_fields(&self) -> u64 {
        self.compiler.counters.snapshot().dropped_fields
    }

    /// Connections of clients.
    pub(crate) fn open_connections(&self) -> u64 {
        self.compiler.counters.snapshot().open
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address())
    }
}

/// A server that says its name.
pub(crate) fn named(name: &str) -> Served {
    Served::routes(&format!("[[route]]\nrespond = {{ body = \"{name}\" }}\n"))
}

/// A gateway to these servers, with more keys of the upstream.
pub(crate) fn gateway(servers: &[&str], keys: &str) -> Served {
    Served::routes(&configuration(servers, keys))
}

/// Its configuration without listeners.
pub(crate) fn configuration(servers: &[&str], keys: &str) -> String {
    let servers: Vec<_> = servers.iter().map(|url| format!("\"{url}\"")).collect();
    format!(
        "[[route]]\nproxy = \"all\"\n[upstream.all]\nservers = [{}]\n{keys}\n",
        servers.join(", ")
    )
}
