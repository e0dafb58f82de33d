//! `plimsoll load SCRIPT`: runs a k6 script.

mod api;

mod live;

mod log;

mod options;

mod outputs;

mod recorded;

mod remote;

mod report;

mod server;

mod template;

use std::cell::RefCell;
use std::fs;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{ArgAction, ValueEnum};
use plimsoll_client::ProxyRules;
use plimsoll_client::forward::Speaks;
use plimsoll_k6::{
    ExchangeRecording, ExitCode as K6ExitCode, Invocation, Output, Overrides, RunProgress, Script,
    ScriptText, Secrets, SummaryMode, parse_script_duration, run,
};
use plimsoll_model::{Clock as _, parse_duration};
use plimsoll_observe::{Pid, Target};
use plimsoll_script::Level;
use plimsoll_wire::SystemClock;

use self::live::Live;
use self::log::{ConsoleFile, Log, LogFormat, Verbosity};
use self::options::OptionFlags;
use self::outputs::Outputs;
use self::server::Server;
use self::template::Template;
use crate::flags::{connection_variables, key_log_of, number};
use crate::problem::Problem;
use crate::{signals, terminal};

/// Longer scripts on standard input are rejected.
const LONGEST: u64 = 16 << 20;

/// Run a k6 script
///
/// `plimsoll load` takes these flags, which are those of `k6 run`, when its argument is a script: a file whose name
/// ends in .js, .mjs, .cjs or .ts, or `-`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of k6")]
pub(crate) struct ScriptArgs {
    /// Script to run; `-` reads it from standard input
    #[arg(value_name = "SCRIPT")]
    script: String,

    /// Write a script to start from to SCRIPT instead of running it
    #[arg(long)]
    new: bool,

    /// Script to start from
    #[arg(long, value_enum, value_name = "NAME", default_value_t = Template::Minimal, requires = "new")]
    template: Template,

    /// Write a script to SCRIPT that makes the requests of a HAR, OpenAPI, .http, curl or URL list file
    #[arg(long, value_name = "FILE", conflicts_with = "new")]
    record: Option<PathBuf>,

    /// Compare modules that are imported by https with the hashes of this file, and add those of new ones
    #[arg(long, value_name = "FILE")]
    module_lock: Option<PathBuf>,

    /// Number of virtual users
    #[arg(short = 'u', long, value_name = "N")]
    vus: Option<u32>,

    /// Run for this time
    #[arg(short = 'd', long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Duration>,

    /// Number of iterations that all virtual users share
    #[arg(short = 'i', long, value_name = "N")]
    iterations: Option<u64>,

    /// Ramp to a number of virtual users, repeatable or separated by commas: `30s:10`
    #[arg(short = 's', long = "stage", value_name = "TIME:N", value_delimiter = ',', value_parser = stage)]
    stages: Vec<(Duration, u32)>,

    /// Set a variable of `__ENV`, repeatable
    #[arg(short = 'e', long = "env", value_name = "NAME=VALUE", value_parser = pair)]
    environment: Vec<(String, String)>,

    /// Make the variables of the environment part of `__ENV`
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    include_system_env_vars: bool,

    /// Add a tag to all samples, repeatable
    #[arg(long = "tag", value_name = "NAME=VALUE", value_parser = pair)]
    tags: Vec<(String, String)>,

    /// Read options from this file of JSON; those of the script take precedence
    #[arg(short = 'c', long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Serve k6's REST API at this address, such as `localhost:6565`, until the run ends
    #[arg(short = 'a', long, value_name = "HOST:PORT")]
    address: Option<String>,

    /// Do not run `setup()`
    #[arg(long)]
    no_setup: bool,

    /// Do not run `teardown()`
    #[arg(long)]
    no_teardown: bool,

    /// Do not judge thresholds
    #[arg(long)]
    no_thresholds: bool,

    /// Send requests over HTTP/2: by ALPN for https, with prior knowledge (h2c) for http
    #[arg(long)]
    http2: bool,

    /// Send requests over HTTP/3 (https only)
    #[arg(long, conflicts_with = "http2")]
    http3: bool,

    /// Accept any certificate
    #[arg(long)]
    insecure_skip_tls_verify: bool,

    /// Throw an exception when a request fails
    #[arg(short = 'w', long)]
    throw: bool,

    /// User agent of requests
    #[arg(long, value_name = "TEXT")]
    user_agent: Option<String>,

    /// Summary to print at the end [default: compact]
    #[arg(long, value_enum)]
    summary_mode: Option<Mode>,

    /// Write the summary as JSON to this file
    #[arg(long, value_name = "FILE")]
    summary_export: Option<PathBuf>,

    /// Write the new format 1.0.0 of k6 to `--summary-export`, and pass it to `handleSummary()`
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    new_machine_readable_summary: Option<bool>,

    /// Figures of trends, such as `avg,p(99.9)`
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    summary_trend_stats: Option<Vec<String>>,

    /// Keep every value of trends, 8 bytes each, for exact percentiles
    #[arg(long)]
    exact_trends: bool,

    /// Unit of durations in the summary: s, ms or us
    #[arg(long, value_name = "UNIT")]
    summary_time_unit: Option<String>,

    /// Number of worker threads [default: one per core]
    #[arg(short, long, value_name = "N", value_parser = number::count::<usize>(number::MOST_THREADS))]
    threads: Option<usize>,

    /// Write result files into the folder OUTPUT, every sample to a file, or send series to a database; repeatable: `DIR`, `json=FILE`,
    /// `csv=FILE` (`-` is standard output; compressed if the name ends in .gz), `prometheus-rw[=URL]`, `otlp[=URL]`
    #[arg(short = 'o', long = "out", value_name = "OUTPUT")]
    outputs: Vec<String>,

    /// Write lines of the script's console to this file
    #[arg(long, value_name = "FILE")]
    console_output: Option<PathBuf>,

    /// Source of `k6/secrets`, repeatable: `file=PATH` with lines KEY=VALUE, or `mock=KEY=VALUE`
    #[arg(long = "secret-source", value_name = "SOURCE")]
    secret_sources: Vec<String>,

    /// Where log lines go: `stderr`, `stdout`, `none` or `file=PATH` [default: stderr]
    #[arg(long, value_name = "OUTPUT")]
    log_output: Option<String>,

    /// Form of log lines [default: text]
    #[arg(long, value_enum, value_name = "FORMAT")]
    log_format: Option<LogFormat>,

    /// Print `console.debug()` too
    #[arg(short, long, conflicts_with = "quiet")]
    verbose: bool,

    /// Print the summary without colours
    #[arg(long)]
    no_color: bool,

    #[command(flatten)]
    options: OptionFlags,

    /// Print no summary, as `--summary-mode disabled`
    #[arg(long)]
    no_summary: bool,

    /// Do not show how far the run is
    #[arg(long)]
    no_tui: bool,

    /// Measure what this process, the server, and its children spend, and print it per request
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,

    /// Accepted, without effect: plimsoll reports no usage
    #[arg(long, hide = true)]
    no_usage_report: bool,

    /// Print neither messages of the script nor how the run goes on
    #[arg(short, long)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll load script.js
  plimsoll load -u 10 -d 30s script.js
  plimsoll load -e BASE=http://127.0.0.1:8080 --summary-export summary.json script.js
  plimsoll load -s 10s:50,1m:50,10s:0 - < script.js

Exit codes are those of k6: 0 fine, 99 thresholds failed, 104 invalid options, 105 stopped by a signal,
107 exception in the script, 108 test.abort(), 110 test.fail().";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Totals
    Compact,
    /// Totals with every metric, then the same for each group and scenario
    Full,
    /// The layout of k6 before version 1: groups with their checks, then every metric
    Legacy,
    /// Nothing
    Disabled,
}

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
const TAKES_FILE: [&str; 12] = [
    "--log-output",
    "--console-output",
    "--from",
    "--urls",
    "--feeder",
    "--out",
    "--record",
    "--module-lock",
    "--samples-csv",
    "--junit",
    "--markdown",
    "--prometheus",
];

fn is_script(argument: &str) -> bool {
    let extension = Path::new(argument).extension();
    let is_file =
        extension.is_some_and(|it| it == "js" || it == "mjs" || it == "cjs" || it == "ts");
    argument == "-" || is_file && !argument.contains("://") && !argument.starts_with('-')
}

/// Runs the script and returns what k6 would.
pub(crate) fn run_script(args: &ScriptArgs) -> ExitCode {
    match outcome(args) {
        Ok(code) => code.number().into(),
        Err((problem, code)) => {
            terminal::print_error(&problem);
            code.number().into()
        }
    }
}

type Failure = (Problem, K6ExitCode);

fn outcome(args: &ScriptArgs) -> Result<K6ExitCode, Failure> {
    let other = |problem: Problem| (problem, K6ExitCode::Other);
    if let Some(source) = &args.record {
        recorded::write(source, &args.script).map_err(other)?;
        return Ok(K6ExitCode::Fine);
    }
    if args.new {
        args.template.write(&args.script).map_err(other)?;
        return Ok(K6ExitCode::Fine);
    }
    let interrupt = signals::watch()
        .map_err(|error| other(Problem::new(format!("cannot watch for signals: {error}"))))?;
    let text = script_text(&args.script).map_err(other)?;
    let variables = connection_variables();
    let key_log = key_log_of(&variables);
    let variables = variables.iter();
    let proxies =
        ProxyRules::from_variables(variables.map(|(name, value)| (name.as_str(), value.as_str())));
    let proxies =
        proxies.map_err(|error| other(Problem::with("environment", error.to_string())))?;
    if args.http3 && proxies.proxies().next().is_some() {
        let message = "does not go through a proxy; unset the *_PROXY variables";
        return Err((Problem::with("--http3", message), K6ExitCode::InvalidConfig));
    }
    let remote = remote::modules(args.module_lock.clone(), variable, proxies.clone());
    let remote = remote.map_err(|message| {
        let problem = Problem::with("--module-lock", message);
        (problem, K6ExitCode::InvalidConfig)
    })?;
    let script = Script::load_with(&text, Some(remote))
        // Its text has all that its causes say.
        .map_err(|error| (Problem::new(error.to_string()), K6ExitCode::ScriptException))?;
    let environment = if args.include_system_env_vars {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect()
    } else {
        Vec::new()
    };
    let secrets = Secrets::parse(&args.secret_sources, |path| fs::read_to_string(path));
    let secrets = secrets.map_err(|message| {
        let problem = Problem::with("--secret-source", message);
        (problem, K6ExitCode::InvalidConfig)
    })?;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let is_interrupted = || interrupt.is_set();
    let began = SystemClock.now();
    let config = |problem: Problem| (problem, K6ExitCode::InvalidConfig);
    let named = if args.outputs.is_empty() {
        let named = variable("K6_OUT").unwrap_or_default();
        named
            .split(',')
            .filter(|it| !it.is_empty())
            .map(str::to_owned)
            .collect()
    } else {
        args.outputs.clone()
    };
    let mut outputs = Outputs::open(&named, variable, &proxies).map_err(config)?;
    let (series, push) = outputs.push().map_err(config)?.unzip();
    let console = args.console_output.clone();
    let console = console.or_else(|| variable("K6_CONSOLE_OUTPUT").map(PathBuf::from));
    let console = console.as_deref().map(ConsoleFile::create);
    let console = console.transpose().map_err(config)?;
    let log = log_of(args, began).map_err(config)?;
    let live = Arc::new(Live::default());
    let above = Arc::clone(&live);
    let show = |progress: &RunProgress| live.show(progress);
    let has_view = io::stderr().is_terminal() && !args.quiet && !args.no_tui;
    let server = args.pid.map(Server::attach).transpose().map_err(other)?;
    let folder = outputs.folder.take();
    let target = args.pid.filter(|_| folder.is_some()).map(Pid::new);
    let target = target.transpose();
    let target = target
        .map_err(|error| other(Problem::caused_by(&error).about("--pid")))?
        .map(|pid| Box::new(pid) as Box<dyn Target>);
    let target = target.as_deref();
    let recording = folder.as_ref().map(|_| ExchangeRecording {
        target,
        facts: report::facts(target),
    });
    let address = args.address.clone().or_else(|| variable("K6_ADDRESS"));
    let api = address.as_deref().map(api::Api::listen).transpose();
    let api = api.map_err(|problem| (problem, K6ExitCode::ApiFailed))?;
    if let Some(api) = &api {
        let text = format!("the REST API listens on http://{}", api.address());
        log.write(Level::Info, &text, "");
    }
    let invocation = Invocation {
        script,
        overrides: overrides(args).map_err(|problem| (problem, K6ExitCode::InvalidConfig))?,
        environment: environment
            .into_iter()
            .chain(args.environment.iter().cloned())
            .collect(),
        summary_mode: summary_mode(args).map_err(config)?,
        has_new_summary: has_new_summary(args).map_err(config)?,
        has_colors: !args.no_color
            && terminal::style_of_stdout() == plimsoll_report::text::Style::Ansi,
        terminals: (io::stdout().is_terminal(), io::stderr().is_terminal()),
        exact_trends: args.exact_trends,
        workers: args.threads.unwrap_or(cores),
        proxies,
        address_filter: None,
        key_log,
        speaks: speaks(args),
        secrets,
        log: Arc::new(move |level, text, source| match &console {
            // A disk that is full must not end the run.
            Some(console) if source == "console" && console.write(level, text).is_ok() => {}
            _ => above.above(|| log.write(level, text, source)),
        }),
        recording,
        on_progress: has_view.then_some(&show),
        samples: std::mem::take(&mut outputs.files),
        series: series.map(RefCell::new),
        control: api.as_ref().map(api::Api::control),
        is_interrupted: &is_interrupted,
    };
    let outcome = run(&invocation);
    drop(api);
    live.end();
    let cost = server.and_then(|server| server.end(outcome.data.as_ref()));
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
    if let Some(folder) = &folder {
        report::write(folder, &outcome).map_err(other)?;
    }
    if let Some(cost) = cost {
        terminal::print(&cost).map_err(|error| other(Problem::new(error.to_string())))?;
    }
    let export = args.summary_export.clone();
    let export = export.or_else(|| variable("K6_SUMMARY_EXPORT").map(PathBuf::from));
    if let (Some(path), Some(export)) = (&export, &outcome.export) {
        fs::write(path, export).map_err(|error| {
            let message = format!("cannot write {}: {error}", path.display());
            other(Problem::with("--summary-export", message))
        })?;
    }
    for line in outcome.message.lines() {
        terminal::print_error(&Problem::new(line));
    }
    Ok(code)
}

/// The log, by flags or variables.
fn log_of(args: &ScriptArgs, began: Instant) -> Result<Log, Problem> {
    let output = args.log_output.clone();
    let output = output.or_else(|| variable("K6_LOG_OUTPUT"));
    let format = match (args.log_format, variable("K6_LOG_FORMAT")) {
        (Some(format), _) => format,
        (None, None) => LogFormat::default(),
        (None, Some(name)) => LogFormat::from_str(&name, true)
            .map_err(|message| Problem::with("K6_LOG_FORMAT", format!("`{name}`: {message}")))?,
    };
    let verbosity = match (args.quiet, args.verbose) {
        (true, _) => Verbosity::Quiet,
        (_, true) => Verbosity::Verbose,
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
fn variable(name: &str) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the binary, where the environment is read"
    )]
    let value = std::env::var(name);
    value.ok().filter(|value| !value.is_empty())
}

/// The options of flags, and of variables of the environment where there is no flag.
fn overrides(args: &ScriptArgs) -> Result<Overrides, Problem> {
    let mut all = options::of_environment(variable);
    all.extend(args.options.options());
    let wrong = |name: &str, message: String| Problem::with(name, message);
    let number = |name: &str| {
        let value = variable(name)?;
        let number = value.parse::<u64>();
        Some(number.map_err(|_| wrong(name, format!("`{value}` is not a number"))))
    };
    let vus = number(options::VUS).transpose()?;
    let vus = vus.map(|vus| u32::try_from(vus).unwrap_or(u32::MAX));
    // One flag about when iterations start takes the place of all variables about that.
    let has_flag = args.duration.is_some() || args.iterations.is_some() || !args.stages.is_empty();
    let (mut duration, mut iterations, mut stages) =
        (args.duration, args.iterations, args.stages.clone());
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
    let file = args.config.clone();
    let file = file.or_else(|| variable(options::CONFIG).map(PathBuf::from));
    let defaults = file.map(|path| config(&path)).transpose()?;
    Ok(Overrides {
        options: all,
        defaults: defaults.unwrap_or_default(),
        vus: args.vus.or(vus),
        duration,
        iterations,
        stages,
        tags: args.tags.clone(),
        no_setup: args.no_setup,
        no_teardown: args.no_teardown,
        no_thresholds: args.no_thresholds || is_on("K6_NO_THRESHOLDS")?,
        is_insecure: args.insecure_skip_tls_verify,
        throws: args.throw,
        user_agent: args.user_agent.clone(),
        trend_stats: args.summary_trend_stats.clone(),
        time_unit: args.summary_time_unit.clone(),
    })
}

/// The version of HTTP that flags name; without one, servers choose by ALPN.
fn speaks(args: &ScriptArgs) -> Speaks {
    match (args.http2, args.http3) {
        (_, true) => Speaks::Http3,
        (true, _) => Speaks::Http2,
        _ => Speaks::Negotiated,
    }
}

/// How much the summary shows, by the flag or the variable.
fn summary_mode(args: &ScriptArgs) -> Result<SummaryMode, Problem> {
    if args.no_summary {
        return Ok(SummaryMode::Disabled);
    }
    let mode = match (args.summary_mode, variable("K6_SUMMARY_MODE")) {
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
fn has_new_summary(args: &ScriptArgs) -> Result<bool, Problem> {
    match args.new_machine_readable_summary {
        Some(is_new) => Ok(is_new),
        None => is_on("K6_NEW_MACHINE_READABLE_SUMMARY"),
    }
}

/// The truth value of a variable; false if it is not set.
fn is_on(name: &str) -> Result<bool, Problem> {
    let Some(text) = variable(name) else {
        return Ok(false);
    };
    options::switch(&text)
        .ok_or_else(|| Problem::with(name, format!("`{text}` is neither true nor false")))
}

fn script_text(script: &str) -> Result<ScriptText, Problem> {
    if script != "-" {
        return Ok(ScriptText::File(PathBuf::from(script)));
    }
    let mut text = String::new();
    let read = io::stdin()
        .lock()
        .take(LONGEST + 1)
        .read_to_string(&mut text);
    read.map_err(|error| {
        Problem::new(format!("cannot read a script from standard input: {error}"))
    })?;
    if text.len() as u64 > LONGEST {
        let mebibytes = LONGEST >> 20;
        return Err(Problem::new(format!(
            "the script on standard input is longer than {mebibytes} MiB"
        )));
    }
    let directory = std::env::current_dir()
        .map_err(|error| Problem::new(format!("there is no current directory: {error}")))?;
    Ok(ScriptText::Given { text, directory })
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

fn stage(text: &str) -> Result<(Duration, u32), String> {
    let (duration, target) = text
        .split_once(':')
        .ok_or_else(|| format!("`{text}` is not a stage such as 30s:10"))?;
    let duration = parse_script_duration(duration).map_err(|error| error.to_string())?;
    let target = target
        .parse()
        .map_err(|_| format!("`{target}` is not a number of virtual users"))?;
    Ok((duration, target))
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| format!("`{text}` is not NAME=VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
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
