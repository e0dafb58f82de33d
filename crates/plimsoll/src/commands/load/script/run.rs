//! One run of a script: what it needs is opened, then it runs, then what it came to is written.

use std::cell::{Cell, RefCell};
use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

#[cfg(feature = "fleet")]
use plimsoll_fleet::FoundRun;
#[cfg(feature = "fleet")]
use plimsoll_k6::ScriptParts;
use plimsoll_k6::{
    ExchangeRecording, ExitCode as K6ExitCode, Invocation, LineSource, Outcome, Output, RunNeeds,
    RunProgress, RunServers, run,
};
use plimsoll_model::Clock as _;
use plimsoll_observe::{Pid, Target};
use plimsoll_script::Level;
use plimsoll_wire::SystemClock;

#[cfg(feature = "fleet")]
use super::super::fleet::script::{FleetListener, ScriptFleet};
use super::api::Api;
use super::dashboard::{self, DashboardPlan, RunDashboard};
use super::flags::{GlobalFlags, RunFlags, TestType};
use super::live::Live;
use super::load::load;
use super::log::{ConsoleFile, Log, LogFormat};
use super::outputs::Outputs;
use super::server::Servers;
use super::settings::{
    has_colors, has_new_summary, is_on, log_of, overrides, refuse_unsupported, speaks,
    summary_mode, variable,
};
use super::{Failure, describe, report};
use crate::exit::Exit;
use crate::problem::Problem;
use crate::{signals, terminal};

/// A run, however the command line was written.
pub(super) struct Request<'a> {
    pub(super) flags: &'a RunFlags,
    pub(super) threads: Option<usize>,
    pub(super) test_type: Option<TestType>,
    /// Whether output is that of k6: standard output says first what is run, and errors are lines of the log.
    pub(super) is_k6: bool,
    #[cfg(feature = "fleet")]
    pub(super) fleet: Option<&'a super::super::fleet::flags::FleetArgs>,
    /// The run of a fleet to go on with.
    #[cfg(feature = "fleet")]
    pub(super) attached: Option<&'a FoundRun>,
    /// In place of k6's, if it has none for what happened.
    pub(super) exit: Cell<Option<Exit>>,
}

impl Request<'_> {
    /// The broker whose agents make the iterations.
    fn broker(&self) -> Option<&str> {
        #[cfg(feature = "fleet")]
        return self.fleet?.fleet.as_deref();
        #[cfg(not(feature = "fleet"))]
        return None;
    }

    /// Whether another process has started the run.
    fn is_attached(&self) -> bool {
        #[cfg(feature = "fleet")]
        return self.attached.is_some();
        #[cfg(not(feature = "fleet"))]
        return false;
    }
}

/// Makes the run, and writes everything that it came to.
pub(super) fn outcome(request: &Request<'_>) -> Result<K6ExitCode, Failure> {
    let other = |problem: Problem| (problem, K6ExitCode::Other);
    let config = |problem: Problem| (problem, K6ExitCode::InvalidConfig);
    let flags = request.flags;
    refuse_unsupported(flags).map_err(other)?;
    let interrupt = signals::watch()
        .map_err(|error| other(Problem::new(format!("cannot watch for signals: {error}"))))?;
    let began = SystemClock.now();
    // Variables of this machine are not for others.
    let sees_system = request.broker().is_none();
    let (page, named) = named_outputs(flags);
    #[cfg(feature = "fleet")]
    if !sees_system {
        let (threads, args) = (request.threads, request.fleet);
        super::super::fleet::script::refuse_of_one_machine(flags, &named, threads, args)
            .map_err(config)?;
    }
    let loaded = load(&flags.source, &flags.global, request.test_type, sees_system)?;
    if flags.http3 && loaded.proxies.proxies().next().is_some() {
        let message = "does not go through a proxy; unset the *_PROXY variables";
        return Err(config(Problem::with("--http3", message)));
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let is_interrupted = || interrupt.is_set();
    let page = DashboardPlan::read(flags.dashboard.as_deref(), page.as_deref(), variable)
        .map_err(config)?;
    let mut outputs = Outputs::open(&named, variable, &loaded.proxies).map_err(other)?;
    let (series, push) = outputs.push().map_err(config)?.unzip();
    let console = flags.overrides.console_output.clone();
    let console = console.or_else(|| variable("K6_CONSOLE_OUTPUT").map(PathBuf::from));
    let console_file = Arc::new(OnceLock::new());
    let file_of_lines = Arc::clone(&console_file);
    let form = (!request.is_k6).then(LogFormat::default);
    let log = Arc::new(log_of(&flags.global, began, form).map_err(config)?);
    let lines = Arc::clone(&log);
    let live = Arc::new(Live::default());
    let above = Arc::clone(&live);
    let is_quiet = flags.global.quiet == Some(true);
    let has_view = io::stderr().is_terminal() && !is_quiet && !flags.no_tui;
    let page = page.map(|page| RunDashboard::start(page, &flags.source.script));
    let page = page.transpose().map_err(other)?;
    if let Some(url) = page.as_ref().and_then(RunDashboard::url) {
        log.write(
            Level::Info,
            &format!("the dashboard is at {url}"),
            LineSource::Run,
        );
    }
    let show = |progress: &RunProgress| {
        if has_view {
            live.show(progress);
        }
        if let Some(page) = &page {
            page.show(progress);
        }
    };
    let observed = flags.observe.open();
    let observed = observed.map_err(|failed| other(failed.into_first()))?;
    let servers = Servers::attach(flags.pid, &observed).map_err(other)?;
    #[cfg(feature = "fleet")]
    let servers = if request.is_attached() {
        servers.late()
    } else {
        servers
    };
    let folder = outputs.folder.take();
    let pid = flags.pid.filter(|_| folder.is_some());
    let target = pid.map(process).transpose().map_err(other)?;
    let target = target.as_deref();
    let recording = folder.as_ref().map(|_| ExchangeRecording {
        target,
        // A part of a run is not what its requests cost.
        observed: if request.is_attached() {
            &[]
        } else {
            &observed
        },
        facts: report::facts(target, &observed),
    });
    let api = served_api(&flags.global, &log)?;
    let has_colors = has_colors(&flags.global)
        && terminal::style_of_stdout() == plimsoll_report::text::Style::Ansi;
    #[cfg(feature = "mcp")]
    let bounds = crate::confined::script_bounds();
    let on_plan = |plan: &RunNeeds| {
        #[cfg(feature = "mcp")]
        if let Some(bounds) = bounds {
            bounds.admit(plan.most_vus, intended_length(plan))?;
        }
        // None is made for a script that fails before. What module code prints is in the log, as by k6.
        if let Some(path) = &console {
            let file = ConsoleFile::create(path)?;
            // It is made once.
            console_file.set(file).ok();
        }
        if request.is_k6 && !is_quiet {
            let text = describe::text(&flags.source.script, &named, plan);
            // Without standard output there is no summary either.
            terminal::print(&text).ok();
        }
        Ok(())
    };
    #[cfg(feature = "fleet")]
    let say = |text: &str| log.write(Level::Info, text, LineSource::Run);
    #[cfg(feature = "fleet")]
    let begins = || servers.mark();
    #[cfg(feature = "fleet")]
    let listener = FleetListener {
        log: &say,
        begins: &begins,
    };
    #[cfg(feature = "fleet")]
    let fleet = request.fleet.zip(request.broker());
    #[cfg(feature = "fleet")]
    let fleet = match (fleet, request.attached) {
        (None, _) => None,
        (Some(broker), Some(found)) => {
            let records = recording.is_some();
            let fleet = ScriptFleet::attached(broker, found, records, &interrupt, listener);
            Some(fleet?)
        }
        (Some((args, url)), None) => {
            let made = overrides(&flags.overrides, &flags.source, &flags.global);
            let made = made.map_err(config)?;
            if args.kubernetes.kubernetes.is_some() {
                super::super::fleet::script::in_cluster((args, url), flags, &loaded, made)?;
                return Ok(K6ExitCode::Fine);
            }
            let fleet = ScriptFleet::new(
                (args, url),
                flags,
                &loaded,
                (made, recording.is_some()),
                &interrupt,
                listener,
            )?;
            if fleet.is_none() {
                return Ok(K6ExitCode::Fine);
            }
            fleet
        }
    };
    let invocation = Invocation {
        #[cfg(feature = "fleet")]
        parts: fleet.as_ref().map(|fleet| fleet as &dyn ScriptParts),
        overrides: overrides(&flags.overrides, &flags.source, &flags.global).map_err(config)?,
        summary_mode: summary_mode(flags).map_err(config)?,
        has_new_summary: has_new_summary(&flags.source).map_err(config)?,
        has_colors,
        terminals: (io::stdout().is_terminal(), io::stderr().is_terminal()),
        exact_trends: flags.exact_trends,
        workers: request.threads.unwrap_or(cores),
        speaks: speaks(flags),
        #[cfg(feature = "mcp")]
        most_requests_per_second: bounds.map(|bounds| bounds.requests_per_second),
        recording,
        servers: RunServers::Here(&servers),
        on_plan: Some(&on_plan),
        on_progress: (has_view || page.is_some()).then_some(&show),
        samples: std::mem::take(&mut outputs.files),
        series: series.map(RefCell::new),
        control: api.as_ref().map(Api::control),
        ..loaded.invocation(
            Arc::new(move |level, text, source| match file_of_lines.get() {
                // A disk that is full must not end the run.
                Some(console)
                    if source == LineSource::Console && console.write(level, text).is_ok() => {}
                _ => above.above(|| lines.write(level, text, source)),
            }),
            &is_interrupted,
        )
    };
    let outcome = run(&invocation);
    live.end();
    let mut code = outcome.exit;
    drop(invocation);
    if let Some(push) = push.and_then(Rc::into_inner) {
        terminal::print_warnings(&push.into_inner().finish_with(&[]));
    }
    if !write_all(&outcome.outputs) && code == K6ExitCode::Fine {
        code = K6ExitCode::Other;
    }
    #[cfg(feature = "fleet")]
    if let Some(end) = fleet.and_then(ScriptFleet::ended) {
        terminal::print(&end.agents).map_err(|error| other(Problem::new(error.to_string())))?;
        terminal::print_notes(&end.notes);
        request.exit.set(end.exit);
    }
    let cost = servers.text();
    if let Some(folder) = &folder {
        report::write(folder, &outcome).map_err(other)?;
    }
    print_cautions(&outcome, request.is_k6.then_some(&*log));
    if let Some(page) = page {
        page.end(&outcome).map_err(other)?;
    }
    if let Some(cost) = cost {
        terminal::print(&cost).map_err(|error| other(Problem::new(error.to_string())))?;
    }
    export(flags, &outcome).map_err(other)?;
    if request.is_k6 && !outcome.message.is_empty() {
        log.write(Level::Error, &outcome.message, LineSource::Run);
    } else {
        for line in terminal::without_colours(&outcome.message).lines() {
            terminal::print_error(&Problem::new(line));
        }
    }
    let lingers = flags.linger.map_or_else(|| is_on("K6_LINGER"), Ok);
    if lingers.map_err(config)? && outcome.data.is_some() {
        while !interrupt.is_set() {
            std::thread::park_timeout(LINGERING);
        }
    }
    drop(api);
    Ok(code)
}

/// The settings of the page with live charts, if it is among the outputs, and all others.
fn named_outputs(flags: &RunFlags) -> (Option<String>, Vec<String>) {
    let named = if flags.outputs.is_empty() {
        let named = variable("K6_OUT").unwrap_or_default();
        let named = named.split(',').filter(|it| !it.is_empty());
        named.map(str::to_owned).collect::<Vec<_>>()
    } else {
        flags.outputs.clone()
    };
    let (page, named): (Vec<_>, Vec<_>) = named
        .into_iter()
        .partition(|output| output.split('=').next() == Some(dashboard::OUTPUT));
    let page = page.into_iter().next().map(|output| {
        let settings = output.split_once('=').map(|(_, settings)| settings);
        settings.unwrap_or_default().to_owned()
    });
    (page, named)
}

/// The process of the server.
fn process(pid: u32) -> Result<Box<dyn Target>, Problem> {
    let pid = Pid::new(pid);
    let pid = pid.map_err(|error| Problem::caused_by(&error).about("--pid"))?;
    Ok(Box::new(pid))
}

/// The REST API of the run, where an address is named for it.
fn served_api(global: &GlobalFlags, log: &Log) -> Result<Option<Api>, Failure> {
    let address = global.address.clone();
    let address = address.or_else(|| variable("K6_ADDRESS"));
    let Some(address) = address.filter(|address| !address.is_empty()) else {
        return Ok(None);
    };
    let api = Api::listen(&address).map_err(|problem| (problem, K6ExitCode::ApiFailed))?;
    let text = format!("the REST API listens on http://{}", api.address());
    log.write(Level::Info, &text, LineSource::Run);
    Ok(Some(api))
}

/// Writes what the run prints or has for files; false if anything could not be written, which is reported.
fn write_all(outputs: &[Output]) -> bool {
    let mut is_written = true;
    for output in outputs {
        if let Err(problem) = write(output) {
            terminal::print_error(&problem);
            is_written = false;
        }
    }
    is_written
}

/// Prints what readers of the figures should know: with result files the cautions of their page.
///
/// - `log`: where output is that of k6, and warnings are lines of the log.
fn print_cautions(outcome: &Outcome, log: Option<&Log>) {
    let cautions = match &outcome.recorded {
        Some(recorded) => plimsoll_report::text::cautions(&recorded.summary),
        None => outcome.cautions.clone(),
    };
    if let Some(log) = log {
        for caution in cautions {
            log.write(Level::Warning, &caution, LineSource::Run);
        }
    } else {
        let cautions = cautions.into_iter().map(Problem::new);
        terminal::print_warnings(&cautions.collect::<Vec<_>>());
    }
}

/// Writes the summary as JSON, where a file is named for it.
fn export(flags: &RunFlags, outcome: &Outcome) -> Result<(), Problem> {
    let path = flags.source.summary_export.clone();
    let path = path.or_else(|| variable("K6_SUMMARY_EXPORT").map(PathBuf::from));
    let (Some(path), Some(export)) = (path, &outcome.export) else {
        return Ok(());
    };
    fs::write(&path, export).map_err(|error| {
        let message = format!("cannot write {}: {error}", path.display());
        Problem::with("--summary-export", message)
    })
}

/// The time for which a script starts iterations. A scenario with a number of them has a limit instead (10 minutes unless the
/// script sets another), which it seldom reaches.
#[cfg(feature = "mcp")]
fn intended_length(plan: &RunNeeds) -> Duration {
    let scenarios = plan.scenarios.iter();
    let timed = scenarios.filter(|scenario| !scenario.executor.ends_with("-iterations"));
    let ends = timed.map(|scenario| scenario.start + scenario.length);
    ends.max().unwrap_or_default()
}

/// How often a run that lingers looks for a signal.
const LINGERING: Duration = Duration::from_millis(50);

fn write(output: &Output) -> Result<(), Problem> {
    let failed =
        |name: &str, error: io::Error| Err(Problem::new(format!("cannot write {name}: {error}")));
    let written = |name: &str, result: io::Result<()>| match result {
        // A reader that has gone away is no error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => failed(name, error),
        Ok(()) => Ok(()),
    };
    match output {
        Output::Stdout(bytes) => {
            let mut stdout = io::stdout().lock();
            let result = stdout.write_all(bytes).and_then(|()| stdout.flush());
            written("standard output", result)
        }
        Output::Stderr(bytes) => written("standard error", io::stderr().lock().write_all(bytes)),
        Output::File(path, bytes) => match fs::write(path, bytes) {
            Ok(()) => Ok(()),
            Err(error) => failed(&path.display().to_string(), error),
        },
    }
}
