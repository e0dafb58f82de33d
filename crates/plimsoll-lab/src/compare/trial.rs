//! One trial: a command runs once, and what it did and cost is noted.

use std::io;
use std::time::{Duration, Instant};

use plimsoll_load::Interrupt;
use plimsoll_model::{Clock, CpuTime, ResourceSample, masked_text};
use plimsoll_observe::{ProcessTree, SampleError, SampleSource};
use plimsoll_wire::SystemClock;
use plimsoll_wire::process::{Finished, SpawnError};
use url::Url;

use super::metric::Metric;
use super::order::Turn;
use crate::command::Command;
use crate::counts::{self, CountError, Tally, stub_status};
use crate::server::on_own_lines;
use crate::server::probe::{self, ProbeError};

/// The work and the cost of one trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Its place in the order.
    pub turn: Turn,
    /// When it began, since the comparison did.
    pub began: Duration,
    /// From the start of the load generator to its end, start-up included.
    pub length: Duration,
    /// Source of the count: a format of [`counts::KNOWN`], or `server`.
    pub source: &'static str,
    /// Complete responses.
    pub ok: u64,
    /// Requests without one.
    pub failed: u64,
    /// Of `ok`: responses with an error status, as far as the tool reports them.
    pub error_statuses: u64,
    /// Complete responses per second: the tool's figure, else `ok` over `length`.
    pub requests_per_second: f64,
    /// Mean latency in microseconds, if the tool reports it.
    pub mean_us: Option<f64>,
    /// Median latency in microseconds, if the tool reports it.
    pub p50_us: Option<f64>,
    /// 99th percentile of the latency in microseconds, if the tool reports it.
    pub p99_us: Option<f64>,
    /// Processor time of the operand's process tree.
    pub cpu: CpuTime,
    /// Largest resident memory of the operand's process tree, in bytes.
    pub peak_rss_bytes: Option<u64>,
    /// Processor time at the other end: the shared server, or the driver.
    pub other_end_cpu: Option<CpuTime>,
}

/// Stands for processor time that the kernel's clock of 10 ms did not see: on average it is half of that. Where it
/// stands for any, the comparison says so ([`Trial::cpu_is_unseen`]).
const UNSEEN: Duration = Duration::from_millis(5);

impl Trial {
    /// Requests that were not served: without a complete response, or with an error status.
    pub fn errors(&self) -> u64 {
        self.failed + self.error_statuses
    }

    /// Requests that ended.
    pub fn ended(&self) -> u64 {
        self.ok + self.failed
    }

    /// Whether the kernel saw no processor time of the operand, so that a guess stands in the cost of a request.
    pub fn cpu_is_unseen(&self) -> bool {
        self.cpu.total().is_zero()
    }

    /// The figure that `metric` names, if this trial has it.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        let per_request = |cpu: CpuTime| {
            let spent = match cpu.total() {
                Duration::ZERO => UNSEEN,
                spent => spent,
            };
            spent.as_secs_f64() * 1e6 / self.ok as f64
        };
        match metric {
            Metric::CpuUsPerRequest => Some(per_request(self.cpu)),
            Metric::RequestsPerSecond => Some(self.requests_per_second),
            Metric::MeanUs => self.mean_us,
            Metric::P50Us => self.p50_us,
            Metric::P99Us => self.p99_us,
            Metric::PeakRssBytes => self.peak_rss_bytes.map(|bytes| bytes as f64),
            Metric::OtherEndCpuUsPerRequest => self.other_end_cpu.map(per_request),
        }
    }
}

/// Why a trial has no result.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The command did not start.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// It ended with an error.
    #[error("`{command}` failed ({status}){stderr}")]
    Failed {
        /// The command line.
        command: String,
        /// Exit status.
        status: std::process::ExitStatus,
        /// The end of what it wrote, on lines of its own, or nothing.
        stderr: String,
    },
    /// It did not end in time.
    #[error("`{command}` still ran after {} s; a trial is meant to last {{seconds}}{stderr}", limit.as_secs())]
    TooLong {
        /// The command line.
        command: String,
        /// Timeout that passed.
        limit: Duration,
        /// The end of what it wrote, on lines of its own, or nothing.
        stderr: String,
    },
    /// Its output has no count.
    #[error("cannot count the requests of `{command}`")]
    Count {
        /// The command line.
        command: String,
        /// The error in the output.
        #[source]
        cause: CountError,
    },
    /// The counting page is not there.
    #[error("cannot count the requests at {url}")]
    Page {
        /// The page.
        url: String,
        /// The error.
        #[source]
        cause: ProbeError,
    },
    /// The counting page is another page.
    #[error("cannot count the requests at {url}: the page is not one of nginx's stub_status")]
    NoCount {
        /// The page.
        url: String,
    },
    /// No request had a response.
    #[error("`{command}` made no request that was answered ({failed} failed){stderr}")]
    NothingDone {
        /// The command line.
        command: String,
        /// Requests that failed.
        failed: u64,
        /// The end of what it wrote, on lines of its own, or nothing.
        stderr: String,
    },
    /// The server gives no sample at an end of the trial.
    #[error("the server cannot be observed")]
    Unobserved(#[source] SampleError),
    /// The system failed us.
    #[error("cannot wait for `{command}`")]
    Wait {
        /// The command line.
        command: String,
        /// The error of the system.
        #[source]
        cause: io::Error,
    },
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted,
}

/// A command that makes requests, and what is watched while it does.
#[derive(Debug)]
pub(super) struct Generator<'a> {
    pub(super) words: Vec<String>,
    pub(super) cores: &'a [usize],
    /// The server, if its cost can be seen.
    pub(super) server: Option<ServerEnd<'a>>,
    /// A page that counts requests.
    pub(super) count_from: Option<Url>,
    /// When it is given up.
    pub(super) limit: Duration,
}

/// What gives samples of a server.
#[derive(Debug)]
pub(super) enum ServerEnd<'a> {
    /// The processes of one that was started.
    Started(&'a mut ProcessTree),
    /// One that runs already.
    Observed(&'a mut dyn SampleSource),
}

impl ServerEnd<'_> {
    /// It now. One that was started and has ended is reported as such later; one that is observed has to give a sample.
    fn sample(&mut self, at: Duration) -> Result<Option<ResourceSample>, TrialError> {
        match self {
            Self::Started(tree) => Ok(tree.sample(at, 0).ok()),
            Self::Observed(source) => source
                .sample(at, 0)
                .map(Some)
                .map_err(TrialError::Unobserved),
        }
    }

    /// Its largest memory so far; of one that is observed the larger of two samples.
    fn peak_memory_bytes(&mut self, samples: &[Option<ResourceSample>; 2]) -> Option<u64> {
        match self {
            Self::Started(tree) => tree.peak_memory_bytes().ok(),
            Self::Observed(_) => {
                let samples = samples.iter().flatten();
                samples.map(|sample| sample.memory.total_bytes()).max()
            }
        }
    }
}

/// A generator's run, seen from both ends.
#[derive(Debug)]
pub(super) struct Observed {
    pub(super) began: Instant,
    pub(super) length: Duration,
    pub(super) tally: Tally,
    /// The generator: exact, from the kernel's accounting at its end.
    pub(super) generator_cpu: CpuTime,
    pub(super) generator_peak_rss: Option<u64>,
    /// The server, over the same time.
    pub(super) server_cpu: Option<CpuTime>,
    pub(super) server_peak_rss: Option<u64>,
}

impl Generator<'_> {
    /// Runs it to its end.
    pub(super) fn run(mut self, interrupt: &Interrupt) -> Result<Observed, TrialError> {
        let clock = SystemClock;
        let counted_before = self.counted()?;
        let server_before = self.server_now(Duration::ZERO)?;
        let began = clock.now();
        let mut command = Command::start(&self.words, self.cores)?;
        let (finished, sampled_peak) = self.watch(&mut command, began, interrupt)?;
        let length = clock.now().saturating_duration_since(began);
        let server_after = self.server_now(length)?;
        let counted_after = self.counted()?;
        if !finished.status.success() {
            return Err(TrialError::Failed {
                command: self.command(),
                status: finished.status,
                stderr: on_own_lines(&command.complaint()),
            });
        }
        let tally = self.tally(&command.stdout(), counted_before.zip(counted_after))?;
        if tally.ok == 0 {
            return Err(TrialError::NothingDone {
                command: self.command(),
                failed: tally.failed,
                stderr: on_own_lines(&command.complaint()),
            });
        }
        Ok(Observed {
            began,
            length,
            tally,
            generator_cpu: finished.cpu,
            generator_peak_rss: peak_rss(sampled_peak, finished),
            server_cpu: server_before
                .zip(server_after)
                .map(|(before, after)| after.cpu.since(before.cpu)),
            server_peak_rss: self
                .server
                .as_mut()
                .and_then(|server| server.peak_memory_bytes(&[server_before, server_after])),
        })
    }

    fn server_now(&mut self, at: Duration) -> Result<Option<ResourceSample>, TrialError> {
        match &mut self.server {
            Some(server) => server.sample(at),
            None => Ok(None),
        }
    }

    /// Waits for its end while sampling the peak of its memory.
    fn watch(
        &self,
        command: &mut Command,
        began: Instant,
        interrupt: &Interrupt,
    ) -> Result<(Finished, Option<u64>), TrialError> {
        /// Interval at which interrupts are checked.
        const STEP: Duration = Duration::from_millis(50);

        // One that has ended already, and a platform without /proc, have no samples.
        let mut tree = command.tree().ok();
        let mut largest = None;
        loop {
            match command.wait(STEP) {
                Ok(Some(finished)) => return Ok((finished, largest)),
                Ok(None) => {}
                Err(cause) => {
                    return Err(TrialError::Wait {
                        command: self.command(),
                        cause,
                    });
                }
            }
            if interrupt.is_set() {
                return Err(TrialError::Interrupted);
            }
            if SystemClock.now().saturating_duration_since(began) > self.limit {
                return Err(TrialError::TooLong {
                    command: self.command(),
                    limit: self.limit,
                    stderr: on_own_lines(&command.complaint()),
                });
            }
            largest = largest.max(tree.as_mut().and_then(|tree| tree.peak_memory_bytes().ok()));
        }
    }

    fn tally(&self, output: &str, counted: Option<(u64, u64)>) -> Result<Tally, TrialError> {
        let reported = counts::read(output);
        let Some((before, after)) = counted else {
            return reported.map_err(|cause| TrialError::Count {
                command: self.command(),
                cause,
            });
        };
        // The server counts; what else the tool reports is still of use.
        let reported = reported.ok();
        Ok(Tally {
            source: "server",
            ok: stub_status::between(before, after),
            failed: reported.as_ref().map_or(0, |tally| tally.failed),
            error_statuses: reported.as_ref().map_or(0, |tally| tally.error_statuses),
            requests_per_second: None,
            mean_us: reported.as_ref().and_then(|tally| tally.mean_us),
            p50_us: reported.as_ref().and_then(|tally| tally.p50_us),
            p90_us: reported.as_ref().and_then(|tally| tally.p90_us),
            p95_us: reported.as_ref().and_then(|tally| tally.p95_us),
            p99_us: reported.as_ref().and_then(|tally| tally.p99_us),
            p99_9_us: reported.as_ref().and_then(|tally| tally.p99_9_us),
        })
    }

    fn counted(&self) -> Result<Option<u64>, TrialError> {
        const ANSWER: Duration = Duration::from_secs(5);

        let Some(url) = &self.count_from else {
            return Ok(None);
        };
        let page = probe::fetch(url, ANSWER).map_err(|cause| TrialError::Page {
            url: masked_text(url.as_str()).into_owned(),
            cause,
        })?;
        match stub_status::requests(&page) {
            Some(requests) => Ok(Some(requests)),
            None => Err(TrialError::NoCount {
                url: masked_text(url.as_str()).into_owned(),
            }),
        }
    }

    fn command(&self) -> String {
        self.words.join(" ")
    }
}

/// The larger of what was sampled and what the kernel noted for a single process.
///
/// The kernel's figure starts at our own peak (see [`Finished::max_rss_bytes`]), so it counts only
/// above that.
fn peak_rss(sampled: Option<u64>, finished: Finished) -> Option<u64> {
    let floor = ProcessTree::generator().ok()?.peak_memory_bytes().ok()?;
    let noted = (finished.max_rss_bytes > floor).then_some(finished.max_rss_bytes);
    noted.max(sampled.filter(|bytes| *bytes > 0))
}
