//! `plimsoll mock match-test`: why a request is answered as it is.

use super::asking::{Asking, is_answered};
use crate::exit::Exit;
use crate::problem::{Failed, Problem};
use crate::terminal;

/// Explain rule by rule which rule matches a request; exit with 1 if none does
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    asking: Asking,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    let request = args.asking.request()?;
    let plan = args.asking.plan()?;
    let explanation = plan.explain(&request.view());
    let text = if args.json {
        explanation.to_json()
    } else {
        explanation.to_string()
    };
    terminal::print(&text).map_err(|error| Problem::caused_by(&error).could_not_run())?;
    Ok(if is_answered(&explanation) {
        Exit::Fine
    } else {
        Exit::Objective
    })
}
