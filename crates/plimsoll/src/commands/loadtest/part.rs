//! A part of `loadtest --fleet`, at an agent: its share of the workers, against its own origins.

use std::time::Duration;

use plimsoll_fleet::{
    AgentReport, Argument, PartControl, PartError, PartTick, PreparedPart, ReportedProcesses,
    RunOrder, Share,
};
use plimsoll_load::harness::{HarnessTick, interval_of};
use plimsoll_observe::ProcessTree;

use super::args::HarnessArgs;
use super::layout::{Layout, Machine};
use super::processes::Origins;
use crate::commands::load::fleet::make_part::text;

struct LoadtestJob {
    args: HarnessArgs,
    layout: Layout,
}

/// The flags of an order.
pub(super) fn args_of(order: &RunOrder) -> Result<HarnessArgs, PartError> {
    let words = order.command.iter().map(|argument| match argument {
        Argument::Text(word) => Ok(word.clone()),
        Argument::File(_) => Err("the order has a file, which `loadtest` does not take"),
    });
    let words = words.collect::<Result<Vec<_>, _>>()?;
    let args = HarnessArgs::parse(&words);
    let args = args.map_err(|error| format!("the order has wrong flags: {error}"))?;
    super::check(&args).map_err(|failed| text(&failed))?;
    Ok(args)
}

/// Lays out the part of an order.
pub(crate) fn prepare(order: &RunOrder, share: Share) -> Result<Box<dyn PreparedPart>, PartError> {
    let args = args_of(order)?;
    let args = HarnessArgs {
        concurrency: share.part_of(args.concurrency),
        ..args
    };
    // An agent outlives the run, so clients and origins of the run are child processes that end with it.
    let layout = Layout::new(&args, Machine::here(share.workers), false);
    let layout = layout.map_err(|failed| text(&failed))?;
    Ok(Box::new(LoadtestJob { args, layout }))
}

impl PreparedPart for LoadtestJob {
    fn run(
        self: Box<Self>,
        control: PartControl<'_>,
    ) -> Result<Option<Box<AgentReport>>, PartError> {
        let PartControl {
            interrupt,
            start,
            on_tick,
        } = control;
        let Self { args, layout } = *self;
        let origins = Origins::start(&layout, &interrupt);
        let origins = match origins {
            Err(_) if interrupt.is_set() => return Ok(None),
            origins => origins.map_err(|failed| text(&failed))?,
        };
        let mut tree = ProcessTree::attach(std::process::id()).ok();
        let mut peak = None;
        let Some(start) = start() else {
            return Ok(None);
        };
        let mut last = Duration::ZERO;
        let mut follow = |tick: HarnessTick| {
            peak = peak.max(tree.as_mut().and_then(|it| it.peak_memory_bytes().ok()));
            last = tick.state.at;
            let interval = interval_of(&tick.found, tick.state.in_flight);
            on_tick(PartTick::from_interval(&interval, last, false, false));
        };
        let outcome = origins.check(&args, &layout, Some(start.at), &interrupt, &mut follow);
        let outcome = outcome.map_err(|failed| text(&failed))?;
        let interval = interval_of(&outcome.last_found, 0);
        let end = last.max(outcome.elapsed);
        on_tick(PartTick::from_interval(&interval, end, true, true));
        Ok(Some(Box::new(AgentReport::of_loadtest(
            (outcome.elapsed, outcome.late),
            peak,
            ReportedProcesses {
                clients: layout.clients,
                origins: layout.origins,
                listeners: layout.listeners,
            },
        ))))
    }
}
