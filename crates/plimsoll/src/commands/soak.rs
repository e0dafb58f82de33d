//! `plimsoll soak`: targets under load for hours, and what of them grows.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_lab::TextFormat;
use plimsoll_lab::matrix::{ProcessPlan, TargetPlan};
use plimsoll_lab::soak::{
    Event, Folder, FolderError, Metrics, Patterns, RunOptions, ScenarioPlan, ScenarioResult, Soak,
    SoakError, SoakLoad, SoakPlan, Subject, Verdict, compile, run as run_soak, to_html, to_json,
    to_text, words_of,
};
use plimsoll_model::{ByteSize, DurationText, masked_arguments};

use crate::exit::Exit;
use crate::flags::{ObserveArgs, Problems, number, plan_file};
use crate::problem::{Failed, Problem};
use crate::signals;
use crate::terminal::{self, ProgressLine};

/// Run a target under load for hours and report whether its memory, descriptors or metrics grow without end
///
/// Judge every series as BOUNDED, DRIFT or INCONCLUSIVE, by a robust slope that recognises ramps to a cap, sawtooths and
/// single steps. The target is started (--spawn, or the scenarios of a plan), attached to (--pid, --observe), or known by its metrics
/// only (--metrics). Scenarios that have ended are kept in a folder: an interrupted soak resumes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Plan (TOML) with one or more scenarios; or a URL, which plimsoll loads with --workers connections unless --load says how
    #[arg(value_name = "PLAN|URL", required_unless_present_any = ["spawn", "pid", "observe", "metrics"])]
    plan_or_url: Option<String>,

    /// Watch this process and its descendants
    #[arg(long, value_name = "PID|NAME", conflicts_with = "spawn",
          value_parser = number::process)]
    pid: Option<u32>,

    #[command(flatten)]
    observe: ObserveArgs,

    /// Start the target with this command, in which {port} stands for a free port
    #[arg(long, value_name = "COMMAND")]
    spawn: Option<String>,

    /// URL of the target that --spawn starts, such as http://127.0.0.1:{port}/
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// Watch the gauges of this page too (text format of Prometheus, http)
    #[arg(long, value_name = "URL")]
    metrics: Option<String>,

    /// Keep this command running as load, repeatable; {url}, {port}, {workers}, {time} and {plimsoll} are filled in
    #[arg(long, value_name = "COMMAND")]
    load: Vec<String>,

    /// Value of {workers} before it is scaled
    // Enough to keep a target of one core busy, few enough for two cores.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = number::count::<u32>(1_000_000))]
    workers: u32,

    /// Duration of each scenario [default: the plan's, or 20m]
    #[arg(short = 'z', long, value_name = "TIME", value_parser = number::positive_duration)]
    duration: Option<Duration>,

    /// Time between samples [default: the plan's, or 15s; less if -z is below 15 minutes]
    #[arg(long, value_name = "TIME", value_parser = number::positive_duration)]
    sample: Option<Duration>,

    /// Multiply the workers of every load by this factor
    #[arg(long, value_name = "FACTOR", value_parser = parse_scale)]
    scale: Option<f64>,

    /// Run this many scenarios at the same time [default: the plan's, or 1]
    #[arg(long, value_name = "N", value_parser = number::count::<usize>(64))]
    at_once: Option<usize>,

    /// Run only this scenario of the plan, repeatable
    #[arg(long, value_name = "NAME", requires = "plan_or_url")]
    scenario: Vec<String>,

    /// List the scenarios of the plan and exit
    #[arg(long, requires = "plan_or_url")]
    list: bool,

    /// Write samples, verdicts and reports into this folder [default: the plan's name with -soak]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Print one JSON document (schemas/soak.v1.json)
    #[arg(long)]
    json: bool,
}

impl Args {
    /// The file of the plan, if there is one.
    fn plan(&self) -> Option<&Path> {
        let plan = self.plan_or_url.as_deref();
        plan.filter(|text| !is_url(text)).map(Path::new)
    }

    /// The URL that plimsoll loads, if it stands in place of a plan.
    fn loaded_url(&self) -> Option<&str> {
        self.plan_or_url.as_deref().filter(|text| is_url(text))
    }

    /// The URL of the target.
    fn url(&self) -> Option<&str> {
        self.loaded_url().or(self.url.as_deref())
    }

    /// The commands that load it.
    fn loads(&self) -> Vec<String> {
        match self.loaded_url() {
            Some(url) if self.load.is_empty() => {
                // What is started has a port that is known later.
                let url = if self.spawn.is_some() { "{url}" } else { url };
                vec![format!(
                    "{{plimsoll}} load -c {{workers}} -z {{time}} --json '{url}'"
                )]
            }
            _ => self.load.clone(),
        }
    }
}

fn is_url(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

/// Refuses flags that do not go together, or lack something.
fn refuse_what_is_of_a_plan(args: &Args) -> Result<(), Failed> {
    let mut problems = Problems::default();
    let of_one = [
        ("--spawn", args.spawn.is_some()),
        ("--pid", args.pid.is_some()),
        ("--observe", args.observe.is_given()),
        ("--metrics", args.metrics.is_some()),
        ("--load", !args.load.is_empty()),
        ("--url", args.url.is_some()),
    ];
    if args.plan().is_some() {
        for (flag, _) in of_one.iter().filter(|(_, is_given)| *is_given) {
            problems.add(
                flag,
                "does not go with a plan, which has targets of its own",
            );
        }
        return problems.unless_any(Some(()));
    }
    if !args.scenario.is_empty() || args.list {
        let flag = if args.list { "--list" } else { "--scenario" };
        problems.add(flag, "needs a plan");
    }
    if args.loaded_url().is_some() && args.url.is_some() {
        problems.add("--url", "is given twice: once is enough");
    }
    let is_watched = of_one[..4].iter().any(|(_, is_given)| *is_given);
    if !is_watched {
        problems.push(
            Problem::new("nothing says which process or metrics to watch")
                .hint("name it: --spawn COMMAND, --pid PID, --observe TARGET or --metrics URL"),
        );
    }
    if args.spawn.is_some() && args.url().is_none() {
        problems.push(
            Problem::with("--spawn", "needs the URL of the target")
                .hint("write it behind the flags: http://127.0.0.1:{port}/"),
        );
    }
    problems.unless_any(Some(()))?;
    if args.spawn.is_some() && args.loads().is_empty() {
        let message = "no load is run: an idle target shows no leak of requests";
        let problem = Problem::with("--url", message)
            .hint("write the URL without the flag to have plimsoll load it, or --load COMMAND");
        terminal::print_warnings(&[problem]);
    }
    Ok(())
}

const EXAMPLES: &str = "\
Examples:
  plimsoll soak --spawn './server --port {port}' http://127.0.0.1:{port}/ -z 20m
  plimsoll soak --pid nginx -z 4h --sample 30s
  plimsoll soak --observe https://db1:7070/?unit=postgresql --observe-token-file token -z 4h
  plimsoll soak --spawn './server --port {port}' --url http://127.0.0.1:{port}/ \\
      --load '{plimsoll} load -c {workers} -z {time} --json {url}' -z 20m
  plimsoll soak gateway.toml --scale 0.5 --at-once 2

Exit codes: 0 nothing drifts (a series that was not decided is reported); 1 a series drifts, a target ended, or a load could not run;
2 usage; 3 a scenario could not be run; 130 interrupted, to be resumed by the same command.";

/// Samples of a soak whose interval was not chosen, at least; its verdict needs a dozen behind the warm-up.
const LEAST_SAMPLES: u32 = 60;

/// Shortest time between two samples.
const SHORTEST: Duration = Duration::from_millis(100);

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    let own = super::own_program()?;
    refuse_what_is_of_a_plan(args)?;
    let (identity, mut plan) = match args.plan() {
        Some(file) => plan_file(file, |text, directory| compile(text, directory, &own))?,
        None => short(args, &own)?,
    };
    plan.duration = args.duration.unwrap_or(plan.duration);
    // Enough for a verdict: a soak of two minutes would have eight samples every 15 s.
    let is_own_length = args.duration.is_some() || args.plan().is_none();
    let usual = if is_own_length {
        plan.sample
            .min((plan.duration / LEAST_SAMPLES).max(SHORTEST))
    } else {
        plan.sample
    };
    plan.sample = args.sample.unwrap_or(usual);
    plan.scale = args.scale.unwrap_or(plan.scale);
    plan.at_once = args.at_once.unwrap_or(plan.at_once);
    check(args, &mut plan)?;
    if args.list {
        return list(&plan);
    }
    let folder_path = args.out.clone().unwrap_or_else(|| {
        let stem = args.plan().and_then(Path::file_stem);
        PathBuf::from(stem.map_or_else(
            || "soak".to_owned(),
            |stem| format!("{}-soak", stem.to_string_lossy()),
        ))
    });
    let folder = Folder::open(&folder_path, &identity, &plan).map_err(|error| match error {
        FolderError::Another { .. } => Problem::caused_by(&error)
            .about("--out")
            .hint("name another folder, or remove that one")
            .usage(),
        FolderError::Write { .. } => Problem::caused_by(&error).about("--out").could_not_run(),
    })?;
    let interrupt = signals::watch().map_err(|error| {
        Problem::new(format!("cannot watch for signals: {error}")).could_not_run()
    })?;
    let options = RunOptions {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: masked_arguments(std::env::args()),
    };
    let progress = ProgressLine::new();
    let duration = plan.duration;
    let soak = run_soak(&plan, &options, &folder, &interrupt, &mut |event| {
        show(&progress, event, duration);
    });
    progress.clear();
    let soak = soak.map_err(|error| Failed {
        exit: match error {
            SoakError::Interrupted => Exit::Interrupted,
            SoakError::Folder(_) | SoakError::Scenario { .. } => Exit::CouldNotRun,
        },
        problems: vec![Problem::caused_by(&error)],
    })?;
    write_reports(&folder_path, &soak)?;
    let document = if args.json {
        to_json(&soak)
    } else {
        to_text(&soak, terminal::format_of_stdout())
    };
    print(document.trim_end())?;
    Ok(exit_of(&soak))
}

fn exit_of(soak: &Soak) -> Exit {
    let has_failed = soak.scenarios.iter().any(|it| it.failure.is_some());
    if has_failed || soak.verdict() == Verdict::Drift {
        Exit::Objective
    } else {
        Exit::Fine
    }
}

/// The plan that flags make: one scenario.
fn short(args: &Args, own: &str) -> Result<(String, SoakPlan), Failed> {
    let mut problems = Problems::default();
    let mut words = |flag: &'static str, text: &str| {
        let words = words_of(text, own);
        if words.is_none() {
            problems.push(Problem::with(
                flag,
                "is empty, or has a quote that is not closed",
            ));
        }
        words.unwrap_or_default()
    };
    let loads: Vec<SoakLoad> = args
        .loads()
        .iter()
        .enumerate()
        .map(|(number, text)| SoakLoad {
            name: format!("load {}", number + 1),
            words: words("--load", text),
            workers: args.workers,
            longest: Duration::MAX,
        })
        .collect();
    let command = args.spawn.as_deref().map(|text| words("--spawn", text));
    let is_http = |url: &str| url.starts_with("http://");
    if args.url().is_some_and(|url| !is_http(url)) {
        problems.push(Problem::with("--url", "must be an http URL"));
    }
    if args.metrics.as_deref().is_some_and(|url| !is_http(url)) {
        problems.push(Problem::with("--metrics", "must be an http URL"));
    }
    let mut observed = args.observe.compile(&mut problems);
    if observed.len() + usize::from(command.is_some()) + usize::from(args.pid.is_some()) > 1 {
        let message = "one target is judged: name one by --observe, --pid or --spawn";
        problems.push(Problem::with("--observe", message));
    }
    let subject = match (command, args.pid, observed.pop()) {
        (Some(command), ..) => {
            let url = args.url().unwrap_or_default().to_owned();
            Subject::Started(TargetPlan {
                name: "target".to_owned(),
                process: ProcessPlan {
                    name: "target".to_owned(),
                    words: command,
                    ready: url.clone(),
                },
                upstreams: Vec::new(),
                url,
            })
        }
        (None, Some(pid), _) => Subject::Pid(pid),
        (None, None, Some(observed)) => Subject::Observed(observed.place),
        (None, None, None) => Subject::Remote,
    };
    problems.unless_any(Some(()))?;
    let plan = SoakPlan {
        name: "target".to_owned(),
        duration: Duration::from_mins(20),
        sample: Duration::from_secs(15),
        scale: 1.0,
        at_once: 1,
        scenarios: vec![ScenarioPlan {
            name: "target".to_owned(),
            subject,
            loads,
            metrics: args.metrics.clone().map(|url| Metrics {
                url,
                patterns: Patterns::default(),
            }),
        }],
    };
    Ok((format!("{:?}", plan.scenarios), plan))
}

fn check(args: &Args, plan: &mut SoakPlan) -> Result<(), Failed> {
    let mut problems = Problems::default();
    if plan.sample < SHORTEST {
        problems.push(Problem::with("--sample", "must be at least 100ms"));
    }
    if plan.sample.saturating_mul(4) > plan.duration {
        let message = format!(
            "{} is too long for a soak of {}",
            DurationText(plan.sample),
            DurationText(plan.duration)
        );
        problems.push(Problem::with("--sample", &message));
    }
    let names: Vec<&str> = plan.scenarios.iter().map(|it| it.name.as_str()).collect();
    for wanted in &args.scenario {
        if !names.contains(&wanted.as_str()) {
            let message = format!(
                "there is no scenario `{wanted}`; there are {}",
                names.join(", ")
            );
            problems.push(Problem::with("--scenario", &message));
        }
    }
    problems.unless_any(Some(()))?;
    if !args.scenario.is_empty() {
        plan.scenarios
            .retain(|scenario| args.scenario.contains(&scenario.name));
    }
    Ok(())
}

fn list(plan: &SoakPlan) -> Result<Exit, Failed> {
    let lines: Vec<String> = plan
        .scenarios
        .iter()
        .map(|scenario| {
            let loads: Vec<&str> = scenario.loads.iter().map(|it| it.name.as_str()).collect();
            format!("{:<24}{}", scenario.name, loads.join(", "))
        })
        .collect();
    print(&lines.join("\n"))?;
    Ok(Exit::Fine)
}

fn write_reports(folder: &Path, soak: &Soak) -> Result<(), Failed> {
    for (name, content) in [
        ("verdict.json", to_json(soak)),
        ("summary.txt", to_text(soak, TextFormat::default())),
        ("report.html", to_html(soak)),
    ] {
        let path = folder.join(name);
        fs::write(&path, content).map_err(|error| {
            Problem::new(format!("cannot write {}: {error}", path.display())).could_not_run()
        })?;
    }
    Ok(())
}

fn print(text: &str) -> Result<(), Failed> {
    terminal::print(text).map_err(|error| {
        Problem::new(format!("cannot write to standard output: {error}")).could_not_run()
    })
}

fn show(progress: &ProgressLine, event: &Event<'_>, duration: Duration) {
    match event {
        Event::Sampled {
            scenario,
            elapsed,
            memory_bytes,
            descriptors,
        } => {
            let line = || {
                let memory =
                    memory_bytes.map_or_else(String::new, |bytes| format!(", {}", ByteSize(bytes)));
                let descriptors = descriptors
                    .map_or_else(String::new, |number| format!(", {number} descriptors"));
                let whole = Duration::from_secs(elapsed.as_secs());
                format!(
                    "{scenario}: {} of {}{memory}{descriptors}",
                    DurationText(whole),
                    DurationText(duration)
                )
            };
            // A soak takes hours: without a terminal each sample is a line too.
            progress.under_way(line);
            progress.ended(line);
        }
        Event::Ended(result) => progress.ended(|| ended(result)),
    }
}

fn ended(result: &ScenarioResult) -> String {
    let deciding = result.deciding().map_or_else(String::new, |series| {
        format!(" ({}, {})", series.name, series.assessment.shape.name())
    });
    format!("{}: {}{deciding}", result.name, result.verdict().name())
}

fn parse_scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if scale > 0.0 && scale <= 1000.0 => Ok(scale),
        _ => Err("must be a number above 0, at most 1000".to_owned()),
    }
}
