//! What a run costs its target and the generator: their samplers, and samples of both at the ends of the measured window.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_model::{Clock, ClockDifference, Moment, ResourceSample};
use plimsoll_observe::{
    AttachError, NamedTarget, ProcessTree, SampleError, SampleSource, Sampler, Samples, Target,
};
use plimsoll_wire::SystemClock;

use crate::run::progress::{Progress, ProgressReport};

/// Samples of both sides at the ends of the measured window.
#[derive(Debug)]
pub(crate) struct Costs {
    sampler: Sampler,
    /// Of the servers that are observed by name.
    observers: Vec<Sampler>,
    has_target: bool,
    generator: Option<ProcessTree>,
    progress: Vec<Arc<Progress>>,
    start: Instant,
    /// When the window starts and, if it is bounded by time, ends; taken when they are due.
    due: Vec<Instant>,
    marks: Vec<Mark>,
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    target: Option<ResourceSample>,
    generator: Option<ResourceSample>,
    throttled: Option<Duration>,
}

/// Cost of the two sides.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) target: Option<(ResourceSample, ResourceSample)>,
    pub(crate) generator: Option<(ResourceSample, ResourceSample)>,
    pub(crate) throttled: Option<Duration>,
    pub(crate) samples: Samples,
    /// Of each server that is observed by name.
    pub(crate) named: Vec<Samples>,
}

/// An agent is asked no more often: it serves others too.
pub(crate) const AGENT_EVERY: Duration = Duration::from_millis(50);

/// Samples of the servers that are observed by name, with their intervals. They are opened before a run starts: the
/// clocks of agents are aligned first, which takes several round trips.
#[derive(Debug, Default)]
pub(crate) struct OpenSources(Vec<(Box<dyn SampleSource>, Duration)>);

impl OpenSources {
    /// For a run that starts now.
    pub(crate) fn open(
        observed: &[NamedTarget],
        sample_every: Duration,
    ) -> Result<Self, AttachError> {
        let Self(sources) = Self::attach(observed, sample_every)?;
        let sources = sources.into_iter().zip(observed);
        let primed = sources.map(|((mut source, every), named)| {
            if named.target.agent().is_some() {
                source = Box::new(Primed {
                    first: source.sample(Duration::ZERO, 0).ok(),
                    source,
                });
            }
            (source, every)
        });
        Ok(Self(primed.collect()))
    }

    /// For a run that starts some time later: a sample from before it is not its first one.
    pub(crate) fn attach(
        observed: &[NamedTarget],
        sample_every: Duration,
    ) -> Result<Self, AttachError> {
        let sources = observed.iter().map(|named| {
            let every = match named.target.agent() {
                Some(_) => sample_every.max(AGENT_EVERY),
                None => sample_every,
            };
            Ok((named.target.source()?, every))
        });
        sources.collect::<Result<_, _>>().map(Self)
    }
}

/// A source whose first sample was taken before the run. One that is requested when the run starts is taken half a round
/// trip later, when the target has spent something already.
#[derive(Debug)]
struct Primed {
    source: Box<dyn SampleSource>,
    first: Option<ResourceSample>,
}

impl SampleSource for Primed {
    fn sample(&mut self, at: Duration, completed: u64) -> Result<ResourceSample, SampleError> {
        match self.first.take() {
            Some(first) => Ok(ResourceSample {
                at: Duration::ZERO,
                ..first
            }),
            None => self.source.sample(at, completed),
        }
    }

    fn cores(&self) -> Option<usize> {
        self.source.cores()
    }

    fn clock(&self) -> Option<ClockDifference> {
        self.source.clock()
    }
}

impl Costs {
    /// - `progress`: the counters of each worker.
    /// - `start`: of the run, from which samples are dated.
    /// - `due`: when the measured window starts and, if that is known, ends.
    pub(crate) fn start(
        target: Option<&dyn Target>,
        sources: OpenSources,
        progress: Vec<Arc<Progress>>,
        start: Instant,
        sample_every: Duration,
        due: Vec<Instant>,
    ) -> Result<Self, AttachError> {
        let source = target.map(Target::source).transpose()?;
        let observers = sources.0.into_iter().map(|(source, every)| {
            let counters = progress.clone();
            Sampler::start(Some(source), None, start, every, move || {
                (responses(&counters), Moment::default())
            })
        });
        let observers = observers.collect();
        let counters = progress.clone();
        let sampler = Sampler::start(
            source,
            ProcessTree::generator().ok(),
            start,
            sample_every,
            move || (responses(&counters), moment(&counters)),
        );
        Ok(Self {
            sampler,
            observers,
            has_target: target.is_some(),
            generator: ProcessTree::generator().ok(),
            progress,
            start,
            due,
            marks: Vec::with_capacity(2),
        })
    }

    /// Samples at the end of a second: of the target, and of each server that is observed by name. Nothing waits for an
    /// agent.
    pub(super) fn at_second(&self) -> (Option<ResourceSample>, Vec<Option<ResourceSample>>) {
        let observed: Vec<_> = self.observers.iter().map(Sampler::take_latest).collect();
        let sample = if self.has_target {
            self.sampler.sample_now()
        } else {
            observed.first().copied().flatten()
        };
        (sample, observed)
    }

    pub(super) fn next_mark(&self) -> Option<Instant> {
        self.due.get(self.marks.len()).copied()
    }

    /// Samples both sides if a mark is due.
    pub(crate) fn mark(&mut self, now: Instant) {
        if self.next_mark().is_some_and(|due| now >= due) {
            self.sample(now);
        }
    }

    /// Ends the window, before its time.
    pub(super) fn end(&mut self, now: Instant) {
        while self.marks.len() < 2 {
            self.sample(now);
        }
    }

    fn sample(&mut self, now: Instant) {
        self.observers.iter().for_each(Sampler::mark);
        let at = now.saturating_duration_since(self.start);
        let responses = responses(&self.progress);
        let generator = self
            .generator
            .as_mut()
            .and_then(|tree| tree.sample(at, responses).ok());
        self.marks.push(Mark {
            target: self.sampler.sample_now(),
            generator,
            throttled: crate::conditions::throttled(),
        });
    }

    pub(crate) fn finish(mut self) -> Observed {
        // A run that ended before its time, or is bounded by a number, ends the window now.
        self.end(SystemClock.now());
        let (first, last) = (self.marks[0], self.marks[1]);
        Observed {
            target: first.target.zip(last.target),
            generator: first.generator.zip(last.generator),
            throttled: first
                .throttled
                .zip(last.throttled)
                .map(|(first, last)| last.saturating_sub(first)),
            samples: self.sampler.stop(),
            named: self.observers.into_iter().map(Sampler::stop).collect(),
        }
    }
}

fn responses(progress: &[Arc<Progress>]) -> u64 {
    progress.iter().map(|progress| progress.responses()).sum()
}

fn moment(progress: &[Arc<Progress>]) -> Moment {
    let mut sum = ProgressReport::default();
    for progress in progress {
        sum.merge(&progress.last());
    }
    Moment {
        in_flight: progress.iter().map(|progress| progress.in_flight()).sum(),
        ok: sum.ok,
        errors: sum.errors,
        latencies: sum.latencies,
        latency_sum: Duration::from_nanos(sum.latency_nanos),
        ..Moment::default()
    }
}
