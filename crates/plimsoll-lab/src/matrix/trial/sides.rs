//! The processes of a trial's target.

use std::time::{Duration, Instant};

use plimsoll_load::Interrupt;
use plimsoll_model::Clock;
use plimsoll_wire::SystemClock;
use plimsoll_wire::process::Finished;

use super::{Bench, Outcome, TrialError};
use crate::cgroup::Group;
use crate::matrix::plan::{Limited, SizePlan};
use crate::matrix::usage::{ObservedSide, ObservedUpstream};
use crate::plans::{ProcessPlan, TargetPlan, fill, parse_url};
use crate::server::{self, Running};

/// Time a killed process has to disappear.
const LAST_BREATH: Duration = Duration::from_millis(500);

/// The processes of a target that is up.
pub(super) struct Sides<'a> {
    pub(super) size: &'a SizePlan,
    pub(super) machine_cores: usize,
    pub(super) upstreams: Vec<Side>,
    pub(super) target: Option<Side>,
    /// Servers that run already, and that are observed.
    pub(super) observed: Vec<ObservedUpstream>,
}

pub(super) struct Side {
    running: Running,
    pub(super) watched: Option<ObservedSide>,
}

impl Sides<'_> {
    /// Starts the upstreams in their order, then the target.
    pub(super) fn start(
        &mut self,
        bench: &Bench<'_>,
        target: &TargetPlan,
        ports: &[(String, String)],
        group: Option<&Group>,
    ) -> Result<(), TrialError> {
        let plan = bench.plan;
        for upstream in &target.upstreams {
            let side = self.side(
                upstream,
                format!("upstream {}", upstream.name),
                &plan.upstream_cores,
                ports,
                None,
                bench.interrupt,
            )?;
            self.upstreams.push(side);
        }
        let side = self.side(
            &target.process,
            "target".to_owned(),
            &plan.target_cores,
            ports,
            group,
            bench.interrupt,
        )?;
        self.target = Some(side);
        Ok(())
    }

    fn side(
        &self,
        process: &ProcessPlan,
        name: String,
        cores: &[usize],
        ports: &[(String, String)],
        group: Option<&Group>,
        interrupt: &Interrupt,
    ) -> Result<Side, TrialError> {
        let words: Vec<String> = process.words.iter().map(|word| fill(word, ports)).collect();
        let ready = parse_url(&fill(&process.ready, ports)).expect("was checked with the plan");
        let mut running = server::start(&words, cores, group, &ready, interrupt)?;
        let allowed = self.allowed(cores, group.is_some());
        let tree = running.take_tree();
        Ok(Side {
            running,
            watched: tree.map(|tree| ObservedSide::new(name, allowed, tree)),
        })
    }

    /// Cores that a side may use.
    pub(super) fn allowed(&self, cores: &[usize], limited: bool) -> f64 {
        let bound = match cores {
            [] => self.machine_cores,
            cores => cores.len(),
        };
        let cpus = self.size.cpus.filter(|_| limited);
        cpus.unwrap_or(f64::INFINITY).min(bound as f64)
    }

    pub(super) fn each(&mut self, mut look: impl FnMut(&mut ObservedSide)) {
        let sides = self.upstreams.iter_mut().chain(&mut self.target);
        for watched in sides.filter_map(|side| side.watched.as_mut()) {
            look(watched);
        }
    }

    /// Whether any of them has ended by itself.
    pub(super) fn has_dead(&mut self) -> bool {
        let mut sides = self.upstreams.iter_mut().chain(&mut self.target);
        sides.any(|side| side.running.has_ended())
    }

    /// The same in words.
    pub(super) fn dead(&mut self) -> Option<String> {
        let sides = self.upstreams.iter_mut().chain(&mut self.target);
        let mut dead = sides.filter_map(|side| side.running.has_ended().then_some(side));
        let side = dead.next()?;
        let complaint = side.running.complaint();
        Some(format!("the {} ended under load{complaint}", side.name()))
    }

    /// The outcome, if the kernel has killed anything of the group.
    pub(super) fn killed(
        &mut self,
        group: Option<&Group>,
        begun: Instant,
        generator: Option<Finished>,
    ) -> Option<Outcome> {
        if group?.killed_for_memory() == 0 {
            return None;
        }
        let after = SystemClock.now().saturating_duration_since(begun);
        let target = self.target.as_mut();
        // The kernel counts before the process is gone.
        let target_ended = target.is_none_or(|side| side.running.ends_within(LAST_BREATH));
        let who = match (self.size.limited, target_ended, generator) {
            (Limited::Generator, ..) => "generator",
            (_, true, _) => "target",
            (Limited::Both, false, Some(finished)) if !finished.status.success() => "generator",
            _ => "a process of the target",
        };
        let watched = self.target.as_ref().and_then(|side| side.watched.as_ref());
        Some(Outcome::Killed {
            who: who.to_owned(),
            after_us: u64::try_from(after.as_micros()).unwrap_or(u64::MAX),
            peak_memory_bytes: watched.map_or(0, ObservedSide::peak_memory_bytes),
        })
    }
}

impl Side {
    fn name(&self) -> &str {
        self.watched.as_ref().map_or("target", ObservedSide::name)
    }
}
