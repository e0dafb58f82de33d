//! The cost of a script for the server (`load --pid`).

use std::fmt::Write as _;

use plimsoll_model::{Clock as _, ResourceSample};
use plimsoll_observe::ProcessTree;
use plimsoll_wire::SystemClock;
use serde_json::Value;

use crate::problem::Problem;

/// Writing to a `String` cannot fail.
const IN_MEMORY: &str = "a string grows";

/// The processes of the server, since the start of the run.
#[derive(Debug)]
pub(super) struct Server {
    tree: ProcessTree,
    first: ResourceSample,
    began: std::time::Instant,
}

impl Server {
    /// - `pid`: the process at the root of the tree.
    pub(super) fn attach(pid: u32) -> Result<Self, Problem> {
        let wrong = |error: &dyn std::error::Error| Problem::with("--pid", error.to_string());
        let mut tree = ProcessTree::attach(pid).map_err(|error| wrong(&error))?;
        let began = SystemClock.now();
        let first = tree.sample(std::time::Duration::ZERO, 0);
        let first = first.map_err(|error| wrong(&error))?;
        Ok(Self { tree, first, began })
    }

    /// The lines for the end of the summary; none if the server has ended.
    ///
    /// - `data`: of the summary.
    pub(super) fn end(mut self, data: Option<&Value>) -> Option<String> {
        let passed = SystemClock.now().saturating_duration_since(self.began);
        let last = self.tree.sample(passed, 0).ok()?;
        let requests = data?["metrics"]["http_reqs"]["values"]["count"].as_f64();
        Some(lines(&self.first, &last, requests.unwrap_or(0.0)))
    }
}

/// - `requests`: of the run, those of `setup()` and `teardown()` included, as the time is.
fn lines(first: &ResourceSample, last: &ResourceSample, requests: f64) -> String {
    let spent = last.cpu.total().saturating_sub(first.cpu.total());
    let mut text = "    SERVER\n".to_owned();
    if requests > 0.0 {
        let micros = spent.as_secs_f64() * 1e6 / requests;
        writeln!(text, "    cpu_per_request................: {micros:.1}µs").expect(IN_MEMORY);
    }
    let memory = last.memory.total_bytes() as f64 / 1e6;
    let seconds = spent.as_secs_f64();
    writeln!(text, "    cpu............................: {seconds:.2}s").expect(IN_MEMORY);
    writeln!(
        text,
        "    memory.........................: {memory:.1} MB\n"
    )
    .expect(IN_MEMORY);
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plimsoll_model::{CpuTime, Memory};

    use super::*;

    #[test]
    fn the_cost_is_per_request() {
        let sample = |seconds, bytes| ResourceSample {
            cpu: CpuTime {
                user: Duration::from_secs(seconds),
                system: Duration::ZERO,
            },
            memory: Memory {
                anonymous_bytes: bytes,
                file_bytes: 0,
            },
            ..ResourceSample::default()
        };
        let text = lines(&sample(1, 0), &sample(3, 5_000_000), 1000.0);
        assert!(
            text.contains("cpu_per_request................: 2000.0µs\n"),
            "{text}"
        );
        assert!(
            text.contains("memory.........................: 5.0 MB\n"),
            "{text}"
        );
        assert!(!lines(&sample(1, 0), &sample(3, 0), 0.0).contains("per_request"));
    }
}
