//! Standard output and standard error, for people.

use std::io::{self, Write};

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style as Ansi};
use plimsoll_report::text::Style;

use crate::problem::Failed;

const ERROR: Ansi = AnsiColor::Red.on_default().bold();
const HINT: Ansi = AnsiColor::Cyan.on_default();

/// Whether standard output shows colours: it is a terminal, and `NO_COLOR` is not set.
pub(crate) fn style_of_stdout() -> Style {
    style(anstream::AutoStream::choice(&io::stdout()))
}

/// The same for standard error.
pub(crate) fn style_of_stderr() -> Style {
    style(anstream::AutoStream::choice(&io::stderr()))
}

fn style(choice: ColorChoice) -> Style {
    match choice {
        ColorChoice::Never => Style::Plain,
        _ => Style::Ansi,
    }
}

/// Prints `text` and a line feed on standard output; a reader that has gone away is no error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Prints a line on standard error that tells how something goes on.
pub(crate) fn print_line_on_stderr(line: &str) {
    // Progress that cannot be shown is no reason to end a run.
    writeln!(io::stderr().lock(), "{line}").ok();
}

/// Replaces the line on standard error that the cursor is in.
pub(crate) fn overwrite_line(line: &str) {
    let mut stderr = io::stderr().lock();
    // Progress that cannot be shown is no reason to end a run.
    write!(stderr, "\r\x1b[K{line}")
        .and_then(|()| stderr.flush())
        .ok();
}

/// Prints every problem on standard error, each with what to do.
pub(crate) fn print_failure(failed: &Failed) {
    let mut stderr = anstream::stderr().lock();
    for problem in &failed.problems {
        let about = problem
            .about
            .as_ref()
            .map_or(String::new(), |about| format!("{about}: "));
        let hint = problem.hint.as_ref().map_or(String::new(), |hint| {
            format!("\n  {HINT}hint{HINT:#}: {hint}")
        });
        // If even standard error is gone there is nobody left to tell.
        writeln!(
            stderr,
            "{ERROR}error{ERROR:#}: {about}{}{hint}",
            problem.message
        )
        .ok();
    }
}
