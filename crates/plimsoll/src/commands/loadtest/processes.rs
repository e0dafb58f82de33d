//! The harness in several processes, each within its limit on open files.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_load::Interrupt;
use plimsoll_model::{Clock, LoadtestConnections, LoadtestFound, LoadtestTick, Protocol};
use plimsoll_observe::ProcessTree;
use plimsoll_report::LoadtestPart;
use plimsoll_wire::SystemClock;
use plimsoll_wire::process::{Output, Process, ProcessSpec};

use super::Args;
use super::layout::Layout;
use super::lines::Lines;
use super::parts::{LISTENING, RESULT, STATE};
use super::plan::GRACE;
use crate::commands::own_program;
use crate::exit::Exit;
use crate::problem::{Failed, Problem};

/// The results of all processes together.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) found: LoadtestFound,
    pub(super) elapsed: Duration,
    /// While they ran.
    pub(super) peak_memory_bytes: Option<u64>,
}

/// How long origins may take until they listen.
const START: Duration = Duration::from_secs(20);
/// How long a process may take to say its result, beyond the time of the run and the grace.
const SLACK: Duration = Duration::from_secs(30);
/// How often signals are looked for.
const LOOK: Duration = Duration::from_millis(50);
/// How often the state is shown.
pub(super) const TICK: Duration = Duration::from_secs(1);
/// A result is one line of occupied buckets.
const MOST_OUTPUT: usize = 4 << 20;

/// Starts origins, then clients, and waits for these; all are stopped when it returns.
pub(super) fn run(
    args: &Args,
    layout: &Layout,
    interrupt: &Arc<Interrupt>,
    lines: &mut Lines,
    tree: Option<&mut ProcessTree>,
) -> Result<Outcome, Failed> {
    let program = own_program()?;
    let mut origins = start_origins(&program, layout)?;
    let addresses = addresses(&mut origins, interrupt)?;
    let clients = start_clients(&program, args, layout, &addresses)?;
    let mut crew = Crew {
        clients,
        start: SystemClock.now(),
        peak_memory_bytes: None,
    };
    crew.wait(args, interrupt, lines, tree)?;
    for origin in &mut origins {
        if has_ended(origin) {
            return Err(ended("a process that answers", origin));
        }
    }
    crew.results(interrupt)
}

fn start_origins(program: &str, layout: &Layout) -> Result<Vec<Process>, Failed> {
    let each = layout.listeners / layout.origins;
    (0..layout.origins)
        .map(|number| {
            let mut argv = words(&[program, "loadtest-origins"]);
            argv.extend(["--first".to_owned(), (number * each).to_string()]);
            argv.extend(["--count".to_owned(), each.to_string()]);
            if layout.protocol == Protocol::Http2 {
                argv.push("--http2".to_owned());
            }
            spawn(argv)
        })
        .collect()
}

/// Where all of them listen, once they do.
fn addresses(origins: &mut [Process], interrupt: &Interrupt) -> Result<Vec<SocketAddr>, Failed> {
    let mut addresses = Vec::new();
    for origin in origins {
        let listening = |line: &str| {
            let list = line.strip_prefix(LISTENING)?;
            list.split(',').map(|one| one.parse().ok()).collect()
        };
        let found: Option<Vec<SocketAddr>> = origin.stdout_line(START, listening);
        if interrupt.is_set() {
            return Err(interrupted());
        }
        let Some(found) = found else {
            return Err(ended("a process that answers", origin));
        };
        addresses.extend(found);
    }
    Ok(addresses)
}

fn start_clients(
    program: &str,
    args: &Args,
    layout: &Layout,
    addresses: &[SocketAddr],
) -> Result<Vec<Process>, Failed> {
    let mut addresses = addresses.to_vec();
    (0..layout.clients)
        .map(|number| {
            let workers = layout.workers_of(number);
            let list: Vec<_> = addresses.iter().map(ToString::to_string).collect();
            // The next process begins where this one leaves off, so that all have the same load.
            let count = addresses.len();
            addresses.rotate_left(workers % count);
            let mut words = words(&[program, "loadtest-clients"]);
            for (flag, value) in [
                ("--origins", list.join(",")),
                ("--workers", workers.to_string()),
                ("--threads", layout.threads.to_string()),
                ("--duration", nanos(args.duration)),
                ("--ramp-up", nanos(args.ramp())),
                ("--timeout", nanos(args.timeout)),
            ] {
                words.extend([flag.to_owned(), value]);
            }
            if layout.protocol == Protocol::Http2 {
                words.push("--http2".to_owned());
            }
            if layout.connections == LoadtestConnections::Fresh {
                words.push("--disable-keepalive".to_owned());
            }
            spawn(words)
        })
        .collect()
}

fn spawn(argv: Vec<String>) -> Result<Process, Failed> {
    let spec = ProcessSpec {
        argv,
        stdout: Output::CapturedUpTo(MOST_OUTPUT),
        stderr: Output::Captured,
        ..ProcessSpec::default()
    };
    Process::spawn(&spec).map_err(|error| Problem::caused_by(&error).could_not_run())
}

/// The processes that check.
struct Crew {
    clients: Vec<Process>,
    start: Instant,
    peak_memory_bytes: Option<u64>,
}

impl Crew {
    /// Until all of them have ended, telling each second how it goes.
    fn wait(
        &mut self,
        args: &Args,
        interrupt: &Interrupt,
        lines: &mut Lines,
        mut tree: Option<&mut ProcessTree>,
    ) -> Result<(), Failed> {
        let most = args.duration + args.timeout + GRACE + SLACK;
        let mut tick = self.start + TICK;
        let mut is_told = false;
        loop {
            let now = SystemClock.now();
            if interrupt.is_urgent() {
                return Err(interrupted());
            }
            if interrupt.is_set() && !is_told {
                self.clients.iter().for_each(Process::ask_to_end);
                is_told = true;
            }
            if now >= tick {
                let state = self.state(tick.saturating_duration_since(self.start));
                lines.show(state, tree.as_deref_mut());
                self.look_at_memory(tree.as_deref_mut());
                tick += TICK;
            }
            if now >= self.start + most {
                let message = "a process that checks did not come to its end";
                return Err(Problem::new(message).could_not_run());
            }
            let under_way = self.clients.iter_mut().find_map(|client| {
                let is_over = has_ended(client);
                (!is_over).then_some(client)
            });
            let Some(client) = under_way else {
                return Ok(());
            };
            let wait = LOOK.min(tick.saturating_duration_since(now));
            client.wait(wait);
        }
    }

    /// The sum of their last states.
    fn state(&self, at: Duration) -> LoadtestTick {
        let mut sum = LoadtestTick {
            at,
            ..LoadtestTick::default()
        };
        for client in &self.clients {
            let output = client.stdout_tail();
            if let Some([ok, errors, in_flight]) = last_state(&output) {
                sum.ok += ok;
                sum.errors += errors;
                sum.in_flight += in_flight;
            }
        }
        sum
    }

    fn look_at_memory(&mut self, tree: Option<&mut ProcessTree>) {
        let peak = tree.and_then(|tree| tree.peak_memory_bytes().ok());
        self.peak_memory_bytes = self.peak_memory_bytes.max(peak);
    }

    fn results(mut self, interrupt: &Interrupt) -> Result<Outcome, Failed> {
        let mut all = Outcome {
            found: LoadtestFound::default(),
            elapsed: Duration::ZERO,
            peak_memory_bytes: self.peak_memory_bytes,
        };
        for client in &mut self.clients {
            let output = client.stdout_tail();
            let line = output.lines().find_map(|line| line.strip_prefix(RESULT));
            let Some(line) = line else {
                // It may have been set before it could listen.
                if interrupt.is_set() {
                    return Err(interrupted());
                }
                return Err(ended("a process that checks", client));
            };
            let part = LoadtestPart::parse(line)
                .map_err(|error| Problem::caused_by(&error).could_not_run())?;
            all.found.merge(&part.found);
            all.elapsed = all.elapsed.max(part.elapsed);
        }
        Ok(all)
    }
}

/// The numbers of the last complete line that has some.
fn last_state(output: &str) -> Option<[u64; 3]> {
    let complete = output.rsplit_once('\n')?.0;
    let line = complete
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix(STATE))?;
    let mut numbers = line.split(' ').map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some([next()?, next()?, next()?])
}

fn has_ended(process: &mut Process) -> bool {
    process.wait(Duration::ZERO).is_some()
}

fn ended(what: &str, process: &mut Process) -> Failed {
    let stderr = process.stderr_tail();
    let stderr = stderr.trim();
    let message = if stderr.is_empty() {
        format!("{what} ended without a word")
    } else {
        format!("{what} ended: {stderr}")
    };
    Problem::new(message).could_not_run()
}

fn interrupted() -> Failed {
    Failed {
        exit: Exit::Interrupted,
        problems: vec![Problem::new("interrupted before there was a result")],
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn nanos(duration: Duration) -> String {
    format!("{}ns", duration.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_complete_state_counts() {
        assert_eq!(last_state(""), None);
        assert_eq!(last_state("state 1 2"), None);
        assert_eq!(last_state("state 1 2 3\n"), Some([1, 2, 3]));
        let output = "state 1 2 3\nstate 4 5 6\nresult {}\nstate 7 ";
        assert_eq!(last_state(output), Some([4, 5, 6]));
        assert_eq!(last_state("state 1 2 x\n"), None);
    }
}
