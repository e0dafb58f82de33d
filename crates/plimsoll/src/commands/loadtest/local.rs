//! The harness in one process: origins and workers are threads of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use plimsoll_load::Interrupt;
use plimsoll_load::harness::{self, HarnessTick};
use plimsoll_model::Protocol;
use plimsoll_server::{Origin, OriginError, Speaks};
use plimsoll_wire::cores;

use super::args::HarnessArgs;
use super::layout::{Layout, address};
use super::plan::{BODY, Part};
use super::processes::{Outcome, TICK};
use crate::problem::{Failed, Problem};

/// Runs all of it.
pub(super) fn run(
    args: &HarnessArgs,
    layout: &Layout,
    interrupt: &Arc<Interrupt>,
    on_tick: &mut dyn FnMut(HarnessTick),
) -> Result<Outcome, Failed> {
    let origins = start(layout).map_err(|error| Problem::caused_by(&error).could_not_run())?;
    let part = Part {
        origins: &origins,
        is_http2: layout.protocol == Protocol::Http2,
        connections: layout.connections,
        workers: layout.workers,
        threads: layout.threads,
        duration: args.duration,
        ramp: args.ramp(),
        timeout: args.timeout,
        tick: TICK,
    };
    let outcome = harness::run(&part.plan(), interrupt, on_tick)
        .map_err(|error| Problem::caused_by(&error).could_not_run())?;
    Ok(Outcome {
        found: outcome.found,
        last_found: outcome.last_found,
        elapsed: outcome.elapsed,
        late: Duration::ZERO,
    })
}

/// Origins on half of the cores; they serve until the process ends.
fn start(layout: &Layout) -> Result<Vec<SocketAddr>, OriginError> {
    let origins = bind(0, layout.listeners, layout.protocol == Protocol::Http2)?;
    let addresses = origins.iter().map(Origin::address).collect();
    let threads = (cores::available().len() / 2).clamp(1, layout.listeners);
    let mut shares: Vec<Vec<Origin>> = (0..threads).map(|_| Vec::new()).collect();
    for (number, origin) in origins.into_iter().enumerate() {
        shares[number % threads].push(origin);
    }
    for share in shares {
        thread::Builder::new()
            .name("origins".to_owned())
            // If it ends, checks fail and say how.
            .spawn(move || drop(Origin::serve_all(share)))
            .map_err(OriginError::Serve)?;
    }
    Ok(addresses)
}

/// Binds `count` origins from the address of listener `first` on.
pub(super) fn bind(first: usize, count: usize, is_http2: bool) -> Result<Vec<Origin>, OriginError> {
    let speaks = if is_http2 {
        Speaks::Http2
    } else {
        Speaks::Http1
    };
    (first..first + count)
        .map(|listener| Ok(Origin::bind_to(address(listener), BODY)?.speaking(speaks)))
        .collect()
}
