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
    pub(super) run: Vec<Run>,
    pub(super) table: Vec<Table>,
    /// What the figures do not cover.
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
    /// The first column, then those of the figures.
    pub(super) head: Vec<String>,
    pub(super) row: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub(super) label: String,
    pub(super) cell: Vec<Cell>,
}

/// One of `at`, `not_run` and `out` says what ours is.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cell {
    /// The source's figure, as it stands there; a dash if it has none.
    pub(super) theirs: String,
    /// The run that ours is from.
    pub(super) run: Option<String>,
    /// JSON pointer of ours.
    pub(super) at: Option<String>,
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
}

impl Plan {
    pub(super) fn read(folder: &Path, name: &str) -> Result<Self, Failure> {
        let file = folder.join(format!("{name}.toml"));
        let text = fs::read_to_string(&file)
            .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        let mut plan: Self =
            toml::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        name.clone_into(&mut plan.name);
        plan.check()?;
        Ok(plan)
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
                }
            }
        }
        Ok(())
    }
}
