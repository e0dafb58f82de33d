//! `plimsoll load SCRIPT`: runs a k6 script.

mod api;

mod dashboard;

mod describe;

pub(crate) mod flags;

pub(crate) mod inspect;

mod live;

pub(crate) mod load;

pub(crate) mod log;

mod options;

pub(crate) mod outputs;

mod recorded;

mod remote;

mod report;

mod run;

mod server;

mod settings;

pub(crate) mod template;

use std::cell::Cell;
use std::path::{Path, PathBuf};

#[cfg(feature = "fleet")]
use clap::parser::ValueSource;
#[cfg(feature = "fleet")]
use clap::{Args as _, FromArgMatches as _};
#[cfg(feature = "fleet")]
use plimsoll_fleet::FoundRun;
use plimsoll_k6::{ExitCode as K6ExitCode, LineSource};
use plimsoll_model::Clock as _;
use plimsoll_script::Level;
use plimsoll_wire::SystemClock;

use self::flags::{GlobalFlags, RunFlags, TestType};
pub(crate) use self::load::load;
use self::log::LogFormat;
use self::run::{Request, outcome};
pub(crate) use self::settings::{log_of, overrides, speaks, variable};
use self::template::Template;
use crate::exit::Exit;
use crate::flags::number;
#[cfg(feature = "fleet")]
use crate::problem::Failed;
use crate::problem::Problem;
use crate::terminal;

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

    /// Print the options and what the run needs as JSON, without running the script
    #[arg(long)]
    check: bool,

    /// Write a script to start from to SCRIPT instead of running it
    #[arg(long, conflicts_with = "check")]
    new: bool,

    /// Script to start from
    #[arg(long, value_enum, value_name = "NAME", default_value_t = Template::Minimal, requires = "new")]
    template: Template,

    /// Write a script to SCRIPT that makes the requests of a HAR, OpenAPI, .http, curl or URL list file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["new", "check"])]
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
  plimsoll load --check script.js

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
    if args.check {
        let checked = inspect::check(&args.flags, args.test_type);
        return end(checked.map(|()| K6ExitCode::Fine));
    }
    let request = Request {
        flags: &args.flags,
        threads: args.threads,
        test_type: args.test_type,
        is_k6: false,
        #[cfg(feature = "fleet")]
        fleet: Some(&args.fleet),
        #[cfg(feature = "fleet")]
        attached: None,
        exit: Cell::new(None),
    };
    ended(&request)
}

fn ended(request: &Request<'_>) -> Exit {
    let result = outcome(request);
    match request.exit.get() {
        Some(exit) if result.is_ok() => exit,
        _ => end(result),
    }
}

/// Flags of a script that are no matter of the run itself, beside those of the fleet.
#[cfg(feature = "fleet")]
const OF_COORDINATOR: [&str; 6] = [
    "outputs",
    "dashboard",
    "no_tui",
    "observe",
    "observe_token_file",
    "observe_ca",
];

/// Goes on with a run of a fleet whose coordinator is gone, by the flags of this process.
///
/// - `found`: the run.
/// - `script`: its archive.
#[cfg(feature = "fleet")]
pub(crate) fn attach(found: &FoundRun, script: &Path) -> Result<Exit, Failed> {
    let own = std::env::args_os().skip(2).collect::<Vec<_>>();
    let command = ScriptArgs::augment_args(clap::Command::new("load").no_binary_name(true));
    let fleet = super::fleet::flags::FleetArgs::augment_args(clap::Command::new("load"));
    let is_known = |id: &clap::Id| {
        let mut of_fleet = fleet.get_arguments();
        OF_COORDINATOR.contains(&id.as_str()) || of_fleet.any(|argument| argument.get_id() == id)
    };
    let arguments = own.into_iter().chain([script.as_os_str().to_owned()]);
    let matches = command.clone().try_get_matches_from(arguments);
    let matches = matches.map_err(|error| Problem::new(error).usage())?;
    for argument in command.get_arguments() {
        let id = argument.get_id();
        let is_given = matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        if is_given && id != "script" && !is_known(id) {
            let message = "is a matter of the run, which goes on as it was started (--attach)";
            let flag = argument.get_long().unwrap_or(id.as_str());
            return Err(Problem::with(&format!("--{flag}"), message).usage());
        }
    }
    let args = ScriptArgs::from_arg_matches(&matches);
    let args = args.map_err(|error| Problem::new(error).usage())?;
    Ok(ended(&Request {
        flags: &args.flags,
        threads: None,
        test_type: Some(TestType::Archive),
        is_k6: false,
        fleet: Some(&args.fleet),
        attached: Some(found),
        exit: Cell::new(None),
    }))
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
        #[cfg(feature = "fleet")]
        attached: None,
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
