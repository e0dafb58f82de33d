//! One agent as the coordinator sees it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::{MemberEnd, MemberSecond};
use crate::message::{AgentReport, Checksum};
use crate::probe::ClockProbes;
use crate::share::Share;

/// Ticks that may arrive before one that they follow.
const MOST_EARLY: usize = 64;

#[derive(Debug)]
pub(super) struct Member {
    pub(super) agent: String,
    /// Its process.
    pub(super) instance: String,
    /// Another process that has offered itself under its name, and when.
    pub(super) namesake: Option<Namesake>,
    pub(super) cores: usize,
    pub(super) share: Share,
    /// When it was heard of last.
    pub(super) heard: Instant,
    pub(super) is_ready: bool,
    pub(super) probes: ClockProbes,
    /// Number of the tick that is expected.
    next_tick: u64,
    /// Ticks that arrived before their turn.
    early: BTreeMap<u64, MemberSecond>,
    /// Its last tick has come.
    pub(super) has_last: bool,
    /// What was merged of it.
    pub(super) merged: Checksum,
    /// Its end, once it has said so.
    done: Option<Done>,
    /// Set when nothing is expected of it any more.
    is_over: bool,
    pub(super) problem: Option<String>,
}

/// A process that offers itself under the name of another: one of two, or the same agent, which was started again.
#[derive(Debug)]
pub(super) struct Namesake {
    pub(super) instance: String,
    pub(super) cores: usize,
    /// When it was heard first.
    pub(super) since: Instant,
}

/// What an agent says of its end.
#[derive(Debug)]
pub(super) struct Done {
    /// When it was heard.
    pub(super) at: Instant,
    /// Ticks that it has sent.
    pub(super) ticks: u64,
    /// What it has counted.
    pub(super) checksum: Checksum,
    pub(super) report: Option<Box<AgentReport>>,
}

impl Member {
    pub(super) fn new(
        agent: String,
        instance: String,
        cores: usize,
        epoch: Instant,
        now: Instant,
    ) -> Self {
        Self {
            agent,
            instance,
            namesake: None,
            cores,
            share: Share {
                first: 0,
                workers: 1,
                of: 1,
            },
            heard: now,
            is_ready: false,
            probes: ClockProbes::new(epoch),
            next_tick: 0,
            early: BTreeMap::new(),
            has_last: false,
            merged: Checksum::default(),
            done: None,
            is_over: false,
            problem: None,
        }
    }

    /// Whether nothing is expected of it any more.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Nothing more is expected of it, for this reason.
    pub(super) fn lose(&mut self, reason: String) {
        self.is_over = true;
        self.problem = Some(reason);
    }

    /// Whether it has reported the end of its part.
    pub(super) fn has_ended(&self) -> bool {
        self.done.is_some()
    }

    /// Its messages could not arrive until now: restarts the timeouts for them.
    pub(super) fn excuse(&mut self, now: Instant) {
        self.heard = now;
        if let Some(done) = &mut self.done {
            done.at = now;
        }
    }

    pub(super) fn is_prepared(&self) -> bool {
        self.is_ready && self.probes.is_complete()
    }

    /// Takes a tick; returns those that are next in order. A repeated one is left out, one that is early waits.
    pub(super) fn take_tick(&mut self, number: u64, second: MemberSecond) -> Vec<MemberSecond> {
        if number < self.next_tick {
            return Vec::new();
        }
        if number > self.next_tick {
            if self.early.len() < MOST_EARLY {
                self.early.insert(number, second);
            }
            return Vec::new();
        }
        let mut in_order = vec![second];
        self.next_tick += 1;
        while let Some(next) = self.early.remove(&self.next_tick) {
            in_order.push(next);
            self.next_tick += 1;
        }
        self.has_last |= in_order.iter().any(|second| second.is_last);
        in_order
    }

    /// Takes its end. Ticks that have not arrived yet may still be on their way.
    pub(super) fn end(&mut self, done: Done, problem: Option<String>) {
        self.problem = problem;
        self.done.get_or_insert(done);
        self.complete();
    }

    /// Whether all of its ticks have arrived behind or before its end.
    pub(super) fn complete(&mut self) -> bool {
        let ticks = self.done.as_ref().map(|done| done.ticks);
        self.is_over |= ticks.is_some_and(|ticks| self.next_tick >= ticks);
        self.is_over
    }

    /// Until when ticks are waited for that its end announces.
    pub(super) fn waits_until(&self, patience: Duration) -> Option<Instant> {
        let done = self.done.as_ref().filter(|_| !self.is_over())?;
        Some(done.at + patience)
    }

    /// Waits for no more ticks; returns those that waited for others.
    pub(super) fn give_up_ticks(&mut self) -> Vec<MemberSecond> {
        let rest: Vec<_> = std::mem::take(&mut self.early).into_values().collect();
        let taken = self.next_tick + rest.len() as u64;
        let ticks = self.done.as_ref().map_or(taken, |done| done.ticks);
        let missing = ticks.saturating_sub(taken);
        self.problem
            .get_or_insert_with(|| format!("{missing} of its {ticks} ticks did not arrive"));
        self.is_over = true;
        self.has_last |= rest.iter().any(|second| second.is_last);
        rest
    }

    pub(super) fn ending(&self) -> MemberEnd {
        let mut problem = self.problem.clone();
        let counted = self.done.as_ref().map(|done| done.checksum);
        if let Some(counted) = counted.filter(|counted| *counted != self.merged) {
            problem.get_or_insert_with(|| {
                format!(
                    "it counted {} requests, of which {} were merged",
                    counted.started, self.merged.started
                )
            });
        }
        MemberEnd {
            agent: self.agent.clone(),
            cores: self.cores,
            share: self.share,
            report: self.done.as_ref().and_then(|done| done.report.clone()),
            problem,
            merged: self.merged,
        }
    }
}
