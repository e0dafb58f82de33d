//! Running a comparison from the first warm-up to the last trial.

use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use plimsoll_load::Interrupt;
use plimsoll_load::conditions::{Before, RunFacts};
use plimsoll_model::{Clock, Pinning};
use plimsoll_observe::{AttachError, SampleSource, TargetPlace};
use plimsoll_wire::SystemClock;
use plimsoll_wire::free_port::free_port;
use plimsoll_wire::process::find;

use super::answers::{Answers, Asked};
use super::gate::LEAST_TRIALS;
use super::metric::{Metric, Verdict};
use super::order::{Turn, turns};
use super::outcome::{Comparison, MetricResult, is_undecided};
use super::plan::{CompareOptions, ComparePlan, Operand, parse_url};
use super::template::Values;
use super::trial::{Generator, Observed, ServerEnd, Trial, TrialError};
use crate::server::probe::ProbeError;
use crate::server::{self, Running, ServerError};
use crate::statistics::RatioError;

/// Something a waiting user may want to see.
#[derive(Debug)]
pub enum Event<'a> {
    /// The shared server answers.
    ServerReady,
    /// A trial begins.
    TrialBegins {
        /// Which one, from 1.
        number: usize,
        /// Of how many.
        of: usize,
        /// Whose.
        operand: &'a Operand,
        /// Its place in the order.
        turn: Turn,
    },
    /// A trial has ended.
    TrialEnded(&'a Trial),
}

/// Why a comparison has no result.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// Programs of the plan are not there.
    #[error("{}", not_found(.0))]
    Programs(Vec<String>),
    /// A server is not there.
    #[error(transparent)]
    Server(ServerError),
    /// A trial has no result.
    #[error("trial {number} of {of}, {label}")]
    Trial {
        /// Which one, from 1.
        number: usize,
        /// Of how many.
        of: usize,
        /// The operand's label.
        label: String,
        /// The error.
        #[source]
        cause: TrialError,
    },
    /// An operand does not have the figure that the verdict is about.
    #[error("{label} reports no {metric}; choose another with --metric")]
    NoFigure {
        /// The operand's label.
        label: String,
        /// The missing figure.
        metric: Metric,
    },
    /// The figures that the verdict is about have no ratio.
    #[error("{metric} cannot be compared")]
    NoRatio {
        /// The missing figure.
        metric: Metric,
        /// Why.
        #[source]
        cause: RatioError,
    },
    /// Operands answer a request differently.
    #[error(
        "{ours} {our_answer}, and {peer} {peer_answer}: what a request costs cannot be compared"
    )]
    Answers {
        /// The label of the first operand.
        ours: String,
        /// What it does.
        our_answer: String,
        /// The label of the other one.
        peer: String,
        /// What that does.
        peer_answer: String,
    },
    /// An operand does not answer a request.
    #[error("{label} does not answer a request for {url}")]
    NoAnswer {
        /// The operand's label.
        label: String,
        /// The URL.
        url: String,
        /// Why.
        #[source]
        cause: ProbeError,
    },
    /// A command that prepares trials cannot be run, or fails.
    #[error("--prepare: `{command}` failed: {reason}")]
    Prepare {
        /// The command, placeholders replaced.
        command: String,
        /// The error of the system or the command.
        reason: String,
    },
    /// No free port.
    #[error("cannot find a free port for {{port}}")]
    Port(#[source] io::Error),
    /// A server that runs already gives no samples.
    #[error(transparent)]
    Unobservable(AttachError),
    /// A plan for one of several rates cannot be used.
    #[error(transparent)]
    Plan(super::plan::PlanError),
    /// The user stopped it; every process has been ended.
    #[error("interrupted")]
    Interrupted,
}

impl From<ServerError> for CompareError {
    fn from(error: ServerError) -> Self {
        match error {
            ServerError::Interrupted => Self::Interrupted,
            error => Self::Server(error),
        }
    }
}

/// Runs `plan`, telling `observe` how it goes.
///
/// Blocks until the end; whatever it started has ended when it returns, also after an error or once
/// `interrupt` was set.
pub fn compare(
    plan: &ComparePlan,
    interrupt: &Interrupt,
    observe: &mut dyn FnMut(&Event<'_>),
) -> Result<Comparison, CompareError> {
    let options = &plan.options;
    let missing = missing_programs(plan);
    if !missing.is_empty() {
        return Err(CompareError::Programs(missing));
    }
    let machine = Before::observe(SystemClock.wall());
    let mut run = Run::start(plan, interrupt)?;
    if run.server.is_some() {
        observe(&Event::ServerReady);
    }

    let self_test = self_test(plan, interrupt, observe)?;
    let mut trials = Vec::new();
    let mut rounds = options.trials;
    run.trials(rounds, &mut trials, observe)?;
    let most = options.gate.and_then(|gate| gate.until_sure).unwrap_or(0);
    // Each look at the interval may err, so there are few: after twice as many trials as before.
    while rounds < most && is_undecided(plan, &trials, rounds, self_test.as_ref())? {
        rounds = most.min(rounds.saturating_mul(2));
        run.trials(rounds, &mut trials, observe)?;
    }
    let mut conditions = machine.after(RunFacts {
        plimsoll: options.version.clone(),
        command: options.command.clone(),
        pinning: pinning(plan),
        // Of a server that is not ours nothing is known.
        co_located: (options.server.is_some() || options.drive.is_some()).then_some(true),
    });
    if run.is_untrusted {
        conditions.warnings.push(
            "whether the operands answer alike is not known, since a certificate is not trusted; --insecure compares all the \
             same"
            .to_owned(),
        );
    }
    if run.is_long {
        conditions.warnings.push(
            "whether the operands answer alike is not known: their answers are longer than the 1 MiB that are compared"
                .to_owned(),
        );
    }
    if options.costs_are_of_generators() {
        conditions.warnings.push(
            "CPU time and memory are those of the load generators, not of the servers behind the URLs: observe these \
             (--observe NAME=pid:4711, with the name of an operand), or start them as operands (--drive)"
                .to_owned(),
        );
    }
    Comparison::from_trials(plan, trials, rounds, self_test, conditions)
}

/// The first operand against itself, with as many trials, if the plan has that.
fn self_test(
    plan: &ComparePlan,
    interrupt: &Interrupt,
    observe: &mut dyn FnMut(&Event<'_>),
) -> Result<Option<MetricResult>, CompareError> {
    let options = &plan.options;
    let Some(first) = options.operands.first().filter(|_| options.self_test) else {
        return Ok(None);
    };
    let again = Operand {
        label: format!("{} again", first.label),
        ..first.clone()
    };
    let plan = ComparePlan::new(CompareOptions {
        operands: vec![first.clone(), again],
        self_test: false,
        gate: None,
        ..options.clone()
    });
    let comparison = compare(&plan.map_err(CompareError::Plan)?, interrupt, observe)?;
    let mut itself = comparison.pairs.first().map(|pair| pair.verdict);
    if let Some(result) = itself.as_mut().filter(|_| options.trials < LEAST_TRIALS) {
        result.verdict = Verdict::Undecided;
    }
    Ok(itself)
}

fn not_found(programs: &[String]) -> String {
    let names: Vec<_> = programs.iter().map(|name| format!("`{name}`")).collect();
    let programs = if names.len() == 1 {
        "program"
    } else {
        "programs"
    };
    format!("{programs} {} not found", names.join(", "))
}

/// The programs that trials would not find, each once: the first trial of a late operand may be minutes away.
fn missing_programs(plan: &ComparePlan) -> Vec<String> {
    let options = &plan.options;
    let operands = options.operands.iter();
    let operands = operands.flat_map(|operand| [Some(&operand.command), operand.prepare.as_ref()]);
    let server = options.server.as_ref().map(|server| &server.command);
    let drive = options.drive.as_ref().map(|drive| &drive.command);
    let templates = operands.chain([server, drive]).flatten();
    let mut missing = Vec::new();
    for program in templates.filter_map(|template| template.words().first()) {
        let is_there = program.contains('{') || find(program).is_some();
        if !is_there && !missing.contains(program) {
            missing.push(program.clone());
        }
    }
    missing
}

/// Operands are the generator's side, unless they are servers.
fn pinning(plan: &ComparePlan) -> Pinning {
    let options = &plan.options;
    match (&options.drive, &options.server) {
        (Some(drive), _) => Pinning {
            generator: drive.pin.clone(),
            target: options.pin.clone(),
        },
        (None, server) => Pinning {
            generator: options.pin.clone(),
            target: server
                .as_ref()
                .map(|server| server.pin.clone())
                .unwrap_or_default(),
        },
    }
}

/// A comparison under way.
struct Run<'a> {
    plan: &'a ComparePlan,
    interrupt: &'a Interrupt,
    began: Instant,
    /// Of the whole run; trials that start a server may use others.
    port: u16,
    server: Option<Running>,
    /// The server that all operands load, if it is observed where it runs.
    shared: Option<Box<dyn SampleSource>>,
    /// The server of each operand, likewise.
    own: Vec<Option<Box<dyn SampleSource>>>,
    /// The first operand's, once it was requested.
    answers: Option<Answers>,
    /// Whether the answers of an operand were not compared for want of trust.
    is_untrusted: bool,
    /// Whether an answer was longer than is compared.
    is_long: bool,
}

enum RunError {
    Server(ServerError),
    Trial(TrialError),
    Port(io::Error),
    Prepare { command: String, reason: String },
    Answers(Box<CompareError>),
}

impl From<ServerError> for RunError {
    fn from(error: ServerError) -> Self {
        Self::Server(error)
    }
}

impl From<TrialError> for RunError {
    fn from(error: TrialError) -> Self {
        Self::Trial(error)
    }
}

impl<'a> Run<'a> {
    fn start(plan: &'a ComparePlan, interrupt: &'a Interrupt) -> Result<Self, CompareError> {
        let began = SystemClock.now();
        let port = port(plan).map_err(CompareError::Port)?;
        let server = match &plan.options.server {
            Some(server) => {
                let values = plan.values(port);
                let ready = checked_url(&values, &server.ready);
                let words = server.command.fill(&values);
                Some(server::start(&words, &server.pin, None, &ready, interrupt)?)
            }
            None => None,
        };
        let open = |place: &Option<TargetPlace>| {
            let source = place.as_ref().map(TargetPlace::source).transpose();
            source.map_err(CompareError::Unobservable)
        };
        let own = plan.options.operands.iter();
        let own = own.map(|operand| open(&operand.observed));
        Ok(Self {
            plan,
            interrupt,
            began,
            port,
            server,
            shared: open(&plan.options.observed)?,
            own: own.collect::<Result<_, _>>()?,
            answers: None,
            is_untrusted: false,
            is_long: false,
        })
    }

    /// Runs what is missing in `trials` to so many rounds.
    fn trials(
        &mut self,
        rounds: u32,
        trials: &mut Vec<Trial>,
        observe: &mut dyn FnMut(&Event<'_>),
    ) -> Result<(), CompareError> {
        let operands = &self.plan.options.operands;
        let order = turns(operands.len(), rounds);
        for (index, &turn) in order.iter().enumerate().skip(trials.len()) {
            let operand = &operands[turn.operand];
            let (number, of) = (index + 1, order.len());
            observe(&Event::TrialBegins {
                number,
                of,
                operand,
                turn,
            });
            let trial = self.trial(operand, turn).map_err(|error| match error {
                RunError::Server(error) => error.into(),
                RunError::Port(error) => CompareError::Port(error),
                RunError::Prepare { command, reason } => CompareError::Prepare { command, reason },
                RunError::Answers(error) => *error,
                RunError::Trial(TrialError::Interrupted) => CompareError::Interrupted,
                RunError::Trial(cause) => CompareError::Trial {
                    number,
                    of,
                    label: operand.label.clone(),
                    cause,
                },
            })?;
            observe(&Event::TrialEnded(&trial));
            trials.push(trial);
        }
        Ok(())
    }

    /// Fails if the operand answers a request for `url` otherwise than the first one does. Before the warm-up, so that no
    /// trial has requests beside those of the load generator.
    fn compare_answers(
        &mut self,
        operand: &Operand,
        turn: Turn,
        url: &url::Url,
    ) -> Result<(), RunError> {
        if turn.round.is_some() || self.plan.options.answers_may_differ {
            return Ok(());
        }
        let asked = Answers::request(url, &self.plan.options.trust).map_err(|cause| {
            RunError::Answers(Box::new(CompareError::NoAnswer {
                label: operand.label.clone(),
                url: plimsoll_model::masked_text(url.as_str()).into_owned(),
                cause,
            }))
        })?;
        let answers = match asked {
            Asked::Answered(answers) => answers,
            Asked::Untrusted => {
                self.is_untrusted = true;
                return Ok(());
            }
        };
        self.is_long |= answers.is_long();
        let Some(first) = &self.answers else {
            self.answers = Some(answers);
            return Ok(());
        };
        let Some((our_answer, peer_answer)) = first.difference(&answers) else {
            return Ok(());
        };
        Err(RunError::Answers(Box::new(CompareError::Answers {
            ours: self.plan.options.operands[0].label.clone(),
            our_answer,
            peer: operand.label.clone(),
            peer_answer,
        })))
    }

    fn trial(&mut self, operand: &Operand, turn: Turn) -> Result<Trial, RunError> {
        if let Some(command) = &operand.prepare {
            prepare(&command.fill(&self.plan.values(self.port)))?;
        }
        if self.plan.options.drive.is_some() {
            self.server_trial(operand, turn)
        } else {
            self.client_trial(operand, turn)
        }
    }

    /// The operand makes the requests.
    fn client_trial(&mut self, operand: &Operand, turn: Turn) -> Result<Trial, RunError> {
        let values = self.plan.values(self.port);
        if let Some(url) = &operand.url {
            self.compare_answers(operand, turn, &checked_url(&values, url))?;
        }
        let (count_from, limit) = (self.count_from(&values), self.limit());
        let own = self.own.get_mut(turn.operand).and_then(Option::as_mut);
        let is_own = own.is_some();
        let started = self.server.as_mut().and_then(Running::tree);
        let source = own.or(self.shared.as_mut());
        let server = source
            .map(|source| ServerEnd::Observed(&mut **source))
            .or(started.map(ServerEnd::Started));
        let observed = Generator {
            words: operand.command.fill(&values),
            cores: &self.plan.options.pin,
            count_from,
            limit,
            server,
        }
        .run(self.interrupt)?;
        if let Some(cpu) = observed.server_cpu.filter(|_| is_own) {
            return Ok(Trial {
                cpu,
                peak_rss_bytes: observed.server_peak_rss,
                other_end_cpu: Some(observed.generator_cpu),
                ..self.common(turn, &observed)
            });
        }
        Ok(Trial {
            cpu: observed.generator_cpu,
            peak_rss_bytes: observed.generator_peak_rss,
            other_end_cpu: observed.server_cpu,
            ..self.common(turn, &observed)
        })
    }

    /// The operand answers them.
    fn server_trial(&mut self, operand: &Operand, turn: Turn) -> Result<Trial, RunError> {
        let options = &self.plan.options;
        let drive = options.drive.as_ref().expect("operands are servers");
        let values = self.plan.values(port(self.plan).map_err(RunError::Port)?);
        let words = operand.command.fill(&values);
        let url = checked_url(&values, &drive.url);
        let mut server = server::start(&words, &options.pin, None, &url, self.interrupt)?;
        self.compare_answers(operand, turn, &url)?;
        let observed = Generator {
            words: drive.command.fill(&values),
            cores: &drive.pin,
            server: server.tree().map(ServerEnd::Started),
            count_from: self.count_from(&values),
            limit: self.limit(),
        }
        .run(self.interrupt)?;
        let Some(cpu) = observed.server_cpu else {
            return Err(server.unmeasured().into());
        };
        Ok(Trial {
            cpu,
            peak_rss_bytes: observed.server_peak_rss,
            other_end_cpu: Some(observed.generator_cpu),
            ..self.common(turn, &observed)
        })
    }

    /// The part that does not depend on which end the operand is.
    fn common(&self, turn: Turn, observed: &Observed) -> Trial {
        let tally = &observed.tally;
        Trial {
            turn,
            began: observed.began.saturating_duration_since(self.began),
            length: observed.length,
            source: tally.source,
            ok: tally.ok,
            failed: tally.failed,
            error_statuses: tally.error_statuses,
            requests_per_second: tally
                .requests_per_second
                .unwrap_or_else(|| tally.ok as f64 / observed.length.as_secs_f64()),
            mean_us: tally.mean_us,
            p50_us: tally.p50_us,
            p99_us: tally.p99_us,
            cpu: observed.generator_cpu,
            peak_rss_bytes: None,
            other_end_cpu: None,
        }
    }

    fn count_from(&self, values: &Values) -> Option<url::Url> {
        let page = self.plan.options.count_from.as_ref()?;
        Some(checked_url(values, page))
    }

    /// Generous: tools start up, drain and print.
    fn limit(&self) -> Duration {
        Duration::from_secs(u64::from(self.plan.options.seconds) * 2 + 30)
    }
}

/// Runs a command to its end; what it prints is not shown.
fn prepare(words: &[String]) -> Result<(), RunError> {
    let command = words.join(" ");
    let (program, arguments) = words.split_first().expect("a template has a word");
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| RunError::Prepare {
            command: command.clone(),
            reason: error.to_string(),
        })?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last = stderr.lines().last().unwrap_or_default().trim();
    let reason = match last {
        "" => output.status.to_string(),
        last => format!("{}: {last}", output.status),
    };
    Err(RunError::Prepare { command, reason })
}

fn checked_url(values: &Values, text: &str) -> url::Url {
    parse_url(&values.fill(text)).expect("was checked when the plan was made")
}

/// The configured port, or one that was free a moment ago.
fn port(plan: &ComparePlan) -> io::Result<u16> {
    match plan.options.port {
        Some(port) => Ok(port),
        None => free_port(),
    }
}
