//! The flags of `plimsoll load`, as they were written.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use plimsoll_formats::Format;
use plimsoll_model::{ByteSize, Rate, parse_byte_size, parse_duration};

use crate::flags::{ConnectionArgs, ObserveArgs, RequestArgs, ResponseArgs, number};
use crate::grpc::GrpcArgs;

/// More than servers allow, and each takes memory.
pub(crate) const MOST_STREAMS: u64 = 100_000;

/// Run a load test against a URL and report throughput, latency and cost per request
///
/// Without a URL, plimsoll starts a small HTTP server on a core of its own and loads that.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
#[command(mut_arg("urls", |urls| urls.conflicts_with("grpc")))]
#[command(mut_arg("from", |from| from.conflicts_with("grpc")))]
pub(crate) struct Args {
    /// URL to load [default: a server that plimsoll starts]
    #[arg(value_name = "URL")]
    pub(crate) url: Option<String>,

    #[command(flatten)]
    pub(crate) shape: ShapeArgs,

    #[command(flatten)]
    pub(crate) request: RequestArgs,

    #[command(flatten)]
    pub(crate) requests: RequestsArgs,

    #[command(flatten)]
    pub(crate) responses: ResponseArgs,

    #[command(flatten)]
    pub(crate) judge: JudgeArgs,

    #[command(flatten)]
    pub(crate) server: ServerArgs,

    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    #[command(flatten)]
    pub(crate) http2: Http2Args,

    #[command(flatten)]
    pub(crate) websocket: WebSocketArgs,

    #[command(flatten)]
    pub(crate) events: EventArgs,

    #[command(flatten)]
    pub(crate) grpc: GrpcArgs,

    #[cfg(feature = "fleet")]
    #[command(flatten)]
    pub(crate) fleet: super::fleet::flags::FleetArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll load
  plimsoll load -c 64 -z 30s http://127.0.0.1:8080/
  plimsoll load -q 5000 -z 1m --pid nginx http://127.0.0.1:8080/
  plimsoll load --observe web=https://web1:7070/?unit=nginx --observe-token-file token https://shop.example.org/
  plimsoll load --stages 10s:100/s,1m:1000/s --expect 'status == 200' http://127.0.0.1:8080/
  plimsoll load --from shop.http --feeder users.csv --var token=$TOKEN http://127.0.0.1:8080
  plimsoll load --from access.log --pace 2x http://127.0.0.1:8080
  plimsoll load --http2 -c 8 -p 32 http://127.0.0.1:8080/
  plimsoll load -c 100 -d hello ws://127.0.0.1:8080/socket
  plimsoll load --sse -c 1000 -z 1m http://127.0.0.1:8080/events
  plimsoll load --grpc shop.Cart/Add -d '{\"item\": 7}' -p 32 http://127.0.0.1:50051
  plimsoll load -u 10 -d 30s script.js    (a k6 script; its flags: plimsoll load script.js --help)
  plimsoll load --fleet nats://broker:4222 --agents 4 --sign key.pem -q 50k -z 5m http://shop.example.org/
  plimsoll load --rps 500 --sample-ms 100 --on-full drop --samples-csv - --pid 4711 URL
  plimsoll load --spawn './server --port 8080' --out result http://127.0.0.1:8080/";

impl Args {
    /// Sets what follows from other flags.
    pub(crate) fn imply(&mut self) {
        self.connection.http2 |= self.grpc.grpc.is_some() && !self.connection.http3;
    }

    /// Whether neither the command line nor a file says where requests go.
    pub(crate) fn is_embedded(&self) -> bool {
        let has_file = self.requests.urls.is_some() || self.requests.from.is_some();
        self.url.is_none() && !has_file
    }
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct ShapeArgs {
    /// Number of connections [default: 50]
    #[arg(short, long, visible_alias = "concurrency", value_name = "N",
          value_parser = number::count::<usize>(number::MOST_CONNECTIONS))]
    pub(crate) connections: Option<usize>,

    /// Concurrent requests per connection, with --http2 or --http3 [default: 1]
    #[arg(short = 'p', long, value_name = "N", value_parser = number::count::<u32>(MOST_STREAMS))]
    pub(crate) streams: Option<u32>,

    /// Stop after this number of requests instead of a duration
    #[arg(short = 'n', long, value_name = "N",
          value_parser = number::count::<u64>(number::MOST_REQUESTS))]
    pub(crate) requests: Option<u64>,

    /// Run for this time [default: 10s]
    #[arg(short = 'z', long, value_name = "TIME", value_parser = number::positive_duration)]
    pub(crate) duration: Option<Duration>,

    /// Start this many requests per second (open loop)
    #[arg(short = 'q', long, visible_alias = "rps", value_name = "RATE",
          value_parser = number::positive_rate)]
    pub(crate) rate: Option<Rate>,

    /// Replay an access log at its own times: `1x`, `2x`, `0.5x`; `max` sends each line once, as fast as
    /// possible
    #[arg(long, value_name = "PACE", requires = "from",
          conflicts_with_all = ["rate", "stages", "arrivals", "burst", "jitter", "think", "ramp_up", "pick"])]
    pub(crate) pace: Option<Pace>,

    /// Spacing of scheduled requests
    #[arg(long, value_enum, default_value_t = Arrivals::Fixed)]
    pub(crate) arrivals: Arrivals,

    /// Start scheduled requests in bursts of this size, at the same rate
    #[arg(long, visible_alias = "burst-rate", value_name = "N", value_parser = number::burst)]
    pub(crate) burst: Option<NonZeroU32>,

    /// Time between two bursts, instead of a rate
    #[arg(long, value_name = "TIME", value_parser = number::positive_duration, requires = "burst",
          conflicts_with_all = ["rate", "stages"])]
    pub(crate) burst_delay: Option<Duration>,

    /// Delay each scheduled request by a random time up to this one
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) jitter: Option<Duration>,

    /// Stages such as `10s:100,1m:1000`: connections, or rates if they end in `/s` or with -q
    #[arg(long, value_name = "TIME:LEVEL,…", conflicts_with_all = ["duration", "ramp_up"])]
    pub(crate) stages: Option<String>,

    /// Open the connections over this time instead of all at once
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "rate")]
    pub(crate) ramp_up: Option<Duration>,

    /// Warm up for this time first; it is left out of the results
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "0s")]
    pub(crate) warm_up: Duration,

    /// Number of worker threads [default: one per core that --spawn leaves]
    #[arg(short, long, value_name = "N",
          value_parser = number::count::<usize>(number::MOST_THREADS))]
    pub(crate) threads: Option<usize>,

    /// Pause between two requests of a connection: `100ms`, or `50ms..200ms` at random
    #[arg(long, value_name = "TIME", conflicts_with = "rate")]
    pub(crate) think: Option<String>,

    /// Maximum requests in flight with -q [default: the number of connections]
    #[arg(long, value_name = "N",
          value_parser = number::count::<usize>(number::MOST_CONNECTIONS))]
    pub(crate) max_in_flight: Option<usize>,

    /// Action for a scheduled request when no connection is free
    #[arg(long, value_enum, default_value_t = OnFull::Queue)]
    pub(crate) on_full: OnFull,

    /// Timeout of a request, connection set-up included
    // Beyond the slowest response of a healthy server, so that slowness shows as latency and not as failures.
    #[arg(long, value_name = "TIME", value_parser = number::positive_duration, default_value = "30s")]
    pub(crate) timeout: Duration,

    /// Time for requests in flight at the end to complete
    // Requests within it complete in nearly every run; a server that hangs does not hold the run up for the timeout.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "5s")]
    pub(crate) grace: Duration,

    /// Seed for random choices, to repeat a run
    // Any fixed number makes runs repeatable.
    #[arg(long, value_name = "N", default_value_t = 0x5eed)]
    pub(crate) seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Arrivals {
    /// Evenly spaced
    Fixed,
    /// Poisson arrivals (independent users)
    Poisson,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnFull {
    /// Start it late and keep its intended start
    Queue,
    /// Drop it and count it as an error
    Drop,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Request")]
pub(crate) struct RequestsArgs {
    /// Open a new connection for each request
    #[arg(long)]
    pub(crate) disable_keepalive: bool,

    /// Read URLs from this file, one per line, and request them in turn
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    pub(crate) urls: Option<PathBuf>,

    /// Read requests from an `.http`, HAR, OpenAPI, curl, URL list or access log file
    ///
    /// `-` reads standard input. The URL argument is the base of paths without a host.
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,

    /// Format of --from: urls, http, curl, har, openapi or access-log [default: by name and content]
    #[arg(long, value_name = "FORMAT", requires = "from")]
    pub(crate) from_format: Option<Format>,

    /// Send only matching requests of the file, repeatable: `host=example.org`, `path=/api`,
    /// `method=GET`, `name=…`, `tag=…`
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) only: Vec<String>,

    /// Order of the requests [default: weighted if the file has weights, else turn]
    #[arg(long, value_enum)]
    pub(crate) pick: Option<Pick>,

    /// Fill `{{column}}` in requests from the rows of a CSV or JSON file, repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) feeder: Vec<PathBuf>,

    /// Order of the rows
    #[arg(long, value_enum, default_value_t = FeederOrder::Cyclic)]
    pub(crate) feeder_order: FeederOrder,

    /// Fill `{{NAME}}` in requests with a value, or with the environment variable NAME; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) var: Vec<String>,

    /// Fill `{{NAME}}` in an `.http` file from this environment of `http-client.env.json` or of VS Code's settings
    /// [default: the only one]
    #[arg(long, value_name = "NAME", requires = "from")]
    pub(crate) env: Option<String>,

    /// Store cookies and send them back, separately for each virtual user
    #[arg(long)]
    pub(crate) cookies: bool,
}

/// How fast a log is replayed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pace {
    /// So many times as fast as it was written.
    Times(f64),
    /// Each line once, as fast as the connections allow.
    Max,
}

impl FromStr for Pace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "max" {
            return Ok(Self::Max);
        }
        let times = text.strip_suffix('x').unwrap_or(text).parse::<f64>();
        match times {
            Ok(times) if (0.001..=100_000.0).contains(&times) => Ok(Self::Times(times)),
            _ => Err(
                "write `1x` for the times of the log, `2x` for twice as fast, or `max`".to_owned(),
            ),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pick {
    /// In the order of the file
    Turn,
    /// Random
    Random,
    /// Random, by the weights in the file
    Weighted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FeederOrder {
    /// Use each row once and stop after the last
    Sequential,
    /// Cycle through the rows
    Cyclic,
    /// Random
    Random,
    /// One row per virtual user
    PerUser,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Judgement")]
pub(crate) struct JudgeArgs {
    /// Check every response against a condition such as `status == 200`, repeatable
    ///
    /// Others: `body contains 'ok'`, `time < 300ms`, `size < 64KiB`, `header.etag exists`, `body.json($.ok) == true`.
    #[arg(long, value_name = "CONDITION")]
    pub(crate) expect: Vec<String>,

    /// Exit with 1 unless `http_req_duration:p(99)<300ms` or the like holds, repeatable
    ///
    /// Others: `errors:rate<1% over 10s`, `http_reqs:rate>=500/s abort after 5s`; docs/load.md lists them.
    #[arg(long, value_name = "THRESHOLD")]
    pub(crate) threshold: Vec<String>,

    /// Stop the run when a threshold is breached, at the earliest after TIME
    #[arg(long, value_name = "TIME", value_parser = parse_duration, num_args = 0..=1,
          require_equals = true, default_missing_value = "0s", requires = "threshold")]
    pub(crate) abort_on_breach: Option<Duration>,

    /// Count these statuses as errors: `500`, `5xx`, `400-499,5xx`, or `none`
    /// [default: 429,5xx, or none if --expect has a condition on the status]
    #[arg(long, value_name = "STATUSES")]
    pub(crate) fail_status: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Cost of the server")]
pub(crate) struct ServerArgs {
    /// Measure the cost of this process and its children
    ///
    /// A name stands for the one process that has it, or for the parent of all that have it.
    #[arg(long, value_name = "PID|NAME", conflicts_with = "spawn",
          value_parser = number::process)]
    pub(crate) pid: Option<u32>,

    /// Start this server before the run, measure its cost, and stop it afterwards
    #[arg(long, value_name = "COMMAND")]
    pub(crate) spawn: Option<String>,

    #[command(flatten)]
    pub(crate) observe: ObserveArgs,

    /// Time for --spawn to accept connections
    // Long enough for a JVM with a framework; a server that never listens is reported soon.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10s")]
    pub(crate) spawn_timeout: Duration,

    /// Pin the started server to these cores, such as `0` or `0,1`
    #[arg(long, value_name = "CORES", value_delimiter = ',')]
    pub(crate) server_cores: Vec<usize>,

    /// Interval between samples of the server's processes in milliseconds, at least 10
    // Ten points a second for the plots.
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u64).range(10..=60_000))]
    pub(crate) sample_ms: u64,

    /// Pin the workers to these cores, one each
    #[arg(long, value_name = "CORES", value_delimiter = ',')]
    pub(crate) cores: Vec<usize>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "HTTP/2")]
pub(crate) struct Http2Args {
    /// HTTP/2 flow-control window of a stream: `64KiB` [default: 1 GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_byte_size)]
    pub(crate) h2_window: Option<ByteSize>,

    /// HTTP/2 flow-control window of a connection, at least 65535 bytes [default: 1 GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_byte_size)]
    pub(crate) h2_connection_window: Option<ByteSize>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "WebSocket")]
pub(crate) struct WebSocketArgs {
    /// Length of the WebSocket message, instead of -d or -D: `1KiB` [default: 16]
    #[arg(long, value_name = "SIZE", value_parser = number::message_size,
          conflicts_with_all = ["data", "data_file"])]
    pub(crate) message_size: Option<ByteSize>,

    /// Send WebSocket messages as binary even if they are text
    #[arg(long)]
    pub(crate) binary: bool,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Server-sent events")]
pub(crate) struct EventArgs {
    /// Open streams of server-sent events, one per connection (or -p per connection), and read them until
    /// the run ends
    #[arg(long, conflicts_with = "grpc")]
    pub(crate) sse: bool,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Report all errors in flags and files, print what the run would do, and exit without sending anything
    #[arg(long, conflicts_with_all = ["spawn", "out", "dashboard"])]
    pub(crate) check: bool,

    /// Print every section of the summary, such as phases and histogram
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) verbose: bool,

    /// Print a line per second instead of the full-screen view
    #[arg(long)]
    pub(crate) no_tui: bool,

    /// Serve a page with live charts of the run at this address: `:5665`, `HOST:PORT`
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) dashboard: Option<String>,

    /// Write result files into this folder, which must not hold any yet
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Append the principal figures to this file as a line of JSON, for report --trend; --run-name names them
    #[cfg(feature = "lab")]
    #[arg(long, value_name = "FILE")]
    pub(crate) append: Option<PathBuf>,

    /// Profile the server during the run and write a flame graph into --out
    #[cfg(feature = "lab")]
    #[arg(long, requires = "out")]
    pub(crate) profile: bool,

    /// Write a CSV row per sample to this file; `-` for standard output instead of the summary
    #[arg(long, value_name = "FILE")]
    pub(crate) samples_csv: Option<PathBuf>,

    /// Write thresholds and conditions as `JUnit` XML to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,

    /// Write the results in Prometheus text format to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) prometheus: Option<PathBuf>,

    /// Send metrics to an OpenTelemetry collector during and after the run (OTLP over HTTP):
    /// `http://127.0.0.1:4318`
    #[arg(long, value_name = "URL")]
    pub(crate) otlp: Option<String>,

    /// Send metrics by Prometheus remote write during and after the run:
    /// `http://127.0.0.1:9090/api/v1/write`
    #[arg(long, value_name = "URL")]
    pub(crate) prometheus_remote_write: Option<String>,

    /// Header for --otlp and --prometheus-remote-write, repeatable
    #[arg(long, value_name = "NAME: VALUE")]
    pub(crate) push_header: Vec<String>,

    /// Name of the run in exported metrics and reports
    #[arg(long, value_name = "NAME", default_value = DEFAULT_RUN_NAME,
          value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) run_name: String,

    /// Write the main results as Markdown tables to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
}

impl OutputArgs {
    /// Whether the server is profiled.
    pub(crate) fn profiles(&self) -> bool {
        #[cfg(feature = "lab")]
        let profiles = self.profile;
        #[cfg(not(feature = "lab"))]
        let profiles = false;
        profiles
    }
}

/// The name of runs that were given none.
pub(crate) const DEFAULT_RUN_NAME: &str = "plimsoll load";
