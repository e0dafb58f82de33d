//! `plimsoll report`: the results of runs once more, in another format or beside one another.

#[cfg(feature = "lab")]
mod points;

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
#[cfg(feature = "lab")]
use plimsoll_lab::{
    TextFormat,
    profile::per_request::{FunctionCosts, ProfiledRun, difference},
    trend::{self, ChangeOptions, Trend, trend},
};
use plimsoll_report::export::{Exporter, Html, Junit, Markdown, PlainText, Prometheus};
use plimsoll_report::{RunRecord, files, merged};

use crate::exit::Exit;
use crate::flags::Problems;
use crate::problem::{Failed, Problem};
use crate::terminal;

/// Show results that `plimsoll load --out` wrote, several side by side
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Result folders; with --trend also files of load --append, and folders of either
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Merge the results of generators that loaded the same target at the same time
    #[arg(long)]
    merge: bool,

    /// Show trends over the results, oldest first, and the steps where a figure changed
    #[cfg(feature = "lab")]
    #[arg(long, conflicts_with = "merge")]
    trend: bool,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll report before after
  plimsoll report --format html --output comparison.html before after
  plimsoll report --merge --format json from-machine-1 from-machine-2
  plimsoll report --trend costs.jsonl
  plimsoll report --trend --format html --output trend.html results/
  plimsoll report --format markdown result";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text tables
    Text,
    /// HTML page with plots
    Html,
    /// Markdown tables
    Markdown,
    /// JUnit XML of thresholds and conditions
    Junit,
    /// Prometheus text format
    Prometheus,
    /// The summary, as load --json prints it; of a single result, or of merged ones
    Json,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    #[cfg(feature = "lab")]
    if args.trend {
        return show_trend(args);
    }
    let mut problems = Problems::default();
    let records: Vec<_> = args
        .folders
        .iter()
        .filter_map(|folder| record(folder, &name(folder, &args.folders), &mut problems))
        .collect();
    let mut records = problems.unless_any(Some(records))?;
    if args.merge {
        let name = args.folders.len();
        let merged = merged(&format!("{name} generators"), &records)
            .map_err(|error| Problem::caused_by(&error).about("--merge").usage())?;
        records = vec![merged];
    }
    let bytes = match args.format {
        Format::Text => {
            let text = PlainText.export(&records);
            #[cfg(feature = "lab")]
            let text = with_functions(text, args, &records);
            text
        }
        Format::Html => {
            let page = Html.export(&records);
            #[cfg(feature = "lab")]
            let page = with_function_table(&page, args, &records);
            page
        }
        Format::Markdown => Markdown.export(&records),
        Format::Junit => Junit.export(&records),
        Format::Prometheus => Prometheus.export(&records),
        Format::Json => json(&records)?,
    };
    write(args, &bytes)?;
    Ok(Exit::Fine)
}

/// Functions that a table lists: those that changed most.
#[cfg(feature = "lab")]
const FUNCTIONS: usize = 20;

/// What each function costs per request, of two results with profiles (`load --profile`).
#[cfg(feature = "lab")]
fn function_costs(args: &Args, records: &[RunRecord]) -> Option<FunctionCosts> {
    let profile = |folder: &Path| fs::read_to_string(folder.join(files::PROFILE_FOLDED)).ok();
    let cost = |record: &RunRecord| record.summary.target.as_ref()?.cost.cpu_us_per_request;
    let ([one, other], [before, after]) = (args.folders.as_slice(), records) else {
        return None;
    };
    let before = ProfiledRun {
        name: &before.name,
        folded: &profile(one)?,
        cpu_us_per_request: cost(before)?,
    };
    let after = ProfiledRun {
        name: &after.name,
        folded: &profile(other)?,
        cpu_us_per_request: cost(after)?,
    };
    Some(difference(before, after, FUNCTIONS))
}

/// The same text with these costs.
#[cfg(feature = "lab")]
fn with_functions(mut text: Vec<u8>, args: &Args, records: &[RunRecord]) -> Vec<u8> {
    if let Some(costs) = function_costs(args, records) {
        text.push(b'\n');
        text.extend(costs.to_text(format_of(args)).bytes());
    }
    text
}

/// The same page with these costs.
#[cfg(feature = "lab")]
fn with_function_table(page: &[u8], args: &Args, records: &[RunRecord]) -> Vec<u8> {
    let costs = function_costs(args, records);
    let table = costs.map(|costs| files::ExtraTable {
        title: FunctionCosts::TITLE.to_owned(),
        head: costs.head,
        rows: costs.rows,
    });
    files::with_tables(page, table.as_slice())
}

/// As wide as the terminal, unless a file is written.
#[cfg(feature = "lab")]
fn format_of(args: &Args) -> TextFormat {
    match args.output {
        Some(_) => TextFormat::default(),
        None => terminal::format_of_stdout(),
    }
}

#[cfg(feature = "lab")]
fn show_trend(args: &Args) -> Result<Exit, Failed> {
    let format = format_of(args);
    let encode = match args.format {
        Format::Text => |trend: &Trend, format| trend::to_text(trend, format),
        Format::Html => |trend: &Trend, _| trend::to_html(trend),
        Format::Json => |trend: &Trend, _| trend::to_json(trend),
        Format::Markdown | Format::Junit | Format::Prometheus => {
            return Err(Problem::with("--format", "a trend is text, html or json").usage());
        }
    };
    let mut problems = Problems::default();
    let points = points::read(&args.folders, &mut problems);
    let points = problems.unless_any(Some(points))?;
    let trend = trend(points, ChangeOptions::default())
        .map_err(|error| Problem::caused_by(&error).about("--trend").usage())?;
    write(args, encode(&trend, format).as_bytes())?;
    Ok(Exit::Fine)
}

/// The summary of a single result.
fn json(records: &[RunRecord]) -> Result<Vec<u8>, Failed> {
    let [record] = records else {
        return Err(Problem::with("--format", "json shows a single result")
            .hint("name one folder, or merge those of several generators with --merge")
            .usage());
    };
    Ok(record.summary.to_json().into_bytes())
}

fn write(args: &Args, bytes: &[u8]) -> Result<(), Failed> {
    match &args.output {
        Some(path) => fs::write(path, bytes).map_err(|error| {
            let message = format!("cannot write {}: {error}", path.display());
            Problem::with("--output", message).could_not_run()
        })?,
        None => terminal::print(String::from_utf8_lossy(bytes).trim_end()).map_err(|error| {
            Problem::new(format!("cannot write to standard output: {error}")).could_not_run()
        })?,
    }
    Ok(())
}

fn record(folder: &Path, name: &str, problems: &mut Problems) -> Option<RunRecord> {
    let place = folder.display().to_string();
    if !folder.is_dir() {
        let problem = if folder.exists() {
            "not a folder; name the one that `plimsoll load --out` wrote"
        } else {
            "no such folder"
        };
        problems.add(&place, problem);
        return None;
    }
    let summary = problems.file(&place, &folder.join(files::SUMMARY_JSON))?;
    let latency = problems.file(&place, &folder.join(files::LATENCY_HDR))?;
    problems.value(&place, RunRecord::read(name, &summary, &latency))
}

/// The last part of its path, or all of it where that does not distinguish it from others.
fn name(folder: &Path, all: &[PathBuf]) -> String {
    let last = |folder: &Path| {
        folder
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let mine = last(folder);
    let alike = all.iter().filter(|other| last(other) == mine).count();
    match mine {
        Some(name) if alike == 1 => name,
        _ => folder.display().to_string(),
    }
}
