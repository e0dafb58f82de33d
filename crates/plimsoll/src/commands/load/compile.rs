//! From flags to a run plan: everything is checked, and every problem is told at once.

use std::error::Error;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::SessionPlan;
use plimsoll_client::check::{Condition, Expectations};
use plimsoll_client::{ConnectPlan, RequestForm, Upgrade};
use plimsoll_formats::grpc::Descriptors;
use plimsoll_load::schedule::{RateProfile, Stage};
use plimsoll_load::{
    Http2Plan, Http3Plan, OnFull, Pacing, Ramp, RunPlan, Spacing, StatusSet, StopRule, ThinkTime,
    WebSocketPlan,
};
use plimsoll_model::{ByteSize, Protocol, Rate, Threshold, parse_duration, parse_rate};
use plimsoll_wire::h1::Limits;
use plimsoll_wire::h2;
use plimsoll_wire::sse;
use plimsoll_wire::ws::{self, MessageKind};

use super::args::{self, Args};
use super::push::Destination;
use super::requests::{self, Described};
use crate::flags::{Problems, Way};
use crate::grpc::{self, UnknownMethod, Wanted};
use crate::problem::{Failed, Problem};

const DEFAULT_CONNECTIONS: usize = 50;
const DEFAULT_DURATION: Duration = Duration::from_secs(10);

/// No generator on one machine starts more than this, and a schedule of it would be meaningless.
const HIGHEST_RATE: f64 = 10_000_000.0;

/// More than servers allow, and each takes memory.
const MOST_STREAMS: u32 = 100_000;

/// RFC 9113, section 6.9.1.
const MOST_WINDOW: u32 = (1 << 31) - 1;

/// What a connection begins with; it cannot be taken back (RFC 9113, section 6.9.2).
const LEAST_CONNECTION_WINDOW: u32 = 65_535;

/// Starts that are held back by chance are held in memory, by each worker.
const MOST_JITTERED: f64 = 1_000_000.0;

/// What is sent over a WebSocket if nothing else is asked for.
const DEFAULT_MESSAGE_BYTES: u64 = 16;

/// Every connection holds its message once more, masked.
const MOST_MESSAGE_BYTES: u64 = 64 << 20;

/// What the machine and the environment add to the flags.
#[derive(Debug)]
pub(super) struct Surroundings {
    /// Cores that workers may use.
    pub(super) cores: Vec<usize>,
    /// Environment variables, for the proxies.
    pub(super) variables: Vec<(String, String)>,
}

/// What the flags ask for.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) plan: RunPlan,
    pub(super) thresholds: Vec<Threshold>,
    /// What a file of requests says and its requests do not carry.
    pub(super) left_out: Vec<Problem>,
    /// Where figures are sent to.
    pub(super) destinations: Vec<Destination>,
    /// The method to be called, as long as only its server can tell of it; the plan is then one that
    /// reaches the server and no more.
    pub(super) unknown_method: Option<UnknownMethod>,
}

/// Makes a plan of the flags.
///
/// - `url`: that of the command line, or of the embedded origin.
/// - `told`: what the server said of the method of `--grpc`, once it was asked.
pub(super) fn compile(
    args: &Args,
    url: Option<&str>,
    surroundings: &Surroundings,
    told: Option<&Descriptors>,
) -> Result<Compiled, Failed> {
    let mut compiler = Compiler {
        args,
        problems: Problems::default(),
        most_exchanges: None,
        unknown_method: None,
    };
    let plan = compiler.plan(url, surroundings, told);
    let server = &args.server;
    let is_observed = args.is_embedded() || server.pid.is_some() || server.spawn.is_some();
    let thresholds = thresholds(args, is_observed, &mut compiler.problems);
    if args.output.profile && !is_observed {
        compiler.problems.push(
            Problem::with("--profile", "needs the processes of the server")
                .hint("name them with --pid, or start them with --spawn"),
        );
    }
    let variables = &surroundings.variables;
    let destinations = Destination::compile(args, variables, &mut compiler.problems);
    let unknown_method = compiler.unknown_method.take();
    let whole = plan.map(|(plan, left_out)| Compiled {
        plan,
        thresholds,
        left_out,
        destinations,
        unknown_method,
    });
    compiler.problems.unless_any(whole)
}

/// The thresholds; only those on the target's processes need it to be observed.
///
/// - `is_observed`: whether the target's processes can be seen.
fn thresholds(args: &Args, is_observed: bool, problems: &mut Problems) -> Vec<Threshold> {
    let mut thresholds = Vec::new();
    for text in &args.judge.threshold {
        let Some(mut threshold) = problems.value("--threshold", Threshold::parse(text)) else {
            continue;
        };
        if threshold.metric().needs_server() && !is_observed {
            problems.push(
                Problem::with(
                    "--threshold",
                    format!("`{threshold}` needs the processes of the server"),
                )
                .hint("name them with --pid, or start them with --spawn"),
            );
        }
        if threshold.abort_after.is_none() {
            threshold.abort_after = args.judge.abort_on_breach;
        }
        thresholds.push(threshold);
    }
    thresholds
}

struct Compiler<'a> {
    args: &'a Args,
    problems: Problems,
    /// Exchanges for which there are values.
    most_exchanges: Option<u64>,
    unknown_method: Option<UnknownMethod>,
}

impl Compiler<'_> {
    fn plan(
        &mut self,
        url: Option<&str>,
        surroundings: &Surroundings,
        told: Option<&Descriptors>,
    ) -> Option<(RunPlan, Vec<Problem>)> {
        let grpc = Wanted::compile(&self.args.grpc, told, &mut self.problems);
        let url = match (&grpc, url) {
            (Some(grpc), Some(url)) => Some(self.value("URL", grpc::url(url, &grpc.name))?),
            (_, url) => url.map(str::to_owned),
        };
        let url = url.as_deref();
        let described = requests::describe(&self.args.requests, url, &mut self.problems);
        self.most_exchanges = described.as_ref().and_then(Described::most_exchanges);
        let expectations = self.expectations();
        let fail_statuses = self.fail_statuses();
        let shape = self.shape();
        let keep_alive = !self.args.requests.disable_keepalive;
        let protocol = self.args.connection.version();
        let streams = self.streams(protocol);
        let http2 = (protocol == Protocol::Http2).then(|| self.http2(streams));
        let http3 = (protocol == Protocol::Http3).then_some(Http3Plan {
            streams,
            udp_payload: self.args.connection.udp_payload,
        });
        let closes = !keep_alive && protocol == Protocol::Http1;
        let is_websocket = described.as_ref().is_some_and(Described::is_websocket);
        let (mut parts, websocket) = if is_websocket {
            let fields = Upgrade::fields();
            let (parts, message) = self.args.request.upgrade(fields, &mut self.problems);
            (parts, Some(self.websocket(message)))
        } else {
            self.only_websockets();
            let mut parts = self.args.request.parts(closes, &mut self.problems);
            if self.args.events.sse {
                self.streams_of_events();
                parts.set_accept(sse::MEDIA_TYPE);
            }
            (parts, None)
        };
        if let Some(described) = &described {
            described.fill(&mut parts, &mut self.problems);
        }
        if !is_websocket && self.args.requests.from.is_none() && self.args.requests.urls.is_none() {
            self.args.request.check_body(&mut self.problems);
        }
        let session = SessionPlan {
            cookies: self.args.requests.cookies,
            digest: self.args.request.digest(&mut self.problems),
        };
        if let Some(grpc) = &grpc {
            grpc.fill(&mut parts, &mut self.problems);
            self.unknown_method = grpc.is_unknown().then(|| UnknownMethod {
                name: grpc.name.clone(),
                parts: parts.clone(),
            });
        }
        let connect = self.args.connection.plan(
            &described
                .as_ref()
                .map(Described::endpoints)
                .unwrap_or_default(),
            self.args.shape.timeout,
            &surroundings.variables,
            &mut self.problems,
        );
        let cores = self.cores(&surroundings.cores);
        let (described, shape, connect) = (described?, shape?, connect?);
        if is_websocket {
            self.way_of_websockets(&described, &connect);
        }
        let way = Way {
            connect: &connect,
            protocol,
        };
        let (endpoints, requests) = described.encode(way, &parts, &mut self.problems)?;
        let workers = self.workers(shape.connections, &surroundings.cores)?;
        let plan = RunPlan {
            endpoints,
            requests,
            pick: described.pick,
            feeders: described.feeders,
            session,
            connect: Arc::new(connect),
            pacing: shape.pacing,
            connections: shape.connections,
            workers,
            cores,
            stop: shape.stop,
            warm_up: self.args.shape.warm_up,
            grace: self.args.shape.grace,
            timeout: self.args.shape.timeout,
            keep_alive,
            limits: Limits {
                // A stream of events has no end of its own.
                body_bytes: if self.args.events.sse {
                    u64::MAX
                } else {
                    Limits::default().body_bytes
                },
                ..Limits::default()
            },
            http2,
            http3,
            websocket,
            grpc: grpc.as_ref().map(Wanted::plan),
            events: self.args.events.sse.then(sse::Limits::default),
            expectations: Arc::new(expectations),
            fail_statuses,
            seed: self.args.shape.seed,
            sample_every: Duration::from_millis(self.args.server.sample_ms),
        };
        Some((plan, described.left_out))
    }

    fn problem(&mut self, flag: &str, message: impl ToString) {
        self.problems.add(flag, message);
    }

    fn value<T, E: Into<Box<dyn Error>>>(&mut self, flag: &str, result: Result<T, E>) -> Option<T> {
        self.problems.value(flag, result)
    }

    /// The message that is sent, and what does not go with it.
    fn websocket(&mut self, message: Option<Vec<u8>>) -> WebSocketPlan {
        let args = self.args;
        for (flag, given) in [
            ("--http2", args.connection.http2),
            ("--http3", args.connection.http3),
            ("--grpc", args.grpc.grpc.is_some()),
            ("--sse", args.events.sse),
            ("--cookies", args.requests.cookies),
            ("--digest", args.request.has_digest()),
            ("--feeder", !args.requests.feeder.is_empty()),
            ("--disable-keepalive", args.requests.disable_keepalive),
            ("--expect", !args.judge.expect.is_empty()),
            ("--fail-status", args.judge.fail_status.is_some()),
        ] {
            if given {
                self.problem(flag, "does not go with the URL of a WebSocket");
            }
        }
        let size = args
            .websocket
            .message_size
            .map_or(DEFAULT_MESSAGE_BYTES, |size| size.0);
        let message = message.unwrap_or_else(|| {
            if size > MOST_MESSAGE_BYTES {
                self.problem("--message-size", "must be at most 64 MiB");
                return Vec::new();
            }
            (b'a'..=b'z')
                .cycle()
                .zip(0..size)
                .map(|(letter, _)| letter)
                .collect()
        });
        if message.len() as u64 > MOST_MESSAGE_BYTES {
            self.problem(
                "-D",
                "holds more than 64 MiB, which is too long for a message",
            );
        }
        let is_text = !args.websocket.binary && str::from_utf8(&message).is_ok();
        WebSocketPlan {
            kind: if is_text {
                MessageKind::Text
            } else {
                MessageKind::Binary
            },
            message: message.into(),
            limits: ws::Limits::default(),
        }
    }

    /// Tells what does not go with streams of events.
    fn streams_of_events(&mut self) {
        let args = self.args;
        for (flag, given) in [
            ("--cookies", args.requests.cookies),
            ("--digest", args.request.has_digest()),
            ("--expect", !args.judge.expect.is_empty()),
        ] {
            if given {
                self.problem(flag, "does not go with --sse");
            }
        }
        if args.is_embedded() {
            self.problem("--sse", "needs a URL: the embedded origin has no streams");
        }
    }

    /// Tells what only goes with the URL of a WebSocket.
    fn only_websockets(&mut self) {
        let args = &self.args.websocket;
        for (flag, given) in [
            ("--message-size", args.message_size.is_some()),
            ("--binary", args.binary),
        ] {
            if given {
                self.problem(flag, "needs a URL with ws:// or wss://");
            }
        }
    }

    /// An HTTP proxy passes a request on, but nothing that is not one.
    fn way_of_websockets(&mut self, described: &Described, connect: &ConnectPlan) {
        let is_relayed = |url| matches!(connect.request_form(url), RequestForm::Absolute { .. });
        if described.endpoints().iter().any(is_relayed) {
            self.problems.push(
                Problem::with("-x", "a ws:// URL does not go through an HTTP proxy")
                    .hint("use a SOCKS proxy, or none with `-x ''`"),
            );
        }
    }

    fn expectations(&mut self) -> Expectations {
        let conditions = self.args.judge.expect.iter();
        let conditions = conditions
            .filter_map(|text| self.value("--expect", Condition::parse(text)))
            .collect::<Vec<_>>();
        if self.args.grpc.grpc.is_none() && conditions.iter().any(Condition::needs_grpc) {
            self.problem("--expect", "`grpc.status` needs --grpc");
        }
        Expectations::new(conditions)
    }

    fn fail_statuses(&mut self) -> StatusSet {
        let set = self.args.judge.fail_status.as_deref().map(StatusSet::parse);
        set.and_then(|set| self.value("--fail-status", set))
            .unwrap_or_default()
    }

    /// Requests at a time on each connection; notes what does not go with several.
    fn streams(&mut self, protocol: Protocol) -> u32 {
        let args = self.args;
        let streams = args.shape.streams.unwrap_or(1);
        let flag = match protocol {
            Protocol::Http1 | Protocol::WebSocket => {
                if args.shape.streams.is_some() {
                    self.problem(
                        "-p",
                        "needs --http2 or --http3: over HTTP/1.1 it is always 1",
                    );
                }
                for (flag, given) in [
                    ("--h2-window", args.http2.h2_window),
                    ("--h2-connection-window", args.http2.h2_connection_window),
                ] {
                    if given.is_some() {
                        self.problem(flag, "needs --http2");
                    }
                }
                return streams;
            }
            Protocol::Http2 if args.grpc.grpc.is_some() => "--grpc",
            Protocol::Http2 => "--http2",
            Protocol::Http3 => "--http3",
        };
        if args.requests.disable_keepalive {
            self.problem(
                "--disable-keepalive",
                format!(
                    "has no meaning with {flag}, whose connections carry requests side by side"
                ),
            );
        }
        if args.shape.max_in_flight.is_some() {
            self.problems.push(
                Problem::with("--max-in-flight", format!("does not go with {flag}"))
                    .hint("the connections (-c) times their streams (-p) are under way at most"),
            );
        }
        if args.grpc.grpc.is_some() && args.is_embedded() {
            self.problem("--grpc", "needs a URL: the embedded origin has no methods");
        }
        if protocol == Protocol::Http3 && args.is_embedded() {
            self.problem(
                flag,
                "needs a URL: the embedded origin speaks HTTP/1.1 and HTTP/2 only",
            );
        }
        if !(1..=MOST_STREAMS).contains(&streams) {
            self.problem("-p", format!("must be from 1 to {MOST_STREAMS}"));
        }
        streams
    }

    fn http2(&mut self, streams: u32) -> Http2Plan {
        let args = self.args;
        let defaults = h2::Settings::default();
        let mut window = |flag: &str, given: Option<ByteSize>, least: u32, default: u32| {
            let Some(size) = given else { return default };
            match u32::try_from(size.0) {
                Ok(bytes) if (least..=MOST_WINDOW).contains(&bytes) => bytes,
                _ => {
                    self.problem(flag, format!("must be from {least} to {MOST_WINDOW} bytes"));
                    default
                }
            }
        };
        let given = &args.http2;
        Http2Plan {
            streams,
            stream_window: window("--h2-window", given.h2_window, 1, defaults.stream_window),
            connection_window: window(
                "--h2-connection-window",
                given.h2_connection_window,
                LEAST_CONNECTION_WINDOW,
                defaults.connection_window,
            ),
        }
    }

    fn shape(&mut self) -> Option<Shape> {
        let shape = &self.args.shape;
        for (flag, zero) in [
            ("-c", shape.connections == Some(0)),
            ("-n", shape.requests == Some(0)),
            ("-t", shape.threads == Some(0)),
            ("--max-in-flight", shape.max_in_flight == Some(0)),
            ("-z", shape.duration == Some(Duration::ZERO)),
            ("--timeout", shape.timeout.is_zero()),
            (
                "-q",
                shape.rate.is_some_and(|rate| rate.per_second() == 0.0),
            ),
        ] {
            if zero {
                self.problem(flag, "must be more than zero");
            }
        }
        self.check_rows();
        let stages = match &shape.stages {
            None => None,
            Some(text) => Some(self.value("--stages", parse_stages(text, shape.rate.is_some()))?),
        };
        if shape.burst_delay.is_some_and(|delay| delay.is_zero()) {
            self.problem("--burst-delay", "must be more than zero");
            return None;
        }
        let is_open = self.rate().is_some() || stages.as_ref().is_some_and(|stages| stages.rates);
        if is_open {
            self.open_shape(stages.as_ref())
        } else {
            self.closed_shape(stages.as_ref())
        }
    }

    /// The rate that was given, in one way or another.
    fn rate(&self) -> Option<Rate> {
        let shape = &self.args.shape;
        let of_bursts = shape.burst.zip(shape.burst_delay);
        let of_bursts = of_bursts
            .and_then(|(burst, delay)| Rate::new(f64::from(burst.get()) / delay.as_secs_f64()));
        shape.rate.or(of_bursts)
    }

    fn open_shape(&mut self, stages: Option<&Stages>) -> Option<Shape> {
        let shape = &self.args.shape;
        let initial = self
            .rate()
            .unwrap_or(Rate::new(0.0).expect("zero is a rate"));
        let highest = stages
            .iter()
            .flat_map(|stages| stages.list.iter().map(|stage| stage.level))
            .fold(initial.per_second(), f64::max);
        if highest > HIGHEST_RATE {
            let flag = if shape.rate.is_some() {
                "-q"
            } else {
                "--stages"
            };
            self.problem(
                flag,
                format!("{highest} requests a second is more than one machine can start (at most {HIGHEST_RATE})"),
            );
            return None;
        }
        let jitter = shape.jitter.unwrap_or_default();
        if highest * jitter.as_secs_f64() > MOST_JITTERED {
            self.problem(
                "--jitter",
                format!(
                    "holds back more than {MOST_JITTERED} starts at this rate; lower one of them"
                ),
            );
        }
        if shape.think.is_some() {
            self.problem("--think", "has no meaning on a schedule");
        }
        let connections = match (shape.connections, shape.max_in_flight) {
            (Some(connections), Some(most)) if most > connections => {
                self.problems.push(
                    Problem::with(
                        "--max-in-flight",
                        format!("{most} requests cannot be under way on {connections} connections"),
                    )
                    .hint("over HTTP/1 a connection carries one request at a time: raise -c"),
                );
                return None;
            }
            (_, Some(most)) => most,
            (Some(connections), None) => connections,
            (None, None) => DEFAULT_CONNECTIONS,
        };
        let stop = self.stop(stages);
        Some(Shape {
            pacing: Pacing::Open {
                profile: match stages {
                    None => RateProfile::constant(initial),
                    Some(stages) => RateProfile::stages(initial, &stages.list),
                },
                spacing: match shape.arrivals {
                    args::Arrivals::Fixed => Spacing::Even,
                    args::Arrivals::Poisson => Spacing::Poisson,
                },
                burst: shape.burst.unwrap_or(NonZeroU32::MIN),
                jitter,
                on_full: match shape.on_full {
                    args::OnFull::Queue => OnFull::Queue,
                    args::OnFull::Drop => OnFull::Drop,
                },
            },
            connections: self.fit(connections, shape.connections.is_some())?,
            stop,
        })
    }

    fn closed_shape(&mut self, stages: Option<&Stages>) -> Option<Shape> {
        let shape = &self.args.shape;
        for (flag, given) in [
            ("--max-in-flight", shape.max_in_flight.is_some()),
            ("--on-full", shape.on_full != args::OnFull::Queue),
            ("--arrivals", shape.arrivals != args::Arrivals::Fixed),
            ("--burst", shape.burst.is_some()),
            ("--jitter", shape.jitter.is_some()),
        ] {
            if given {
                self.problems.push(
                    Problem::with(flag, "needs a schedule")
                        .hint("give a rate with -q, or stages such as `10s:100/s`"),
                );
            }
        }
        let think = match &shape.think {
            None => None,
            Some(text) => Some(self.value("--think", parse_think(text))?),
        };
        let stop = self.stop(stages);
        let (ramp, connections) = match (stages, shape.ramp_up) {
            (Some(stages), _) => {
                let ramp = Ramp::stages(&stages.list);
                let most = ramp.most();
                if most == 0 {
                    self.problem("--stages", "never reaches a connection");
                    return None;
                }
                if shape.connections.is_some() {
                    self.problem("-c", "the stages say how many connections there are");
                }
                (Some(ramp), most)
            }
            (None, ramp_up) => {
                let asked = shape.connections.unwrap_or(DEFAULT_CONNECTIONS);
                let connections = self.fit(asked, shape.connections.is_some())?;
                (ramp_up.map(|time| Ramp::up(connections, time)), connections)
            }
        };
        Some(Shape {
            pacing: Pacing::Closed { ramp, think },
            connections,
            stop,
        })
    }

    /// Fewer requests than connections: the default gives way, a number that was given does not.
    fn fit(&mut self, connections: usize, is_given: bool) -> Option<usize> {
        let requests = self.requests().unwrap_or(u64::MAX);
        if connections as u64 <= requests {
            return Some(connections);
        }
        if is_given {
            let flag = if self.args.shape.requests == Some(requests) {
                "-n"
            } else {
                "--feeder"
            };
            self.problems.push(
                Problem::with(
                    flag,
                    format!("{requests} requests do not need {connections} connections"),
                )
                .hint("lower -c or raise -n"),
            );
            return None;
        }
        usize::try_from(requests).ok()
    }

    /// Exchanges after which the run ends.
    fn requests(&self) -> Option<u64> {
        let asked = self.args.shape.requests;
        asked.into_iter().chain(self.most_exchanges).min()
    }

    /// Rows that are used once must suffice for what was asked.
    fn check_rows(&mut self) {
        let Some(rows) = self.most_exchanges else {
            return;
        };
        let shape = &self.args.shape;
        if let Some(requests) = shape.requests.filter(|requests| *requests > rows) {
            self.problems.push(
                Problem::with(
                    "-n",
                    format!("{requests} requests need as many rows, but there are {rows}"),
                )
                .hint("use rows again with `--feeder-order cyclic`"),
            );
        }
        if !shape.warm_up.is_zero() {
            self.problems.push(
                Problem::with("--warm-up", "would use up rows that are used once")
                    .hint("use rows again with `--feeder-order cyclic`"),
            );
        }
    }

    fn stop(&self, stages: Option<&Stages>) -> StopRule {
        let shape = &self.args.shape;
        let stage_time = stages.map(|stages| stages.list.iter().map(|stage| stage.duration).sum());
        let duration = stage_time.or(shape.duration);
        StopRule {
            requests: self.requests(),
            duration: match (duration, self.requests()) {
                (None, None) => Some(DEFAULT_DURATION),
                (duration, _) => duration,
            },
        }
    }

    fn workers(&mut self, connections: usize, cores: &[usize]) -> Option<usize> {
        let given = self.args.server.cores.len();
        match self.args.shape.threads {
            Some(threads) if threads > connections => {
                self.problem(
                    "-t",
                    format!("{threads} threads have nothing to do with {connections} connections"),
                );
                None
            }
            Some(threads) if given > 0 && given != threads => {
                self.problem(
                    "--cores",
                    format!("names {given} cores for {threads} threads; each gets one"),
                );
                None
            }
            Some(threads) => Some(threads),
            None if given > 0 => Some(given.min(connections)),
            None => Some(cores.len().clamp(1, connections)),
        }
    }

    fn cores(&mut self, available: &[usize]) -> Vec<usize> {
        let cores = self.args.server.cores.clone();
        let all = plimsoll_wire::cores::available();
        for core in &cores {
            if !all.contains(core) {
                self.problem(
                    "--cores",
                    format!("there is no core {core} for this process"),
                );
            }
        }
        if cores.is_empty() && available.len() < all.len() {
            // The embedded origin has a core of its own: stay off it.
            return available.to_vec();
        }
        cores
    }
}

/// How starts follow from one another, and when they end.
struct Shape {
    pacing: Pacing,
    connections: usize,
    stop: StopRule,
}

/// Stages as written: levels of connections or of rates.
#[derive(Debug, PartialEq)]
struct Stages {
    list: Vec<Stage>,
    rates: bool,
}

/// Parses `TIME:LEVEL,…`; all levels are of one kind.
fn parse_stages(text: &str, are_rates: bool) -> Result<Stages, String> {
    let mut list = Vec::new();
    let mut kinds = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (time, level) = part
            .split_once(':')
            .ok_or_else(|| format!("`{part}` is not of the form `10s:100`"))?;
        let duration = parse_duration(time).map_err(|error| format!("`{part}`: {error}"))?;
        let rate = parse_rate(level).map_err(|error| format!("`{part}`: {error}"))?;
        kinds.push(are_rates || level.contains('/'));
        list.push(Stage {
            duration,
            level: rate.per_second(),
        });
    }
    let rates = kinds[0];
    if kinds.iter().any(|kind| *kind != rates) {
        return Err("write `/s` behind all levels (rates) or none (connections)".to_owned());
    }
    if list.iter().all(|stage| stage.duration.is_zero()) {
        return Err("the stages take no time".to_owned());
    }
    Ok(Stages { list, rates })
}

/// Parses `TIME` or `TIME..TIME`.
fn parse_think(text: &str) -> Result<ThinkTime, String> {
    let bound = |text: &str| parse_duration(text).map_err(|error| error.to_string());
    let (least, most) = match text.split_once("..") {
        None => (bound(text)?, bound(text)?),
        Some((least, most)) => (bound(least)?, bound(most)?),
    };
    if least > most {
        return Err(format!("`{text}` ends before it starts"));
    }
    Ok(ThinkTime { least, most })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_connections_or_rates() {
        let stages = parse_stages("10s:100,1m:1000", false).unwrap();
        assert!(!stages.rates);
        assert_eq!(stages.list.len(), 2);
        assert!(parse_stages("10s:100", true).unwrap().rates);
        assert!(parse_stages("10s:100/s,1m:1k/s", false).unwrap().rates);
        for wrong in ["", "10s", "10s:x", "x:10", "10s:1/s,10s:2", "0s:5"] {
            assert!(parse_stages(wrong, false).is_err(), "{wrong}");
        }
    }

    #[test]
    fn think_time_is_a_time_or_a_range() {
        let think = parse_think("50ms..200ms").unwrap();
        assert_eq!(think.most, Duration::from_millis(200));
        assert_eq!(parse_think("1s").unwrap().least, Duration::from_secs(1));
        assert!(parse_think("2s..1s").is_err());
        assert!(parse_think("soon").is_err());
    }
}
