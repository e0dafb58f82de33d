//! Files of plans, which experiments are run by.

use std::path::Path;

use plimsoll_model::document::ConfigProblem;

use crate::exit::Exit;
use crate::flags::Problems;
use crate::problem::{Failed, Problem};

/// The text of a plan, and what it is compiled to.
///
/// - `compile`: gets the text and the file's folder. Each of its problems is reported with its place.
pub(crate) fn plan_file<T>(
    file: &Path,
    compile: impl FnOnce(&str, &Path) -> Result<T, Vec<ConfigProblem>>,
) -> Result<(String, T), Failed> {
    let usage = |problems| Failed {
        exit: Exit::Usage,
        problems,
    };
    let bytes = Problems::read(file).map_err(|message| usage(vec![Problem::new(message)]))?;
    let text = String::from_utf8(bytes).map_err(|_| {
        let message = format!("{} is not UTF-8", file.display());
        usage(vec![Problem::new(message)])
    })?;
    let directory = file.parent().unwrap_or(Path::new(""));
    let plan = compile(&text, directory).map_err(|problems| {
        let shown = |problem: &ConfigProblem| {
            let place = format!("{}:{}:{}", file.display(), problem.line, problem.column);
            let shown = Problem::new(problem).about(&place);
            match &problem.hint {
                Some(hint) => shown.hint(hint),
                None => shown,
            }
        };
        usage(problems.iter().map(shown).collect())
    })?;
    Ok((text, plan))
}
