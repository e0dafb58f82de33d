//! `plimsoll load SCRIPT`: runs a k6 script.

mod options;

use std::fs;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{ArgAction, ValueEnum};
use plimsoll_client::ProxyRules;
use plimsoll_k6::{
    ExitCode as K6ExitCode, Invocation, Output, Overrides, SampleFormat, SampleOutput, Script,
    ScriptText, SummaryMode, run,
};
use plimsoll_model::{Clock as _, parse_duration};
use plimsoll_script::Level;
use plimsoll_wire::SystemClock;

use self::options::OptionFlags;
use crate::flags::{connection_variables, number};
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

    /// Do not run `setup()`
    #[arg(long)]
    no_setup: bool,

    /// Do not run `teardown()`
    #[arg(long)]
    no_teardown: bool,

    /// Do not judge thresholds
    #[arg(long)]
    no_thresholds: bool,

    /// Accept any certificate
    #[arg(long)]
    insecure_skip_tls_verify: bool,

    /// Throw an exception when a request fails
    #[arg(short = 'w', long)]
    throw: bool,

    /// User agent of requests
    #[arg(long, value_name = "TEXT")]
    user_agent: Option<String>,

    /// Summary to print at the end
    #[arg(long, value_enum, default_value_t = Mode::Compact)]
    summary_mode: Mode,

    /// Write the summary as JSON to this file
    #[arg(long, value_name = "FILE")]
    summary_export: Option<PathBuf>,

    /// Figures of trends, such as `avg,p(99.9)`
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    summary_trend_stats: Option<Vec<String>>,

    /// Unit of durations in the summary: s, ms or us
    #[arg(long, value_name = "UNIT")]
    summary_time_unit: Option<String>,

    /// Number of worker threads [default: one per core]
    #[arg(short, long, value_name = "N", value_parser = number::count::<usize>(number::MOST_THREADS))]
    threads: Option<usize>,

    /// Write every sample to a file, repeatable: `json=FILE` or `csv=FILE`; `-` is standard output
    #[arg(short = 'o', long = "out", value_name = "FORMAT=FILE")]
    outputs: Vec<String>,

    #[command(flatten)]
    options: OptionFlags,

    /// Print no summary, as `--summary-mode disabled`
    #[arg(long)]
    no_summary: bool,

    /// Accepted, without effect: scripts have no live view
    #[arg(long)]
    no_tui: bool,

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
const TAKES_FILE: [&str; 8] = [
    "--from",
    "--urls",
    "--feeder",
    "--out",
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
    let interrupt = signals::watch()
        .map_err(|error| other(Problem::new(format!("cannot watch for signals: {error}"))))?;
    let text = script_text(&args.script).map_err(other)?;
    let script = Script::load(&text)
        // Its text has all that its causes say.
        .map_err(|error| (Problem::new(error.to_string()), K6ExitCode::ScriptException))?;
    let variables = connection_variables();
    let variables = variables.iter();
    let proxies =
        ProxyRules::from_variables(variables.map(|(name, value)| (name.as_str(), value.as_str())));
    let proxies =
        proxies.map_err(|error| other(Problem::with("environment", error.to_string())))?;
    let environment = if args.include_system_env_vars {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect()
    } else {
        Vec::new()
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let is_interrupted = || interrupt.is_set();
    let began = SystemClock.now();
    let is_quiet = args.quiet;
    let invocation = Invocation {
        script,
        overrides: overrides(args).map_err(|problem| (problem, K6ExitCode::InvalidConfig))?,
        environment: environment
            .into_iter()
            .chain(args.environment.iter().cloned())
            .collect(),
        summary_mode: match args.summary_mode {
            _ if args.no_summary => SummaryMode::Disabled,
            Mode::Compact => SummaryMode::Compact,
            Mode::Disabled => SummaryMode::Disabled,
        },
        has_colors: terminal::style_of_stdout() == plimsoll_report::text::Style::Ansi,
        terminals: (io::stdout().is_terminal(), io::stderr().is_terminal()),
        workers: args.threads.unwrap_or(cores),
        proxies,
        log: Arc::new(move |level, text, source| log(began, is_quiet, level, text, source)),
        samples: sample_outputs(&args.outputs)?.into(),
        is_interrupted: &is_interrupted,
    };
    let outcome = run(&invocation);
    let mut code = outcome.exit;
    for output in &outcome.outputs {
        if let Err(problem) = write(output) {
            terminal::print_error(&problem);
            if code == K6ExitCode::Fine {
                code = K6ExitCode::Other;
            }
        }
    }
    if let (Some(path), Some(export)) = (&args.summary_export, &outcome.export) {
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

/// Opens the files that samples are written to.
fn sample_outputs(outputs: &[String]) -> Result<Vec<SampleOutput>, Failure> {
    let wrong = |message: String| (Problem::with("--out", message), K6ExitCode::InvalidConfig);
    let mut opened = Vec::new();
    for output in outputs {
        let (format, path) = output.split_once('=').unwrap_or((output, "-"));
        let format = match format {
            "json" => SampleFormat::Json,
            "csv" => SampleFormat::Csv,
            other => {
                let message = format!("`{other}` is not supported; use json=FILE or csv=FILE");
                return Err(wrong(message));
            }
        };
        let extension = Path::new(path).extension();
        if extension.is_some_and(|it| it.eq_ignore_ascii_case("gz")) {
            let message = format!("{path}: samples are not compressed; write to another name");
            return Err(wrong(message));
        }
        let writer: Box<dyn io::Write> = if path == "-" {
            Box::new(io::BufWriter::new(io::stdout()))
        } else {
            let file = fs::File::create(path);
            let file = file.map_err(|error| wrong(format!("cannot write {path}: {error}")))?;
            Box::new(io::BufWriter::new(file))
        };
        opened.push(SampleOutput {
            name: path.to_owned(),
            format,
            writer,
        });
    }
    Ok(opened)
}

/// What flags say, and variables of the environment where there is no flag.
fn overrides(args: &ScriptArgs) -> Result<Overrides, Problem> {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the binary, where the environment is read"
    )]
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
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
            let parsed = parse_duration(&text);
            duration = Some(parsed.map_err(|error| wrong(options::DURATION, error.to_string()))?);
        }
        if let Some(text) = variable(options::STAGES) {
            let parsed = text.split(',').map(|one| stage(one.trim()));
            let parsed = parsed.collect::<Result<Vec<_>, _>>();
            stages = parsed.map_err(|message| wrong(options::STAGES, message))?;
        }
    }
    Ok(Overrides {
        options: all,
        vus: args.vus.or(vus),
        duration,
        iterations,
        stages,
        tags: args.tags.clone(),
        no_setup: args.no_setup,
        no_teardown: args.no_teardown,
        no_thresholds: args.no_thresholds,
        is_insecure: args.insecure_skip_tls_verify,
        throws: args.throw,
        user_agent: args.user_agent.clone(),
        trend_stats: args.summary_trend_stats.clone(),
        time_unit: args.summary_time_unit.clone(),
    })
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

/// Prints a line as k6 does on a terminal: the level, the second of the run, the text, its source.
fn log(began: Instant, is_quiet: bool, level: Level, text: &str, source: &str) {
    let name = match level {
        Level::Debug => return,
        Level::Info => "INFO",
        Level::Warning => "WARN",
        Level::Error => "ERRO",
    };
    if is_quiet && level == Level::Info {
        return;
    }
    let seconds = SystemClock.now().saturating_duration_since(began).as_secs();
    let source = if source.is_empty() {
        String::new()
    } else {
        format!("  source={source}")
    };
    // It may be what a server has sent.
    let text = terminal::without_controls(text);
    terminal::log_line(&format!("{name}[{seconds:04}] {text}{source}"));
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
    let duration = parse_duration(duration).map_err(|error| error.to_string())?;
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
