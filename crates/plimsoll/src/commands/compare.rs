//! `plimsoll compare`: two or more commands in interleaved trials.

use std::fmt::{self, Display};
use std::io::{self, IsTerminal};

use plimsoll_lab::compare::{
    CompareError, CompareOptions, ComparePlan, Comparison, Drive, Event, Metric, Operand, Server,
    Template, TemplateError, compare, to_json, to_text,
};
use plimsoll_lab::statistics::Bootstrap;

use super::parse_percent;
use crate::exit::Exit;
use crate::problem::{Failed, Problem};
use crate::signals;
use crate::terminal;

/// Compare commands, servers or URLs by what each request costs
///
/// Runs the operands in turns (A B, B A, A B, …), drops a warm-up of each, and prints medians, the
/// ratio of the first operand's to each other's, and an interval for that ratio. The first operand
/// is the one under judgement.
///
/// An operand is a command that makes requests and prints how many: plimsoll load --json, wrk,
/// h2load, oha, k6, ab; or a URL, which is loaded by plimsoll itself. With --drive the operands are
/// servers instead. In commands {seconds}, {connections}, {url} and {port} are replaced; no shell
/// is involved.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Commands, or http(s) URLs; the first is compared with each of the others
    #[arg(required = true, num_args = 2.., value_name = "COMMAND|URL")]
    operands: Vec<String>,

    /// Measured trials of each operand
    #[arg(long, default_value_t = 5, value_name = "N")]
    trials: u32,

    /// Length of a trial, for {seconds}
    #[arg(long, default_value_t = 3, value_name = "S")]
    seconds: u32,

    /// Connections, for {connections}
    #[arg(short, long, default_value_t = 50, value_name = "N")]
    connections: u32,

    /// Cores that the operands may use, such as 1 or 0,2 or 0-3
    #[arg(long, value_name = "CORES", value_parser = parse_cores)]
    pin: Option<Cores>,

    /// For {url}; without it the URL of --drive or of --ready
    #[arg(long)]
    url: Option<String>,

    /// For {port}; without it a free one
    #[arg(long)]
    port: Option<u16>,

    /// A server that all trials share; it must stay in the foreground
    #[arg(long, value_name = "COMMAND", requires = "ready")]
    server: Option<String>,

    /// Cores of that server
    #[arg(long, value_name = "CORES", value_parser = parse_cores, requires = "server")]
    server_pin: Option<Cores>,

    /// The URL by which that server shows that it is ready
    #[arg(long, value_name = "URL", requires = "server")]
    ready: Option<String>,

    /// The operands are servers, and this is the URL to drive
    #[arg(long, value_name = "URL", conflicts_with = "server")]
    drive: Option<String>,

    /// What drives them instead of plimsoll load
    #[arg(long, value_name = "COMMAND", requires = "drive")]
    driver_command: Option<String>,

    /// Cores of the driver
    #[arg(long, value_name = "CORES", value_parser = parse_cores, requires = "drive")]
    driver_pin: Option<Cores>,

    /// Count requests by this `stub_status` page of the server instead of by the tool's output
    #[arg(long, value_name = "URL")]
    count_from: Option<String>,

    /// What the verdict is about
    #[arg(long, default_value_t = Metric::CpuUsPerRequest, value_parser = parse_metric)]
    metric: Metric,

    /// Exit with 1 if the first operand is worse than any other by more than this, such as 5%
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    fail_if_slower: Option<f64>,

    /// Start of the random sequence behind the intervals
    #[arg(long, default_value_t = Bootstrap::default().seed)]
    seed: u64,

    /// Print one JSON document (schemas/compare.v1.json)
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll compare 'wrk -t1 -c{connections} -d{seconds}s --latency {url}' \\
      'oha --no-tui -z {seconds}s -c {connections} {url}' --url http://127.0.0.1:8080/
  plimsoll compare --drive 'http://127.0.0.1:{port}/' --pin 0 --driver-pin 1 \\
      './server-new --port {port}' './server-old --port {port}' --fail-if-slower 5%

Exit codes: 0 compared; 1 slower than allowed; 2 usage; 3 could not run; 130 interrupted.";

/// Core numbers; a type of its own, because clap takes a bare vector for repeated values.
#[derive(Debug, Clone, Default)]
struct Cores(Vec<usize>);

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    let plan = plan(args).map_err(|error| Problem::caused_by(&*error).usage())?;
    let interrupt = signals::watch().map_err(|error| {
        Problem::new(format!("cannot watch for signals: {error}")).could_not_run()
    })?;
    let progress = Progress::new(plan.least_seconds());
    let comparison = compare(&plan, &interrupt, &mut |event| progress.show(event));
    progress.clear();
    match comparison {
        Ok(comparison) => report(args, &comparison),
        Err(error) => Err(Failed {
            exit: match error {
                CompareError::Interrupted => Exit::Interrupted,
                _ => Exit::CouldNotRun,
            },
            problems: vec![Problem::caused_by(&error)],
        }),
    }
}

fn plan(args: &Args) -> Result<ComparePlan, Box<dyn std::error::Error>> {
    let own = std::env::current_exe()?.to_string_lossy().into_owned();
    let operands = args
        .operands
        .iter()
        .map(|text| operand(text, &own))
        .collect::<Result<_, _>>()?;
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
                None => load_of("{url}", &own)?,
            },
            pin: cores(&args.driver_pin),
        }),
        None => None,
    };
    let plan = ComparePlan::new(CompareOptions {
        operands,
        trials: args.trials,
        seconds: args.seconds,
        connections: args.connections,
        pin: cores(&args.pin),
        server,
        drive,
        url: args.url.clone(),
        port: args.port,
        count_from: args.count_from.clone(),
        metric: args.metric,
        bootstrap: Bootstrap {
            seed: args.seed,
            ..Bootstrap::default()
        },
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args().collect(),
    })?;
    Ok(plan)
}

/// A command with its program's name as label, or our own load of a URL.
fn operand(text: &str, own: &str) -> Result<Operand, BadCommand> {
    if text.starts_with("http://") || text.starts_with("https://") {
        return Ok(Operand {
            label: "plimsoll".to_owned(),
            command: load_of(text, own)?,
        });
    }
    let command = split(text)?;
    let program = command.words()[0].rsplit('/').next().unwrap_or_default();
    Ok(Operand {
        label: program.to_owned(),
        command,
    })
}

/// Our own load of `url`; a placeholder stays one.
fn load_of(url: &str, own: &str) -> Result<Template, BadCommand> {
    let words = [
        own,
        "load",
        "--no-tui",
        "--json",
        "-z",
        "{seconds}s",
        "-c",
        "{connections}",
        url,
    ];
    Ok(Template::new(words.map(str::to_owned).to_vec())?)
}

fn split(command: &str) -> Result<Template, BadCommand> {
    let words = shlex::split(command).ok_or_else(|| BadCommand::Quotes(command.to_owned()))?;
    Ok(Template::new(words)?)
}

/// A command line that cannot be split.
#[derive(Debug)]
enum BadCommand {
    Quotes(String),
    Template(TemplateError),
}

impl From<TemplateError> for BadCommand {
    fn from(error: TemplateError) -> Self {
        Self::Template(error)
    }
}

impl Display for BadCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quotes(command) => write!(f, "`{command}` has a quote that is not closed"),
            Self::Template(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BadCommand {}

fn report(args: &Args, comparison: &Comparison) -> Result<Exit, Failed> {
    let text = if args.json {
        to_json(comparison)
    } else {
        to_text(comparison)
    };
    terminal::print(text.trim_end()).map_err(|error| {
        Problem::new(format!("cannot write the result: {error}")).could_not_run()
    })?;
    let Some(allowed) = args.fail_if_slower else {
        return Ok(Exit::Fine);
    };
    let metric = comparison.metric;
    let problems: Vec<Problem> = comparison
        .pairs
        .iter()
        .filter(|pair| pair.verdict.is_slower_than(allowed))
        .map(|pair| {
            let peer = &comparison.operands[pair.peer].label;
            let by = (metric.worse_by(pair.verdict.estimate.ratio) - 1.0) * 100.0;
            let allowed = allowed * 100.0;
            Problem::with(
                "--fail-if-slower",
                format!("{by:.1} % slower than {peer} in {metric}, {allowed:.1} % is allowed"),
            )
        })
        .collect();
    if problems.is_empty() {
        Ok(Exit::Fine)
    } else {
        Err(Failed {
            exit: Exit::Objective,
            problems,
        })
    }
}

/// One line that is written over, on a terminal only.
struct Progress {
    shown: bool,
    least_seconds: u64,
}

impl Progress {
    fn new(least_seconds: u64) -> Self {
        Self {
            shown: io::stderr().is_terminal(),
            least_seconds,
        }
    }

    fn show(&self, event: &Event<'_>) {
        if !self.shown {
            return;
        }
        match event {
            Event::ServerReady => terminal::overwrite_line("the server is ready"),
            Event::TrialBegins {
                number,
                of,
                operand,
                turn,
            } => {
                let kind = if turn.round.is_none() {
                    ", warm-up"
                } else {
                    ""
                };
                let label = &operand.label;
                let least = self.least_seconds;
                terminal::overwrite_line(&format!(
                    "trial {number} of {of}: {label}{kind} (at least {least} s in all)"
                ));
            }
            Event::TrialEnded(_) => {}
        }
    }

    fn clear(&self) {
        if self.shown {
            terminal::overwrite_line("");
        }
    }
}

/// `1`, `0,2`, `0-3` or a mix.
fn parse_cores(text: &str) -> Result<Cores, String> {
    const MOST: usize = 1024;

    let number = |text: &str| {
        let core: usize = text
            .trim()
            .parse()
            .map_err(|_| format!("`{text}` is not a core number"))?;
        (core < MOST)
            .then_some(core)
            .ok_or_else(|| format!("core {core} is out of range"))
    };
    let mut cores = Vec::new();
    for part in text.split(',') {
        match part.split_once('-') {
            None => cores.push(number(part)?),
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                if first > last {
                    return Err(format!("`{part}` goes backwards"));
                }
                cores.extend(first..=last);
            }
        }
    }
    Ok(Cores(cores))
}

fn parse_metric(name: &str) -> Result<Metric, String> {
    Metric::from_name(name).ok_or_else(|| {
        let names = Metric::ALL.map(Metric::name).join(", ");
        format!("known are {names}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_lists_and_ranges() {
        let cores = |text| parse_cores(text).map(|cores| cores.0);
        assert_eq!(cores("1"), Ok(vec![1]));
        assert_eq!(cores("0,2-4"), Ok(vec![0, 2, 3, 4]));
        for text in ["", "a", "3-1", "1-", "-1", "0,,1", "0-99999999"] {
            assert!(cores(text).is_err(), "{text}");
        }
    }

    #[test]
    fn percentages_become_fractions() {
        assert_eq!(parse_percent("5%"), Ok(0.05));
        assert_eq!(parse_percent(" 0 % "), Ok(0.0));
        for text in ["", "%", "-1%", "five", "nan", "inf"] {
            assert!(parse_percent(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_url_is_loaded_by_this_program() {
        let url = operand("http://127.0.0.1:1/a b", "/bin/plimsoll").unwrap();
        assert_eq!(url.label, "plimsoll");
        assert_eq!(
            url.command.words(),
            [
                "/bin/plimsoll",
                "load",
                "--no-tui",
                "--json",
                "-z",
                "{seconds}s",
                "-c",
                "{connections}",
                "http://127.0.0.1:1/a b"
            ]
        );
        let command = operand("/usr/bin/wrk -H 'a: b' {url}", "/bin/plimsoll").unwrap();
        assert_eq!(command.label, "wrk");
        assert_eq!(
            command.command.words(),
            ["/usr/bin/wrk", "-H", "a: b", "{url}"]
        );
        let error = operand("wrk 'a", "/bin/plimsoll").unwrap_err();
        assert_eq!(error.to_string(), "`wrk 'a` has a quote that is not closed");
    }
}
