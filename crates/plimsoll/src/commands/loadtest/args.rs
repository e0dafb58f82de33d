//! The flags of `plimsoll loadtest`; each has an environment variable of the harness it follows.

use std::time::Duration;

use clap::builder::FalseyValueParser;
use clap::{ArgAction, Args as _, FromArgMatches as _};
use plimsoll_model::{Protocol, parse_duration};

#[cfg(feature = "fleet")]
use crate::commands::load::fleet::flags::FleetArgs;
use crate::flags::number;

/// Run many concurrent checks against built-in servers
///
/// Over HTTP/2 everything runs in one process and the workers share a few connections. Over HTTP/1 each
/// worker has a connection, and clients and servers run in as many processes as the limit on open files
/// requires.
///
/// With --fleet, agents on several machines share the workers, and each starts its own servers.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES, mut_args(without_flags_of_load))]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) harness: HarnessArgs,

    /// Run in a separate network namespace: somaxconn 8192, `tcp_tw_reuse` 1, ports 10000 to 65535
    #[arg(long)]
    #[cfg_attr(feature = "fleet", arg(conflicts_with = "fleet"))]
    pub(super) netns: bool,

    #[command(flatten)]
    pub(super) output: OutputArgs,

    #[cfg(feature = "fleet")]
    #[command(flatten)]
    pub(super) fleet: FleetArgs,
}

/// What is checked, how and for how long; agents of a fleet get these flags.
#[derive(Debug, clap::Args)]
pub(crate) struct HarnessArgs {
    /// Number of workers, each making one check after another
    // This and the next three: the defaults of the tool whose figures `loadtest` measures again.
    #[arg(
        short,
        long,
        value_name = "N",
        env = "CONCURRENCY",
        value_parser = number::count::<usize>(number::MOST_CONNECTIONS),
        default_value_t = 50_000
    )]
    pub(super) concurrency: usize,

    /// Start new checks for this time; a bare number is in seconds
    #[arg(short = 'z', long, visible_alias = "duration-secs", value_name = "TIME", env = "DURATION_SECS",
          value_parser = number::positive_duration, default_value = "30")]
    pub(super) duration: Duration,

    /// Timeout of a check; a bare number is in milliseconds
    #[arg(long, visible_alias = "timeout-ms", value_name = "TIME", env = "TIMEOUT_MS",
          value_parser = parse_milliseconds, default_value = "5000")]
    pub(super) timeout: Duration,

    /// Number of listeners, each on its own address; over HTTP/1 more if outgoing ports would run out
    #[arg(long, value_name = "N", env = "MOCK_PORTS", default_value_t = 16,
          value_parser = number::count::<usize>(65_535))]
    pub(super) mock_ports: usize,

    /// Start the workers over this time; a bare number is in seconds [default: 2, or the duration if that
    /// is shorter]
    #[arg(long = "ramp-up", visible_alias = "ramp-secs", value_name = "TIME", env = "RAMP_SECS",
          value_parser = parse_duration)]
    pub(super) ramp: Option<Duration>,

    /// Use HTTP/2 with prior knowledge; the workers share a few connections
    #[arg(long, env = "HTTP2", action = ArgAction::SetTrue, value_parser = FalseyValueParser::new())]
    pub(super) http2: bool,

    /// Open a new connection for each check
    #[arg(long)]
    pub(super) disable_keepalive: bool,

    /// Threads per client process [default: half of the cores in one process, 1 in several]
    #[arg(short, long, value_name = "N",
          value_parser = number::count::<usize>(number::MOST_THREADS))]
    pub(super) threads: Option<usize>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,

    /// Do not print a line per second
    #[arg(long)]
    pub(super) no_tui: bool,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll loadtest --http2
  HTTP2=1 CONCURRENCY=100000 DURATION_SECS=15 plimsoll loadtest
  plimsoll loadtest -c 10000 -z 10s --netns
  plimsoll loadtest -c 200 -z 10s --disable-keepalive --json
  plimsoll loadtest --fleet nats://127.0.0.1:4222 --agents 2 -c 10000 -z 10s";

/// The default of the source harness: no burst of SYNs meets a full backlog.
const RAMP: Duration = Duration::from_secs(2);

impl HarnessArgs {
    /// Over which time workers begin.
    pub(super) fn ramp(&self) -> Duration {
        self.ramp.unwrap_or(RAMP.min(self.duration))
    }

    /// The protocol of the checks.
    pub(super) fn protocol(&self) -> Protocol {
        if self.http2 {
            Protocol::Http2
        } else {
            Protocol::Http1
        }
    }

    #[cfg(feature = "fleet")]
    /// The flags as words, each with its value: variables of the machine that reads them change nothing.
    pub(super) fn words(&self) -> Vec<String> {
        let nanos = |duration: Duration| format!("{}ns", duration.as_nanos());
        let mut words = vec![
            format!("--concurrency={}", self.concurrency),
            format!("--duration={}", nanos(self.duration)),
            format!("--timeout={}", nanos(self.timeout)),
            format!("--mock-ports={}", self.mock_ports),
            format!("--ramp-up={}", nanos(self.ramp())),
        ];
        let switches = [
            (self.http2, "--http2"),
            (self.disable_keepalive, "--disable-keepalive"),
        ];
        let given = switches.into_iter().filter(|(is_given, _)| *is_given);
        words.extend(given.map(|(_, flag)| flag.to_owned()));
        words.extend(self.threads.map(|threads| format!("--threads={threads}")));
        words
    }

    /// Reads such words.
    #[cfg(feature = "fleet")]
    pub(super) fn parse(words: &[String]) -> Result<Self, clap::Error> {
        let command = clap::Command::new("loadtest").no_binary_name(true);
        let command = Self::augment_args(command).mut_args(|arg| arg.env(None::<&str>));
        Self::from_arg_matches(&command.try_get_matches_from(words)?)
    }
}

/// Hides the flags of a fleet that go with `load` only; they are refused.
fn without_flags_of_load(arg: clap::Arg) -> clap::Arg {
    let id = arg.get_id().as_str();
    let is_of_load = id == "fleet_tick" || id.starts_with("kubernetes");
    if is_of_load { arg.hide(true) } else { arg }
}

/// A duration above zero; without a unit it is milliseconds.
fn parse_milliseconds(text: &str) -> Result<Duration, String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        number::positive_duration(&format!("{text}ms"))
    } else {
        number::positive_duration(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_survive_the_way_to_an_agent() {
        for flags in [
            "-c 7",
            "-c 50000 -z 500ms --timeout 1500 --mock-ports 3",
            "--ramp-up 0 -z 12s --disable-keepalive",
            "--http2 --threads 3",
        ] {
            let words: Vec<_> = flags.split(' ').map(str::to_owned).collect();
            let args = HarnessArgs::parse(&words).unwrap();
            let read = HarnessArgs::parse(&args.words()).unwrap();
            assert_eq!(read.words(), args.words(), "{flags}");
            assert_eq!(read.ramp(), args.ramp());
        }
        assert!(HarnessArgs::parse(&["--netns".to_owned()]).is_err());
    }

    #[test]
    fn a_number_alone_is_milliseconds() {
        assert_eq!(parse_milliseconds("5000"), Ok(Duration::from_secs(5)));
        assert_eq!(parse_milliseconds("2s"), Ok(Duration::from_secs(2)));
        assert!(parse_milliseconds("").is_err());
        assert!(parse_milliseconds("-1").is_err());
    }
}
