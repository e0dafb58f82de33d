//! Standard output and standard error, for people.

use std::io::Write;

use anstyle::{AnsiColor, Style};

use crate::problem::Failed;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();

/// Prints every problem, each with what to do.
pub(crate) fn print_failure(failed: &Failed) {
    let mut stderr = anstream::stderr().lock();
    for problem in &failed.problems {
        let about = problem
            .about
            .as_ref()
            .map_or(String::new(), |about| format!("{about}: "));
        // If even standard error is gone there is nobody left to tell.
        drop(writeln!(
            stderr,
            "{ERROR}error{ERROR:#}: {about}{}",
            problem.message
        ));
        if let Some(hint) = &problem.hint {
            drop(writeln!(stderr, "  {HINT}hint{HINT:#}: {hint}"));
        }
    }
}
