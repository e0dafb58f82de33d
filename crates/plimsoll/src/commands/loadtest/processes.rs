//! The harness in several processes, each within its limit on open files.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use plimsoll_load::Interrupt;
use plimsoll_load::harness::HarnessTick;
use plimsoll_model::{Clock, LoadtestConnections, LoadtestFound, LoadtestTick, Protocol};
use plimsoll_report::LoadtestPart;
use plimsoll_wire::SystemClock;
use plimsoll_wire::process::{Output, Process, ProcessSpec};

use super::args::HarnessArgs;
use super::layout::Layout;
use super::parts::{LISTENING, PART, RESULT, STATE};
use super::plan::GRACE;
use crate::commands::own_program;
use crate::exit::Exit;
use crate::problem::{Failed, Problem};

/// The results of all processes together.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) found: LoadtestFound,
    /// Of these, what no tick had.
    pub(super) last_found: LoadtestFound,
    pub(super) elapsed: Duration,
    /// How long after the agreed start the processes were there.
    pub(super) late: Duration,
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

/// Processes that answer, and where; they are stopped when this is dropped.
#[derive(Debug)]
pub(super) struct Origins {
    program: String,
    processes: Vec<Process>,
    addresses: Vec<SocketAddr>,
}

impl Origins {
    /// Starts them and waits until they listen.
    pub(super) fn start(layout: &Layout, interrupt: &Interrupt) -> Result<Self, Failed> {
        let program = own_program()?;
        let mut processes = start_origins(&program, layout)?;
        Ok(Self {
            addresses: addresses(&mut processes, interrupt)?,
            program,
            processes,
        })
    }

    /// Starts clients, and waits for these; all are stopped when it returns.
    ///
    /// - `start`: when clients begin; immediately if `None`.
    /// - `on_tick`: called each second.
    pub(super) fn check(
        mut self,
        args: &HarnessArgs,
        layout: &Layout,
        start: Option<Instant>,
        interrupt: &Arc<Interrupt>,
        on_tick: &mut dyn FnMut(HarnessTick),
    ) -> Result<Outcome, Failed> {
        let clients = self.start_clients(args, layout, start)?;
        let now = SystemClock.now();
        let mut crew = Crew {
            parts: vec![0; clients.len()],
            clients,
            start: start.map_or(now, |start| start.max(now)),
            found: LoadtestFound::default(),
        };
        crew.wait(args, interrupt, on_tick)?;
        for origin in &mut self.processes {
            if has_ended(origin) {
                return Err(ended("a process that answers", origin));
            }
        }
        let late = start.map_or(Duration::ZERO, |start| now.saturating_duration_since(start));
        crew.results(interrupt, late)
    }

    fn start_clients(
        &self,
        args: &HarnessArgs,
        layout: &Layout,
        start: Option<Instant>,
    ) -> Result<Vec<Process>, Failed> {
        let begin_at = start.map(unix_nanos);
        let mut addresses = self.addresses.clone();
        (0..layout.clients)
            .map(|number| {
                let workers = layout.workers_of(number);
                let list: Vec<_> = addresses.iter().map(ToString::to_string).collect();
                // The next process begins where this one leaves off, so that all have the same load.
                let count = addresses.len();
                addresses.rotate_left(workers % count);
                let mut words = words(&[&self.program, "loadtest-clients"]);
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
                if let Some(at) = begin_at {
                    words.extend(["--begin-at".to_owned(), at.to_string()]);
                }
                spawn(words)
            })
            .collect()
    }
}

/// A moment as the clocks of all processes of this machine have it.
fn unix_nanos(at: Instant) -> u128 {
    let left = at.saturating_duration_since(SystemClock.now());
    let date = SystemClock.wall() + left;
    date.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos())
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
    /// Of each client: the number of its next part.
    parts: Vec<u64>,
    /// The outcomes of all parts so far.
    found: LoadtestFound,
}

impl Crew {
    /// Until all of them have ended, telling each second how it goes.
    fn wait(
        &mut self,
        args: &HarnessArgs,
        interrupt: &Interrupt,
        on_tick: &mut dyn FnMut(HarnessTick),
    ) -> Result<(), Failed> {
        let ahead = self.start.saturating_duration_since(SystemClock.now());
        let most = ahead + args.duration + args.timeout + GRACE + SLACK;
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
                on_tick(HarnessTick {
                    state: self.state(tick.saturating_duration_since(self.start)),
                    found: self.take_found()?,
                });
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

    /// What clients have reported since the last time.
    fn take_found(&mut self) -> Result<LoadtestFound, Failed> {
        let mut all = LoadtestFound::default();
        for (client, next) in self.clients.iter().zip(&mut self.parts) {
            let output = client.stdout_tail();
            let complete = output
                .rsplit_once('\n')
                .map_or("", |(complete, _)| complete);
            for line in complete.lines() {
                let Some((number, part)) = numbered(line, PART).filter(|it| it.0 >= *next) else {
                    continue;
                };
                all.merge(&read_part(number, next, part)?.found);
            }
        }
        self.found.merge(&all);
        Ok(all)
    }

    fn results(mut self, interrupt: &Interrupt, late: Duration) -> Result<Outcome, Failed> {
        let mut last_found = self.take_found()?;
        let mut elapsed = Duration::ZERO;
        for (client, next) in self.clients.iter_mut().zip(&mut self.parts) {
            let output = client.stdout_tail();
            let line = output.lines().find_map(|line| numbered(line, RESULT));
            let Some((number, part)) = line else {
                // It may have been set before it could listen.
                if interrupt.is_set() {
                    return Err(interrupted());
                }
                return Err(ended("a process that checks", client));
            };
            let part = read_part(number, next, part)?;
            self.found.merge(&part.found);
            last_found.merge(&part.found);
            elapsed = elapsed.max(part.elapsed);
        }
        Ok(Outcome {
            found: self.found,
            last_found,
            elapsed,
            late,
        })
    }
}

/// The number and the rest of a line that begins with `word`.
fn numbered<'a>(line: &'a str, word: &str) -> Option<(u64, &'a str)> {
    let (number, rest) = line.strip_prefix(word)?.split_once(' ')?;
    Some((number.parse().ok()?, rest))
}

/// Reads a part.
///
/// - `next`: the number that it has to have, which is counted on.
fn read_part(number: u64, next: &mut u64, part: &str) -> Result<LoadtestPart, Failed> {
    if number != *next {
        let message = "a process that checks has reported faster than this one could read";
        return Err(Problem::new(message).could_not_run());
    }
    *next += 1;
    LoadtestPart::parse(part).map_err(|error| Problem::caused_by(&error).could_not_run())
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
    fn a_part_that_was_missed_is_not_passed_over() {
        let part = LoadtestPart {
            found: LoadtestFound::default(),
            elapsed: Duration::ZERO,
        };
        let line = format!("{PART}4 {}", part.to_line());
        let (number, rest) = numbered(&line, PART).unwrap();
        assert_eq!(number, 4);
        let mut next = 4;
        read_part(number, &mut next, rest).unwrap();
        assert_eq!(next, 5);
        let failed = read_part(6, &mut next, rest).unwrap_err();
        assert!(failed.problems[0].message.contains("could read"));
        assert_eq!(numbered("state 1 2 3", PART), None);
    }

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
