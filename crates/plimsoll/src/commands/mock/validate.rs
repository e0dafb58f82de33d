//! `plimsoll mock validate`: whether files of rules have mistakes.

use std::path::PathBuf;

use plimsoll_mock::config;
use plimsoll_mock::openapi::OpenApi;
use plimsoll_model::counted;

use super::{FILE, failed};
use crate::exit::Exit;
use crate::problem::{Failed, Problem};
use crate::terminal;

/// Report all errors in a rule file and in the files that it names; exit with 1 if there are any, 2 if a file
/// cannot be read.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file
    #[arg(default_value = FILE)]
    file: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    let plan = config::load(&args.file).map_err(|problems| {
        let is_unreadable = problems.iter().any(|problem| problem.unreadable.is_some());
        let exit = if is_unreadable {
            Exit::Usage
        } else {
            Exit::Objective
        };
        failed(exit, &problems)
    })?;
    let rules: usize = plan.sets.iter().map(|set| set.rules().len()).sum();
    let line = format!(
        "{}: no mistakes; {} in {}",
        args.file.display(),
        counted(rules as u64, "rule"),
        counted(plan.sets.len() as u64, "set")
    );
    terminal::print(&line).map_err(|error| Problem::caused_by(&error).could_not_run())?;
    for document in &plan.openapi {
        let text = contents(document);
        terminal::print(&text).map_err(|error| Problem::caused_by(&error).could_not_run())?;
    }
    Ok(Exit::Fine)
}

/// Which contents of an OpenAPI document its own schemas do not accept.
fn contents(document: &OpenApi) -> String {
    let fit = document.fit();
    let mut text = format!(
        "{}: {} operations; {} contents in JSON, {} of which their schemas do not accept",
        document.file().display(),
        document.operations(),
        fit.judged,
        fit.unfit.len()
    );
    for unfit in fit.unfit {
        let whose = if unfit.is_documents {
            "the document"
        } else {
            "the content made"
        };
        text.extend(["\n  ", &unfit.response, ", ", whose, ": ", &unfit.reason]);
    }
    text
}
