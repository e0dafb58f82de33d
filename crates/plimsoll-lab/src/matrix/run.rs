//! Running a matrix from the first trial to the last.

use std::collections::HashMap;
use std::path::Path;

use plimsoll_load::Interrupt;
use plimsoll_load::conditions::{Before, RunFacts};
use plimsoll_model::{ByteSize, Clock, Conditions, Pinning};
use plimsoll_observe::TargetPlace;
use plimsoll_wire::SystemClock;

use super::order::{Cell, Turn, cells, turns};
use super::outcome::Matrix;
use super::plan::MatrixPlan;
use super::store::{Store, StoreError};
use super::trial::{Bench, Interrupted, Trial};
use crate::cgroup::{GroupError, Groups};

/// Options of a run besides its plan.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// This program, which makes loads.
    pub plimsoll: String,
    /// The group below which groups are made; beside our own if absent.
    pub cgroup: Option<String>,
    /// Servers that run already and that every trial observes as upstreams, by name.
    pub observed: Vec<(String, TargetPlace)>,
    /// plimsoll's version, for the record.
    pub version: String,
    /// plimsoll's command line, for the record.
    pub command: Vec<String>,
}

/// Something a waiting user may want to see.
#[derive(Debug)]
pub enum Event<'a> {
    /// A trial begins.
    Begins {
        /// Which one, from 1.
        number: usize,
        /// Of how many.
        of: usize,
        /// The target's name.
        target: &'a str,
        /// The load's name.
        load: &'a str,
        /// The size's name.
        size: &'a str,
    },
    /// A trial has ended.
    Ended(&'a Trial),
}

/// Why a matrix has no result.
#[derive(Debug, thiserror::Error)]
pub enum MatrixError {
    /// The folder failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The user stopped it; finished trials are kept.
    #[error("interrupted; run the same command again to go on")]
    Interrupted,
}

/// Runs what is not yet finished of `plan`, telling `observe` how it goes.
///
/// Blocks until the end; whatever it started has ended when it returns, also after an error or once
/// `interrupt` was set.
pub fn run(
    plan: &MatrixPlan,
    options: &RunOptions,
    store: &Store,
    interrupt: &Interrupt,
    observe: &mut dyn FnMut(&Event<'_>),
) -> Result<Matrix, MatrixError> {
    let before = Before::observe(SystemClock.wall());
    let machine = Before::observe(SystemClock.wall()).after(RunFacts::default());
    let groups = plan
        .sizes
        .iter()
        .any(super::plan::SizePlan::is_limited)
        .then(|| Groups::find(Path::new("/"), options.cgroup.as_deref()));
    let groups = GroupParent::new(groups);
    let refused: HashMap<Cell, String> = cells(plan)
        .into_iter()
        .filter_map(|cell| Some((cell, cannot(plan, cell, &machine, &groups)?)))
        .collect();
    let bench = Bench {
        plan,
        plimsoll: &options.plimsoll,
        groups: groups.found.as_ref(),
        observed: &options.observed,
        machine_cores: machine.cores,
        interrupt,
    };
    let order: Vec<Turn> = turns(plan)
        .into_iter()
        .filter(|turn| !refused.contains_key(&turn.cell))
        .collect();
    let mut trials = Vec::with_capacity(order.len());
    let mut kept = 0;
    for (index, &turn) in order.iter().enumerate() {
        if let Some(trial) = store.finished(plan, turn) {
            kept += 1;
            trials.push(trial);
            continue;
        }
        if interrupt.is_set() {
            return Err(MatrixError::Interrupted);
        }
        observe(&Event::Begins {
            number: index + 1,
            of: order.len(),
            target: &plan.targets[turn.cell.target].name,
            load: &plan.loads[turn.cell.load].name,
            size: &plan.sizes[turn.cell.size].name,
        });
        let finale = bench
            .trial(turn)
            .map_err(|Interrupted| MatrixError::Interrupted)?;
        store.keep(plan, turn, &finale)?;
        observe(&Event::Ended(&finale.trial));
        trials.push(finale.trial);
    }
    let conditions = before.after(RunFacts {
        plimsoll: options.version.clone(),
        command: options.command.clone(),
        pinning: Pinning {
            generator: plan.generator_cores.clone(),
            target: plan.target_cores.clone(),
        },
        co_located: Some(true),
    });
    Ok(Matrix::new(plan, trials, &refused, kept, conditions))
}

/// Folder in which groups can be made, or the reason why there is none.
#[derive(Debug)]
struct GroupParent {
    found: Option<Groups>,
    error: Option<GroupError>,
}

impl GroupParent {
    fn new(groups: Option<Result<Groups, GroupError>>) -> Self {
        match groups {
            None => Self {
                found: None,
                error: None,
            },
            Some(Ok(found)) => Self {
                found: Some(found),
                error: None,
            },
            Some(Err(error)) => Self {
                found: None,
                error: Some(error),
            },
        }
    }
}

/// Why the machine cannot hold a cell; `None` if it can.
fn cannot(
    plan: &MatrixPlan,
    cell: Cell,
    machine: &Conditions,
    groups: &GroupParent,
) -> Option<String> {
    let size = &plan.sizes[cell.size];
    let connections = size
        .connections
        .unwrap_or(plan.loads[cell.load].connections);
    let cores = machine
        .limits
        .cpus
        .unwrap_or(f64::INFINITY)
        .min(machine.cores as f64);
    if let Some(cpus) = size.cpus.filter(|cpus| *cpus > cores) {
        return Some(format!("{cpus} cores wanted, {cores} here"));
    }
    let memory = [machine.memory_bytes, machine.limits.memory_bytes]
        .into_iter()
        .flatten()
        .min();
    if let (Some(wanted), Some(memory)) = (size.memory_bytes, memory)
        && wanted > memory
    {
        return Some(format!(
            "{} of memory wanted, {} here",
            ByteSize(wanted),
            ByteSize(memory)
        ));
    }
    if let Some(ports) = machine.local_ports.filter(|ports| *ports < connections) {
        return Some(format!(
            "{connections} connections wanted, {ports} local ports here"
        ));
    }
    if !size.is_limited() {
        return None;
    }
    match (&groups.found, &groups.error) {
        (_, Some(error)) => Some(error.to_string()),
        // Whether groups may be made is found out by making one.
        (Some(found), None) => {
            let name = format!("plimsoll-lab-{}-try", std::process::id());
            found
                .make(&name, size.allowance())
                .err()
                .map(|error| error.to_string())
        }
        (None, None) => None,
    }
}
