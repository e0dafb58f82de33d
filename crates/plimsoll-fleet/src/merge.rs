//! What becomes of the figures of agents: the seam between the coordinator's loop and the kinds of runs.

mod checks;

mod parts;

use std::error::Error;
use std::time::{Duration, SystemTime};

use plimsoll_load::conditions::RunFacts;
use plimsoll_load::{PartReport, RunPlan, Standing, Union, UnionEnd, UnionSecond};
use plimsoll_model::{AgentStanding, RunSummary, Threshold};
use plimsoll_observe::{AttachError, NamedTarget, SampleSource};

pub use self::checks::{LoadtestEnd, LoadtestMerger};
pub use self::parts::{PartSums, together};
use crate::coordinator::{MemberEnd, MemberSecond};
use crate::message::{Checksum, Counted, FiguresError, SetUp, Shares};

/// Why the figures of agents cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum UnionError {
    /// An agent makes another run than the coordinator.
    #[error("its figures are those of another kind of run")]
    Kind,
    /// Figures of a plain load that cannot be.
    #[error(transparent)]
    Figures(#[from] FiguresError),
    /// A server beside the run gives no samples.
    #[error(transparent)]
    Unobserved(#[from] AttachError),
    /// The work before the start has a result that is too long for messages.
    #[error("setup() returns more than {} KiB, which is too much for agents", .0 >> 10)]
    Data(usize),
    /// A reason of the kind of run.
    #[error(transparent)]
    Other(Box<dyn Error + Send + Sync>),
}

/// Merges what agents count. An error of [`merge_second`](Self::merge_second) means that the figures are not those of such a run.
pub trait Merger {
    /// Does what comes before the start, when all agents are ready. The data of its result go to all of them.
    fn set_up(&mut self) -> Result<SetUp, UnionError> {
        Ok(SetUp::default())
    }

    /// In place of that, for a run that a coordinator before this one has started.
    fn take_over(&mut self, set_up: &SetUp, started: SystemTime) -> Result<(), UnionError> {
        let _ = (set_up, started);
        Ok(())
    }

    /// The run starts.
    ///
    /// - `shares`: the parts of the agents; members have their order.
    fn begin(&mut self, shares: &Shares, started: SystemTime);

    /// Adds what an agent has counted; returns its checksum.
    fn merge_second(&mut self, second: &MemberSecond) -> Result<Checksum, UnionError>;

    /// No more comes of an agent.
    fn give_up(&mut self, member: usize);

    /// Called often: why the run is to end, if it is.
    fn look(&mut self) -> Option<String>;
}

/// Called with the figures of all agents in a second, and with the agents side by side.
pub type OnTick<'a> = &'a mut dyn FnMut(&Standing<'_>, &[AgentStanding]);

/// Merges plain loads.
pub struct LoadMerger<'a> {
    plan: &'a RunPlan,
    thresholds: &'a [Threshold],
    observed: &'a [NamedTarget],
    on_tick: OnTick<'a>,
    union: Option<Union>,
    parts: Option<PartSums>,
    is_breached: bool,
    /// Their samples, opened before the start.
    sources: Vec<(String, Box<dyn SampleSource>)>,
    /// Why the run cannot go on.
    problem: Option<String>,
}

impl std::fmt::Debug for LoadMerger<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadMerger")
            .field("union", &self.union)
            .finish_non_exhaustive()
    }
}

impl<'a> LoadMerger<'a> {
    /// - `plan`: its workers are set by those of the agents.
    /// - `thresholds`: on the figures of all agents.
    /// - `observed`: servers that are observed by name beside the run; the first one is its target.
    /// - `on_tick`: called once a second.
    pub fn new(
        plan: &'a RunPlan,
        thresholds: &'a [Threshold],
        observed: &'a [NamedTarget],
        on_tick: OnTick<'a>,
    ) -> Self {
        Self {
            plan,
            thresholds,
            observed,
            on_tick,
            union: None,
            parts: None,
            is_breached: false,
            sources: Vec::new(),
            problem: None,
        }
    }

    /// Opens the samples of the observed servers, unless they are.
    fn observe(&mut self) -> Result<(), AttachError> {
        if self.sources.len() < self.observed.len() {
            let sources = self
                .observed
                .iter()
                .map(|named| Ok((named.name.clone(), named.target.source()?)));
            self.sources = sources.collect::<Result<_, AttachError>>()?;
        }
        Ok(())
    }

    /// The summary of the run; `None` if it has not started.
    ///
    /// - `is_early`: whether it ended before its time, without the user.
    pub fn finish(
        self,
        members: &[MemberEnd],
        facts: RunFacts,
        is_early: bool,
        is_interrupted: bool,
    ) -> Option<RunSummary> {
        let union = self.union?;
        let empty = union.empty_interval();
        let reports: Vec<Option<PartReport>> = members
            .iter()
            .map(|member| Some(member.report.as_ref()?.read(empty.clone())))
            .collect();
        let complete: Vec<&PartReport> = reports.iter().flatten().collect();
        let end = UnionEnd {
            facts,
            is_early: is_early || self.is_breached,
            is_interrupted,
        };
        let mut summary = union.finish(&complete, self.observed, end);
        summary.agents = self.parts?.figures(members, &reports);
        let warnings = &mut summary.conditions.warnings;
        warnings.extend(together(&summary.agents));
        let lacks = members.iter().filter_map(MemberEnd::lack);
        let lacks: Vec<_> = lacks.map(|lack| format!("incomplete: {lack}")).collect();
        warnings.splice(0..0, lacks);
        Some(summary)
    }
}

impl Merger for LoadMerger<'_> {
    fn set_up(&mut self) -> Result<SetUp, UnionError> {
        self.observe()?;
        Ok(SetUp::default())
    }

    fn begin(&mut self, shares: &Shares, started: SystemTime) {
        let plan = RunPlan {
            workers: shares.values().next().map_or(0, |share| share.of),
            ..self.plan.clone()
        };
        // A run that is taken over is not set up again.
        self.problem = self.observe().err().map(|error| error.to_string());
        let sources = std::mem::take(&mut self.sources);
        let union = Union::new(plan, shares.len(), self.thresholds, sources, started);
        self.parts = Some(PartSums::new(shares));
        self.union = Some(union);
    }

    fn merge_second(&mut self, second: &MemberSecond) -> Result<Checksum, UnionError> {
        let (Some(union), Some(parts), Counted::Load(figures)) =
            (&mut self.union, &mut self.parts, &second.figures)
        else {
            return Err(UnionError::Kind);
        };
        let mut interval = union.empty_interval();
        figures.add_to(&mut interval)?;
        let checksum = figures.checksum()?;
        let second = UnionSecond {
            part: second.member,
            at: Duration::from_micros(second.at_us),
            grace: second.grace,
            is_last: second.is_last,
            interval,
        };
        parts.add(&second);
        let on_tick = &mut self.on_tick;
        let mut on_tick = |standing: &Standing<'_>| on_tick(standing, parts.standings());
        self.is_breached |= union.merge_second(second, &mut on_tick);
        Ok(checksum)
    }

    fn give_up(&mut self, member: usize) {
        if let (Some(union), Some(parts)) = (&mut self.union, &mut self.parts) {
            parts.give_up(member);
            let on_tick = &mut self.on_tick;
            let mut on_tick = |standing: &Standing<'_>| on_tick(standing, parts.standings());
            self.is_breached |= union.give_up(member, &mut on_tick);
        }
    }

    fn look(&mut self) -> Option<String> {
        let breach = self.is_breached.then_some("a threshold was breached");
        self.problem.clone().or(breach.map(str::to_owned))
    }
}
