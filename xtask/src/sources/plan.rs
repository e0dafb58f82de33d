//! A file of examples/sources: what is run, and the tables of the source document with our cells.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::{Failure, Outcome};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    #[serde(skip)]
    pub(super) name: String,
    pub(super) title: String,
    /// What the source measured and how; paragraphs.
    pub(super) about: Vec<String>,
    /// Arguments of the release builds that it needs beside the program.
    #[serde(default)]
    pub(super) build: Vec<Vec<String>>,
    #[serde(default)]
    pub(super) run: Vec<Run>,
    pub(super) table: Vec<Table>,
    /// What the figures do not cover.
    #[serde(default)]
    pub(super) not_characterised: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Run {
    pub(super) name: String,
    #[serde(default)]
    pub(super) kind: Kind,
    /// `{plimsoll}`, `{dir}` (of the plans), `{out}` (a new folder).
    pub(super) command: Vec<String>,
    /// Added to it unless the durations of the source are used.
    #[serde(default)]
    pub(super) quick: Vec<String>,
    /// Added to it if they were.
    #[serde(default)]
    pub(super) full: Vec<String>,
    /// Of a profile: the function whose samples are the whole.
    #[serde(default)]
    pub(super) within: String,
    /// Of a profile: functions, by what the share of their samples is called.
    #[serde(default)]
    pub(super) shares: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// A program that prints a JSON document.
    #[default]
    Json,
    /// A program that leaves a profile, of which shares are taken.
    Profile,
    /// The benchmarks of plimsoll-bench; `command` is what criterion is given.
    Criterion,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    pub(super) title: String,
    /// The first column, then those of the figures; of a table with `figures` the first alone.
    pub(super) head: Vec<String>,
    /// The run, a lab, whose cells the rows are.
    run: Option<String>,
    /// The target that they are of.
    target: Option<String>,
    /// The columns: figures of a cell of the lab.
    #[serde(default)]
    figures: Vec<LabFigure>,
    /// Why no cell of this table is measured again.
    out: Option<String>,
    pub(super) row: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub(super) label: String,
    #[serde(default)]
    pub(super) cell: Vec<Cell>,
    /// In place of `cell`: the source's figures, where the table says what ours are, or why there are none.
    #[serde(default)]
    theirs: Vec<String>,
    /// The load of the lab that the row is of.
    load: Option<String>,
    /// The target that the row is of, if not that of the table.
    target: Option<String>,
}

/// A column of a table whose rows are cells of a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LabFigure {
    Rps,
    P50Us,
    P99Us,
    #[serde(rename = "p99_9_us")]
    P999Us,
    CpuPercent,
    CpuUsPerRequest,
    PeakRssBytes,
    PeakFds,
    Limits,
    Errors,
}

impl LabFigure {
    /// The heading, the place within a cell of the lab's document, and the unit.
    const fn column(self) -> (&'static str, &'static str, Unit) {
        match self {
            Self::Rps => ("rate", "medians/rps", Unit::Rate),
            Self::P50Us => ("p50", "medians/p50_us", Unit::Microseconds),
            Self::P99Us => ("p99", "medians/p99_us", Unit::Microseconds),
            Self::P999Us => ("p99.9", "medians/p99_9_us", Unit::Microseconds),
            Self::CpuPercent => ("CPU", "medians/cpu_percent", Unit::Percent),
            Self::CpuUsPerRequest => ("CPU per request", "medians/cpu_us_per_request", Unit::Cost),
            Self::PeakRssBytes => ("peak RSS", "medians/peak_rss_bytes", Unit::Bytes),
            Self::PeakFds => ("descriptors", "medians/peak_fds", Unit::Count),
            Self::Limits => ("limit", "limits", Unit::Names),
            Self::Errors => ("errors", "errors", Unit::Count),
        }
    }
}

/// One of `at`, `not_run` and `out` says what ours is.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cell {
    /// The source's figure, as it stands there; a dash if it has none.
    pub(super) theirs: String,
    /// The run that ours is from.
    pub(super) run: Option<String>,
    /// JSON pointer of ours, in which `[name=one,load=c8]` stands for the element of an array with these values.
    pub(super) at: Option<String>,
    /// The same of the figure that it is compared with, for the unit `gap`.
    pub(super) beside: Option<String>,
    /// What the figure is divided by: the items of a round.
    pub(super) per: Option<f64>,
    #[serde(default)]
    pub(super) unit: Unit,
    /// Why it was not run here.
    pub(super) not_run: Option<String>,
    /// Why it is no figure of ours.
    pub(super) out: Option<String>,
}

/// What a figure is, and how it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Unit {
    /// A number of things.
    #[default]
    Count,
    /// Nanoseconds.
    Nanoseconds,
    /// Nanoseconds of a round, shown as items (`per`) per second.
    PerSecondOfRound,
    /// Microseconds.
    Microseconds,
    /// Microseconds of processor time.
    Cost,
    /// Things per second.
    Rate,
    Bytes,
    /// Things per second, of which `per` make a megabyte.
    MegabytesPerSecond,
    /// A fraction.
    Share,
    /// A number that is in percent.
    Percent,
    /// How far the figure is from that of `beside`.
    Gap,
    /// A text, or a list of texts.
    Names,
}

impl Plan {
    pub(super) fn read(folder: &Path, name: &str) -> Result<Self, Failure> {
        let file = folder.join(format!("{name}.toml"));
        let text = fs::read_to_string(&file)
            .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        let mut plan: Self =
            toml::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        name.clone_into(&mut plan.name);
        plan.spell_out()?;
        plan.check()?;
        Ok(plan)
    }

    /// Gives each row its cells where the table says what they are.
    pub(super) fn spell_out(&mut self) -> Outcome {
        for table in &mut self.table {
            let place = format!("{}: {}", self.name, table.title);
            let figures: Vec<_> = table.figures.iter().map(|it| it.column()).collect();
            table
                .head
                .extend(figures.iter().map(|(head, _, _)| (*head).to_owned()));
            for row in &mut table.row {
                let theirs = std::mem::take(&mut row.theirs).into_iter();
                if let Some(reason) = &table.out {
                    row.cell.extend(theirs.map(|theirs| Cell {
                        theirs,
                        out: Some(reason.clone()),
                        ..Cell::default()
                    }));
                    continue;
                }
                if figures.is_empty() {
                    continue;
                }
                let target = row.target.as_ref().or(table.target.as_ref());
                let (Some(run), Some(target), Some(load)) = (&table.run, target, &row.load) else {
                    return Err(
                        format!("{place}: {}: run, target and load are needed", row.label).into(),
                    );
                };
                if theirs.len() != figures.len() {
                    return Err(
                        format!("{place}: {}: not as many `theirs` as figures", row.label).into(),
                    );
                }
                let cells = figures
                    .iter()
                    .zip(theirs)
                    .map(|((_, at, unit), theirs)| Cell {
                        theirs,
                        run: Some(run.clone()),
                        at: Some(format!("/cells/[target={target},load={load}]/{at}")),
                        unit: *unit,
                        ..Cell::default()
                    });
                row.cell.extend(cells);
            }
        }
        Ok(())
    }

    /// Every cell says where its figure is from, or why there is none.
    pub(super) fn check(&self) -> Outcome {
        for table in &self.table {
            for row in &table.row {
                let place = format!("{}: {}: {}", self.name, table.title, row.label);
                if row.cell.len() + 1 != table.head.len() {
                    return Err(format!("{place}: not as many cells as columns").into());
                }
                for cell in &row.cell {
                    let sources = [&cell.at, &cell.not_run, &cell.out];
                    if sources.into_iter().flatten().count() != 1 {
                        return Err(
                            format!("{place}: one of at, not_run and out is to be given").into(),
                        );
                    }
                    let known = |name: &String| self.run.iter().any(|run| run.name == *name);
                    if cell.at.is_some() != cell.run.as_ref().is_some_and(known) {
                        return Err(format!("{place}: `at` goes with a `run` that there is").into());
                    }
                    if cell.beside.is_some() != (cell.unit == Unit::Gap) {
                        return Err(format!("{place}: `beside` goes with the unit `gap`").into());
                    }
                }
            }
        }
        Ok(())
    }
}
