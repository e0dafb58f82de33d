//! From flags to a run plan: everything is checked, and every problem is reported at once.

mod messages;

mod shape;

mod streams;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::check::{Condition, Expectations};
use plimsoll_client::{ConnectPlan, DecodeLimits, Decoder, Endpoint, SessionPlan, Upgrade};
use plimsoll_formats::grpc::Descriptors;
use plimsoll_load::{
    Http3Plan, HttpPlan, ResponsePlan, RunPlan, StatusSet, WebSocketPlan, WorkloadPlan,
};
use plimsoll_model::{Protocol, Threshold};
use plimsoll_wire::h1::Limits;
use plimsoll_wire::sse;

use super::args::Args;
use super::push::Destination;
use super::requests::{self, Described};
use super::target;
use crate::flags::{Problems, RequestParts, Way, connection_variables, number};
use crate::grpc::{self, UnknownMethod, Wanted};
use crate::problem::{Failed, Problem};

/// Settings that the machine and the environment add to the flags.
#[derive(Debug)]
pub(super) struct Surroundings {
    /// Cores that workers may use.
    pub(super) cores: Vec<usize>,
    /// Environment variables, for the proxies.
    pub(super) variables: Vec<(String, String)>,
}

impl Surroundings {
    /// Those of this process.
    pub(super) fn here(args: &Args) -> Self {
        Self {
            cores: target::worker_cores(args, args.is_embedded()),
            variables: connection_variables(),
        }
    }
}

/// The plan that the flags describe.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) plan: RunPlan,
    pub(super) thresholds: Vec<Threshold>,
    /// Parts of a file of requests that its requests do not carry.
    pub(super) left_out: Vec<Problem>,
    /// Where figures are sent to.
    pub(super) destinations: Vec<Destination>,
    /// The method to be called, as long as only its server can describe it; the plan is then one that
    /// reaches the server and no more.
    pub(super) unknown_method: Option<UnknownMethod>,
}

/// Makes a plan of the flags.
///
/// - `url`: that of the command line, or of the embedded origin.
/// - `known`: the server's description of the method of `--grpc`, once it was fetched.
pub(super) fn compile(
    args: &Args,
    url: Option<&str>,
    surroundings: &Surroundings,
    known: Option<&Descriptors>,
) -> Result<Compiled, Failed> {
    let mut compiler = Compiler {
        args,
        problems: Problems::default(),
        rows_used_once: None,
        most_exchanges: None,
        unknown_method: None,
    };
    let plan = compiler.plan(url, surroundings, known);
    let server = &args.server;
    let has_processes = args.is_embedded() || server.pid.is_some() || server.spawn.is_some();
    let observed = server.observe.compile(&mut compiler.problems);
    let names: Vec<_> = observed.into_iter().map(|plan| plan.name).collect();
    let thresholds = thresholds(args, has_processes, &names, &mut compiler.problems);
    if args.output.profiles() && !has_processes {
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
/// - `has_processes`: whether the target's processes can be seen.
/// - `names`: of the servers that are observed by name.
fn thresholds(
    args: &Args,
    has_processes: bool,
    names: &[String],
    problems: &mut Problems,
) -> Vec<Threshold> {
    let mut thresholds = Vec::new();
    for text in &args.judge.threshold {
        let Some(mut threshold) = problems.value("--threshold", Threshold::parse(text)) else {
            continue;
        };
        let is_observed = has_processes || args.server.observe.is_given();
        let unmet = unobserved(&threshold, is_observed, names, "--threshold");
        if let Some(problem) = unmet {
            problems.push(problem);
        }
        if threshold.abort_after.is_none() {
            threshold.abort_after = args.judge.abort_on_breach;
        }
        thresholds.push(threshold);
    }
    thresholds
}

/// What is wrong with a threshold on a server that is not observed.
///
/// - `is_observed`: whether the target of the run is.
/// - `names`: of the servers that are observed by name.
/// - `flag`: that the threshold is from.
pub(crate) fn unobserved(
    threshold: &Threshold,
    is_observed: bool,
    names: &[String],
    flag: &str,
) -> Option<Problem> {
    if !threshold.metric().needs_server() {
        return None;
    }
    match threshold.server() {
        None if !is_observed => Some(
            Problem::with(
                flag,
                format!("`{threshold}` needs the processes of the server"),
            )
            .hint("name them with --pid or --observe, or start them with --spawn"),
        ),
        Some(name) if !names.iter().any(|known| known == name) => Some(
            Problem::with(
                flag,
                format!("`{threshold}` is of a server that is not observed"),
            )
            .hint(format!(
                "name it: --observe {name}=https://HOST:7070/?unit=…"
            )),
        ),
        _ => None,
    }
}

struct Compiler<'a> {
    args: &'a Args,
    problems: Problems,
    /// Rows of a feeder that are used once; the run ends after the last one.
    rows_used_once: Option<u64>,
    /// Exchanges for which there are values.
    most_exchanges: Option<u64>,
    unknown_method: Option<UnknownMethod>,
}

impl Compiler<'_> {
    fn plan(
        &mut self,
        url: Option<&str>,
        surroundings: &Surroundings,
        known: Option<&Descriptors>,
    ) -> Option<(RunPlan, Vec<Problem>)> {
        let grpc = Wanted::compile(&self.args.grpc, known, &mut self.problems);
        let url = match (&grpc, url) {
            (Some(grpc), Some(url)) => Some(self.value("URL", grpc::url(url, &grpc.name))?),
            (_, url) => url.map(str::to_owned),
        };
        let url = url.as_deref();
        let described = requests::describe(&self.args.requests, url, &mut self.problems);
        self.rows_used_once = described.as_ref().and_then(Described::rows_used_once);
        self.most_exchanges = described.as_ref().and_then(Described::most_exchanges);
        let expectations = self.expectations();
        let fail_statuses = self.fail_statuses(&expectations);
        let shape = self.shape(described.as_ref());
        let keep_alive = !self.args.requests.disable_keepalive;
        let protocol = self.args.connection.version();
        let streams = self.streams(protocol);
        let is_websocket = described.as_ref().is_some_and(Described::is_websocket);
        let (mut parts, websocket) = self.parts(described.as_ref(), protocol, streams);
        let is_plain = grpc.is_none() && !is_websocket && !self.args.events.sse;
        let session = self.session(described.as_ref(), is_plain);
        if let Some(grpc) = &grpc {
            self.call(grpc, &mut parts, protocol);
        }
        let connect = self.connect(described.as_ref(), surroundings);
        let cores = self.cores(&surroundings.cores);
        let (described, shape, connect) = (described?, shape?, connect?);
        if shape.connections as u64 * u64::from(streams) > number::MOST_PLACES {
            let message = format!(
                "{} connections with {streams} streams each are more than {} requests at a time",
                shape.connections,
                number::MOST_PLACES
            );
            self.problem("-p", message);
            return None;
        }
        if is_websocket {
            self.way_of_websockets(&described, &connect);
        }
        let way = Way {
            connect: &connect,
            // Handshakes are made of the request for HTTP/1, whatever carries them.
            protocol: if is_websocket {
                Protocol::Http1
            } else {
                protocol
            },
        };
        let workload = if let Some(websocket) = websocket {
            WorkloadPlan::WebSocket(websocket)
        } else {
            let http = self.http(protocol, streams);
            self.exchanges(grpc.as_ref(), http, described.keeps_bodies())
        };
        let (endpoints, requests) = described.encode(way, &parts, &mut self.problems)?;
        let names = Arc::new(described.names(&requests));
        let workers = self.workers(shape.connections, &surroundings.cores)?;
        let feeders = &described.feeders;
        let uses_rows_once = requests.iter().all(|it| it.uses_rows_once(feeders));
        let mut stop = shape.stop;
        if uses_rows_once {
            stop.requests = stop.requests.into_iter().chain(self.rows_used_once).min();
        }
        let left_out = self.left_out(described.left_out, described.log.is_some());
        let plan = RunPlan {
            endpoints,
            requests,
            names,
            pick: described.pick,
            feeders: described.feeders,
            kept: described.kept,
            session,
            connect: Arc::new(connect),
            pacing: shape.pacing,
            connections: shape.connections,
            workers,
            cores,
            stop,
            warm_up: self.args.shape.warm_up,
            grace: self.args.shape.grace,
            timeout: self.args.shape.timeout,
            keep_alive,
            limits: self.limits(),
            workload,
            expectations: Arc::new(expectations),
            fail_statuses,
            seed: self.args.shape.seed,
            sample_every: Duration::from_millis(self.args.server.sample_ms),
        };
        Some((plan, left_out))
    }

    /// What all requests have by the flags, and the plan of WebSockets if they are some.
    fn parts(
        &mut self,
        described: Option<&Described>,
        protocol: Protocol,
        streams: u32,
    ) -> (RequestParts, Option<WebSocketPlan>) {
        let is_websocket = described.is_some_and(Described::is_websocket);
        let (mut parts, websocket) = if is_websocket {
            let fields = Upgrade::fields();
            let (parts, message) = self.args.request.upgrade(fields, &mut self.problems);
            let http = self.http(protocol, streams);
            (parts, Some(self.websocket(message, http)))
        } else {
            self.only_websockets();
            let closes = self.args.requests.disable_keepalive && protocol == Protocol::Http1;
            let mut parts = self.args.request.parts(closes, &mut self.problems);
            if self.args.events.sse {
                self.streams_of_events();
                parts.set_accept(sse::MEDIA_TYPE);
            }
            (parts, None)
        };
        if let Some(described) = described {
            described.fill(&mut parts, &mut self.problems);
        }
        if !is_websocket && self.args.requests.from.is_none() && self.args.requests.urls.is_none() {
            self.args.request.check_body(&mut self.problems);
        }
        self.only_requests(is_websocket);
        if self.args.responses.compressed {
            parts.accept_encodings(Decoder::ACCEPTED);
        }
        (parts, websocket)
    }

    /// What users keep from one request to the next.
    ///
    /// - `is_plain`: whether requests are neither calls nor streams nor messages.
    fn session(&mut self, described: Option<&Described>, is_plain: bool) -> SessionPlan {
        let is_chain = described.is_some_and(Described::is_chain);
        if is_chain && !is_plain {
            let message =
                "has requests that need values of one another, which only plain requests can";
            self.problem("--from", message);
        }
        SessionPlan {
            // Logins give cookies as often as tokens.
            cookies: self.args.requests.cookies || is_chain,
            digest: self.args.request.digest(&mut self.problems),
        }
    }

    /// Makes a call of gRPC of the requests.
    fn call(&mut self, grpc: &Wanted, parts: &mut RequestParts, protocol: Protocol) {
        grpc.fill(parts, &mut self.problems);
        if grpc.is_unknown() && protocol == Protocol::Http3 {
            let message = "needs --proto-set with --http3: reflection goes over HTTP/2";
            self.problem("--grpc", message);
        }
        self.unknown_method = grpc.is_unknown().then(|| UnknownMethod {
            name: grpc.name.clone(),
            parts: parts.clone(),
        });
    }

    /// Calls, streams or plain requests.
    fn exchanges(&self, grpc: Option<&Wanted>, http: HttpPlan, keeps_bodies: bool) -> WorkloadPlan {
        match grpc {
            Some(grpc) => WorkloadPlan::Grpc(http, grpc.plan()),
            None if self.args.events.sse => WorkloadPlan::Events(http, sse::Limits::default()),
            None => WorkloadPlan::Requests(http, self.responses(keeps_bodies)),
        }
    }

    /// How servers are reached.
    fn connect(
        &mut self,
        described: Option<&Described>,
        surroundings: &Surroundings,
    ) -> Option<ConnectPlan> {
        let mut endpoints = described.map(Described::endpoints).unwrap_or_default();
        if self.args.request.follows_redirects() {
            // A redirect may lead to TLS where the URL does not.
            endpoints.extend(Endpoint::parse("https://redirect.invalid/"));
        }
        self.args.connection.plan(
            &endpoints,
            self.args.shape.timeout,
            &surroundings.variables,
            &mut self.problems,
        )
    }

    fn limits(&self) -> Limits {
        let usual = Limits::default();
        Limits {
            // A stream of events has no end of its own.
            body_bytes: if self.args.events.sse {
                u64::MAX
            } else {
                usual.body_bytes
            },
            ..usual
        }
    }

    /// Notes on what is sent otherwise than a reader may expect, behind those on its file.
    fn left_out(&self, mut left_out: Vec<Problem>, is_log: bool) -> Vec<Problem> {
        let args = self.args;
        if is_log && args.shape.pace.is_none() {
            let message = "sends the requests of a log without their times";
            let note = Problem::with("--from", message);
            left_out.push(note.hint("`--pace 1x` keeps them, `--pace max` sends each line once"));
        }
        let has_shape = args.shape.connections.is_some() || args.shape.threads.is_some();
        left_out.extend(args.request.doubt_body(has_shape));
        left_out
    }

    /// The version of HTTP, with its settings.
    fn http(&mut self, protocol: Protocol, streams: u32) -> HttpPlan {
        match protocol {
            Protocol::Http1 | Protocol::WebSocket => HttpPlan::Http1,
            Protocol::Http2 => HttpPlan::Http2(self.http2(streams)),
            Protocol::Http3 => HttpPlan::Http3(Http3Plan {
                streams,
                udp_payload: self.args.connection.udp_payload,
            }),
        }
    }

    /// Handling of responses.
    ///
    /// - `keeps_bodies`: whether something is taken from their content.
    fn responses(&self, keeps_bodies: bool) -> ResponsePlan {
        let responses = &self.args.responses;
        let follows = self.args.request.follows_redirects();
        ResponsePlan {
            redirects: follows.then_some(responses.max_redirs),
            decode: (responses.compressed || keeps_bodies).then(DecodeLimits::default),
        }
    }

    fn problem(&mut self, flag: &str, message: impl ToString) {
        self.problems.add(flag, message);
    }

    fn value<T, E: Into<Box<dyn Error>>>(&mut self, flag: &str, result: Result<T, E>) -> Option<T> {
        self.problems.value(flag, result)
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

    fn fail_statuses(&mut self, expectations: &Expectations) -> StatusSet {
        match self.args.judge.fail_status.as_deref() {
            Some(text) => self
                .value("--fail-status", StatusSet::parse(text))
                .unwrap_or_default(),
            // Conditions on the status say which ones are wrong.
            None if expectations
                .conditions()
                .iter()
                .any(Condition::needs_status) =>
            {
                StatusSet::default()
            }
            None => StatusSet::overload(),
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
