//! `plimsoll line`: the highest rate at which a service keeps its objectives.

use std::path::PathBuf;
use std::time::Duration;

use plimsoll_lab::TextFormat;
use plimsoll_lab::line::{
    Event, Line, LineError, LinePlan, SearchEnd, SearchPlan, Window, line, parse_objective,
    to_html, to_json, to_text,
};
use plimsoll_load::Spacing;
use plimsoll_model::{Rate, Threshold, Unit, grouped, parse_duration, parse_rate};

use super::load::args::{Arrivals, Http2Args, MOST_STREAMS, RequestsArgs, ServerArgs};
use super::load::{self, Prepared};
use crate::exit::Exit;
use crate::flags::{ConnectionArgs, Problems, RequestArgs, number};
use crate::problem::{Failed, Problem};
use crate::result_folder::ResultFolder;
use crate::signals;
use crate::terminal::{self, ProgressLine};

/// The names of the result files.
const FILES: [&str; 3] = ["line.json", "line.txt", "line.html"];

/// The default objectives.
const DEFAULT_OBJECTIVES: [&str; 2] = ["p99<50ms", "errors<0.1%"];

/// Length of the window at the result, in windows of the search: a queue that grows by 1 % a window shows after ten.
const CONFIRMATION: u32 = 10;

/// Connections to begin with, and at most, if none are given.
const DEFAULT_CONNECTIONS: (usize, usize) = (64, 4096);

/// Find the load line of a URL: the highest rate at which it meets its objectives
///
/// Raise the rate until an objective breaks, narrow the boundary, and repeat the rates around it in random
/// order. Report the line with its interval, the knee, the cost per request and how throughput scales.
/// Without a URL, plimsoll starts a small HTTP server and loads that.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// URL to load [default: a server that plimsoll starts]
    #[arg(value_name = "URL")]
    url: Option<String>,

    #[command(flatten)]
    search: SearchArgs,

    #[command(flatten)]
    request: RequestArgs,

    #[command(flatten)]
    requests: RequestsArgs,

    #[command(flatten)]
    server: ServerArgs,

    #[command(flatten)]
    connection: ConnectionArgs,

    #[command(flatten)]
    http2: Http2Args,

    #[command(flatten)]
    output: OutputArgs,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll line
  plimsoll line --objective 'p99<50ms' --objective 'errors<0.1%' http://127.0.0.1:8080/
  plimsoll line --spawn './server --port 8080' --out result http://127.0.0.1:8080/
  plimsoll line --at-least 5000 --rounds 10 --window 10s --pid nginx http://127.0.0.1:8080/

Exit codes: 0 found, or not reached; 1 nothing held, or the line is below --at-least; 2 usage;
3 could not run; 4 the generator was the limit below --at-least; 130 interrupted.";

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Search")]
struct SearchArgs {
    /// Objective of every window, repeatable [default: p99<50ms and errors<0.1%]
    ///
    /// For example `p99<50ms`, `med<5ms`, `errors<0.1%`, or a threshold as in load.
    #[arg(long, value_name = "OBJECTIVE")]
    objective: Vec<String>,

    /// First rate to try
    // Nearly every server holds it, and the search grows geometrically from there.
    #[arg(long, value_name = "RATE", value_parser = number::positive_rate, default_value = "100/s")]
    first: Rate,

    /// Highest rate to try
    // More than one generator on one machine sends.
    #[arg(long, value_name = "RATE", value_parser = number::positive_rate, default_value = "1M/s")]
    most: Rate,

    /// Length of a window
    // At the lowest rates still some 300 requests, from which a p99 can be read.
    #[arg(long, value_name = "TIME", value_parser = number::positive_duration, default_value = "3s")]
    window: Duration,

    /// Length of the window that confirms the result; `0s` for none [default: ten windows]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    confirm: Option<Duration>,

    /// Warm-up at the same rate before each window
    // Connections are open and pools have grown by then.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "1s")]
    warm_up: Duration,

    /// Windows at each rate around the line; 6 or more give a 95 % interval
    // The fewest for which the whole range is an interval of 95 % (1 - 2/2^6 = 96.9 %).
    #[arg(long, value_name = "N", default_value_t = 6,
          value_parser = number::count::<u32>(1_000))]
    rounds: u32,

    /// Distance between these rates, such as 2%
    // Smaller steps are lost in what repeated windows differ by on a quiet machine.
    #[arg(long, value_name = "PERCENT", value_parser = parse_precision, default_value = "2%")]
    precision: f64,

    /// Connections [default: 64, doubled up to 4096 while they are the limit]
    #[arg(short, long, value_name = "N",
          value_parser = number::count::<usize>(number::MOST_CONNECTIONS))]
    connections: Option<usize>,

    /// Concurrent requests per connection, with --http2 or --http3 [default: 1]
    #[arg(short = 'p', long, value_name = "N", value_parser = number::count::<u32>(MOST_STREAMS))]
    streams: Option<u32>,

    /// Spacing of requests
    #[arg(long, value_enum, default_value_t = Arrivals::Fixed)]
    arrivals: Arrivals,

    /// Number of worker threads [default: one per core that no server started by plimsoll uses]
    #[arg(short, long, value_name = "N",
          value_parser = number::count::<usize>(number::MOST_THREADS))]
    threads: Option<usize>,

    /// Timeout of a request
    // Far beyond any objective on latency, and short enough for a window to end.
    #[arg(long, value_name = "TIME", value_parser = number::positive_duration, default_value = "10s")]
    timeout: Duration,

    /// Count a response that does not meet a condition as an error, repeatable
    #[arg(long, value_name = "CONDITION")]
    expect: Vec<String>,

    /// Count these statuses as errors, as in load
    /// [default: 429,5xx, or none if --expect has a condition on the status]
    #[arg(long, value_name = "STATUSES")]
    fail_status: Option<String>,

    /// Exit with 1 if the line is below this rate
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    at_least: Option<Rate>,

    /// Seed for the order of windows and all random choices
    // Any fixed number makes searches repeatable.
    #[arg(long, value_name = "N", default_value_t = 1979)]
    seed: u64,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
struct OutputArgs {
    /// Print one JSON document (schemas/line.v1.json)
    #[arg(long)]
    json: bool,

    /// Write line.json, line.txt and line.html into this folder, which must not hold any yet
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<Exit, Failed> {
    let interrupt = signals::watch().map_err(|error| {
        Problem::new(format!("cannot watch for signals: {error}")).could_not_run()
    })?;
    let mut problems = Problems::default();
    let objectives = objectives(&args, &mut problems);
    check(&args, &mut problems);
    problems.unless_any(Some(()))?;
    let folder = args
        .output
        .out
        .as_deref()
        .map(|path| ResultFolder::prepare(path, &FILES))
        .transpose()?;

    let Args {
        url,
        search,
        request,
        requests,
        server,
        connection,
        http2,
        output,
    } = args;
    let mut load_args = load::without_flags();
    let connections = search.connections.unwrap_or(DEFAULT_CONNECTIONS.0);
    let shape = &mut load_args.shape;
    shape.connections = Some(connections);
    shape.streams = search.streams;
    shape.rate = Some(search.first);
    shape.threads = search.threads;
    shape.timeout = search.timeout;
    shape.seed = search.seed;
    load_args.judge.expect.clone_from(&search.expect);
    load_args.judge.fail_status.clone_from(&search.fail_status);
    load_args.url = url;
    load_args.request = request;
    load_args.requests = requests;
    load_args.server = server;
    load_args.connection = connection;
    load_args.http2 = http2;

    let Prepared {
        compiled,
        target,
        observed,
    } = load::prepare(&load_args, &interrupt)?;
    let result = plimsoll_load::check_reachable(&compiled.plan)
        .map_err(|error| load::failed(&error))
        .and_then(|()| {
            let confirm = search.confirm.unwrap_or(search.window * CONFIRMATION);
            let plan = LinePlan {
                facts: load::facts(&compiled.plan, target.as_deref(), &observed),
                run: compiled.plan,
                objectives,
                search: SearchPlan {
                    first: search.first.per_second(),
                    most: search.most.per_second(),
                    precision: search.precision,
                    rounds: search.rounds,
                    seed: search.seed,
                    connections,
                    most_connections: match search.connections {
                        Some(connections) => connections,
                        None => DEFAULT_CONNECTIONS.1,
                    },
                    confirms: !confirm.is_zero(),
                },
                window: search.window,
                confirm,
                warm_up: search.warm_up,
                spacing: match search.arrivals {
                    Arrivals::Fixed => Spacing::Even,
                    Arrivals::Poisson => Spacing::Poisson,
                },
            };
            let progress = ProgressLine::new();
            let target = target.as_deref();
            let found = line(&plan, target, &observed, &interrupt, &mut |event| {
                show(&progress, event);
            });
            progress.clear();
            found.map_err(|error| failed(&error))
        });
    if let Some(target) = target {
        target.stop();
    }
    let line = result?;
    let text = if output.json {
        to_json(&line)
    } else {
        to_text(&line, terminal::format_of_stdout())
    };
    terminal::print(text.trim_end()).map_err(|error| {
        Problem::new(format!("cannot write to standard output: {error}")).could_not_run()
    })?;
    if let Some(folder) = folder {
        folder.write(&[
            (FILES[0], to_json(&line).into_bytes()),
            (FILES[1], to_text(&line, TextFormat::default()).into_bytes()),
            (FILES[2], to_html(&line).into_bytes()),
        ])?;
    }
    verdict(&line, search.at_least)
}

/// The objectives; only those on the target's processes need it to be observed.
fn objectives(args: &Args, problems: &mut Problems) -> Vec<Threshold> {
    let defaults = DEFAULT_OBJECTIVES.map(str::to_owned);
    let texts = match args.search.objective.as_slice() {
        [] => &defaults,
        given => given,
    };
    let observed = args.server.observe.compile(problems);
    let names: Vec<_> = observed.into_iter().map(|plan| plan.name).collect();
    let is_observed = args.server.pid.is_some()
        || args.server.observe.is_given()
        || args.server.spawn.is_some()
        || (args.url.is_none() && args.requests.urls.is_none() && args.requests.from.is_none());
    let mut objectives = Vec::new();
    for text in texts {
        let Some(objective) = problems.value("--objective", parse_objective(text)) else {
            continue;
        };
        let unmet = load::unobserved(&objective, is_observed, &names, "--objective");
        if let Some(problem) = unmet {
            problems.push(problem);
        }
        objectives.push(objective);
    }
    objectives
}

fn check(args: &Args, problems: &mut Problems) {
    let search = &args.search;
    if search.most < search.first {
        problems.add("--most", format!("is below --first ({})", search.first));
    }
}

fn failed(error: &LineError) -> Failed {
    match error {
        LineError::Run(error) => load::failed(error),
        LineError::Interrupted => Failed {
            exit: Exit::Interrupted,
            problems: vec![Problem::caused_by(error)],
        },
    }
}

fn verdict(line: &Line, at_least: Option<Rate>) -> Result<Exit, Failed> {
    let reached = match line.found.ended {
        SearchEnd::Line(boundary) => boundary.rate,
        SearchEnd::Nothing { .. } => return Ok(Exit::Objective),
        SearchEnd::Interrupted => return Ok(Exit::Interrupted),
        SearchEnd::Generator { .. } | SearchEnd::Most => line.found.held_up_to.unwrap_or(0.0),
    };
    let Some(at_least) = at_least.filter(|it| reached < it.per_second()) else {
        return Ok(Exit::Fine);
    };
    let (target, held) = (grouped(at_least.per_second()), grouped(reached));
    let (exit, problem) = if let SearchEnd::Generator { rate } = line.found.ended {
        let rate = grouped(rate);
        let message = format!(
            "{target}/s was the target, {held}/s held, and at {rate}/s the generator was at its limit"
        );
        let hint = "the target may carry more: add threads, or run on another machine";
        let problem = Problem::with("--at-least", message).hint(hint);
        (Exit::CannotTell, problem)
    } else {
        let message = format!("{target}/s was the target, {held}/s held");
        (Exit::Objective, Problem::with("--at-least", message))
    };
    Err(Failed {
        exit,
        problems: vec![problem],
    })
}

fn show(progress: &ProgressLine, event: &Event<'_>) {
    match event {
        Event::Begins { number, planned } => progress.under_way(|| {
            let rate = grouped(planned.rate);
            let purpose = planned.purpose.name();
            format!("window {number}: {rate}/s ({purpose})")
        }),
        Event::Ended(window) => progress.ended(|| window_text(window)),
    }
}

/// `10,000/s held: p99 1.2 ms, errors 0`.
fn window_text(window: &Window) -> String {
    let came_to = match (window.seen.held, window.seen.generator_limited) {
        (true, _) => "held",
        (false, true) => "broke, with the generator at its limit",
        (false, false) if window.queue_grew => "broke, its queue grew",
        (false, false) => "broke",
    };
    let p99 = window.p99_us.map_or_else(
        || "no latency".to_owned(),
        |p99| format!("p99 {}", p99.text(|p99| Unit::Microseconds.show(p99))),
    );
    format!(
        "{:>9}/s {}: {p99}, {}/s ok, {} missed",
        grouped(window.planned.rate),
        came_to,
        grouped(window.throughput),
        grouped(window.missed)
    )
}

/// From 0.1 % to 50 %, as a fraction.
fn parse_precision(text: &str) -> Result<f64, String> {
    let fraction = super::compare::parse_percent(text)?;
    if (0.001..=0.5).contains(&fraction) {
        Ok(fraction)
    } else {
        Err("must be from 0.1% to 50%".to_owned())
    }
}
