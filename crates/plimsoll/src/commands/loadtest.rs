//! `plimsoll loadtest`: the harness, on origins of its own.

pub(crate) mod args;

#[cfg(feature = "fleet")]
mod fleet;

mod layout;

mod lines;

mod plan;

mod local;

mod processes;

#[cfg(feature = "fleet")]
pub(crate) mod part;

pub(crate) mod parts;

use std::sync::Arc;

use plimsoll_load::Interrupt;
use plimsoll_load::harness::HarnessTick;
use plimsoll_model::LoadtestSummary;
use plimsoll_observe::ProcessTree;
use plimsoll_report::{LoadtestDocument, text};
use plimsoll_wire::{cores, network};

pub(crate) use self::args::Args;
use self::args::HarnessArgs;
use self::layout::{Layout, Machine};
use self::lines::Lines;
use self::processes::Origins;
use crate::exit::Exit;
use crate::flags::Problems;
use crate::problem::{Failed, Problem};
use crate::{signals, terminal};

/// The settings of the network namespace of `--netns`, below `/proc/sys/net/`.
const NETWORK: [(&str, &str); 3] = [
    ("core/somaxconn", "8192"),
    ("ipv4/tcp_tw_reuse", "1"),
    ("ipv4/ip_local_port_range", "10000 65535"),
];

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    check(&args.harness)?;
    #[cfg(feature = "fleet")]
    if let Some(url) = &args.fleet.fleet {
        return fleet::run(args, url);
    }
    // Before there are threads, which would stay outside.
    if args.netns {
        network::enter_own(&NETWORK)
            .map_err(|error| Problem::caused_by(&error).about("--netns").could_not_run())?;
    }
    let interrupt = signals::watch().map_err(|error| {
        Problem::new(format!("cannot watch for signals: {error}")).could_not_run()
    })?;
    let machine = Machine::here(cores::available().len());
    let layout = Layout::new(&args.harness, machine, true)?;
    let summary = measure(args, &layout, &interrupt)?;
    print(args, &summary)?;
    Ok(verdict(&summary))
}

fn print(args: &Args, summary: &LoadtestSummary) -> Result<(), Failed> {
    let text = if args.output.json {
        LoadtestDocument::from_summary(summary).to_json()
    } else {
        text::loadtest(summary, terminal::style_of_stdout())
    };
    terminal::print(text.trim_end()).map_err(|error| {
        Problem::new(format!("cannot write to standard output: {error}")).could_not_run()
    })
}

fn check(args: &HarnessArgs) -> Result<(), Failed> {
    let mut problems = Problems::default();
    if args.concurrency > layout::MOST_WORKERS {
        let message = format!("at most {} workers", layout::MOST_WORKERS);
        problems.add("--concurrency", message);
    }
    if args.mock_ports > layout::MOST_LISTENERS {
        let message = format!("at most {} listeners", layout::MOST_LISTENERS);
        problems.add("--mock-ports", message);
    }
    if args.ramp() > args.duration {
        problems.add("--ramp-up", "must not be longer than --duration");
    }
    problems.unless_any(Some(()))
}

fn measure(
    args: &Args,
    layout: &Layout,
    interrupt: &Arc<Interrupt>,
) -> Result<LoadtestSummary, Failed> {
    let mut tree = ProcessTree::attach(std::process::id()).ok();
    let mut lines = Lines::new(args.output.no_tui);
    let mut peak = None;
    let mut on_tick = |tick: HarnessTick| {
        lines.show(tick.state, tree.as_mut());
        peak = peak.max(tree.as_mut().and_then(|it| it.peak_memory_bytes().ok()));
    };
    let harness = &args.harness;
    let mut part = if layout.is_in_one_process {
        local::run(harness, layout, interrupt, &mut on_tick)?
    } else {
        let origins = Origins::start(layout, interrupt)?;
        origins.check(harness, layout, None, interrupt, &mut on_tick)?
    };
    let last = tree.as_mut().and_then(|tree| tree.peak_memory_bytes().ok());
    let failures = &mut part.found.failures;
    failures.sort_by_key(|failure| std::cmp::Reverse(failure.count));
    Ok(LoadtestSummary {
        shape: layout.shape(harness, args.netns),
        elapsed: part.elapsed,
        found: part.found,
        ticks: lines.into_ticks(),
        peak_memory_bytes: peak.max(last),
        interrupted: interrupt.is_set(),
        agents: Vec::new(),
        cautions: Vec::new(),
    })
}

fn verdict(summary: &LoadtestSummary) -> Exit {
    let counts = &summary.found.counts;
    if summary.interrupted {
        Exit::Interrupted
    } else if counts.failed + counts.unmet + counts.aborted > 0 || counts.ok == 0 {
        Exit::Objective
    } else {
        Exit::Fine
    }
}
