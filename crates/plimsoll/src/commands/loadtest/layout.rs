//! How workers and origins are laid out over processes, threads and addresses: pure.

use std::net::{Ipv4Addr, SocketAddr};

use plimsoll_model::{LoadtestConnections, LoadtestShape, Protocol};
use plimsoll_wire::{descriptors, network};

use super::args::HarnessArgs;
use crate::problem::{Failed, Problem};

/// Workers at most: each takes memory.
pub(super) const MOST_WORKERS: usize = 1_000_000;
/// Listeners at most: each takes a descriptor.
pub(super) const MOST_LISTENERS: usize = 4096;

/// Descriptors of a process that are not connections: standard streams, runtime, listeners.
const RESERVED: u64 = 128;

/// Where everything goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) protocol: Protocol,
    pub(super) connections: LoadtestConnections,
    pub(super) workers: usize,
    /// In processes that answer, the same number in each.
    pub(super) listeners: usize,
    pub(super) clients: usize,
    pub(super) origins: usize,
    /// Of each process that checks.
    pub(super) threads: usize,
    /// Whether clients and origins are threads of this process.
    pub(super) is_in_one_process: bool,
}

/// The machine that a layout is for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Machine {
    /// Descriptors that a process may have.
    pub(super) limit: u64,
    /// Outgoing ports to each address.
    pub(super) ports: usize,
    /// Cores that there are.
    pub(super) cores: usize,
}

impl Machine {
    /// This one, after the limit on descriptors was raised as far as it goes.
    ///
    /// - `cores`: to use of it.
    pub(super) fn here(cores: usize) -> Self {
        Self {
            limit: descriptors::raise()
                .unwrap_or_else(|_| descriptors::limit())
                .soft,
            ports: network::ephemeral_ports(),
            cores,
        }
    }
}

impl Layout {
    /// - `may_share`: whether this process may make all of it itself.
    pub(super) fn new(
        args: &HarnessArgs,
        machine: Machine,
        may_share: bool,
    ) -> Result<Self, Failed> {
        let Machine {
            limit,
            ports,
            cores,
        } = machine;
        let half = (cores / 2).max(1);
        let shared = Self {
            protocol: args.protocol(),
            connections: connections(args.http2, args.disable_keepalive),
            workers: args.concurrency,
            listeners: args.mock_ports,
            clients: 1,
            origins: 1,
            threads: args.threads.unwrap_or(half),
            is_in_one_process: may_share,
        };
        if shared.connections == LoadtestConnections::Shared {
            // Both ends of each connection, and the listener.
            let needed = shared.listeners as u64 * (2 * shared.threads as u64 + 1) + RESERVED;
            if needed > limit {
                return Err(too_few("--mock-ports", needed, limit));
            }
            return Ok(shared);
        }
        let each = limit.saturating_sub(RESERVED + shared.listeners as u64);
        // The other end of a connection that was closed lives on for a moment.
        let each = match shared.connections {
            LoadtestConnections::Fresh => each / 2,
            _ => each,
        };
        let each = usize::try_from(each).unwrap_or(usize::MAX);
        if each == 0 {
            let needed = 2 * RESERVED + shared.listeners as u64;
            return Err(too_few("--mock-ports", needed, limit));
        }
        let processes = shared.workers.div_ceil(each).max(half);
        let clients = processes.min(shared.workers);
        let origins = clients;
        // A quarter of the ports is left to connections that are about to be gone.
        let by_ports = shared.workers.div_ceil((ports * 3 / 4).max(1));
        let listeners = shared.listeners.max(by_ports);
        Ok(Self {
            listeners: listeners.next_multiple_of(origins),
            clients,
            origins,
            threads: args.threads.unwrap_or(1),
            is_in_one_process: false,
            ..shared
        })
    }

    /// Workers of the n-th process that checks.
    pub(super) fn workers_of(&self, client: usize) -> usize {
        self.workers / self.clients + usize::from(client < self.workers % self.clients)
    }

    /// As the summary has it.
    ///
    /// - `own_network`: whether it runs in a network namespace of its own.
    pub(super) fn shape(&self, args: &HarnessArgs, own_network: bool) -> LoadtestShape {
        LoadtestShape {
            protocol: self.protocol,
            connections: self.connections,
            workers: self.workers,
            listeners: self.listeners,
            client_processes: self.clients,
            origin_processes: self.origins,
            processes: if self.is_in_one_process {
                1
            } else {
                1 + self.clients + self.origins
            },
            duration: args.duration,
            ramp: args.ramp(),
            timeout: args.timeout,
            own_network,
        }
    }
}

/// How connections are used.
pub(super) fn connections(is_http2: bool, is_fresh: bool) -> LoadtestConnections {
    match (is_http2, is_fresh) {
        (_, true) => LoadtestConnections::Fresh,
        (true, false) => LoadtestConnections::Shared,
        (false, false) => LoadtestConnections::Kept,
    }
}

/// Where the n-th listener listens: on Linux all of 127.0.0.0/8 is this machine, so each gets an
/// address, and outgoing ports are there once for each of them.
pub(super) fn address(listener: usize) -> SocketAddr {
    let address = if cfg!(target_os = "linux") {
        let [.., third, fourth] = u32::try_from(listener)
            .unwrap_or_default()
            .saturating_add(1)
            .to_be_bytes();
        Ipv4Addr::new(127, 1, third, fourth)
    } else {
        Ipv4Addr::LOCALHOST
    };
    SocketAddr::from((address, 0))
}

fn too_few(flag: &str, needed: u64, limit: u64) -> Failed {
    let message = format!("a process needs {needed} open files at least, but its limit is {limit}");
    Problem::with(flag, message)
        .hint(format!("raise it with `ulimit -n {needed}`"))
        .could_not_run()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::LoadtestCli;

    fn layout(flags: &str, limit: u64, ports: usize, cores: usize) -> Result<Layout, Failed> {
        let words = format!("loadtest {flags}");
        let cli = LoadtestCli::try_parse_from(words.split_whitespace()).unwrap();
        let machine = Machine {
            limit,
            ports,
            cores,
        };
        Layout::new(&cli.args.harness, machine, true)
    }

    fn processes(flags: &str, limit: u64) -> (usize, usize, usize) {
        let layout = layout(flags, limit, 28_000, 2).unwrap();
        let all: usize = (0..layout.clients)
            .map(|client| layout.workers_of(client))
            .sum();
        assert_eq!(all, layout.workers);
        assert_eq!(layout.listeners % layout.origins, 0);
        (layout.clients, layout.origins, layout.listeners)
    }

    #[test]
    fn processes_are_as_many_as_descriptors_ask_for() {
        assert_eq!(processes("--http2 -c 100000", 1024), (1, 1, 16));
        assert_eq!(processes("-c 200", 1_048_576), (1, 1, 16));
        assert_eq!(processes("-c 50000", 1_048_576), (1, 1, 16));
        assert_eq!(processes("-c 50000", 20_000), (3, 3, 18));
        assert_eq!(
            processes("-c 50000 --disable-keepalive", 20_000),
            (6, 6, 18)
        );
        assert_eq!(processes("-c 1 --mock-ports 1", 20_000), (1, 1, 1));
        // A process of origins holds as many connections as one of clients, and its listeners.
        let layout = layout("-c 50000", 20_000, 28_000, 2).unwrap();
        let each = layout.workers.div_ceil(layout.origins) + layout.listeners;
        assert!(each as u64 + RESERVED <= 20_000);
    }

    #[test]
    fn outgoing_ports_suffice() {
        let few = layout("-c 50000 --mock-ports 1", 1_048_576, 28_000, 2).unwrap();
        assert_eq!(few.listeners, 3);
        let plenty = layout("-c 50000 --mock-ports 1", 1_048_576, 100_000, 2).unwrap();
        assert_eq!(plenty.listeners, 1);
    }

    #[test]
    fn a_limit_that_cannot_be_lived_with_is_reported() {
        for flags in ["--http2", "-c 10"] {
            let failed = layout(flags, 100, 28_000, 2).unwrap_err();
            assert!(failed.problems[0].message.contains("its limit is 100"));
        }
    }

    #[test]
    fn every_listener_has_an_address_of_its_own() {
        let addresses: std::collections::BTreeSet<_> = (0..MOST_LISTENERS).map(address).collect();
        if cfg!(target_os = "linux") {
            assert_eq!(addresses.len(), MOST_LISTENERS);
        }
        assert!(addresses.iter().all(|address| address.ip().is_loopback()));
    }
}
