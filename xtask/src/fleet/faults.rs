//! Planned faults: agents that are stopped or killed at each moment of a run, and a broker that restarts.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::{DELAYS, RATE, Row, SECONDS, Scene};
use crate::clock::wait;
use crate::step;
use crate::{Failure, Outcome};

/// The agent that is lost.
const LOST: usize = 1;

/// Looks at a condition, a twentieth of a second apart: a minute of them.
const MOST_LOOKS: usize = 1200;

/// When an agent is lost.
#[derive(Debug, Clone, Copy)]
enum When {
    /// It has offered itself, and another is waited for.
    BeforeStart,
    /// So many requests were made.
    After(u32),
}

/// A coordinator that runs meanwhile.
struct Running {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    reading: JoinHandle<()>,
}

/// How it ended.
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Running {
    fn start(mut command: Command) -> Result<Self, Failure> {
        println!("$ {}", step::shown(&command));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn();
        let cannot = |error| format!("cannot start `{}`: {error}", step::shown(&command));
        let mut child = child.map_err(cannot)?;
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let (stderr, said) = (child.stderr.take(), Arc::clone(&lines));
        let reading = thread::spawn(move || {
            let lines = stderr.into_iter().flat_map(|it| BufReader::new(it).lines());
            for line in lines.map_while(Result::ok) {
                println!("  {line}");
                let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
                said.push(line);
            }
        });
        Ok(Self {
            child,
            lines,
            reading,
        })
    }

    fn has_said(&self, text: &str) -> bool {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().any(|line| line.contains(text))
    }

    fn end(self) -> Result<Ended, Failure> {
        let output = self.child.wait_with_output();
        let output = output.map_err(|error| error.to_string())?;
        drop(self.reading.join());
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Ended {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: lines.join("\n"),
        })
    }
}

impl Scene<'_> {
    /// Agents that are stopped and killed before the start, in the middle and before the end of a run.
    pub(super) fn lost_agents(&self, rows: &mut Vec<Row>) -> Outcome {
        let all = RATE * SECONDS;
        for (what, signal, when) in [
            (
                "an agent is stopped before the start",
                "-STOP",
                When::BeforeStart,
            ),
            (
                "an agent is killed before the start",
                "-KILL",
                When::BeforeStart,
            ),
            (
                "an agent is stopped in the middle",
                "-STOP",
                When::After(all / 2),
            ),
            (
                "an agent is killed in the middle",
                "-KILL",
                When::After(all / 2),
            ),
            (
                "an agent is stopped before the end",
                "-STOP",
                When::After(all / 20 * 17),
            ),
            (
                "an agent is killed before the end",
                "-KILL",
                When::After(all / 20 * 17),
            ),
        ] {
            let before = self.logged()?;
            let mut agents = Vec::new();
            let first = match when {
                When::BeforeStart => DELAYS.len() - 1,
                When::After(_) => DELAYS.len(),
            };
            for number in 0..first {
                agents.push(self.agent(number)?);
            }
            let run = Running::start(self.coordinator(&["--agent-timeout", "5s"]))?;
            let name = format!("agent-{LOST}");
            match when {
                When::BeforeStart => until(what, || Ok(run.has_said(&format!("agent {name} ("))))?,
                When::After(count) => {
                    until(what, || Ok(self.logged()? >= before + count as usize))?;
                }
            }
            kill(signal, agents[LOST].0.id())?;
            for number in first..DELAYS.len() {
                agents.push(self.agent(number)?);
            }
            let ended = run.end()?;
            let made = self.logged()? - before;
            let (code, line) = match when {
                When::BeforeStart => (3, format!("agent {name} was lost before the start")),
                When::After(_) => (4, format!("agent {name} is lost: ")),
            };
            let is_named = ended.stderr.contains(&line);
            let is_quiet = matches!(when, When::After(_)) || made == 0;
            rows.push(Row {
                what,
                found: format!(
                    "{}, exit code {}, {made} requests",
                    if is_named { "named" } else { "not named" },
                    ended.code.unwrap_or(-1),
                ),
                is_met: ended.code == Some(code) && is_named && is_quiet,
            });
        }
        Ok(())
    }

    /// A broker that is away for a second in the middle.
    pub(super) fn restarted_broker(&self, rows: &mut Vec<Row>) -> Outcome {
        const WHAT: &str = "the broker restarts in the middle";

        let before = self.logged()?;
        let agents = self.agents()?;
        let run = Running::start(self.coordinator(&[]))?;
        let some = (RATE * SECONDS / 4) as usize;
        until(WHAT, || Ok(self.logged()? >= before + some))?;
        self.stop_broker()?;
        until(WHAT, || Ok(run.has_said("the broker is away")))?;
        wait(Duration::from_secs(1));
        self.start_broker()?;
        let ended = run.end()?;
        drop(agents);
        let summary: serde_json::Value =
            serde_json::from_str(&ended.stdout).map_err(|error| format!("the summary: {error}"))?;
        let counted = summary["counts"]["ok"].as_u64().unwrap_or(0);
        let made = self.logged()? - before;
        let is_back = ended.stderr.contains("the broker is back");
        rows.push(Row {
            what: WHAT,
            found: format!(
                "exit code {}, {counted} counted, {made} logged",
                ended.code.unwrap_or(-1)
            ),
            is_met: ended.code == Some(0)
                && is_back
                && counted == u64::from(RATE * SECONDS)
                && made as u64 == counted,
        });
        Ok(())
    }

    /// A script whose `handleSummary()` prints the requests of all agents.
    pub(super) fn script(&self, rows: &mut Vec<Row>) -> Outcome {
        let before = self.logged()?;
        let agents = self.agents()?;
        let script = self.folder.join("script.js");
        std::fs::write(&script, SCRIPT).map_err(|error| error.to_string())?;
        let mut coordinator = self.fleet(&[]);
        coordinator.args(["-e", &format!("BASE={}", super::url())]);
        coordinator.arg(&script);
        let ended = Running::start(coordinator)?.end()?;
        drop(agents);
        let made = self.logged()? - before;
        let lines = ended.stdout.lines();
        let summaries: Vec<_> = lines.filter_map(|it| it.strip_prefix("summary ")).collect();
        rows.push(Row {
            what: "handleSummary() of a script, and nginx's log",
            found: format!(
                "exit code {}, {} requests, {made}",
                ended.code.unwrap_or(-1),
                summaries.join(" and ")
            ),
            is_met: ended.code == Some(0) && summaries == [made.to_string()],
        });
        Ok(())
    }

    /// Requests in nginx's log.
    fn logged(&self) -> Result<usize, Failure> {
        Ok(self.log()?.lines().count())
    }
}

/// Every agent makes iterations; what comes before and behind them is done once.
const SCRIPT: &str = r"
import http from 'k6/http';
import { check } from 'k6';
export const options = {
  scenarios: { rate: { executor: 'constant-arrival-rate', rate: 100, duration: '4s', preAllocatedVUs: 16 } },
  thresholds: { checks: ['rate==1'] },
};
export function setup() { http.get(__ENV.BASE); }
export default function () { check(http.get(__ENV.BASE), { 'is 200': (it) => it.status === 200 }); }
export function teardown() { http.get(__ENV.BASE); }
export function handleSummary(data) {
  return { stdout: `summary ${data.metrics.http_reqs.values.count}\n` };
}
";

fn until(what: &str, mut condition: impl FnMut() -> Result<bool, Failure>) -> Outcome {
    for _ in 0..MOST_LOOKS {
        if condition()? {
            return Ok(());
        }
        wait(Duration::from_millis(50));
    }
    Err(format!("{what}: what was waited for did not come within a minute").into())
}

pub(super) fn kill(signal: &str, process: u32) -> Outcome {
    let mut kill = Command::new("kill");
    kill.args([signal, &process.to_string()]);
    step::run(Path::new("/"), &mut kill)
}
