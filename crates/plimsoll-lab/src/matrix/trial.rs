//! One trial: a target is started, loaded once and ended.

use plimsoll_load::Interrupt;
use plimsoll_model::Clock;
use plimsoll_model::with_causes;
use plimsoll_observe::TargetPlace;
use plimsoll_wire::SystemClock;
use serde::{Deserialize, Serialize};

mod figures;
mod generator;
mod sides;

pub use self::figures::Figures;
use self::generator::Generator;
use self::sides::Sides;
use super::order::Turn;
use super::plan::{Limited, LoadPlan, Loader, MatrixPlan, SizePlan};
use super::usage::ObservedUpstream;
use crate::cgroup::{Group, Groups};
use crate::plans::{TargetPlan, fill, free_ports};
use crate::server::ServerError;

/// One trial and what it came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The target's name.
    pub target: String,
    /// The load's name.
    pub load: String,
    /// The size's name.
    pub size: String,
    /// Which one of its cell, from 0.
    pub round: u32,
    /// The outcome.
    pub outcome: Outcome,
}

/// The outcome of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Outcome {
    /// The load ran to its end.
    Measured(Box<Figures>),
    /// The kernel killed a process because it was out of memory.
    Killed {
        /// `target`, `generator`, `upstream` and its name, or `a process of the target`.
        who: String,
        /// Microseconds from the start of the trial until that was seen.
        after_us: u64,
        /// The largest memory of the target that was seen, in bytes.
        peak_memory_bytes: u64,
    },
    /// It could not be made; it is tried again when the plan is run again.
    Failed {
        /// Why.
        reason: String,
    },
}

/// A finished trial with what its tool printed.
#[derive(Debug)]
pub(super) struct Finale {
    pub(super) trial: Trial,
    pub(super) output: String,
}

/// The user stopped it.
#[derive(Debug)]
pub(super) struct Interrupted;

/// State that all trials share.
#[derive(Debug)]
pub(super) struct Bench<'a> {
    pub(super) plan: &'a MatrixPlan,
    /// This program, which makes loads.
    pub(super) plimsoll: &'a str,
    /// Folder in which bounds can be set, if any size asks for them.
    pub(super) groups: Option<&'a Groups>,
    /// Servers that run already, by name.
    pub(super) observed: &'a [(String, TargetPlace)],
    pub(super) machine_cores: usize,
    pub(super) interrupt: &'a Interrupt,
}

impl Bench<'_> {
    /// Runs the trial of `turn`; everything that it started has ended afterwards.
    pub(super) fn trial(&self, turn: Turn) -> Result<Finale, Interrupted> {
        let plan = self.plan;
        let target = &plan.targets[turn.cell.target];
        let load = &plan.loads[turn.cell.load];
        let size = &plan.sizes[turn.cell.size];
        let mut output = String::new();
        let outcome = match self.measure(target, load, size, &mut output) {
            Ok(outcome) => outcome,
            Err(TrialError::Interrupted) => return Err(Interrupted),
            Err(TrialError::Failed(reason)) => Outcome::Failed { reason },
        };
        Ok(Finale {
            trial: Trial {
                target: target.name.clone(),
                load: load.name.clone(),
                size: size.name.clone(),
                round: turn.round,
                outcome,
            },
            output,
        })
    }

    fn measure(
        &self,
        target: &TargetPlan,
        load: &LoadPlan,
        size: &SizePlan,
        output: &mut String,
    ) -> Result<Outcome, TrialError> {
        let begun = SystemClock.now();
        let group = self.group(size)?;
        let bounds = |limited: Limited| match size.limited {
            Limited::Both => group.as_ref(),
            only if only == limited => group.as_ref(),
            _ => None,
        };
        let ports = free_ports(&target.upstreams)
            .map_err(|error| TrialError::Failed(format!("cannot find a free port: {error}")))?;
        let mut sides = Sides {
            size,
            machine_cores: self.machine_cores,
            upstreams: Vec::new(),
            target: None,
            observed: self.observed()?,
        };
        let started = sides.start(self, target, &ports, bounds(Limited::Target));
        if let Err(error) = started {
            return sides.killed(group.as_ref(), begun, None).ok_or(error);
        }
        let url = fill(&target.url, &ports);
        let connections = size.connections.unwrap_or(load.connections);
        let mut generator = Generator {
            bench: self,
            load,
            connections,
            url: &url,
            group: bounds(Limited::Generator),
        };
        let ran = generator.run(&mut sides, group.as_ref());
        let ended = ran.as_ref().ok().map(|ran| ran.finished);
        if let Some(killed) = sides.killed(group.as_ref(), begun, ended) {
            return Ok(killed);
        }
        let ran = ran?;
        *output = ran.output;
        if let Some(dead) = sides.dead() {
            return Err(TrialError::Failed(dead));
        }
        let status = ran.finished.status;
        // Ours says so by this code when responses were not as they should be: errors, to be counted.
        let is_judged = matches!(load.loader, Loader::Plimsoll(_)) && status.code() == Some(1);
        if !status.success() && !is_judged {
            let complaint = ran.complaint;
            return Err(TrialError::Failed(format!(
                "the generator failed ({status}){complaint}"
            )));
        }
        if let Some(problem) = sides.observed.iter().find_map(ObservedUpstream::problem) {
            return Err(TrialError::Failed(problem));
        }
        let figures = Figures::read(output, ran.length, &sides, ran.generator)?;
        Ok(Outcome::Measured(Box::new(figures)))
    }

    /// The servers that run already.
    fn observed(&self) -> Result<Vec<ObservedUpstream>, TrialError> {
        let observed = self.observed.iter();
        let opened = observed.map(|(name, place)| {
            let opened = ObservedUpstream::open(name, place, self.machine_cores);
            opened.map_err(|error| TrialError::Failed(with_causes(&error)))
        });
        opened.collect()
    }

    fn group(&self, size: &SizePlan) -> Result<Option<Group>, TrialError> {
        let Some(groups) = self.groups.filter(|_| size.is_limited()) else {
            return Ok(None);
        };
        // The name is unique: the process is ours and has one trial at a time.
        let name = format!("plimsoll-lab-{}", std::process::id());
        let made = groups.make(&name, size.allowance());
        made.map(Some)
            .map_err(|error| TrialError::Failed(error.to_string()))
    }
}

enum TrialError {
    Interrupted,
    Failed(String),
}

impl From<ServerError> for TrialError {
    fn from(error: ServerError) -> Self {
        match error {
            ServerError::Interrupted => Self::Interrupted,
            error => Self::Failed(with_causes(&error)),
        }
    }
}
