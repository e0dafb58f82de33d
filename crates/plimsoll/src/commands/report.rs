//! `plimsoll report`: the results of runs once more, in another format or beside one another.

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use plimsoll_lab::trend::{self, ChangeOptions, trend};
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
    /// Result folders
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Merge the results of generators that loaded the same target at the same time
    #[arg(long)]
    merge: bool,

    /// Show trends over the results, oldest first, and the steps where a figure changed; a folder of results
    /// stands for all of them
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
    let mut problems = Problems::default();
    let folders = if args.trend {
        expanded(&args.folders)
    } else {
        args.folders.clone()
    };
    let records: Vec<_> = folders
        .iter()
        .filter_map(|folder| record(folder, &name(folder, &folders), &mut problems))
        .collect();
    let mut records = problems.unless_any(Some(records))?;
    if args.trend {
        let trend = trend(&records, ChangeOptions::default())
            .map_err(|error| Problem::caused_by(&error).about("--trend").usage())?;
        let text = match args.format {
            Format::Text => trend::to_text(&trend),
            Format::Html => trend::to_html(&trend),
            Format::Json => trend::to_json(&trend),
            Format::Markdown | Format::Junit | Format::Prometheus => {
                return Err(Problem::with("--format", "a trend is text, html or json").usage());
            }
        };
        return write(args, text.as_bytes()).map(|()| Exit::Fine);
    }
    if args.merge {
        let name = args.folders.len();
        let merged = merged(&format!("{name} generators"), &records)
            .map_err(|error| Problem::caused_by(&error).about("--merge").usage())?;
        records = vec![merged];
    }
    let bytes = match args.format {
        Format::Text => PlainText.export(&records),
        Format::Html => Html.export(&records),
        Format::Markdown => Markdown.export(&records),
        Format::Junit => Junit.export(&records),
        Format::Prometheus => Prometheus.export(&records),
        Format::Json => json(&records)?,
    };
    write(args, &bytes)?;
    Ok(Exit::Fine)
}

/// The folders of results, those within a folder that is none itself in place of it.
fn expanded(folders: &[PathBuf]) -> Vec<PathBuf> {
    let is_result = |folder: &Path| folder.join(files::SUMMARY_JSON).is_file();
    let mut expanded = Vec::new();
    for folder in folders {
        let mut within: Vec<PathBuf> = fs::read_dir(folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| is_result(path))
            .collect();
        if is_result(folder) || within.is_empty() {
            // What is neither is reported when it is read.
            expanded.push(folder.clone());
        } else {
            within.sort();
            expanded.append(&mut within);
        }
    }
    expanded
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
