//! `plimsoll lab`: targets × loads × sizes by a plan.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_lab::TextFormat;
use plimsoll_lab::matrix::{
    Event, Figure, Matrix, MatrixError, MatrixPlan, Outcome, RunOptions, Store, StoreError, Trial,
    compile, run as run_matrix, to_html, to_json, to_text,
};
use plimsoll_model::{counted, grouped, masked_arguments, parse_duration, three_figures};

use crate::exit::Exit;
use crate::flags::{ObserveArgs, Problems, number, plan_file};
use crate::problem::{Failed, Problem};
use crate::signals;
use crate::terminal::{self, ProgressLine};

/// Run a benchmark plan: targets × loads × sizes, one target at a time
///
/// Start each target, load it and stop it, several times in random order, within control groups where a
/// size sets limits. Observe target, generator and upstreams and report which was the limit. Finished
/// trials are kept in a folder: an interrupted run resumes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Plan (TOML)
    #[arg(value_name = "PLAN")]
    plan: PathBuf,

    /// Report all errors in the plan and exit
    #[arg(long)]
    check: bool,

    /// Write trials and reports into this folder [default: the plan's name with -result]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Number of trials per cell, instead of the plan's
    #[arg(long, value_name = "N", value_parser = number::count::<u32>(1_000))]
    repeats: Option<u32>,

    /// Warm-up before each window, instead of the plan's
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    warm_up: Option<Duration>,

    /// Length of each window, instead of the plan's
    #[arg(long, value_name = "TIME", value_parser = parse_window)]
    window: Option<Duration>,

    /// Seed of the random order, instead of the plan's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Parent control group of the sizes, such as / [default: beside plimsoll's own]
    #[arg(long, value_name = "PATH")]
    cgroup: Option<String>,

    #[command(flatten)]
    observe: ObserveArgs,

    /// Print one JSON document (schemas/lab.v1.json)
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll lab --check plan.toml
  plimsoll lab plan.toml
  plimsoll lab plan.toml --observe db=https://db1:7070/?unit=postgresql --observe-token-file token
  plimsoll lab plan.toml --repeats 1 --warm-up 1s --window 2s --out quick

Exit codes: 0 every cell was measured, killed for memory, or cannot be held here; 1 cells that are
not comparable, by their share of errors; 2 usage; 3 a trial could not be made; 130 interrupted, to be gone on with by the same command.";

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    let own = super::own_program()?;
    let mut problems = Problems::default();
    let observed = args.observe.compile(&mut problems);
    let observed = problems.unless_any(Some(observed))?;
    let observed = observed.into_iter().map(|it| (it.name, it.place)).collect();
    let (text, mut plan) = plan_file(&args.plan, |text, directory| compile(text, directory, &own))?;
    if args.check {
        let cells = plan.targets.len() * plan.loads.len() * plan.sizes.len();
        print(&format!(
            "{}: no mistakes; {cells} cells, {}",
            args.plan.display(),
            least(&plan, cells)
        ))?;
        return Ok(Exit::Fine);
    }
    plan.repeats = args.repeats.unwrap_or(plan.repeats);
    plan.warm_up = args.warm_up.unwrap_or(plan.warm_up);
    plan.window = args.window.unwrap_or(plan.window);
    plan.seed = args.seed.unwrap_or(plan.seed);

    let folder = args.out.clone().unwrap_or_else(|| {
        let stem = args.plan.file_stem().unwrap_or_default();
        PathBuf::from(format!("{}-result", stem.to_string_lossy()))
    });
    let store = Store::open(&folder, &text, &plan).map_err(|error| match error {
        StoreError::Another { .. } => Problem::caused_by(&error)
            .about("--out")
            .hint("name another folder, or remove that one")
            .usage(),
        StoreError::Write { .. } => Problem::caused_by(&error).about("--out").could_not_run(),
    })?;
    let interrupt = signals::watch().map_err(|error| {
        Problem::new(format!("cannot watch for signals: {error}")).could_not_run()
    })?;
    let options = RunOptions {
        plimsoll: own,
        cgroup: args.cgroup.clone(),
        observed,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: masked_arguments(std::env::args()),
    };
    let progress = ProgressLine::new();
    let matrix = run_matrix(&plan, &options, &store, &interrupt, &mut |event| {
        show(&progress, event);
    });
    progress.clear();
    let matrix = matrix.map_err(|error| Failed {
        exit: match error {
            MatrixError::Interrupted => Exit::Interrupted,
            MatrixError::Store(_) => Exit::CouldNotRun,
        },
        problems: vec![Problem::caused_by(&error)],
    })?;
    write_all(&folder, &matrix)?;
    let document = if args.json {
        to_json(&matrix)
    } else {
        to_text(&matrix, terminal::format_of_stdout())
    };
    print(document.trim_end())?;
    verdict(&matrix)
}

/// How long it takes at least.
fn least(plan: &MatrixPlan, cells: usize) -> String {
    let each = plan.warm_up + plan.window;
    let cells = u32::try_from(cells).unwrap_or(u32::MAX);
    let least = each.saturating_mul(cells).saturating_mul(plan.repeats);
    format!(
        "{} trials each, at least {} s in all",
        plan.repeats,
        least.as_secs()
    )
}

/// One report of all, and one of each target by its name.
fn write_all(folder: &Path, matrix: &Matrix) -> Result<(), Failed> {
    let mut reports = vec![("lab".to_owned(), matrix.clone())];
    for (target, (name, _)) in matrix.targets.iter().enumerate() {
        let name = format!("target-{}", name.replace(' ', "-"));
        reports.push((name, matrix.only(target)));
    }
    for (name, matrix) in reports {
        for (ending, content) in [
            ("json", to_json(&matrix)),
            ("txt", to_text(&matrix, TextFormat::default())),
            ("html", to_html(&matrix)),
        ] {
            let path = folder.join(format!("{name}.{ending}"));
            fs::write(&path, content).map_err(|error| {
                Problem::new(format!("cannot write {}: {error}", path.display())).could_not_run()
            })?;
        }
    }
    Ok(())
}

fn print(text: &str) -> Result<(), Failed> {
    terminal::print(text).map_err(|error| {
        Problem::new(format!("cannot write to standard output: {error}")).could_not_run()
    })
}

fn verdict(matrix: &Matrix) -> Result<Exit, Failed> {
    let problems: Vec<Problem> = matrix
        .failures()
        .map(|(trial, reason)| Problem::new(format!("{}: {reason}", place(trial))))
        .collect();
    if !problems.is_empty() {
        return Err(Failed {
            exit: Exit::CouldNotRun,
            problems,
        });
    }
    let left_out = matrix.not_comparable();
    if left_out == 0 {
        return Ok(Exit::Fine);
    }
    let cells = counted(left_out as u64, "cell");
    let message = format!(
        "{cells} served a smaller share of their requests than others, and were not compared with them"
    );
    let hint = "have all targets answer, or leave out loads that some of them cannot carry";
    Err(Failed {
        exit: Exit::Objective,
        problems: vec![Problem::new(message).hint(hint)],
    })
}

fn place(trial: &Trial) -> String {
    format!(
        "{}, {}, {}, trial {}",
        trial.target,
        trial.load,
        trial.size,
        trial.round + 1
    )
}

fn show(progress: &ProgressLine, event: &Event<'_>) {
    match event {
        Event::Begins {
            number,
            of,
            target,
            load,
            size,
        } => progress.under_way(|| format!("trial {number} of {of}: {target}, {load}, {size}")),
        Event::Ended(trial) => progress.ended(|| trial_text(trial)),
    }
}

/// `nginx, c8, small, trial 1: 52,110/s, CPU 4.61 µs/request`.
fn trial_text(trial: &Trial) -> String {
    let came_to = match &trial.outcome {
        Outcome::Measured(figures) => {
            let cost = Figure::CpuUsPerRequest
                .read(figures)
                .map_or_else(String::new, |cost| {
                    format!(", CPU {} µs/request", three_figures(cost))
                });
            format!("{}/s{cost}", grouped(figures.requests_per_second))
        }
        Outcome::Killed { who, .. } => format!("{who} killed for memory"),
        Outcome::Failed { .. } => "failed".to_owned(),
    };
    format!("{}: {came_to}", place(trial))
}

fn parse_window(text: &str) -> Result<Duration, String> {
    let window = parse_duration(text).map_err(|error| error.to_string())?;
    if window < Duration::from_millis(100) {
        return Err("must be 100ms or longer".to_owned());
    }
    Ok(window)
}
