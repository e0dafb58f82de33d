//! `plimsoll loadtest`: the harness, on origins of its own.

mod args;

mod layout;

mod lines;

mod plan;

mod local;

mod processes;

pub(crate) mod parts;

use std::sync::Arc;

use plimsoll_load::Interrupt;
use plimsoll_model::LoadtestSummary;
use plimsoll_observe::ProcessTree;
use plimsoll_report::{LoadtestDocument, text};
use plimsoll_wire::{cores, descriptors, network};

pub(crate) use self::args::Args;
use self::layout::Layout;
use self::lines::Lines;
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
    check(args)?;
    // Before there are threads, which would stay outside.
    if args.netns {
        network::enter_own(&NETWORK)
            .map_err(|error| Problem::caused_by(&error).about("--netns").could_not_run())?;
    }
    let interrupt = signals::watch().map_err(|error| {
        Problem::new(format!("cannot watch for signals: {error}")).could_not_run()
    })?;
    let limit = descriptors::raise()
        .unwrap_or_else(|_| descriptors::limit())
        .soft;
    let layout = Layout::new(
        args,
        limit,
        network::ephemeral_ports(),
        cores::available().len(),
    )?;
    let summary = measure(args, &layout, &interrupt)?;
    let text = if args.output.json {
        LoadtestDocument::from_summary(&summary).to_json()
    } else {
        text::loadtest(&summary, terminal::style_of_stdout())
    };
    terminal::print(text.trim_end()).map_err(|error| {
        Problem::new(format!("cannot write to standard output: {error}")).could_not_run()
    })?;
    Ok(verdict(&summary))
}

fn check(args: &Args) -> Result<(), Failed> {
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
    let mut part = if layout.is_in_one_process() {
        local::run(args, layout, interrupt, &mut |tick| {
            lines.show(tick, tree.as_mut());
        })?
    } else {
        processes::run(args, layout, interrupt, &mut lines, tree.as_mut())?
    };
    let peak = tree.as_mut().and_then(|tree| tree.peak_memory_bytes().ok());
    let failures = &mut part.found.failures;
    failures.sort_by_key(|failure| std::cmp::Reverse(failure.count));
    Ok(LoadtestSummary {
        shape: layout.shape(args),
        elapsed: part.elapsed,
        found: part.found,
        ticks: lines.into_ticks(),
        peak_memory_bytes: part.peak_memory_bytes.or(peak),
        interrupted: interrupt.is_set(),
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
