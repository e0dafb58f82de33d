//! The flags of `plimsoll loadtest`; each has an environment variable of the harness it follows.

use std::time::Duration;

use clap::ArgAction;
use clap::builder::FalseyValueParser;
use plimsoll_model::parse_duration;

use crate::flags::number;

/// Run many concurrent checks against built-in servers
///
/// Over HTTP/2 everything runs in one process and the workers share a few connections. Over HTTP/1 each
/// worker has a connection, and clients and servers run in as many processes as the limit on open files
/// requires.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
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

    /// Run in a separate network namespace: somaxconn 8192, `tcp_tw_reuse` 1, ports 10000 to 65535
    #[arg(long)]
    pub(super) netns: bool,

    #[command(flatten)]
    pub(super) output: OutputArgs,
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
  plimsoll loadtest -c 200 -z 10s --disable-keepalive --json";

/// The default of the source harness: no burst of SYNs meets a full backlog.
const RAMP: Duration = Duration::from_secs(2);

impl Args {
    /// Over which time workers begin.
    pub(super) fn ramp(&self) -> Duration {
        self.ramp.unwrap_or(RAMP.min(self.duration))
    }
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
    fn a_number_alone_is_milliseconds() {
        assert_eq!(parse_milliseconds("5000"), Ok(Duration::from_secs(5)));
        assert_eq!(parse_milliseconds("2s"), Ok(Duration::from_secs(2)));
        assert!(parse_milliseconds("").is_err());
        assert!(parse_milliseconds("-1").is_err());
    }
}
