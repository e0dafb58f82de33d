//! `plimsoll compare`: two or more commands in interleaved trials.

mod drivers;

mod parameters;

use std::path::PathBuf;

use plimsoll_lab::TextFormat;
use plimsoll_lab::compare::{
    CompareError, CompareOptions, ComparePlan, Comparison, Drive, Event, Gate, GateVerdict, Metric,
    Server, compare, gate_verdict, sweep, sweep_to_html, sweep_to_json, sweep_to_text, to_html,
    to_json, to_text,
};
use plimsoll_lab::statistics::Bootstrap;
use plimsoll_model::masked_arguments;
use plimsoll_wire::tls::Trust;

use self::drivers::{Driver, Drivers, name_by_url, split};
use self::parameters::{Parameter, expanded};
use super::load::args::MOST_STREAMS;
use crate::exit::Exit;
use crate::flags::{NamedPlace, ObserveArgs, Problems, number, unobservable};
use crate::own_file::own_file;
use crate::problem::{Failed, Problem};
use crate::result_folder::ResultFolder;
use crate::signals;
use crate::terminal::{self, ProgressLine};

/// Compare commands, servers or URLs by what each request costs
///
/// Run the operands in turns (A B, B A, A B, …), drop a warm-up of each, and print medians, the ratio
/// of the first operand to each other one, and a confidence interval of that ratio.
///
/// An operand is a command that makes requests and prints how many: plimsoll load --json, wrk,
/// h2load, oha, k6, ab; or a URL, which is loaded by plimsoll itself. With --drive the operands are
/// servers instead. In commands {seconds}, {connections}, {url} and {port} are replaced; no shell
/// is involved.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch on the command line"
)]
pub(crate) struct Args {
    /// Commands, or http(s) URLs; the first is compared with each of the others
    #[arg(required = true, num_args = 1.., value_name = "COMMAND|URL")]
    operands: Vec<String>,

    /// Name of an operand in tables, once per operand in their order [default: its program]
    #[arg(long, value_name = "NAME")]
    name: Vec<String>,

    /// Command to run before each trial, not measured: once for all operands, or once for each in
    /// their order
    #[arg(long, value_name = "COMMAND")]
    prepare: Vec<String>,

    /// Run each operand with `{NAME}` once for every number from MIN to MAX
    #[arg(long, value_names = ["NAME", "MIN", "MAX"], num_args = 3)]
    parameter_scan: Vec<String>,

    /// Distance of two numbers of --parameter-scan [default: 1]
    #[arg(long, value_name = "STEP", requires = "parameter_scan")]
    parameter_step_size: Option<String>,

    /// Run each operand with `{NAME}` once for every value, repeatable
    #[arg(long, value_names = ["NAME", "VALUES"], num_args = 2)]
    parameter_list: Vec<String>,

    /// Number of measured trials per operand
    // An interval that one outlier does not decide, within a minute for two operands.
    #[arg(long, default_value_t = 8, value_name = "N",
          value_parser = number::count::<u32>(number::MOST_TRIALS))]
    trials: u32,

    /// Length of a trial, for {seconds}
    // Long enough for the start to weigh little, short enough for the machine to stay as it is over a block of trials.
    #[arg(long, default_value_t = 3, value_name = "S",
          value_parser = number::count::<u32>(number::MOST_SECONDS))]
    seconds: u32,

    /// Connections, for {connections}
    // As `load` and oha.
    #[arg(short, long, default_value_t = 50, value_name = "N",
          value_parser = number::count::<u32>(number::MOST_CONNECTIONS))]
    connections: u32,

    /// Load generator for URLs and for --drive; several, separated by commas, make an operand of each
    /// with each URL
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "TOOL",
        default_value = "plimsoll"
    )]
    driver: Vec<Driver>,

    /// Use HTTP/2 in the load generator
    #[arg(long)]
    http2: bool,

    /// Concurrent requests per HTTP/2 connection
    // One request at a time on each connection, as over HTTP/1.1: operands differ in the protocol alone.
    #[arg(long, value_name = "N", requires = "http2", default_value_t = 1,
          value_parser = number::count::<u32>(MOST_STREAMS))]
    streams: u32,

    /// Accept any certificate in the load generator
    #[arg(short = 'k', long)]
    insecure: bool,

    /// Compare at each of these rates, such as 100,500,1000, for {rate}; plimsoll generates the load
    #[arg(long, value_name = "RATES", value_delimiter = ',',
          value_parser = number::count::<u32>(10_000_000))]
    rates: Vec<u32>,

    /// Pin the operands to these cores, such as 1 or 0,2 or 0-3
    #[arg(long, value_name = "CORES", value_parser = parse_cores)]
    pin: Option<Cores>,

    /// Value of {url} [default: the URL of --drive or --ready]
    #[arg(long)]
    url: Option<String>,

    /// Value of {port} [default: a free port]
    #[arg(long, value_name = "PORT", value_parser = number::count::<u16>(65_535))]
    port: Option<u16>,

    /// Server for all trials; it must stay in the foreground
    #[arg(long, value_name = "COMMAND", requires = "ready")]
    server: Option<String>,

    /// Pin that server to these cores
    #[arg(long, value_name = "CORES", value_parser = parse_cores, requires = "server")]
    server_pin: Option<Cores>,

    /// URL that responds once that server is ready
    #[arg(long, value_name = "URL", requires = "server")]
    ready: Option<String>,

    #[command(flatten)]
    observe: ObserveArgs,

    /// Treat the operands as servers and load this URL
    #[arg(long, value_name = "URL", conflicts_with = "server")]
    drive: Option<String>,

    /// Load generator command instead of --driver
    #[arg(long, value_name = "COMMAND", requires = "drive")]
    driver_command: Option<String>,

    /// Pin the load generator to these cores
    #[arg(long, value_name = "CORES", value_parser = parse_cores, requires = "drive")]
    driver_pin: Option<Cores>,

    /// Count requests by this `stub_status` page of the server instead of by the tool's output
    #[arg(long, value_name = "URL")]
    count_from: Option<String>,

    /// Metric of the verdict [default: `cpu_us_per_request`, or rps for URLs whose servers are not observed]
    #[arg(long, value_parser = parse_metric)]
    metric: Option<Metric>,

    /// Exit with 1 if the first operand is worse than another by more than this, such as 5%, and with 4 if the trials do not
    /// decide it
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent, conflicts_with = "rates")]
    fail_if_slower: Option<f64>,

    /// Go on while that is undecided, up to so many trials of each operand
    #[arg(long, value_name = "TRIALS", requires = "fail_if_slower", num_args = 0..=1, default_missing_value = "64",
          value_parser = number::count::<u32>(number::MOST_TRIALS))]
    until_sure: Option<u32>,

    /// First compare the first operand with itself: a difference that this shows is noise
    #[arg(long, conflicts_with = "rates")]
    self_test: bool,

    /// Compare operands also if they answer a request with another status, length or content
    #[arg(long)]
    answers_may_differ: bool,

    /// Seed for the intervals of trials that are not paired
    #[arg(long, default_value_t = Bootstrap::default().seed)]
    seed: u64,

    /// Print one JSON document (schemas/compare.v1.json, with --rates schemas/compare-rates.v1.json)
    #[arg(long)]
    json: bool,

    /// Write compare.json, compare.txt and compare.html into this folder, which must not hold any yet
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// The names of the result files.
const FILES: [&str; 3] = ["compare.json", "compare.txt", "compare.html"];

const EXAMPLES: &str = "\
Examples:
  plimsoll compare 'wrk -t1 -c{connections} -d{seconds}s --latency {url}' \\
      'oha --no-tui -z {seconds}s -c {connections} {url}' --url http://127.0.0.1:8080/
  plimsoll compare --drive 'http://127.0.0.1:{port}/' --pin 0 --driver-pin 1 \\
      './server-new --port {port}' './server-old --port {port}' --fail-if-slower 5%
  plimsoll compare --driver plimsoll,wrk,oha http://127.0.0.1:8080/
  plimsoll compare --drive 'http://127.0.0.1:{port}/' --parameter-scan threads 1 4 './server --threads {threads} --port {port}'
  plimsoll compare --name new --name old --observe new=https://a:7070/?unit=shop --observe old=https://b:7070/?unit=shop \\
      --observe-token-file token http://a/ http://b/
  plimsoll compare --name new --name old --prepare './reset-cache' './new/run.sh' './old/run.sh'
  plimsoll compare --drive 'http://127.0.0.1:{port}/' --rates 100,500,1000,2000 './server --port {port}'

Exit codes: 0 compared; 1 slower than allowed, or not comparable; 2 usage; 3 could not run; 4 too few trials to decide
--fail-if-slower; 130 interrupted.";

/// Core numbers; a type of its own, because clap takes a bare vector for repeated values.
#[derive(Debug, Clone, Default)]
struct Cores(Vec<usize>);

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    let mut options = options(args).map_err(|error| Problem::caused_by(&*error).usage())?;
    observe(args, &mut options)?;
    if args.metric.is_none() && args.rates.is_empty() && options.costs_are_of_generators() {
        options.metric = Metric::RequestsPerSecond;
    }
    // A plan of the first rate stands for those of all.
    let plan = ComparePlan::new(CompareOptions {
        rate: args.rates.first().copied(),
        ..options.clone()
    })
    .map_err(|error| Problem::caused_by(&error).usage())?;
    let folder = args
        .out
        .as_deref()
        .map(|path| ResultFolder::prepare(path, &FILES))
        .transpose()?;
    let interrupt = signals::watch().map_err(|error| {
        Problem::new(format!("cannot watch for signals: {error}")).could_not_run()
    })?;
    let all = args.rates.len().max(1) as u64;
    let progress = ProgressLine::new();
    let least_seconds = plan.least_seconds() * all;
    if args.rates.is_empty() {
        let comparison = compare(&plan, &interrupt, &mut |event| {
            show(&progress, "", least_seconds, event);
        });
        progress.clear();
        let comparison = comparison.map_err(|error| failed(&error))?;
        let shown = to_text(&comparison, terminal::format_of_stdout());
        let documents = [
            to_json(&comparison),
            to_text(&comparison, TextFormat::default()),
            to_html(&comparison),
        ];
        print_and_write(args, folder.as_ref(), &shown, documents)?;
        return verdict(&comparison);
    }
    let sweep = sweep(&options, &args.rates, &interrupt, &mut |rate, event| {
        show(&progress, &format!("{rate}/s, "), least_seconds, event);
    });
    progress.clear();
    let sweep = sweep.map_err(|error| failed(&error))?;
    let shown = sweep_to_text(&sweep, terminal::format_of_stdout());
    let documents = [
        sweep_to_json(&sweep),
        sweep_to_text(&sweep, TextFormat::default()),
        sweep_to_html(&sweep),
    ];
    print_and_write(args, folder.as_ref(), &shown, documents)?;
    judge_comparable(sweep.comparisons.iter().map(|(_, comparison)| comparison))?;
    Ok(Exit::Fine)
}

fn failed(error: &CompareError) -> Failed {
    let problem = Problem::caused_by(error);
    Failed {
        exit: match error {
            CompareError::Interrupted => Exit::Interrupted,
            _ => Exit::CouldNotRun,
        },
        problems: vec![match error {
            CompareError::Unobservable(error) => unobservable(error),
            CompareError::Programs(_) => problem.hint("install the programs, or give their paths"),
            CompareError::Answers { .. } => {
                problem.hint("have them serve the same, or write --answers-may-differ")
            }
            _ => problem,
        }],
    }
}

/// Prints the result, and writes `documents` (JSON, text, HTML).
///
/// - `shown`: the text for the terminal.
fn print_and_write(
    args: &Args,
    folder: Option<&ResultFolder>,
    shown: &str,
    documents: [String; 3],
) -> Result<(), Failed> {
    let printed = if args.json {
        documents[0].as_str()
    } else {
        shown
    };
    terminal::print(printed.trim_end()).map_err(|error| {
        Problem::new(format!("cannot write the result: {error}")).could_not_run()
    })?;
    let Some(folder) = folder else { return Ok(()) };
    let files: Vec<_> = FILES
        .into_iter()
        .zip(documents.map(String::into_bytes))
        .collect();
    folder.write(&files)
}

/// Those of all flags.
fn parameters(args: &Args) -> Result<Vec<Parameter>, String> {
    let mut parameters = Vec::new();
    for words in args.parameter_scan.chunks(3) {
        let scan = Parameter::scan(words, args.parameter_step_size.as_deref());
        parameters.push(scan.map_err(|error| format!("--parameter-scan: {error}"))?);
    }
    for words in args.parameter_list.chunks(2) {
        let list = Parameter::list(words);
        parameters.push(list.map_err(|error| format!("--parameter-list: {error}"))?);
    }
    Ok(parameters)
}

fn options(args: &Args) -> Result<CompareOptions, Box<dyn std::error::Error>> {
    let own = own_file()?.to_string_lossy().into_owned();
    let drivers = Drivers {
        own: &own,
        http2: args.http2,
        streams: args.streams,
        insecure: args.insecure,
        at_rate: !args.rates.is_empty(),
    };
    let mut operands = Vec::new();
    let mut prepare = Vec::new();
    for command in &args.prepare {
        prepare.push(split(command).map_err(|error| format!("--prepare: {error}"))?);
    }
    if prepare.len() > 1 && prepare.len() != args.operands.len() {
        return Err(format!(
            "--prepare: there are {} commands for {} operands",
            prepare.len(),
            args.operands.len()
        )
        .into());
    }
    for named in expanded(&args.operands, &args.name, &parameters(args)?)? {
        for mut operand in drivers.operands(&named.text, &args.driver)? {
            operand.label = named.label(&operand.label, &args.driver);
            operand.prepare = match prepare.as_slice() {
                [one] => Some(one.clone()),
                several => several.get(named.position).cloned(),
            };
            operands.push(operand);
        }
    }
    if let [driver] = args.driver.as_slice() {
        name_by_url(&mut operands, *driver);
    }
    if args.drive.is_some() && args.driver.len() > 1 {
        return Err("--driver: with --drive one tool drives all servers".into());
    }
    let cores = |cores: &Option<Cores>| cores.clone().unwrap_or_default().0;
    let server = match (&args.server, &args.ready) {
        (Some(command), Some(ready)) => Some(Server {
            command: split(command)?,
            pin: cores(&args.server_pin),
            ready: ready.clone(),
        }),
        _ => None,
    };
    let drive = match &args.drive {
        Some(url) => Some(Drive {
            url: url.clone(),
            command: match &args.driver_command {
                Some(command) => split(command)?,
                None => drivers.load_of("{url}", args.driver[0])?,
            },
            pin: cores(&args.driver_pin),
        }),
        None => None,
    };
    Ok(CompareOptions {
        operands,
        trials: args.trials,
        seconds: args.seconds,
        connections: args.connections,
        rate: None,
        pin: cores(&args.pin),
        server,
        drive,
        observed: None,
        url: args.url.clone(),
        port: args.port,
        count_from: args.count_from.clone(),
        metric: args.metric.unwrap_or(Metric::CpuUsPerRequest),
        gate: args.fail_if_slower.map(|allowed| Gate {
            allowed,
            until_sure: args.until_sure,
        }),
        self_test: args.self_test,
        answers_may_differ: args.answers_may_differ,
        trust: if args.insecure {
            Trust::Anyone
        } else {
            Trust::PublicRoots
        },
        bootstrap: Bootstrap {
            seed: args.seed,
            ..Bootstrap::default()
        },
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: masked_arguments(std::env::args()),
    })
}

/// Adds the servers that are observed: those of operands by the operands' names, and the one that all of them load.
fn observe(args: &Args, options: &mut CompareOptions) -> Result<(), Failed> {
    let mut problems = Problems::default();
    for NamedPlace { name, place } in args.observe.compile(&mut problems) {
        let mut operands = options.operands.iter_mut();
        match operands.find(|operand| operand.label == name) {
            Some(operand) => operand.observed = Some(place),
            None if options.observed.is_none() => options.observed = Some(place),
            None => problems.push(
                Problem::with("--observe", format!("no operand has the name `{name}`"))
                    .hint("name the operands by --name, in their order"),
            ),
        }
    }
    problems.unless_any(Some(()))
}

/// Fails if operands did not do the same.
fn judge_comparable<'a>(comparisons: impl Iterator<Item = &'a Comparison>) -> Result<(), Failed> {
    let pairs = comparisons.flat_map(|comparison| &comparison.pairs);
    let problems: Vec<Problem> = pairs
        .filter_map(|pair| pair.incomparable.as_deref())
        .map(|reason| {
            Problem::new(reason)
                .hint("have all operands serve the same requests, then compare what that costs")
        })
        .collect();
    if problems.is_empty() {
        return Ok(());
    }
    Err(Failed {
        exit: Exit::Objective,
        problems,
    })
}

/// Fails if a pair is slower than is allowed, or may be.
fn verdict(comparison: &Comparison) -> Result<Exit, Failed> {
    judge_comparable(std::iter::once(comparison))?;
    let Some(gate) = comparison.gate else {
        return Ok(Exit::Fine);
    };
    let mut exit = Exit::Fine;
    let mut problems = Vec::new();
    for pair in &comparison.pairs {
        let is_slower = match pair.gate {
            None | Some(GateVerdict::Held) => continue,
            Some(GateVerdict::Slower) => true,
            Some(GateVerdict::CannotTell { .. }) => false,
        };
        let peer = &comparison.operands[pair.peer].label;
        let text = format!(
            "{} against {peer}: {}",
            comparison.metric,
            gate_verdict(gate, pair)
        );
        let problem = Problem::with("--fail-if-slower", text);
        problems.push(if is_slower {
            exit = Exit::Objective;
            problem
        } else {
            if exit == Exit::Fine {
                exit = Exit::CannotTell;
            }
            problem.hint("have the machine do nothing else, or write --until-sure or more --trials")
        });
    }
    if problems.is_empty() {
        Ok(Exit::Fine)
    } else {
        Err(Failed { exit, problems })
    }
}

/// - `at`: the rate that it is compared at, with a comma, if there are several.
/// - `least_seconds`: that all of it takes.
fn show(progress: &ProgressLine, at: &str, least_seconds: u64, event: &Event<'_>) {
    match event {
        Event::ServerReady => progress.under_way(|| "the server is ready".to_owned()),
        Event::TrialBegins {
            number,
            of,
            operand,
            turn,
        } => progress.under_way(|| {
            let kind = if turn.round.is_none() {
                ", warm-up"
            } else {
                ""
            };
            let label = &operand.label;
            format!("{at}trial {number} of {of}: {label}{kind} (at least {least_seconds} s in all)")
        }),
        Event::TrialEnded(_) => {}
    }
}

/// `1`, `0,2`, `0-3` or a mix.
fn parse_cores(text: &str) -> Result<Cores, String> {
    plimsoll_wire::cores::parse(text)
        .map(Cores)
        .map_err(|error| error.to_string())
}

fn parse_metric(name: &str) -> Result<Metric, String> {
    Metric::from_name(name).ok_or_else(|| {
        let names = Metric::ALL.map(Metric::name).join(", ");
        format!("known are {names}")
    })
}

/// A fraction, from a percentage with or without its sign.
pub(super) fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    let percent: f64 = number
        .parse()
        .map_err(|_| format!("`{text}` is not a percentage such as 5%"))?;
    if percent.is_finite() && percent >= 0.0 {
        Ok(percent / 100.0)
    } else {
        Err(format!("`{text}` must be 0 or more"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_become_fractions() {
        assert_eq!(parse_percent("5%"), Ok(0.05));
        assert_eq!(parse_percent(" 0 % "), Ok(0.0));
        for text in ["", "%", "-1%", "five", "nan", "inf"] {
            assert!(parse_percent(text).is_err(), "{text}");
        }
    }
}
