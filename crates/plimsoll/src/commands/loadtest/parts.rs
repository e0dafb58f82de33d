//! The processes that the harness starts: origins, and clients that check them.
//!
//! Each is this program by a hidden command, ends with the process that started it, and reports on
//! standard output what it has to say.

use std::io::Write;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_load::harness::{self, HarnessTick};
use plimsoll_model::{Clock as _, LoadtestFound, LoadtestTick, parse_duration};
use plimsoll_report::LoadtestPart;
use plimsoll_server::Origin;
use plimsoll_wire::{SystemClock, descriptors, process};

use super::layout::connections;
use super::local::bind;
use super::plan::Part;
use crate::exit::Exit;
use crate::problem::{Failed, Problem};
use crate::signals;

/// Before the addresses of origins that serve.
pub(super) const LISTENING: &str = "listening on ";
/// Before the state of clients.
pub(super) const STATE: &str = "state ";
/// Before the number of a part of the outcomes, and the part.
pub(super) const PART: &str = "part ";
/// Before the outcomes that no part had.
pub(super) const RESULT: &str = "result ";

/// How often clients report their state: the sum of all is as old as this at most.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// How often they report what they have found.
const PART_EVERY: Duration = Duration::from_millis(500);

/// Answers on loopback addresses for `plimsoll loadtest`.
#[derive(Debug, clap::Args)]
pub(crate) struct OriginsArgs {
    /// Number of the first listener
    #[arg(long)]
    first: usize,

    /// Listeners
    #[arg(long)]
    count: usize,

    /// Speak HTTP/2 by prior knowledge
    #[arg(long)]
    http2: bool,
}

/// Checks such origins for `plimsoll loadtest`.
#[derive(Debug, clap::Args)]
pub(crate) struct ClientsArgs {
    /// Where the origins listen
    #[arg(long, value_delimiter = ',', required = true)]
    origins: Vec<SocketAddr>,

    /// Workers
    #[arg(long)]
    workers: usize,

    /// Threads
    #[arg(long)]
    threads: usize,

    /// How long workers start new checks
    #[arg(long, value_parser = parse_duration)]
    duration: Duration,

    /// Over which time workers begin
    #[arg(long, value_parser = parse_duration)]
    ramp_up: Duration,

    /// How long one check may take
    #[arg(long, value_parser = parse_duration)]
    timeout: Duration,

    /// Speak HTTP/2 by prior knowledge
    #[arg(long)]
    http2: bool,

    /// Open a fresh connection for each check
    #[arg(long)]
    disable_keepalive: bool,

    /// Begin then, in nanoseconds since 1970, or at once if that is over
    #[arg(long)]
    begin_at: Option<u64>,
}

/// Serves until it is stopped.
pub(crate) fn serve(args: &OriginsArgs) -> Result<Exit, Failed> {
    begin()?;
    let origins = bind(args.first, args.count, args.http2).map_err(|error| failed(&error))?;
    let addresses: Vec<_> = origins
        .iter()
        .map(|origin| origin.address().to_string())
        .collect();
    say(&format!("{LISTENING}{}", addresses.join(",")))?;
    Origin::serve_all(origins).map_err(|error| failed(&error))?;
    Ok(Exit::Fine)
}

/// Checks until the time is over or it gets the signal to end.
pub(crate) fn check(args: &ClientsArgs) -> Result<Exit, Failed> {
    begin()?;
    let interrupt = signals::watch().map_err(|error| failed(&error))?;
    let part = Part {
        origins: &args.origins,
        is_http2: args.http2,
        connections: connections(args.http2, args.disable_keepalive),
        workers: args.workers,
        threads: args.threads,
        duration: args.duration,
        ramp: args.ramp_up,
        timeout: args.timeout,
        tick: TELL_EVERY,
    };
    if let Some(at) = args.begin_at {
        wait_until(UNIX_EPOCH + Duration::from_nanos(at));
    }
    let mut part_number = 0_u64;
    let mut waiting = LoadtestFound::default();
    let mut on_tick = |tick: HarnessTick| {
        let LoadtestTick {
            at,
            ok,
            errors,
            in_flight,
            ..
        } = tick.state;
        waiting.merge(&tick.found);
        // A reader that is gone has ended, and this process is about to.
        if at >= PART_EVERY.saturating_mul(u32::try_from(part_number + 1).unwrap_or(u32::MAX)) {
            let part = LoadtestPart {
                found: std::mem::take(&mut waiting),
                elapsed: at,
            };
            say(&format!("{PART}{part_number} {}", part.to_line())).ok();
            part_number += 1;
        }
        say(&format!("{STATE}{ok} {errors} {in_flight}")).ok();
    };
    let outcome = harness::run(&part.plan(), &interrupt, &mut on_tick);
    let outcome = outcome.map_err(|error| failed(&error))?;
    waiting.merge(&outcome.last_found);
    let part = LoadtestPart {
        found: waiting,
        elapsed: outcome.elapsed,
    };
    say(&format!("{RESULT}{part_number} {}", part.to_line()))?;
    Ok(Exit::Fine)
}

fn wait_until(start: SystemTime) {
    while let Ok(left) = start.duration_since(SystemClock.wall()) {
        if left.is_zero() {
            break;
        }
        thread::park_timeout(left);
    }
}

fn begin() -> Result<(), Failed> {
    process::end_with_parent().map_err(|error| failed(&error))?;
    descriptors::raise().map_err(|error| failed(&error))?;
    Ok(())
}

fn say(line: &str) -> Result<(), Failed> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}")
        .and_then(|()| stdout.flush())
        .map_err(|error| failed(&error))
}

fn failed(error: &dyn std::error::Error) -> Failed {
    Problem::caused_by(error).could_not_run()
}
