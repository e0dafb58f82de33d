//! The targets that are sampled for clients: opened when one is first wanted, closed when none has wanted it for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use plimsoll_model::Clock;
use plimsoll_wire::{SystemClock, cores};
use ring::rand::{SecureRandom, SystemRandom};

use crate::document::{
    AgentDocument, AllowedDocument, FiguresDocument, SampleDocument, TargetSample, TargetsDocument,
    nanos,
};
use crate::group::GroupSource;
use crate::machine::Machine;
use crate::named::pid_of_name;
use crate::pid::ProcessSource;
use crate::server::SampleServerError;
use crate::target_name::{TargetKind, TargetName, TargetPattern};
use crate::{AttachError, SampleError, SampleSource};

/// Targets that are open at a time.
const MOST_OPEN: usize = 64;

/// Targets that are remembered as missing.
const MOST_MISSING: usize = 1024;

/// A target without requests for samples is closed after that time.
const IDLE: Duration = Duration::from_mins(1);

/// A target that was not found is looked for no more often: that may mean to walk through all groups.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The targets of this machine.
#[derive(Debug)]
pub(super) struct OpenTargets {
    machine: Machine,
    allowed: Vec<TargetPattern>,
    id: String,
    version: String,
    host: String,
    started: Instant,
    open: Mutex<HashMap<TargetName, OpenTarget>>,
    /// Those that were not found, when, and why.
    missing: Mutex<HashMap<TargetName, (Instant, String)>>,
}

#[derive(Debug)]
struct OpenTarget {
    source: Arc<Mutex<Box<dyn SampleSource>>>,
    used: Instant,
}

/// Why a target has no figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoFigures {
    /// It is not there, or cannot be read.
    Missing(String),
    /// Too many others are open.
    TooMany,
}

impl NoFigures {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Missing(reason) => reason.clone(),
            Self::TooMany => format!(
                "{MOST_OPEN} targets are sampled already: one that is not for {} s makes room",
                IDLE.as_secs()
            ),
        }
    }
}

impl OpenTargets {
    pub(super) fn new(
        machine: Machine,
        allowed: Vec<TargetPattern>,
        version: String,
    ) -> Result<Self, SampleServerError> {
        let mut id = [0; 8];
        let filled = SystemRandom::new().fill(&mut id);
        filled.map_err(|_| SampleServerError::Random)?;
        Ok(Self {
            machine,
            allowed,
            id: format!("{:016x}", u64::from_be_bytes(id)),
            version,
            host: host(),
            started: SystemClock.now(),
            open: Mutex::default(),
            missing: Mutex::default(),
        })
    }

    pub(super) fn allows(&self, target: &TargetName) -> bool {
        self.allowed.iter().any(|pattern| pattern.allows(target))
    }

    /// What may be sampled, with what is there now. Blocks.
    pub(super) fn list(&self) -> TargetsDocument {
        let allowed = self.allowed.iter();
        let allowed = allowed.map(|pattern| {
            let found = pattern.only().map(|target| self.figures(&target));
            AllowedDocument {
                target: pattern.to_string(),
                processes: match &found {
                    Some(Ok(figures)) => Some(figures.processes),
                    _ => None,
                },
                problem: found.and_then(Result::err).map(|error| error.text()),
            }
        });
        TargetsDocument {
            schema: TargetsDocument::SCHEMA.to_owned(),
            allowed: allowed.collect(),
            agent: self.agent(self.shown()),
        }
    }

    /// Samples of `targets` now; the only one of a single target may be missing. Blocks.
    pub(super) fn sample(&self, targets: &[TargetName]) -> Result<SampleDocument, NoFigures> {
        let before = self.shown();
        let mut samples = Vec::with_capacity(targets.len());
        for target in targets {
            let figures = self.figures(target);
            if let ([_], Err(error)) = (targets, &figures) {
                return Err(error.clone());
            }
            samples.push(TargetSample {
                target: target.to_string(),
                problem: figures.as_ref().err().map(NoFigures::text),
                figures: figures.ok(),
            });
        }
        // Reading takes its time: the middle is wrong by half of it at most.
        let shown = before + self.shown().saturating_sub(before) / 2;
        Ok(SampleDocument {
            schema: SampleDocument::SCHEMA.to_owned(),
            agent: self.agent(shown),
            targets: samples,
        })
    }

    /// The same, but a single target that is missing is a problem among the samples.
    pub(super) fn sample_or_problem(&self, targets: &[TargetName]) -> SampleDocument {
        self.sample(targets).unwrap_or_else(|error| {
            let targets = targets.iter().map(|target| TargetSample {
                target: target.to_string(),
                figures: None,
                problem: Some(error.text()),
            });
            SampleDocument {
                schema: SampleDocument::SCHEMA.to_owned(),
                agent: self.agent(self.shown()),
                targets: targets.collect(),
            }
        })
    }

    fn figures(&self, target: &TargetName) -> Result<FiguresDocument, NoFigures> {
        let source = self.source(target)?;
        let sampled = {
            let mut source = source.lock().unwrap_or_else(PoisonError::into_inner);
            source.sample(self.shown(), 0)
        };
        sampled
            .map(|sample| FiguresDocument::from_sample(&sample))
            .map_err(|error| {
                if matches!(error, SampleError::Ended(_)) {
                    self.lock().remove(target);
                }
                NoFigures::Missing(error.to_string())
            })
    }

    fn source(&self, target: &TargetName) -> Result<Arc<Mutex<Box<dyn SampleSource>>>, NoFigures> {
        let now = SystemClock.now();
        {
            let mut open = self.lock();
            if let Some(known) = open.get_mut(target) {
                known.used = now;
                return Ok(Arc::clone(&known.source));
            }
            open.retain(|_, it| now.saturating_duration_since(it.used) < IDLE);
            if open.len() >= MOST_OPEN {
                return Err(NoFigures::TooMany);
            }
        }
        // Finding a container may mean to ask its runtime; others are not kept waiting.
        let source = self.find_at(target, now)?;
        let source = Arc::new(Mutex::new(source));
        let mut open = self.lock();
        let kept = open
            .entry(target.clone())
            .or_insert(OpenTarget { source, used: now });
        Ok(Arc::clone(&kept.source))
    }

    fn find_at(
        &self,
        target: &TargetName,
        now: Instant,
    ) -> Result<Box<dyn SampleSource>, NoFigures> {
        let lock = || self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut missing = lock();
            missing.retain(|_, (at, _)| now.saturating_duration_since(*at) < LOOK_EVERY);
            if let Some((_, reason)) = missing.get(target) {
                return Err(NoFigures::Missing(reason.clone()));
            }
        }
        self.find(target).map_err(|error| {
            let reason = error.to_string();
            let mut missing = lock();
            if missing.len() < MOST_MISSING {
                missing.insert(target.clone(), (now, reason.clone()));
            }
            NoFigures::Missing(reason)
        })
    }

    fn find(&self, target: &TargetName) -> Result<Box<dyn SampleSource>, AttachError> {
        if target.kind != TargetKind::Pid {
            return Ok(Box::new(GroupSource::open(&self.machine, target)?));
        }
        let pid = match target.value.parse() {
            Ok(pid) => pid,
            Err(_) => pid_of_name(&target.value)?,
        };
        ProcessSource::open(pid)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<TargetName, OpenTarget>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The clock of this agent.
    fn shown(&self) -> Duration {
        SystemClock.now().saturating_duration_since(self.started)
    }

    /// - `shown`: what its clock showed; the time of day is that of the same moment.
    fn agent(&self, shown: Duration) -> AgentDocument {
        let passed = self.shown().saturating_sub(shown);
        let wall = SystemClock.wall() - passed;
        let unix = wall.duration_since(UNIX_EPOCH).unwrap_or_default();
        AgentDocument {
            id: self.id.clone(),
            version: self.version.clone(),
            host: self.host.clone(),
            cores: cores::available().len(),
            clock_ns: nanos(shown),
            unix_us: u64::try_from(unix.as_micros()).unwrap_or(u64::MAX),
        }
    }
}

fn host() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}
