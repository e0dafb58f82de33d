//! `plimsoll mock match-test`: why a request is answered as it is.

use std::path::{Path, PathBuf};

use plimsoll_mock::{Folder, KeptRequest, MockPlan};

use super::{open, what};
use crate::exit::Exit;
use crate::flags::Problems;
use crate::problem::{Failed, Problem};
use crate::terminal;

/// Says, rule by rule, why a request would be answered as it would: exit code 1 if nothing answers it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Path and query
    #[arg(value_name = "PATH")]
    target: String,

    /// A folder, or a file of rules in TOML
    #[arg(value_name = "DIR or FILE")]
    what: Option<PathBuf>,

    /// Request method [default: GET, or POST with content]
    #[arg(short, long, value_name = "METHOD")]
    method: Option<String>,

    /// Header field, repeatable
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,

    /// Content
    #[arg(
        short = 'd',
        long = "data",
        value_name = "TEXT",
        conflicts_with = "data_file"
    )]
    data: Option<String>,

    /// Content from a file; `-` for the standard input
    #[arg(short = 'D', long, value_name = "FILE")]
    data_file: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    let request = request(args)?;
    let plan = plan(&what(args.what.as_deref()))?;
    let explanation = plan.explain(&request.asked());
    let text = if args.json {
        explanation.to_json()
    } else {
        explanation.to_string()
    };
    terminal::print(&text).map_err(|error| Problem::caused_by(&error).could_not_run())?;
    let is_answered = explanation.rule.is_some()
        || explanation.collection.is_some()
        || explanation.openapi.is_some()
        || explanation.file.is_some();
    Ok(if is_answered {
        Exit::Fine
    } else {
        Exit::Objective
    })
}

fn plan(what: &Path) -> Result<MockPlan, Failed> {
    if !what.is_dir() {
        return open(what).map(|file| file.plan);
    }
    let folder = Folder::new(what).map_err(|error| {
        Problem::new(format!("cannot read {}: {error}", what.display())).could_not_run()
    })?;
    Ok(MockPlan::of_folder(folder))
}

fn request(args: &Args) -> Result<KeptRequest, Failed> {
    let mut problems = Problems::default();
    let body = match (&args.data, &args.data_file) {
        (Some(text), _) => Some(text.clone().into_bytes()),
        (None, Some(file)) => problems.file_or_stdin("--data-file", file),
        (None, None) => None,
    };
    let method = args.method.as_deref();
    let method = method.unwrap_or(if body.is_some() { "POST" } else { "GET" });
    let mut request = KeptRequest::made(method, &args.target);
    for header in &args.headers {
        match header.split_once(':') {
            Some((name, value)) if !name.trim().is_empty() => {
                let field = (name.trim().to_owned(), value.trim().as_bytes().to_vec());
                request.fields.push(field);
            }
            _ => problems.add(
                "--header",
                format!("`{header}` is not a field such as `accept: text/html`"),
            ),
        }
    }
    request.body = body.unwrap_or_default().into();
    problems.unless_any(Some(request))
}
