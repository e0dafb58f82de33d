//! `plimsoll load SCRIPT`: runs a k6 script.

mod api;

mod dashboard;

mod describe;

pub(crate) mod flags;

mod live;

pub(crate) mod load;

pub(crate) mod log;

mod options;

mod outputs;

mod recorded;

mod remote;

mod report;

mod server;

pub(crate) mod template;

use std::cell::{Cell, RefCell};
use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use clap::ValueEnum as _;
use plimsoll_client::forward::Speaks;
#[cfg(feature = "fleet")]
use plimsoll_k6::ScriptParts;
use plimsoll_k6::{
    ExchangeRecording, ExitCode as K6ExitCode, Invocation, LineSource, Output, Overrides, RunNeeds,
    RunProgress, SummaryMode, parse_script_duration, run,
};
use plimsoll_model::Clock as _;
use plimsoll_observe::{Pid, Target};
use plimsoll_script::Level;
use plimsoll_wire::SystemClock;

use self::dashboard::{DashboardPlan, RunDashboard};
use self::flags::{GlobalFlags, Mode, OverrideFlags, RunFlags, SourceFlags, TestType, stage};
use self::live::Live;
pub(crate) use self::load::load;
use self::log::{ConsoleFile, Log, LogFormat, Verbosity};
use self::outputs::Outputs;
use self::server::Servers;
use self::template::Template;
#[cfg(feature = "fleet")]
use super::fleet::script::{FleetListener, ScriptFleet};
use crate::exit::Exit;
use crate::flags::number;
use crate::problem::Problem;
use crate::{signals, terminal};

/// Run a k6 script
///
/// `plimsoll load` takes these flags, which are those of `k6 run`, when its argument is a script: a file whose name
/// ends in .js, .mjs, .cjs, .ts or .tar, or `-`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES, args_override_self = true)]
pub(crate) struct ScriptArgs {
    #[command(flatten)]
    flags: RunFlags,

    /// Number of worker threads [default: one per core]
    #[arg(short, long, value_name = "N", value_parser = number::count::<usize>(number::MOST_THREADS))]
    threads: Option<usize>,

    /// Take SCRIPT for this, whatever it looks like
    #[arg(long = "type", value_enum, value_name = "TYPE")]
    test_type: Option<TestType>,

    #[cfg(feature = "fleet")]
    #[command(flatten)]
    fleet: super::fleet::flags::FleetArgs,

    /// Write a script to start from to SCRIPT instead of running it
    #[arg(long)]
    new: bool,

    /// Script to start from
    #[arg(long, value_enum, value_name = "NAME", default_value_t = Template::Minimal, requires = "new")]
    template: Template,

    /// Write a script to SCRIPT that makes the requests of a HAR, OpenAPI, .http, curl or URL list file
    #[arg(long, value_name = "FILE", conflicts_with = "new")]
    record: Option<PathBuf>,
}

/// Run a script or an archive
#[derive(Debug, clap::Args)]
#[command(args_override_self = true)]
pub(crate) struct K6RunArgs {
    #[command(flatten)]
    flags: RunFlags,

    /// Number of worker threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = number::count::<usize>(number::MOST_THREADS))]
    threads: Option<usize>,

    /// Take SCRIPT for this, whatever it looks like
    #[arg(short = 't', long = "type", value_enum, value_name = "TYPE")]
    test_type: Option<TestType>,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll load script.js
  plimsoll load -u 10 -d 30s script.js
  plimsoll load -e BASE=http://127.0.0.1:8080 --summary-export summary.json script.js
  plimsoll load -s 10s:50,1m:50,10s:0 - < script.js

Exit codes are those of k6: 0 fine, 99 thresholds failed, 104 invalid options, 105 stopped by a signal,
107 exception in the script, 108 test.abort(), 110 test.fail().";

/// Whether the arguments of `plimsoll load` name a script instead of a URL.
///
/// - `arguments`: those behind `load`.
pub(crate) fn is_meant(arguments: &[String]) -> bool {
    arguments.iter().enumerate().any(|(position, argument)| {
        let before = position.checked_sub(1).map(|before| &arguments[before]);
        // The value of a flag, such as `--from requests.js` or `--samples-csv -`.
        let is_value =
            before.is_some_and(|before| before.starts_with("--") && !before.contains('='));
        // Behind a switch such as `--quiet`, the last argument is the script.
        let is_last = position + 1 == arguments.len()
            && before.is_none_or(|before| !TAKES_FILE.contains(&before.as_str()));
        is_script(argument) && (!is_value || is_last)
    })
}

/// Flags of `load` whose values may look like scripts.
const TAKES_FILE: [&str; 13] = [
    "--log-output",
    "--console-output",
    "--from",
    "--urls",
    "--feeder",
    "--out",
    "--append",
    "--record",
    "--module-lock",
    "--samples-csv",
    "--junit",
    "--markdown",
    "--prometheus",
];

fn is_script(argument: &str) -> bool {
    let extension = Path::new(argument).extension();
    let is_file = extension.is_some_and(|it| {
        ["js", "mjs", "cjs", "ts", "tar"]
            .iter()
            .any(|known| it == *known)
    });
    argument == "-" || is_file && !argument.contains("://") && !argument.starts_with('-')
}

/// Runs the script and returns what k6 would.
pub(crate) fn run_script(args: &ScriptArgs) -> Exit {
    let script = &args.flags.source.script;
    let written = if let Some(source) = &args.record {
        Some(recorded::write(source, script))
    } else {
        args.new.then(|| args.template.write(script))
    };
    let other = |problem: Problem| (problem, K6ExitCode::Other);
    if let Some(written) = written {
        return end(written.map(|()| K6ExitCode::Fine).map_err(other));
    }
    let request = Request {
        flags: &args.flags,
        threads: args.threads,
        test_type: args.test_type,
        is_k6: false,
        #[cfg(feature = "fleet")]
        fleet: Some(&args.fleet),
        exit: Cell::new(None),
    };
    let result = outcome(&request);
    match request.exit.get() {
        Some(exit) if result.is_ok() => exit,
        _ => end(result),
    }
}

/// The same by the command line of k6.
pub(crate) fn run_as_k6(args: &K6RunArgs) -> Exit {
    let result = outcome(&Request {
        flags: &args.flags,
        threads: args.threads,
        test_type: args.test_type,
        is_k6: true,
        #[cfg(feature = "fleet")]
        fleet: None,
        exit: Cell::new(None),
    });
    end_as_k6(&args.flags.global, result)
}

/// Prints what is wrong, if anything is.
pub(crate) fn end(result: Result<K6ExitCode, Failure>) -> Exit {
    match result {
        Ok(code) => Exit::Script(code.number()),
        Err((problem, code)) => {
            terminal::print_error(&problem);
            Exit::Script(code.number())
        }
    }
}

/// The same in the log, as k6 does.
pub(crate) fn end_as_k6(global: &GlobalFlags, result: Result<K6ExitCode, Failure>) -> Exit {
    match (result, log_of(global, SystemClock.now(), None)) {
        (Err((problem, code)), Ok(log)) => {
            let about = problem.about.map(|about| format!("{about}: "));
            let hint = problem.hint.map(|hint| format!("\nhint: {hint}"));
            let text = [
                about.unwrap_or_default(),
                problem.message,
                hint.unwrap_or_default(),
            ];
            log.write(Level::Error, &text.concat(), LineSource::Run);
            Exit::Script(code.number())
        }
        (result, _) => end(result),
    }
}

/// A problem with the exit code of k6 for it.
pub(crate) type Failure = (Problem, K6ExitCode);

/// A run, however the command line was written.
struct Request<'a> {
    flags: &'a RunFlags,
    threads: Option<usize>,
    test_type: Option<TestType>,
    /// Whether output is that of k6: standard output says first what is run, and errors are lines of the log.
    is_k6: bool,
    #[cfg(feature = "fleet")]
    fleet: Option<&'a super::fleet::flags::FleetArgs>,
    /// In place of k6's, if it has none for what happened.
    exit: Cell<Option<Exit>>,
}

impl Request<'_> {
    /// The broker whose agents make the iterations.
    fn broker(&self) -> Option<&str> {
        #[cfg(feature = "fleet")]
        return self.fleet?.fleet.as_deref();
        #[cfg(not(feature = "fleet"))]
        return None;
    }
}

fn outcome(request: &Request<'_>) -> Result<K6ExitCode, Failure> {
    let other = |problem: Problem| (problem, K6ExitCode::Other);
    let config = |problem: Problem| (problem, K6ExitCode::InvalidConfig);
    let flags = request.flags;
    refuse_unsupported(flags).map_err(other)?;
    let interrupt = signals::watch()
        .map_err(|error| other(Problem::new(format!("cannot watch for signals: {error}"))))?;
    let began = SystemClock.now();
    // Variables of this machine are not for others.
    let sees_system = request.broker().is_none();
    #[cfg(feature = "fleet")]
    if !sees_system {
        super::fleet::script::refuse_of_one_machine(flags, request.threads).map_err(config)?;
    }
    let loaded = load(&flags.source, &flags.global, request.test_type, sees_system)?;
    if flags.http3 && loaded.proxies.proxies().next().is_some() {
        let message = "does not go through a proxy; unset the *_PROXY variables";
        return Err(config(Problem::with("--http3", message)));
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let is_interrupted = || interrupt.is_set();
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
    let page = page
        .first()
        .map(|output| output.split_once('=').map_or("", |(_, settings)| settings));
    let page = DashboardPlan::read(flags.dashboard.as_deref(), page, variable).map_err(config)?;
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
    let folder = outputs.folder.take();
    let target = flags.pid.filter(|_| folder.is_some()).map(Pid::new);
    let target = target.transpose();
    let target = target
        .map_err(|error| other(Problem::caused_by(&error).about("--pid")))?
        .map(|pid| Box::new(pid) as Box<dyn Target>);
    let target = target.as_deref();
    let recording = folder.as_ref().map(|_| ExchangeRecording {
        target,
        observed: &observed,
        facts: report::facts(target, &observed),
    });
    let address = flags.global.address.clone();
    let address = address.or_else(|| variable("K6_ADDRESS"));
    let address = address.filter(|address| !address.is_empty());
    let api = address.as_deref().map(api::Api::listen).transpose();
    let api = api.map_err(|problem| (problem, K6ExitCode::ApiFailed))?;
    if let Some(api) = &api {
        let text = format!("the REST API listens on http://{}", api.address());
        log.write(Level::Info, &text, LineSource::Run);
    }
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
    let fleet = request.fleet.zip(request.broker());
    #[cfg(feature = "fleet")]
    let fleet = match fleet {
        None => None,
        Some((args, url)) => {
            let made = overrides(&flags.overrides, &flags.source, &flags.global);
            let made = made.map_err(config)?;
            if args.kubernetes.kubernetes.is_some() {
                super::fleet::script::in_cluster((args, url), flags, &loaded, made)?;
                return Ok(K6ExitCode::Fine);
            }
            let fleet = ScriptFleet::new(
                (args, url),
                flags,
                &loaded,
                made,
                &interrupt,
                FleetListener {
                    log: &say,
                    begins: &begins,
                },
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
        on_plan: Some(&on_plan),
        on_progress: (has_view || page.is_some()).then_some(&show),
        samples: std::mem::take(&mut outputs.files),
        series: series.map(RefCell::new),
        control: api.as_ref().map(api::Api::control),
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
    servers.mark();
    let mut code = outcome.exit;
    drop(invocation);
    if let Some(push) = push.and_then(Rc::into_inner) {
        terminal::print_warnings(&push.into_inner().finish_with(&[]));
    }
    for output in &outcome.outputs {
        if let Err(problem) = write(output) {
            terminal::print_error(&problem);
            if code == K6ExitCode::Fine {
                code = K6ExitCode::Other;
            }
        }
    }
    #[cfg(feature = "fleet")]
    if let Some((agents, exit)) = fleet.and_then(ScriptFleet::ended) {
        terminal::print(&agents).map_err(|error| other(Problem::new(error.to_string())))?;
        request.exit.set(exit);
    }
    let cost = servers.end(outcome.data.as_ref());
    if let Some(folder) = &folder {
        report::write(folder, &outcome).map_err(other)?;
        // The same as on the page. Without files nothing is recorded that they could be about.
        let recorded = outcome.recorded.as_ref();
        let cautions = recorded.map(|recorded| plimsoll_report::text::cautions(&recorded.summary));
        let cautions = cautions.into_iter().flatten().map(Problem::new);
        terminal::print_warnings(&cautions.collect::<Vec<_>>());
    }
    if let Some(page) = page {
        page.end(&outcome).map_err(other)?;
    }
    if let Some(cost) = cost {
        terminal::print(&cost).map_err(|error| other(Problem::new(error.to_string())))?;
    }
    let export = flags.source.summary_export.clone();
    let export = export.or_else(|| variable("K6_SUMMARY_EXPORT").map(PathBuf::from));
    if let (Some(path), Some(export)) = (&export, &outcome.export) {
        fs::write(path, export).map_err(|error| {
            let message = format!("cannot write {}: {error}", path.display());
            other(Problem::with("--summary-export", message))
        })?;
    }
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

/// Flags of k6 for which there is nothing here. A run that needs one fails.
fn refuse_unsupported(flags: &RunFlags) -> Result<(), Problem> {
    let features = flags.features.join(",");
    let features = if features.is_empty() {
        variable("K6_FEATURES").unwrap_or_default()
    } else {
        features
    };
    if !features.is_empty() {
        let message = format!("`{features}`: plimsoll has none of k6's experiments");
        return Err(Problem::with("--features", message));
    }
    refuse_unsupported_of_all(&flags.source, &flags.global)
}

/// The same of flags that other commands have, too.
pub(crate) fn refuse_unsupported_of_all(
    source: &SourceFlags,
    global: &GlobalFlags,
) -> Result<(), Problem> {
    let traces = source.traces_output.clone();
    let traces = traces.or_else(|| variable("K6_TRACES_OUTPUT"));
    if let Some(traces) = traces.filter(|it| it != "none") {
        let message = format!(
            "`{traces}`: plimsoll sends no traces of itself; use `--out otlp=URL` for metrics"
        );
        return Err(Problem::with("--traces-output", message));
    }
    if global.profiling_enabled == Some(true) {
        let message = "plimsoll is no program of Go and has no pprof endpoints";
        return Err(Problem::with("--profiling-enabled", message));
    }
    Ok(())
}

/// Whether colours are wanted.
fn has_colors(global: &GlobalFlags) -> bool {
    let unwanted = global.no_color.unwrap_or(false) || variable("K6_NO_COLOR").is_some();
    !unwanted
}

/// The log, by flags or variables.
///
/// - `form`: of lines if none is named; absent for that of k6.
pub(crate) fn log_of(
    global: &GlobalFlags,
    began: Instant,
    form: Option<LogFormat>,
) -> Result<Log, Problem> {
    let output = global.log_output.clone();
    let output = output.or_else(|| variable("K6_LOG_OUTPUT"));
    let format = match (global.log_format, variable("K6_LOG_FORMAT")) {
        (Some(format), _) => Some(format),
        (None, None) => form,
        (None, Some(name)) => {
            let format = LogFormat::from_str(&name, true);
            let wrong = |message| Problem::with("K6_LOG_FORMAT", format!("`{name}`: {message}"));
            Some(format.map_err(wrong)?)
        }
    };
    let verbosity = match global.verbose {
        Some(true) => Verbosity::Verbose,
        _ => Verbosity::Normal,
    };
    Log::open(
        output.as_deref().unwrap_or("stderr"),
        format,
        verbosity,
        began,
    )
}

/// Reads the options of `--config`.
fn config(path: &Path) -> Result<serde_json::Map<String, serde_json::Value>, Problem> {
    let wrong = |message: String| Problem::with("--config", message);
    let text = fs::read_to_string(path);
    let text = text.map_err(|error| wrong(format!("cannot read {}: {error}", path.display())))?;
    match serde_json::from_str(&text) {
        Ok(serde_json::Value::Object(options)) => Ok(options),
        Ok(_) => Err(wrong(format!(
            "{} is not an object of options",
            path.display()
        ))),
        Err(error) => Err(wrong(format!("{}: {error}", path.display()))),
    }
}

/// A variable of the environment that is set and not empty.
pub(crate) fn variable(name: &str) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the binary, where the environment is read"
    )]
    let value = std::env::var(name);
    value.ok().filter(|value| !value.is_empty())
}

/// The options of flags, and of variables of the environment where there is no flag.
pub(crate) fn overrides(
    flags: &OverrideFlags,
    source: &SourceFlags,
    global: &GlobalFlags,
) -> Result<Overrides, Problem> {
    let mut all = options::of_environment(variable);
    all.extend(flags.options.options());
    let wrong = |name: &str, message: String| Problem::with(name, message);
    let number = |name: &str| {
        let value = variable(name)?;
        let number = value.parse::<u64>();
        Some(number.map_err(|_| wrong(name, format!("`{value}` is not a number"))))
    };
    let vus = number(options::VUS).transpose()?;
    let vus = vus.map(|vus| u32::try_from(vus).unwrap_or(u32::MAX));
    // One flag about when iterations start takes the place of all variables about that.
    let has_flag =
        flags.duration.is_some() || flags.iterations.is_some() || !flags.stages.is_empty();
    let (mut duration, mut iterations, mut stages) =
        (flags.duration, flags.iterations, flags.stages.clone());
    if !has_flag {
        iterations = number(options::ITERATIONS).transpose()?;
        if let Some(text) = variable(options::DURATION) {
            let parsed = parse_script_duration(&text);
            duration = Some(parsed.map_err(|error| wrong(options::DURATION, error.to_string()))?);
        }
        if let Some(text) = variable(options::STAGES) {
            let parsed = text.split(',').map(|one| stage(one.trim()));
            let parsed = parsed.collect::<Result<Vec<_>, _>>();
            stages = parsed.map_err(|message| wrong(options::STAGES, message))?;
        }
    }
    let file = global.config.clone();
    let file = file.or_else(|| variable(options::CONFIG).map(PathBuf::from));
    let defaults = file.map(|path| config(&path)).transpose()?;
    Ok(Overrides {
        options: all,
        defaults: defaults.unwrap_or_default(),
        vus: flags.vus.or(vus),
        duration,
        iterations,
        stages,
        tags: flags.tags.clone(),
        no_thresholds: match source.no_thresholds {
            Some(is_off) => is_off,
            None => is_on("K6_NO_THRESHOLDS")?,
        },
        user_agent: flags.user_agent.clone(),
        trend_stats: flags.summary_trend_stats.clone(),
        time_unit: flags.summary_time_unit.clone(),
    })
}

/// The version of HTTP that flags name; without one, servers choose by ALPN.
pub(crate) fn speaks(flags: &RunFlags) -> Speaks {
    match (flags.http2, flags.http3) {
        (_, true) => Speaks::Http3,
        (true, _) => Speaks::Http2,
        _ => Speaks::Negotiated,
    }
}

/// How much the summary shows, by the flag or the variable.
fn summary_mode(flags: &RunFlags) -> Result<SummaryMode, Problem> {
    if flags.no_summary {
        return Ok(SummaryMode::Disabled);
    }
    let mode = match (flags.source.summary_mode, variable("K6_SUMMARY_MODE")) {
        (Some(mode), _) => mode,
        (None, None) => Mode::Compact,
        (None, Some(name)) => Mode::from_str(&name, true)
            .map_err(|message| Problem::with("K6_SUMMARY_MODE", format!("`{name}`: {message}")))?,
    };
    Ok(match mode {
        Mode::Compact => SummaryMode::Compact,
        Mode::Full => SummaryMode::Full,
        Mode::Legacy => SummaryMode::Legacy,
        Mode::Disabled => SummaryMode::Disabled,
    })
}

/// Whether the summary has the new format, by the flag or the variable.
fn has_new_summary(source: &SourceFlags) -> Result<bool, Problem> {
    match source.new_machine_readable_summary {
        Some(is_new) => Ok(is_new),
        None => is_on("K6_NEW_MACHINE_READABLE_SUMMARY"),
    }
}

/// The truth value of a variable; false if it is not set.
pub(crate) fn is_on(name: &str) -> Result<bool, Problem> {
    let Some(text) = variable(name) else {
        return Ok(false);
    };
    options::switch(&text)
        .ok_or_else(|| Problem::with(name, format!("`{text}` is neither true nor false")))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_differ_from_urls_and_from_values_of_flags() {
        let check = |line: &str, expected: bool| {
            let arguments: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
            assert_eq!(is_meant(&arguments), expected, "{line}");
        };
        for line in [
            "script.js",
            "-",
            "-u 10 -d 5s script.js",
            "script.mjs --vus 3",
            "--vus 3 ./dir/script.js",
            "--no-setup script.js",
            "-u 3 script.ts --quiet",
        ] {
            check(line, true);
        }
        for line in [
            "",
            "http://127.0.0.1/script.js",
            "--from requests.js",
            "--samples-csv -",
            "-c 3 http://a/",
            "--samples-csv - http://a/",
            "--feeder rows.csv http://a/",
        ] {
            check(line, false);
        }
    }
}
