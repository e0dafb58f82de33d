//! The flags of `plimsoll load`, as they were written.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use plimsoll_formats::Format;
use plimsoll_model::{ByteSize, Rate, parse_byte_size, parse_duration};

use crate::flags::{ConnectionArgs, RequestArgs, number};
use crate::grpc::GrpcArgs;

/// More than servers allow, and each takes memory.
pub(crate) const MOST_STREAMS: u64 = 100_000;

/// Puts load on a URL and tells what it carried, how long answers took, and what each request cost
/// the server.
///
/// Without a URL it drives a small origin of its own, started on a core of its own, so that it says
/// something about any machine.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
#[command(mut_arg("urls", |urls| urls.conflicts_with("grpc")))]
#[command(mut_arg("from", |from| from.conflicts_with("grpc")))]
pub(crate) struct Args {
    /// Where to send requests; without one, an embedded origin is started
    #[arg(value_name = "URL")]
    pub(crate) url: Option<String>,

    #[command(flatten)]
    pub(crate) shape: ShapeArgs,

    #[command(flatten)]
    pub(crate) request: RequestArgs,

    #[command(flatten)]
    pub(crate) requests: RequestsArgs,

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

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll load
  plimsoll load -c 64 -z 30s http://127.0.0.1:8080/
  plimsoll load -q 5000 -z 1m --pid $(pgrep -o nginx) http://127.0.0.1:8080/
  plimsoll load --stages 10s:100/s,1m:1000/s --expect 'status == 200' http://127.0.0.1:8080/
  plimsoll load --from shop.http --feeder users.csv --var token=$TOKEN http://127.0.0.1:8080
  plimsoll load --http2 -c 8 -p 32 http://127.0.0.1:8080/
  plimsoll load -c 100 -d hello ws://127.0.0.1:8080/socket
  plimsoll load --sse -c 1000 -z 1m http://127.0.0.1:8080/events
  plimsoll load --grpc shop.Cart/Add -d '{\"item\": 7}' -p 32 http://127.0.0.1:50051
  plimsoll load --rps 500 --sample-ms 100 --on-full drop --samples-csv - --pid 4711 URL
  plimsoll load --spawn './server --port 8080' --out result http://127.0.0.1:8080/";

impl Args {
    /// Sets what follows from other flags.
    pub(crate) fn imply(&mut self) {
        self.connection.http2 |= self.grpc.grpc.is_some();
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
    /// Connections; each carries one request at a time, or as many as -p says [default: 50]
    #[arg(short, long, visible_alias = "concurrency", value_name = "N",
          value_parser = number::count::<usize>(number::MOST_CONNECTIONS))]
    pub(crate) connections: Option<usize>,

    /// Requests at a time on each connection, with --http2 or --http3 [default: 1]
    #[arg(short = 'p', long, value_name = "N", value_parser = number::count::<u32>(MOST_STREAMS))]
    pub(crate) streams: Option<u32>,

    /// Requests to make in all, instead of a duration
    #[arg(short = 'n', long, value_name = "N",
          value_parser = number::count::<u64>(number::MOST_REQUESTS))]
    pub(crate) requests: Option<u64>,

    /// How long to run [default: 10s]
    #[arg(short = 'z', long, value_name = "TIME", value_parser = number::positive_duration)]
    pub(crate) duration: Option<Duration>,

    /// Requests per second in all, on a schedule that does not wait for answers
    #[arg(short = 'q', long, visible_alias = "rps", value_name = "RATE",
          value_parser = number::positive_rate)]
    pub(crate) rate: Option<Rate>,

    /// How scheduled requests are spaced
    #[arg(long, value_enum, default_value_t = Arrivals::Fixed)]
    pub(crate) arrivals: Arrivals,

    /// Scheduled requests that start at once; the rate stays what it is
    #[arg(long, visible_alias = "burst-rate", value_name = "N", value_parser = number::burst)]
    pub(crate) burst: Option<NonZeroU32>,

    /// Time from one burst to the next, instead of a rate
    #[arg(long, value_name = "TIME", value_parser = number::positive_duration, requires = "burst",
          conflicts_with_all = ["rate", "stages"])]
    pub(crate) burst_delay: Option<Duration>,

    /// Delay each scheduled request at random by up to this time
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) jitter: Option<Duration>,

    /// Stages such as `10s:100,1m:1000`: connections, or rates if they end in `/s` or -q is given
    #[arg(long, value_name = "TIME:LEVEL,…", conflicts_with_all = ["duration", "ramp_up"])]
    pub(crate) stages: Option<String>,

    /// Bring the connections in over this time instead of all at once
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "rate")]
    pub(crate) ramp_up: Option<Duration>,

    /// Run for this time first, without counting
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "0s")]
    pub(crate) warm_up: Duration,

    /// Worker threads [default: one per core, not counting that of an embedded origin]
    #[arg(short, long, value_name = "N",
          value_parser = number::count::<usize>(number::MOST_THREADS))]
    pub(crate) threads: Option<usize>,

    /// Pause of each connection between two requests: `100ms`, or `50ms..200ms` at random
    #[arg(long, value_name = "TIME", conflicts_with = "rate")]
    pub(crate) think: Option<String>,

    /// Requests under way at most, on a schedule [default: the connections]
    #[arg(long, value_name = "N",
          value_parser = number::count::<usize>(number::MOST_CONNECTIONS))]
    pub(crate) max_in_flight: Option<usize>,

    /// What becomes of a scheduled request when no connection is free
    #[arg(long, value_enum, default_value_t = OnFull::Queue)]
    pub(crate) on_full: OnFull,

    /// How long one request may take, opening a connection included
    #[arg(long, value_name = "TIME", value_parser = number::positive_duration, default_value = "30s")]
    pub(crate) timeout: Duration,

    /// How long requests under way at the end may still take
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "5s")]
    pub(crate) grace: Duration,

    /// Seed of everything random, for a run that can be repeated
    #[arg(long, value_name = "N", default_value_t = 0x5eed)]
    pub(crate) seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Arrivals {
    /// As evenly as possible
    Fixed,
    /// At random, as users who do not know of one another
    Poisson,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnFull {
    /// It is made late, and its intended start is kept
    Queue,
    /// It is given up and counted as an error
    Drop,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Request")]
pub(crate) struct RequestsArgs {
    /// Open a new connection for each request
    #[arg(long)]
    pub(crate) disable_keepalive: bool,

    /// File with one URL a line, requested in turn: short for --from with --from-format urls
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "from"])]
    pub(crate) urls: Option<PathBuf>,

    /// File of requests: a URL list, an `.http` file, command lines of curl, a HAR file or an OpenAPI
    /// document; `-` for standard input. Paths without a host stand behind the URL of the command line
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,

    /// What --from holds: urls, http, curl, har or openapi [default: by its name and content]
    #[arg(long, value_name = "FORMAT", requires = "from")]
    pub(crate) from_format: Option<Format>,

    /// Only the requests of the file that are so, repeatable: `host=example.org`, `method=GET`,
    /// `name=…`, `tag=…`
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) only: Vec<String>,

    /// Which request is next [default: weighted if the file gives weights, else turn]
    #[arg(long, value_enum)]
    pub(crate) pick: Option<Pick>,

    /// File of rows, CSV or JSON, for the places `{{column}}` of requests, repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) feeder: Vec<PathBuf>,

    /// In which order the rows are used
    #[arg(long, value_enum, default_value_t = FeederOrder::Cyclic)]
    pub(crate) feeder_order: FeederOrder,

    /// Value for the places `{{NAME}}` of requests, repeatable; without a value that of the
    /// environment variable NAME
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) var: Vec<String>,

    /// Keep the cookies that responses set and send them along, each virtual user its own
    #[arg(long)]
    pub(crate) cookies: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pick {
    /// One after the other, in the order of the file
    Turn,
    /// Any, at random
    Random,
    /// Any, at random, as often as the weights in the file say
    Weighted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FeederOrder {
    /// Each once; the run ends with the last row
    Sequential,
    /// From the first to the last, again and again
    Cyclic,
    /// Any, at random
    Random,
    /// One for each virtual user, from its first request to its last
    PerUser,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Judgement")]
pub(crate) struct JudgeArgs {
    /// Condition on every response, repeatable: `status == 200`, `body contains 'ok'`,
    /// `time < 300ms`, `size < 64KiB`, `header.etag exists`, `body.json($.ok) == true`
    #[arg(long, value_name = "CONDITION")]
    pub(crate) expect: Vec<String>,

    /// What the figures of the run have to meet, repeatable: `http_req_duration:p(99)<300ms`,
    /// `errors:rate<1% over 10s`, `http_reqs:rate>=500/s abort after 5s`; docs/load.md lists them
    #[arg(long, value_name = "THRESHOLD")]
    pub(crate) threshold: Vec<String>,

    /// End the run when a threshold is breached, but not within TIME of its start
    #[arg(long, value_name = "TIME", value_parser = parse_duration, num_args = 0..=1,
          require_equals = true, default_missing_value = "0s", requires = "threshold")]
    pub(crate) abort_on_breach: Option<Duration>,

    /// Statuses that count as errors: `500`, `5xx`, `400-499,5xx`, or `none`
    /// [default: 429,5xx, or none if --expect has a condition on the status]
    #[arg(long, value_name = "STATUSES")]
    pub(crate) fail_status: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Cost of the server")]
pub(crate) struct ServerArgs {
    /// Process whose cost is measured, with its children
    #[arg(long, value_name = "PID", conflicts_with = "spawn",
          value_parser = number::count::<u32>(u64::from(u32::MAX)))]
    pub(crate) pid: Option<u32>,

    /// Command to start before the run, measure, and stop after it
    #[arg(long, value_name = "COMMAND")]
    pub(crate) spawn: Option<String>,

    /// How long the started command may take to accept connections
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10s")]
    pub(crate) spawn_timeout: Duration,

    /// Cores for the started command or the embedded origin, such as `0` or `0,1`
    #[arg(long, value_name = "CORES", value_delimiter = ',')]
    pub(crate) server_cores: Vec<usize>,

    /// Milliseconds between two looks at the server's processes, at least 10
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u64).range(10..=60_000))]
    pub(crate) sample_ms: u64,

    /// Cores for the workers, one each
    #[arg(long, value_name = "CORES", value_delimiter = ',')]
    pub(crate) cores: Vec<usize>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "HTTP/2")]
pub(crate) struct Http2Args {
    /// How much of one response may be on its way to us: `64KiB` [default: 1 GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_byte_size)]
    pub(crate) h2_window: Option<ByteSize>,

    /// How much of all responses of a connection may be on its way, at least 65535 bytes
    /// [default: 1 GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_byte_size)]
    pub(crate) h2_connection_window: Option<ByteSize>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "WebSocket")]
pub(crate) struct WebSocketArgs {
    /// Length of the message for a ws:// or wss:// URL, in place of -d or -D: `1KiB` [default: 16]
    #[arg(long, value_name = "SIZE", value_parser = number::message_size,
          conflicts_with_all = ["data", "data_file"])]
    pub(crate) message_size: Option<ByteSize>,

    /// Send the message as binary even if it is text
    #[arg(long)]
    pub(crate) binary: bool,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Server-sent events")]
pub(crate) struct EventArgs {
    /// Open streams of events, one for each of the -c connections, or -p on each, and read them until
    /// the run is over
    #[arg(long, conflicts_with = "grpc")]
    pub(crate) sse: bool,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// A line per second while it runs in place of the view over the whole terminal
    #[arg(long)]
    pub(crate) no_tui: bool,

    /// Folder for the result files; must not hold any yet
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Profile the target while it is measured: a flame graph and more in --out, as plimsoll profile
    /// makes them
    #[arg(long, requires = "out")]
    pub(crate) profile: bool,

    /// File for a row a sample, `-` for standard output instead of the summary
    #[arg(long, value_name = "FILE")]
    pub(crate) samples_csv: Option<PathBuf>,

    /// File for thresholds and expectations as test cases in the XML of `JUnit`
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,

    /// File for the figures in the text format of Prometheus
    #[arg(long, value_name = "FILE")]
    pub(crate) prometheus: Option<PathBuf>,

    /// Where to send the figures as metrics of OpenTelemetry, in Protocol Buffers over HTTP, while
    /// it runs and at the end: `http://127.0.0.1:4318`
    #[arg(long, value_name = "URL")]
    pub(crate) otlp: Option<String>,

    /// Where to send the figures by remote write of Prometheus, while it runs and at the end:
    /// `http://127.0.0.1:9090/api/v1/write`
    #[arg(long, value_name = "URL")]
    pub(crate) prometheus_remote_write: Option<String>,

    /// Header field for these two, repeatable
    #[arg(long, value_name = "NAME: VALUE")]
    pub(crate) push_header: Vec<String>,

    /// What the run is called where runs are told apart by name
    #[arg(long, value_name = "NAME", default_value = "plimsoll load",
          value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) run_name: String,

    /// File for the principal figures as Markdown tables
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
}
