//! Standard output and standard error, for people.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style as Ansi};
use plimsoll_report::text::Style;

use crate::problem::{Failed, Problem};

const ERROR: Ansi = AnsiColor::Red.on_default().bold();
const NOTE: Ansi = AnsiColor::Yellow.on_default().bold();
const WARNING: Ansi = NOTE;
const HINT: Ansi = AnsiColor::Cyan.on_default();

/// Whether standard output shows colours: it is a terminal, and `NO_COLOR` is not set.
pub(crate) fn style_of_stdout() -> Style {
    style(anstream::AutoStream::choice(&io::stdout()))
}

/// The format of an experiment's text on standard output.
#[cfg(feature = "lab")]
pub(crate) fn format_of_stdout() -> plimsoll_lab::TextFormat {
    let mut format = plimsoll_lab::TextFormat {
        style: style_of_stdout(),
        ..plimsoll_lab::TextFormat::default()
    };
    // What is no terminal has no size, and some terminals do not know theirs.
    if let Ok(size) = rustix::termios::tcgetwinsize(io::stdout())
        && size.ws_col > 0
    {
        format.columns = usize::from(size.ws_col);
    }
    format
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

/// Prints bytes as they are, and a line feed behind text that has none.
pub(crate) fn print_bytes(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let is_open_text = std::str::from_utf8(bytes).is_ok() && !bytes.ends_with(b"\n");
    let end: &[u8] = if is_open_text && !bytes.is_empty() {
        b"\n"
    } else {
        b""
    };
    let written = stdout.write_all(bytes).and_then(|()| stdout.write_all(end));
    match written.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Whether all three streams are one's terminal, and it is one that can be drawn on.
pub(crate) fn can_be_taken_over() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    let is_terminal =
        io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal();
    // Serial lines and some containers do not know their size.
    let has_room = || {
        let size = rustix::termios::tcgetwinsize(io::stdout());
        size.is_ok_and(|size| size.ws_col > 0 && size.ws_row > 0)
    };
    is_terminal && !is_dumb && has_room()
}

/// Prints a line of progress on standard error.
pub(crate) fn log_line(line: &str) {
    // Progress that cannot be shown is no reason to end a run.
    writeln!(io::stderr().lock(), "{line}").ok();
}

/// Replaces the last lines of standard error, which must be a terminal, by others; longer ones are cut.
///
/// - `before`: how many there are.
pub(crate) fn replace_lines(before: usize, lines: &[String]) {
    let (width, _) = ratatui::crossterm::terminal::size().unwrap_or((80, 24));
    let mut text = String::new();
    if before > 0 {
        // Up, and everything from there on is erased.
        text.extend(["\x1b[", &before.to_string(), "A\x1b[J"]);
    }
    for line in lines {
        text.extend(line.chars().take(usize::from(width).saturating_sub(1)));
        text.push('\n');
    }
    let mut stderr = io::stderr().lock();
    // A terminal that is gone shows nothing.
    stderr
        .write_all(text.as_bytes())
        .and_then(|()| stderr.flush())
        .ok();
}

/// Replaces the line on standard error that the cursor is in.
pub(crate) fn overwrite_line(line: &str) {
    let mut stderr = io::stderr().lock();
    // Progress that cannot be shown is no reason to end a run.
    write!(stderr, "\r\x1b[K{line}")
        .and_then(|()| stderr.flush())
        .ok();
}

/// Progress in one line of standard error: on a terminal written over by what comes next, elsewhere a
/// line for each thing that has ended.
pub(crate) struct ProgressLine {
    is_terminal: bool,
}

impl ProgressLine {
    pub(crate) fn new() -> Self {
        Self {
            is_terminal: io::stderr().is_terminal(),
        }
    }

    /// Something goes on.
    pub(crate) fn under_way(&self, line: impl FnOnce() -> String) {
        if self.is_terminal {
            overwrite_line(&line());
        }
    }

    /// Something has ended.
    pub(crate) fn ended(&self, line: impl FnOnce() -> String) {
        if !self.is_terminal {
            log_line(&line());
        }
    }

    /// Leaves the terminal as it was.
    pub(crate) fn clear(&self) {
        if self.is_terminal {
            overwrite_line("");
        }
    }
}

/// Prints what did not work, but does not keep the command from its end, on standard error.
pub(crate) fn print_warnings(problems: &[Problem]) {
    print_each("warning", WARNING, problems);
}

/// Prints every problem on standard error, each with what to do.
pub(crate) fn print_failure(failed: &Failed) {
    print_each("error", ERROR, &failed.problems);
}

/// Prints one problem on standard error.
#[cfg(feature = "k6")]
pub(crate) fn print_error(problem: &Problem) {
    print_each("error", ERROR, std::slice::from_ref(problem));
}

/// Prints what is good to know, and no reason to stop, on standard error.
pub(crate) fn print_notes(notes: &[Problem]) {
    print_each("note", NOTE, notes);
}

/// `text` without the sequences that set colours and weights, such as those of k6's library for expectations.
#[cfg(feature = "k6")]
pub(crate) fn without_colours(text: &str) -> Cow<'_, str> {
    if !text.contains("\u{1b}[") {
        return Cow::Borrowed(text);
    }
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let behind = part.trim_start_matches(|it: char| it.is_ascii_digit() || it == ';');
        match behind.strip_prefix('m') {
            Some(behind) => plain.push_str(behind),
            None => plain.extend(["\u{1b}[", part]),
        }
    }
    Cow::Owned(plain)
}

/// `text` with control characters and those that reorder text shown as `\u{…}`; line feeds and tabs stay.
///
/// Messages quote what other machines say. Left as it is, that could move the cursor, rename the window or disguise
/// other lines.
pub(crate) fn without_controls(text: &str) -> Cow<'_, str> {
    let is_harmful = |character: char| {
        let reorders = matches!(character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        reorders || (character.is_control() && !matches!(character, '\n' | '\t'))
    };
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let shown = text.chars().fold(String::new(), |mut shown, character| {
        if is_harmful(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
        shown
    });
    Cow::Owned(shown)
}

fn print_each(kind: &str, style: Ansi, problems: &[Problem]) {
    let mut stderr = anstream::stderr().lock();
    for problem in problems {
        // If even standard error is gone there is no place left to report it.
        writeln!(stderr, "{}", line(kind, (style, HINT), problem)).ok();
    }
}

/// A problem as it is printed, without colours.
#[cfg(feature = "mcp")]
pub(crate) fn plain(kind: &str, problem: &Problem) -> String {
    line(kind, (Ansi::new(), Ansi::new()), problem)
}

fn line(kind: &str, (style, hint_style): (Ansi, Ansi), problem: &Problem) -> String {
    let about = problem.about.as_deref().map_or(String::new(), |about| {
        format!("{}: ", without_controls(about))
    });
    let hint = problem.hint.as_deref().map_or(String::new(), |hint| {
        format!(
            "\n  {hint_style}hint{hint_style:#}: {}",
            without_controls(hint)
        )
    });
    format!(
        "{style}{kind}{style:#}: {about}{}{hint}",
        without_controls(&problem.message)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_cannot_drive_the_terminal() {
        for (text, shown) in [
            ("plain ü\n\ttext", "plain ü\n\ttext"),
            (
                "\u{1b}[2J\u{1b}]0;title\u{7}",
                "\\u{1b}[2J\\u{1b}]0;title\\u{7}",
            ),
            ("a\rb\u{8}c\u{7f}", "a\\u{d}b\\u{8}c\\u{7f}"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("x\u{202e}y", "x\\u{202e}y"),
        ] {
            assert_eq!(without_controls(text), shown, "{text:?}");
        }
    }

    #[cfg(feature = "k6")]
    #[test]
    fn colours_are_left_out_and_nothing_else() {
        for (text, plain) in [
            (
                "\u{1b}[90mexpect(\u{1b}[0m\u{1b}[1;31mreceived\u{1b}[m)",
                "expect(received)",
            ),
            ("\u{1b}[2Ja\u{1b}[", "\u{1b}[2Ja\u{1b}["),
            ("plain", "plain"),
        ] {
            assert_eq!(without_colours(text), plain);
        }
    }
}
