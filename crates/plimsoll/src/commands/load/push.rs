//! Figures sent to databases of time series, while a run goes on and when it is over.
//!
//! Each receiver has a thread of its own, so that neither the run nor the summary waits for it. What
//! it does not take is reported at the end and has no part in the outcome of the run.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plimsoll_client::fetch::{FetchLimits, Fetcher};
use plimsoll_client::{ConnectOptions, ConnectPlan, Connector, Endpoint, ProxyRules, Scheme};
use plimsoll_load::Standing;
use plimsoll_model::{Clock, RunSummary, grouped};
use plimsoll_report::push::{self, Otlp, Point};
use plimsoll_wire::SystemClock;
use plimsoll_wire::tls::TlsSettings;

use super::Args;
use crate::flags::{Problems, RequestParts, Way};
use crate::problem::Problem;

/// How often points are sent during the run: a third of the usual scrape interval of 15 s.
const EVERY: Duration = Duration::from_secs(5);

/// How long one request may take: the default of Prometheus remote write is 30 s, but a run should end soon after its
/// last point.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Seconds that may wait for a thread that is sending.
const QUEUED: usize = 60;

/// Points kept for a receiver that is out of order; more are lost, the oldest first.
const MOST_KEPT: usize = 50_000;

/// Longer responses are not read: they say that points were taken, or in a line why not.
const MOST_OF_RESPONSE: u64 = 16 << 20;

/// Of the receiver's reason, what is shown.
const MOST_OF_REASON: usize = 200;

const OTLP_PATH: &str = "/v1/metrics";

/// The protocol of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Otlp,
    RemoteWrite,
}

impl Protocol {
    fn flag(self) -> &'static str {
        match self {
            Self::Otlp => "--otlp",
            Self::RemoteWrite => "--prometheus-remote-write",
        }
    }

    /// The fields that go with a body, beside those of the user.
    fn fields(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Otlp => &[("content-type", "application/x-protobuf")],
            Self::RemoteWrite => &[
                ("content-type", "application/x-protobuf"),
                ("content-encoding", "snappy"),
                ("x-prometheus-remote-write-version", "0.1.0"),
            ],
        }
    }

    fn encode(self, points: &[Point]) -> Vec<u8> {
        match self {
            Self::Otlp => {
                let version = env!("CARGO_PKG_VERSION");
                Otlp { version }.encode(points)
            }
            Self::RemoteWrite => push::remote_write(points),
        }
    }
}

/// Where figures are sent to.
#[derive(Debug, Clone)]
pub(super) struct Destination {
    protocol: Protocol,
    endpoint: Endpoint,
    connect: Arc<ConnectPlan>,
    headers: Vec<(String, String)>,
}

impl Destination {
    /// Those that the flags name.
    ///
    /// - `variables`: those of the environment that name proxies.
    pub(super) fn compile(
        args: &Args,
        variables: &[(String, String)],
        problems: &mut Problems,
    ) -> Vec<Self> {
        let output = &args.output;
        let mut destinations = Vec::new();
        if output.otlp.is_none() && output.prometheus_remote_write.is_none() {
            if !output.push_header.is_empty() {
                problems.add("--push-header", "needs --otlp or --prometheus-remote-write");
            }
            return destinations;
        }
        let headers = problems.header_fields("--push-header", &output.push_header);
        for (protocol, url) in [
            (Protocol::Otlp, &output.otlp),
            (Protocol::RemoteWrite, &output.prometheus_remote_write),
        ] {
            let Some(url) = url else { continue };
            let url = with_path(protocol, url);
            let Some(endpoint) = problems.value(protocol.flag(), Endpoint::parse(&url)) else {
                continue;
            };
            let endpoints = std::slice::from_ref(&endpoint);
            let plan = args
                .connection
                .plan_aside(endpoints, TIMEOUT, variables, problems);
            let Some(connect) = plan else { continue };
            let destination = Self {
                protocol,
                endpoint,
                connect: Arc::new(connect),
                headers: headers.clone(),
            };
            let request = destination.parts(Vec::new());
            let encoded = request.encode(&destination.endpoint, destination.way());
            if problems.value("--push-header", encoded).is_some() {
                destinations.push(destination);
            }
        }
        destinations
    }

    /// One for the metrics of a script.
    ///
    /// - `output`: of `--out`, for messages.
    pub(super) fn of_script(
        is_otlp: bool,
        output: &'static str,
        url: &str,
        headers: Vec<(String, String)>,
        proxies: ProxyRules,
    ) -> Result<Self, Problem> {
        let protocol = if is_otlp {
            Protocol::Otlp
        } else {
            Protocol::RemoteWrite
        };
        let wrong = |message: String| Problem::with(output, message);
        let url = with_path(protocol, url);
        let endpoint = Endpoint::parse(&url).map_err(|error| wrong(error.to_string()))?;
        let settings = TlsSettings {
            alpn: vec![b"http/1.1".to_vec()],
            ..TlsSettings::default()
        };
        let tls = if endpoint.scheme() == Scheme::Https {
            let compiled = settings.compile();
            Some(compiled.map_err(|error| wrong(error.to_string()))?)
        } else {
            None
        };
        let plan = ConnectPlan::new(ConnectOptions {
            tls,
            proxies,
            timeout: Some(TIMEOUT),
            ..ConnectOptions::default()
        });
        let plan = plan.map_err(|error| wrong(error.to_string()))?;
        let destination = Self {
            protocol,
            endpoint,
            connect: Arc::new(plan),
            headers,
        };
        let request = destination.parts(Vec::new());
        let encoded = request.encode(&destination.endpoint, destination.way());
        encoded.map_err(|error| wrong(error.to_string()))?;
        Ok(destination)
    }

    fn way(&self) -> Way<'_> {
        Way {
            connect: &self.connect,
            protocol: plimsoll_model::Protocol::Http1,
        }
    }

    fn parts(&self, body: Vec<u8>) -> RequestParts {
        let fields = self.protocol.fields().iter();
        let fields = fields.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        RequestParts::post(self.headers.iter().cloned().chain(fields), body)
    }

    /// The thread that sends points.
    fn fetcher(&self) -> Fetcher {
        let limits = FetchLimits {
            timeout: TIMEOUT,
            bytes: MOST_OF_RESPONSE,
            redirects: 0,
        };
        Fetcher::over(Connector::new(Arc::clone(&self.connect)), limits)
    }

    /// Sends `points`; gives what the receiver has to say against it.
    async fn send(&self, points: &[Point], fetcher: &Fetcher) -> Result<(), Refusal> {
        let body = self.protocol.encode(points);
        let fields = self.protocol.fields().iter();
        let fields = fields.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let fields = self.headers.iter().cloned().chain(fields).collect();
        let answer = fetcher.send_to("POST", &self.endpoint, fields, body.into());
        let answer = answer.await.map_err(|error| Refusal {
            may_be_taken_later: true,
            points: points.len(),
            reason: Problem::caused_by(&error).message,
        })?;
        match answer.status {
            200..=299 if self.protocol == Protocol::Otlp => match Otlp::rejected(&answer.content) {
                Some(rejected) => {
                    let count = usize::try_from(rejected.points).unwrap_or(usize::MAX);
                    Err(Refusal::for_good(count, rejected.message))
                }
                None => Ok(()),
            },
            200..=299 => Ok(()),
            status => Err(Refusal {
                // As both specifications have it.
                may_be_taken_later: matches!(status, 429 | 500..),
                points: points.len(),
                reason: reason(status, &answer.content),
            }),
        }
    }
}

/// The path of the specification, if the URL has none of its own.
fn with_path(protocol: Protocol, url: &str) -> String {
    let has_path = url::Url::parse(url).is_ok_and(|url| url.path() != "/");
    if protocol == Protocol::RemoteWrite || has_path {
        return url.to_owned();
    }
    format!("{}{OTLP_PATH}", url.trim_end_matches('/'))
}

/// Points that were not taken.
#[derive(Debug)]
struct Refusal {
    may_be_taken_later: bool,
    points: usize,
    reason: String,
}

impl Refusal {
    fn for_good(points: usize, reason: String) -> Self {
        Self {
            may_be_taken_later: false,
            points,
            reason,
        }
    }
}

/// Why a receiver did not take points: its status, and the first line of what it says.
fn reason(status: u16, content: &[u8]) -> String {
    let text = String::from_utf8_lossy(content);
    let is_text = |c: &char| !c.is_control() && *c != '\u{fffd}';
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    let line: String = line
        .unwrap_or_default()
        .chars()
        .filter(is_text)
        .take(MOST_OF_REASON)
        .collect();
    match &*line {
        "" => format!("answered {status}"),
        line => format!("answered {status}: {line}"),
    }
}

/// All receivers of a run.
pub(super) struct Push {
    labels: Vec<(Cow<'static, str>, String)>,
    run: String,
    senders: Vec<Sender>,
}

struct Sender {
    flag: &'static str,
    queue: SyncSender<Vec<Point>>,
    /// Points that found no room in it.
    lost: usize,
    thread: JoinHandle<Delivery>,
}

/// The outcome of sending points to a receiver.
#[derive(Debug, Default)]
struct Delivery {
    refused: usize,
    /// Why, the last time.
    reason: Option<String>,
}

impl Push {
    /// Starts a thread for each of `destinations`.
    ///
    /// - `run`: what the run is called, a label of all points; `url` is the other.
    pub(super) fn start(
        destinations: Vec<Destination>,
        run: &str,
        url: &str,
    ) -> std::io::Result<Self> {
        let mut senders = Vec::new();
        for destination in destinations {
            let (queue, points) = sync_channel(QUEUED);
            let flag = destination.protocol.flag();
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let thread = thread::Builder::new()
                .name("push".to_owned())
                .spawn(move || runtime.block_on(async { deliver(&destination, &points).await }))?;
            senders.push(Sender {
                flag,
                queue,
                lost: 0,
                thread,
            });
        }
        Ok(Self {
            labels: push::run_labels(run, url),
            run: run.to_owned(),
            senders,
        })
    }

    /// Takes note of one more second.
    pub(super) fn tick(&mut self, standing: &Standing<'_>) {
        if self.senders.is_empty() {
            return;
        }
        let now = SystemClock.wall();
        let target = standing.target.as_ref();
        let points = push::of_tick(standing.tick, target, &self.labels, now);
        self.add(&points);
    }

    /// Hands points over that are sent with the next ones.
    pub(super) fn add(&mut self, points: &[Point]) {
        for sender in &mut self.senders {
            if let Err(TrySendError::Full(points)) = sender.queue.try_send(points.to_vec()) {
                sender.lost += points.len();
            }
        }
    }

    /// Sends the rest with the figures of the whole run; gives what was not taken, for the user.
    pub(super) fn finish(self, summary: &RunSummary) -> Vec<Problem> {
        let points = push::of_run(&self.run, summary, SystemClock.wall());
        self.finish_with(&points)
    }

    /// Sends the rest with these points; gives what was not taken, for the user.
    pub(super) fn finish_with(self, points: &[Point]) -> Vec<Problem> {
        let mut problems = Vec::new();
        let threads: Vec<_> = self
            .senders
            .into_iter()
            .map(|sender| {
                // Only a thread that panicked takes nothing, and that is reported below.
                drop(sender.queue.send(points.to_vec()));
                (sender.flag, sender.lost, sender.thread)
            })
            .collect();
        for (flag, lost, thread) in threads {
            let delivery = thread.join().unwrap_or_else(|_| Delivery {
                refused: 0,
                reason: Some("its thread panicked".to_owned()),
            });
            let refused = grouped((delivery.refused + lost) as u64);
            match delivery.reason {
                Some(reason) => {
                    let message = format!("{refused} points were not taken: {reason}");
                    problems.push(Problem::with(flag, message));
                }
                None if lost > 0 => {
                    let message = format!("{refused} points were not sent: the receiver is slow");
                    problems.push(Problem::with(flag, message));
                }
                None => {}
            }
        }
        problems
    }
}

/// Sends what comes from `queue`, some at a time, until it is closed.
async fn deliver(destination: &Destination, queue: &Receiver<Vec<Point>>) -> Delivery {
    let fetcher = destination.fetcher();
    let mut delivery = Delivery::default();
    let mut kept: Vec<Point> = Vec::new();
    let mut due = SystemClock.now() + EVERY;
    loop {
        let patience = due.saturating_duration_since(SystemClock.now());
        let is_over = match queue.recv_timeout(patience) {
            Ok(points) => {
                kept.extend(points);
                continue;
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        };
        if !kept.is_empty() {
            match destination.send(&kept, &fetcher).await {
                Ok(()) => kept.clear(),
                Err(refusal) => {
                    delivery.reason = Some(refusal.reason);
                    if refusal.may_be_taken_later && !is_over {
                        let surplus = kept.len().saturating_sub(MOST_KEPT);
                        delivery.refused += surplus;
                        kept.drain(..surplus);
                    } else {
                        delivery.refused += refusal.points;
                        kept.clear();
                    }
                }
            }
        }
        if is_over {
            // What was taken in the end was only late.
            if delivery.refused == 0 && kept.is_empty() {
                delivery.reason = None;
            }
            return delivery;
        }
        due = SystemClock.now() + EVERY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_gets_the_path_of_the_specification() {
        for (given, url) in [
            ("http://host:4318", "http://host:4318/v1/metrics"),
            ("http://host:4318/", "http://host:4318/v1/metrics"),
            ("http://host/otlp/x", "http://host/otlp/x"),
        ] {
            assert_eq!(with_path(Protocol::Otlp, given), url);
        }
        assert_eq!(with_path(Protocol::RemoteWrite, "http://h"), "http://h");
    }

    #[test]
    fn of_an_answer_one_line_is_shown() {
        assert_eq!(reason(502, b""), "answered 502");
        let content = b"\n out of order\x1b[31m sample\nmore";
        assert_eq!(
            reason(400, content),
            "answered 400: out of order[31m sample"
        );
        let long = reason(400, &[b'x'; 1000]);
        assert_eq!(long.len(), "answered 400: ".len() + MOST_OF_REASON);
    }
}
