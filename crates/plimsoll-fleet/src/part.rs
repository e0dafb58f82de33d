//! What an agent makes of an order: the seam between the agent's loop and the kinds of runs.

mod ticks;

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_load::conditions::RunFacts;
use plimsoll_load::{Interrupt, Interval, PartHooks, PartSecond, RunPlan, run_part};

use self::ticks::Ticks;
use crate::message::{AgentReport, Checksum, Counted, Figures};
use crate::order::{OrderFile, RunOrder};
use crate::share::Share;

/// Why a part cannot be made, which its kind of run knows. The coordinator gets it with its causes.
pub type PartError = Box<dyn Error + Send + Sync>;

/// Makes parts of runs out of orders.
pub trait PartMaker: Send + Sync {
    /// Checks the order and makes its part ready.
    ///
    /// - `files`: those of the order, checked.
    /// - `share`: that of this agent.
    fn prepare(
        &self,
        order: &RunOrder,
        files: Vec<OrderFile>,
        share: Share,
    ) -> Result<Box<dyn PreparedPart>, PartError>;
}

/// A part that can be made.
pub trait PreparedPart {
    /// Makes it; `None` if it was not started.
    fn run(
        self: Box<Self>,
        control: PartControl<'_>,
    ) -> Result<Option<Box<AgentReport>>, PartError>;
}

/// How a part is started, followed and ended.
pub struct PartControl<'a> {
    /// Ends the part early.
    pub interrupt: Arc<Interrupt>,
    /// Called once, when the part can start. It returns the start, which may lie ahead; `None` if there will be none.
    pub start: &'a mut (dyn FnMut() -> Option<PartStart> + 'a),
    /// Called about once a second.
    pub on_tick: &'a mut (dyn FnMut(PartTick) + 'a),
}

impl std::fmt::Debug for PartControl<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartControl")
            .field("interrupt", &self.interrupt)
            .finish_non_exhaustive()
    }
}

/// The start of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartStart {
    /// When.
    pub at: Instant,
    /// What came of the work before the start.
    pub data: Option<String>,
}

/// What a part has counted since the last tick.
#[derive(Debug, Clone, PartialEq)]
pub struct PartTick {
    /// Microseconds since the start.
    pub at_us: u64,
    /// Whether nothing was begun any more.
    pub grace: bool,
    /// No other follows.
    pub is_last: bool,
    /// The counts.
    pub figures: Counted,
    /// Their checksum.
    pub checksum: Checksum,
}

impl PartTick {
    /// The tick of `interval`.
    ///
    /// - `at`: its end, since the start.
    pub fn from_interval(interval: &Interval, at: Duration, grace: bool, is_last: bool) -> Self {
        Self {
            at_us: u64::try_from(at.as_micros()).unwrap_or(u64::MAX),
            grace,
            is_last,
            figures: Counted::Load(Box::new(Figures::from_interval(interval))),
            checksum: Checksum::from_interval(interval),
        }
    }
}

/// A part of a plain load.
#[derive(Debug)]
pub struct LoadPart {
    /// The whole run.
    pub plan: RunPlan,
    /// The share of this agent.
    pub share: Share,
    /// Seconds of a tick; at least one.
    pub tick_seconds: u64,
    /// Facts of this machine.
    pub facts: RunFacts,
    /// Kept until the end: files that the run reads.
    pub folder: Option<Box<dyn std::fmt::Debug>>,
}

impl PreparedPart for LoadPart {
    fn run(
        self: Box<Self>,
        control: PartControl<'_>,
    ) -> Result<Option<Box<AgentReport>>, PartError> {
        let PartControl {
            interrupt,
            start,
            on_tick,
        } = control;
        let mut start = || start().map(|start| start.at);
        let mut ticks = Ticks::new(self.tick_seconds, self.plan.warm_up);
        let mut on_second = |second: PartSecond<'_>| {
            for tick in ticks.add(&second) {
                on_tick(tick);
            }
        };
        let mut hooks = PartHooks {
            interrupt,
            start: &mut start,
            on_second: &mut on_second,
        };
        let made = run_part(&self.plan, self.share.into(), self.facts, &mut hooks);
        Ok(made?.map(|report| Box::new(AgentReport::from_part(&report))))
    }
}
