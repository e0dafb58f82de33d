//! Samples of the target and of the generator, taken while a run goes on.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use plimsoll_model::{
    Clock, ClockDifference, Cost, Moment, ObservationGap, ResourceSample, ServerCost,
};
use plimsoll_wire::SystemClock;

use crate::{ProcessTree, SampleError, SampleSource};

/// Samples kept at most: half an hour of ten a second. Then every second one is dropped and the
/// interval doubled, so that a run of days needs no more memory than one of an hour.
const MOST_SAMPLES: usize = 18_000;

/// A mark that is later by so much is that of another window.
const LATE: Duration = Duration::from_secs(1);

/// Gaps kept at most.
const MOST_GAPS: usize = 1_000;

/// Requests that wait for the thread: the two marks of a window and one for a sample.
const MOST_REQUESTS: usize = 4;

/// A thread that samples a target, and our own memory beside it.
#[derive(Debug)]
pub struct Sampler {
    requests: SyncSender<Request>,
    latest: Arc<Mutex<Option<ResourceSample>>>,
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
    /// Stretches in which the target gave no samples.
    pub gaps: Vec<ObservationGap>,
    /// The samples of [`Sampler::mark`]; `None` where there was none at that time.
    pub marks: Vec<Option<ResourceSample>>,
    /// The clock of the machine of the target, if it is another one.
    pub clock: Option<ClockDifference>,
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
    /// - `target`, `generator`: what to sample; either may be missing. A target that ends gives no further samples; one
    ///   that leaves gaps is sampled again at the next interval.
    /// - `start`: the start of the run, from which samples are dated.
    /// - `state`: how many exchanges were completed so far, and the rest of the run's state.
    pub fn start(
        target: Option<Box<dyn SampleSource>>,
        generator: Option<ProcessTree>,
        start: Instant,
        interval: Duration,
        state: impl Fn() -> (u64, Moment) + Send + 'static,
    ) -> Self {
        Self::start_with_marks(target, generator, start, interval, Vec::new(), state)
    }

    /// The same, which takes [`Samples::marks`] by itself at the times of `due`, in their order. One that cannot be taken
    /// at its time has no sample; those that are not due when the sampler is stopped are taken then.
    pub fn start_with_marks(
        target: Option<Box<dyn SampleSource>>,
        generator: Option<ProcessTree>,
        start: Instant,
        interval: Duration,
        due: Vec<Instant>,
        state: impl Fn() -> (u64, Moment) + Send + 'static,
    ) -> Self {
        let (requests, inbox) = sync_channel(MOST_REQUESTS);
        let latest = Arc::default();
        let mut work = Work {
            target,
            generator,
            start,
            interval: interval.max(Duration::from_millis(1)),
            state,
            latest: Arc::clone(&latest),
            due: due.into(),
            open_gap: None,
            samples: Samples::default(),
        };
        let thread = thread::spawn(move || {
            work.run(&inbox);
            work.finish()
        });
        Self {
            requests,
            latest,
            thread,
        }
    }

    /// Has the target sampled as soon as that can be, without waiting for it: the sample is one of
    /// [`Samples::marks`].
    pub fn mark(&self) {
        // The thread lives as long as this.
        self.requests.send(Request::Mark).ok();
    }

    /// The newest sample, if there is one since the last call.
    pub fn take_latest(&self) -> Option<ResourceSample> {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.take()
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
    Mark,
}

struct Work<F> {
    target: Option<Box<dyn SampleSource>>,
    generator: Option<ProcessTree>,
    start: Instant,
    interval: Duration,
    state: F,
    latest: Arc<Mutex<Option<ResourceSample>>>,
    /// When marks are to be taken.
    due: VecDeque<Instant>,
    /// Since when there are no samples, and why.
    open_gap: Option<(Duration, String)>,
    samples: Samples,
}

impl<F: Fn() -> (u64, Moment)> Work<F> {
    fn run(&mut self, inbox: &Receiver<Request>) {
        self.sample();
        loop {
            let now = SystemClock.now();
            let next = self.next_deadline(now);
            let until = self.due.front().map_or(next, |due| next.min(*due));
            match inbox.recv_timeout(until.saturating_duration_since(now)) {
                Ok(Request::Now(reply)) => {
                    let sample = self.sample();
                    // The requester may have gone away.
                    reply.send(sample).ok();
                }
                Ok(Request::Mark) => {
                    let sample = self.sample();
                    self.samples.marks.push(sample);
                }
                Err(RecvTimeoutError::Timeout) => self.sample_at_time(),
                Err(RecvTimeoutError::Disconnected) => {
                    let sample = self.sample();
                    let rest = self.due.drain(..).map(|_| sample);
                    self.samples.marks.extend(rest);
                    return;
                }
            }
        }
    }

    /// Takes the sample of an interval, and the marks that are due.
    fn sample_at_time(&mut self) {
        let now = SystemClock.now();
        let sample = self.sample();
        while let Some(due) = self.due.pop_front_if(|due| *due <= now) {
            let is_in_time = now.saturating_duration_since(due) < LATE;
            self.samples.marks.push(sample.filter(|_| is_in_time));
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
        let source = self.target.as_mut()?;
        let sampled = source.sample(at, completed);
        self.samples.unseen_children = source.unseen_children();
        self.samples.clock = source.clock();
        match sampled {
            Ok(sample) => {
                self.close_gap(sample.at);
                self.samples.target.push(sample);
                let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
                *latest = Some(sample);
                Some(sample)
            }
            Err(error) => {
                let is_final = matches!(error, SampleError::Ended(_));
                let since = self
                    .samples
                    .target
                    .last()
                    .map_or(Duration::ZERO, |it| it.at);
                self.open_gap
                    .get_or_insert_with(|| (since, error.to_string()));
                if is_final {
                    self.target = None;
                    self.samples.target_ended = Some(at);
                }
                None
            }
        }
    }

    /// - `to`: the first sample after it, or the end.
    fn close_gap(&mut self, to: Duration) {
        let gaps = &mut self.samples.gaps;
        if let Some((from, reason)) = self.open_gap.take()
            && gaps.len() < MOST_GAPS
        {
            gaps.push(ObservationGap { from, to, reason });
        }
    }

    fn finish(mut self) -> Samples {
        self.close_gap(SystemClock.now().saturating_duration_since(self.start));
        self.samples
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
