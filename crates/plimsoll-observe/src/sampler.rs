//! Samples of the target and of the generator, taken while a run goes on.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use plimsoll_model::{Clock, Cost, Moment, ResourceSample, ServerCost};
use plimsoll_wire::SystemClock;

use super::ProcessTree;

/// Samples kept at most: half an hour of ten a second. Then every second one is dropped and the
/// interval doubled, so that a run of days needs no more memory than one of an hour.
const MOST_SAMPLES: usize = 18_000;

/// A thread that samples the target's process tree, and our own memory beside it.
#[derive(Debug)]
pub struct Sampler {
    requests: SyncSender<Request>,
    thread: JoinHandle<Samples>,
}

/// Everything that a [`Sampler`] saw.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Samples {
    /// The target, in order of time.
    pub target: Vec<ResourceSample>,
    /// The run at the same times, and at those when there was no target to look at.
    pub moments: Vec<Moment>,
    /// When the last of the target's processes was found to have ended, if they did before the
    /// sampler was stopped.
    pub target_ended: Option<Duration>,
    /// The largest resident memory of this process, in bytes, where the platform reports it.
    pub generator_peak_memory_bytes: Option<u64>,
    /// See [`ProcessTree::unseen_children`].
    pub unseen_children: Option<u64>,
}

impl Samples {
    /// The cost of the target between two samples of it, `name` being that of the target.
    pub fn cost(self, name: &str, first: &ResourceSample, last: &ResourceSample) -> ServerCost {
        let seen = || self.target.iter().chain([first, last]);
        ServerCost {
            name: name.to_owned(),
            cost: Cost::between(first, last),
            memory: last.memory,
            peak_memory_bytes: seen().map(|s| s.memory.total_bytes()).max().unwrap_or(0),
            fds: last.fds,
            peak_fds: seen().map(|s| s.fds).max().unwrap_or(0),
            threads: last.threads,
            processes: last.processes,
            samples: self.target,
        }
    }
}

impl Sampler {
    /// Starts sampling: at once, and then each `interval` after `start`, whatever a sample takes.
    ///
    /// - `target`, `generator`: what to sample; either may be missing.
    /// - `start`: the start of the run, from which samples are dated.
    /// - `state`: how many exchanges were completed so far, and the rest of the run's state.
    pub fn start(
        target: Option<ProcessTree>,
        generator: Option<ProcessTree>,
        start: Instant,
        interval: Duration,
        state: impl Fn() -> (u64, Moment) + Send + 'static,
    ) -> Self {
        let (requests, inbox) = sync_channel(1);
        let mut work = Work {
            target,
            generator,
            start,
            interval: interval.max(Duration::from_millis(1)),
            state,
            samples: Samples::default(),
        };
        let thread = thread::spawn(move || {
            work.run(&inbox);
            work.samples
        });
        Self { requests, thread }
    }

    /// Samples the target now and waits for it; `None` if there is none, or it has ended.
    pub fn sample_now(&self) -> Option<ResourceSample> {
        let (reply, answer) = sync_channel(1);
        self.requests.send(Request::Now(reply)).ok()?;
        answer.recv().ok().flatten()
    }

    /// Takes a last sample and ends.
    pub fn stop(self) -> Samples {
        // The thread ends when its last requester is gone.
        drop(self.requests);
        self.thread.join().unwrap_or_default()
    }
}

enum Request {
    Now(SyncSender<Option<ResourceSample>>),
}

struct Work<F> {
    target: Option<ProcessTree>,
    generator: Option<ProcessTree>,
    start: Instant,
    interval: Duration,
    state: F,
    samples: Samples,
}

impl<F: Fn() -> (u64, Moment)> Work<F> {
    fn run(&mut self, inbox: &Receiver<Request>) {
        self.sample();
        loop {
            let wait = self
                .next_deadline(SystemClock.now())
                .saturating_duration_since(SystemClock.now());
            match inbox.recv_timeout(wait) {
                Ok(Request::Now(reply)) => {
                    let sample = self.sample();
                    // The requester may have gone away.
                    reply.send(sample).ok();
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.sample();
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.sample();
                    return;
                }
            }
        }
    }

    /// The first multiple of the interval after `now`: a late sample does not shift later ones.
    fn next_deadline(&self, now: Instant) -> Instant {
        let since = now.saturating_duration_since(self.start).as_nanos();
        let interval = self.interval.as_nanos();
        let next = (since / interval + 1) * interval;
        self.start + Duration::from_nanos(u64::try_from(next).unwrap_or(u64::MAX))
    }

    fn sample(&mut self) -> Option<ResourceSample> {
        let at = SystemClock.now().saturating_duration_since(self.start);
        let (completed, moment) = (self.state)();
        if let Some(Ok(own)) = self
            .generator
            .as_mut()
            .map(|generator| generator.sample(at, completed))
        {
            let peak = &mut self.samples.generator_peak_memory_bytes;
            *peak = (*peak).max(Some(own.memory.total_bytes()));
        }
        let sample = self.target(at, completed);
        self.keep(Moment {
            at,
            target: sample,
            ..moment
        });
        sample
    }

    fn target(&mut self, at: Duration, completed: u64) -> Option<ResourceSample> {
        let tree = self.target.as_mut()?;
        let sampled = tree.sample(at, completed);
        self.samples.unseen_children = tree.unseen_children();
        let Ok(sample) = sampled else {
            self.target = None;
            self.samples.target_ended = Some(at);
            return None;
        };
        self.samples.target.push(sample);
        Some(sample)
    }

    fn keep(&mut self, moment: Moment) {
        let samples = &mut self.samples;
        if samples.moments.len() >= MOST_SAMPLES {
            every_second(&mut samples.moments);
            every_second(&mut samples.target);
            self.interval *= 2;
        }
        samples.moments.push(moment);
    }
}

fn every_second<T>(kept: &mut Vec<T>) {
    let mut odd = false;
    kept.retain(|_| {
        odd = !odd;
        odd
    });
}

#[cfg(test)]
mod tests;
