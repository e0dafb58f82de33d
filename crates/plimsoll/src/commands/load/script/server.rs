//! The cost of a script for its servers (`load --pid`, `load --observe`).

use std::fmt::Write as _;
use std::time::Duration;

use plimsoll_model::{Clock as _, DurationText, Moment, ObservationGap, ResourceSample};
use plimsoll_observe::{AttachError, NamedTarget, Pid, Sampler, Samples, Target as _};
use plimsoll_wire::SystemClock;
use serde_json::Value;

use crate::problem::Problem;

/// Writing to a `String` cannot fail.
const IN_MEMORY: &str = "a string grows";

/// Time between two samples: they show gaps, and the largest memory.
const EVERY: Duration = Duration::from_millis(100);

/// The servers of a script, since the start of the run.
#[derive(Debug, Default)]
pub(super) struct Servers(Vec<Server>);

#[derive(Debug)]
struct Server {
    /// Absent of the one that --pid names.
    name: Option<String>,
    sampler: Sampler,
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
            Server { name, sampler }
        });
        Ok(Self(servers.collect()))
    }

    /// A run begins or ends: its cost is what was spent between the last two such moments. A run of a fleet begins later than
    /// the servers are attached.
    pub(super) fn mark(&self) {
        for server in &self.0 {
            server.sampler.mark();
        }
    }

    /// The lines for the end of the summary; none without servers.
    ///
    /// - `data`: of the summary.
    pub(super) fn end(self, data: Option<&Value>) -> Option<String> {
        let requests = data?["metrics"]["http_reqs"]["values"]["count"].as_f64();
        let requests = requests.unwrap_or(0.0);
        let servers = self.0.into_iter();
        let lines: String = servers
            .map(|server| lines(server.name.as_deref(), &server.sampler.stop(), requests))
            .collect();
        (!lines.is_empty()).then_some(lines)
    }
}

fn none_completed() -> (u64, Moment) {
    (0, Moment::default())
}

/// - `requests`: of the run, those of `setup()` and `teardown()` included, as the time is.
fn lines(name: Option<&str>, samples: &Samples, requests: f64) -> String {
    let mut text = match name {
        Some(name) => format!("    SERVER {name}\n"),
        None => "    SERVER\n".to_owned(),
    };
    match samples.marks.as_slice() {
        [.., Some(first), Some(last)] => spent(&mut text, first, last, requests),
        // A part of the run is not what its requests cost.
        _ => row(
            &mut text,
            "cpu_per_request",
            "no samples at both ends of the run",
        ),
    }
    if let Some(gap) = samples.gaps.first() {
        let unseen: Duration = samples.gaps.iter().map(ObservationGap::length).sum();
        let value = format!("{}: {}", DurationText(unseen), gap.reason);
        row(&mut text, "gaps", &value);
    }
    text.push('\n');
    text
}

fn spent(text: &mut String, first: &ResourceSample, last: &ResourceSample, requests: f64) {
    let spent = last.cpu.total().saturating_sub(first.cpu.total());
    if requests > 0.0 {
        let micros = spent.as_secs_f64() * 1e6 / requests;
        row(text, "cpu_per_request", &format!("{micros:.1}µs"));
    }
    let memory = last.memory.total_bytes() as f64 / 1e6;
    let seconds = spent.as_secs_f64();
    row(text, "cpu", &format!("{seconds:.2}s"));
    row(text, "memory", &format!("{memory:.1} MB"));
    if let Some((last, first)) = last.throttled.zip(first.throttled) {
        let throttled = last.since(first);
        if !throttled.time.is_zero() {
            row(text, "throttled", &DurationText(throttled.time).to_string());
        }
    }
}

fn row(text: &mut String, name: &str, value: &str) {
    writeln!(text, "    {name:.<31}: {value}").expect(IN_MEMORY);
}

#[cfg(test)]
mod tests {
    use plimsoll_model::{CpuTime, Memory};

    use super::*;

    fn sample(seconds: u64, bytes: u64) -> ResourceSample {
        ResourceSample {
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
        let text = lines(None, &samples, 1000.0);
        assert!(
            text.contains("cpu_per_request................: 2000.0µs\n"),
            "{text}"
        );
        assert!(
            text.contains("memory.........................: 5.0 MB\n"),
            "{text}"
        );
        assert!(text.starts_with("    SERVER\n"), "{text}");
        assert!(!lines(None, &samples, 0.0).contains("per_request"));
    }

    #[test]
    fn a_part_of_a_run_has_no_cost_per_request() {
        let mut samples = marked(&[Some(sample(1, 0)), None]);
        samples.gaps.push(ObservationGap {
            from: Duration::from_secs(2),
            to: Duration::from_secs(3),
            reason: "connection refused".to_owned(),
        });
        let text = lines(Some("db"), &samples, 1000.0);
        assert!(text.starts_with("    SERVER db\n"), "{text}");
        assert!(text.contains("no samples at both ends"), "{text}");
        assert!(text.contains(": connection refused\n"), "{text}");
        assert!(!text.contains("µs"), "{text}");
    }
}
