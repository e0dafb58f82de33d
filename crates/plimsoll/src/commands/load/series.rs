//! `load --append`: the run as a line of a file, which `report --trend` reads.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use plimsoll_lab::trend::TrendPoint;
use plimsoll_model::RunSummary;
use plimsoll_report::SummaryDocument;

use super::args::{Args, DEFAULT_RUN_NAME};
use crate::problem::{Failed, Problem};

/// A file that gets a line once the run is over.
#[derive(Debug)]
pub(super) struct SeriesFile {
    file: File,
    name: Option<String>,
}

impl SeriesFile {
    /// Opens the file of `--append`, or creates it: before the run, since it would be lost if that failed after it.
    pub(super) fn open(args: &Args) -> Result<Option<Self>, Failed> {
        let Some(path) = &args.output.append else {
            return Ok(None);
        };
        let name = &args.output.run_name;
        Ok(Some(Self {
            file: open(path)?,
            name: (name != DEFAULT_RUN_NAME).then(|| name.clone()),
        }))
    }

    /// Writes the line. A run that has no name is called by the time when it began.
    pub(super) fn append(mut self, summary: &RunSummary) -> Result<(), Failed> {
        let summary = SummaryDocument::from_summary(summary);
        let name = self.name.take();
        let name = name.unwrap_or_else(|| summary.conditions.started.clone());
        let mut line = TrendPoint::from_summary(&name, &summary).to_line();
        line.push('\n');
        // One write: lines of runs that end at the same time do not mix.
        self.file.write_all(line.as_bytes()).map_err(failed)
    }
}

fn open(path: &Path) -> Result<File, Failed> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    options.open(path).map_err(|error| {
        let message = format!("cannot write {}: {error}", path.display());
        Problem::with("--append", message).could_not_run()
    })
}

#[expect(clippy::needless_pass_by_value, reason = "a handler of errors")]
fn failed(error: std::io::Error) -> Failed {
    Problem::with("--append", format!("cannot write the line: {error}")).could_not_run()
}
