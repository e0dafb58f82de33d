//! The cost of a script for its servers (`load --pid`, `load --observe`).

use std::cell::RefCell;
use std::fmt::Write as _;
use std::time::Duration;

use plimsoll_k6::ObservedServers;
use plimsoll_model::{Clock as _, DurationText, Moment, ObservationGap, ServerCost, Throttling};
use plimsoll_observe::{AttachError, NamedTarget, Pid, Sampler, Samples, Target as _};
use plimsoll_wire::SystemClock;

use crate::problem::Problem;

/// Writing to a `String` cannot fail.
const IN_MEMORY: &str = "a string grows";

/// Time between two samples: they show gaps, and the largest memory.
const EVERY: Duration = Duration::from_millis(100);

/// The servers of a script, since the start of the run.
#[derive(Debug, Default)]
pub(super) struct Servers {
    /// Until the run ends.
    sampled: RefCell<Vec<SampledServer>>,
    ended: RefCell<Vec<EndedServer>>,
    /// Whether the run had begun before.
    is_late: bool,
}

#[derive(Debug)]
struct SampledServer {
    /// Absent of the one that --pid names.
    name: Option<String>,
    sampler: Sampler,
}

/// What a server has spent in the run.
#[derive(Debug)]
struct EndedServer {
    name: Option<String>,
    /// Absent if it was not observed at both ends: a part of the run is not what its requests cost.
    cost: Option<ServerCost>,
    throttled: Option<Throttling>,
    gaps: Vec<ObservationGap>,
}

impl Servers {
    /// - `pid`: the process at the root of the tree, if there is one.
    pub(super) fn attach(pid: Option<u32>, observed: &[NamedTarget]) -> Result<Self, Problem> {
        let wrong =
            |flag: &'static str| move |error: AttachError| Problem::caused_by(&error).about(flag);
        let began = SystemClock.now();
        let mut servers = Vec::new();
        if let Some(pid) = pid {
            let source = Pid::new(pid).and_then(|pid| pid.source());
            servers.push((None, source.map_err(wrong("--pid"))?));
        }
        for named in observed {
            let source = named.target.source().map_err(wrong("--observe"))?;
            servers.push((Some(named.name.clone()), source));
        }
        let servers = servers.into_iter().map(|(name, source)| {
            let sampler = Sampler::start(Some(source), None, began, EVERY, none_completed);
            sampler.mark();
            SampledServer { name, sampler }
        });
        Ok(Self {
            sampled: RefCell::new(servers.collect()),
            ended: RefCell::default(),
            is_late: false,
        })
    }

    /// The run had begun before they were attached: what they spend from now on is not what it costs.
    #[cfg(feature = "fleet")]
    #[must_use]
    pub(super) fn late(self) -> Self {
        Self {
            is_late: true,
            ..self
        }
    }

    /// A run begins or ends: its cost is what was spent between the last two such moments. A run of a fleet begins later than
    /// the servers are attached.
    pub(super) fn mark(&self) {
        for server in self.sampled.borrow().iter() {
            server.sampler.mark();
        }
    }

    /// The lines for the end of the summary; none without servers, or if there was no run.
    pub(super) fn text(self) -> Option<String> {
        let servers = self.ended.into_inner();
        let text: String = servers.iter().map(EndedServer::lines).collect();
        (!text.is_empty()).then_some(text)
    }
}

impl ObservedServers for Servers {
    fn names(&self) -> Vec<Option<String>> {
        let servers = self.sampled.borrow();
        servers.iter().map(|server| server.name.clone()).collect()
    }

    fn end(&self, requests: u64) -> Vec<Option<ServerCost>> {
        self.mark();
        let servers = self.sampled.take().into_iter();
        let ended: Vec<_> = servers
            .map(|server| {
                let mut samples = server.sampler.stop();
                if self.is_late {
                    samples.marks.clear();
                }
                EndedServer::new(server.name, samples, requests)
            })
            .collect();
        let costs = ended.iter().map(|server| server.cost.clone()).collect();
        self.ended.replace(ended);
        costs
    }
}

fn none_completed() -> (u64, Moment) {
    (0, Moment::default())
}

impl EndedServer {
    /// - `requests`: of the run, those of `setup()` and `teardown()` included, as the time is.
    fn new(name: Option<String>, mut samples: Samples, requests: u64) -> Self {
        let gaps = std::mem::take(&mut samples.gaps);
        let ends = match samples.marks.as_slice() {
            [.., Some(first), Some(last)] => Some((*first, *last)),
            _ => None,
        };
        let throttled = ends.and_then(|(first, last)| last.throttled.zip(first.throttled));
        let cost = ends.map(|(first, last)| {
            let is_within = |at: Duration| at >= first.at && at <= last.at;
            samples.target.retain(|sample| is_within(sample.at));
            let mut cost = samples.cost(name.as_deref().unwrap_or_default(), &first, &last);
            cost.cost.exchanges = requests;
            cost
        });
        Self {
            name,
            cost,
            throttled: throttled.map(|(last, first)| last.since(first)),
            gaps,
        }
    }

    fn lines(&self) -> String {
        let mut text = match &self.name {
            Some(name) => format!("    SERVER {name}\n"),
            None => "    SERVER\n".to_owned(),
        };
        match &self.cost {
            Some(cost) => spent(&mut text, cost),
            None => row(
                &mut text,
                "cpu_per_request",
                "no samples at both ends of the run",
            ),
        }
        if let Some(throttled) = self.throttled.filter(|it| !it.time.is_zero()) {
            let time = DurationText(throttled.time);
            row(&mut text, "throttled", &time.to_string());
        }
        if let Some(gap) = self.gaps.first() {
            let unseen: Duration = self.gaps.iter().map(ObservationGap::length).sum();
            let value = format!("{}: {}", DurationText(unseen), gap.reason);
            row(&mut text, "gaps", &value);
        }
        text.push('\n');
        text
    }
}

fn spent(text: &mut String, server: &ServerCost) {
    if let Some(micros) = server.cost.cpu_us_per_request() {
        row(text, "cpu_per_request", &format!("{micros:.1}µs"));
    }
    let memory = server.memory.total_bytes() as f64 / 1e6;
    let seconds = server.cost.cpu.total().as_secs_f64();
    row(text, "cpu", &format!("{seconds:.2}s"));
    row(text, "memory", &format!("{memory:.1} MB"));
}

fn row(text: &mut String, name: &str, value: &str) {
    writeln!(text, "    {name:.<31}: {value}").expect(IN_MEMORY);
}

#[cfg(test)]
mod tests {
    use plimsoll_model::{CpuTime, Memory, ResourceSample};

    use super::*;

    fn sample(seconds: u64, bytes: u64) -> ResourceSample {
        ResourceSample {
            at: Duration::from_secs(seconds),
            cpu: CpuTime {
                user: Duration::from_secs(seconds),
                system: Duration::ZERO,
            },
            memory: Memory {
                anonymous_bytes: bytes,
                file_bytes: 0,
            },
            ..ResourceSample::default()
        }
    }

    fn marked(marks: &[Option<ResourceSample>]) -> Samples {
        Samples {
            marks: marks.to_vec(),
            ..Samples::default()
        }
    }

    #[test]
    fn the_cost_is_per_request() {
        let samples = marked(&[Some(sample(1, 0)), Some(sample(3, 5_000_000))]);
        let text = EndedServer::new(None, samples.clone(), 1_000).lines();
        assert!(
            text.contains("cpu_per_request................: 2000.0µs\n"),
            "{text}"
        );
        assert!(
            text.contains("memory.........................: 5.0 MB\n"),
            "{text}"
        );
        assert!(text.starts_with("    SERVER\n"), "{text}");
        let without = EndedServer::new(None, samples, 0).lines();
        assert!(!without.contains("per_request"), "{without}");
    }

    #[test]
    fn a_part_of_a_run_has_no_cost_per_request() {
        let mut samples = marked(&[Some(sample(1, 0)), None]);
        samples.gaps.push(ObservationGap {
            from: Duration::from_secs(2),
            to: Duration::from_secs(3),
            reason: "connection refused".to_owned(),
        });
        let server = EndedServer::new(Some("db".to_owned()), samples, 1_000);
        let text = server.lines();
        assert!(text.starts_with("    SERVER db\n"), "{text}");
        assert!(text.contains("no samples at both ends"), "{text}");
        assert!(text.contains(": connection refused\n"), "{text}");
        assert!(!text.contains("µs"), "{text}");
        assert!(server.cost.is_none());
    }

    #[test]
    fn memory_before_and_after_the_run_is_not_that_of_the_run() {
        let mut samples = marked(&[
            Some(sample(1, 10)),
            Some(sample(2, 10)),
            Some(sample(4, 30)),
        ]);
        samples.target = vec![sample(1, 900), sample(3, 40), sample(5, 800)];
        let cost = EndedServer::new(None, samples, 1).cost.unwrap();
        assert_eq!(cost.peak_memory_bytes, 40);
    }
}
