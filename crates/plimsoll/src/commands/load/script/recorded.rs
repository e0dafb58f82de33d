//! A script that makes the requests of a file (`load --record`).

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use plimsoll_formats::{Format, parse};
use plimsoll_k6::script_of;

use crate::flags::Problems;
use crate::problem::Problem;
use crate::terminal;

/// Parts that the script does not carry, as they are listed.
const MOST_NOTES: usize = 10;

/// Writes the script; a file that exists is never replaced.
///
/// - `script`: its path; `-` is standard output.
pub(super) fn write(source: &Path, script: &str) -> Result<(), Problem> {
    let wrong = |message: String| Problem::with("--record", message);
    let shown = source.display().to_string();
    let bytes = Problems::read(source).map_err(wrong)?;
    let text = String::from_utf8(bytes).map_err(|_| wrong(format!("{shown} is not UTF-8")))?;
    let folder = source.parent().unwrap_or(Path::new(""));
    let mut read = |name: &str| Ok(Problems::read(&folder.join(name))?);
    let file = parse(Format::detect(&shown, &text), &text, &mut read);
    let file = file.map_err(|remarks| {
        let lines = remarks
            .iter()
            .map(|remark| format!("{shown}{}: {}", remark.place, remark.message));
        wrong(lines.collect::<Vec<_>>().join("\n"))
    })?;
    let notes = file.left_out.iter().map(|remark| {
        let message = format!("{shown}{}: left out {}", remark.place, remark.message);
        wrong(message)
    });
    terminal::print_warnings(&notes.take(MOST_NOTES).collect::<Vec<_>>());
    if file.left_out.len() > MOST_NOTES {
        let more = file.left_out.len() - MOST_NOTES;
        terminal::print_warnings(&[wrong(format!("{shown}: left out {more} more"))]);
    }
    let name = source.file_name().unwrap_or_default().to_string_lossy();
    let made = script_of(&file, &name);
    if script == "-" {
        let written = io::stdout().write_all(made.as_bytes());
        return written.map_err(|error| wrong(error.to_string()));
    }
    let failed = |error: io::Error| {
        let reason = match error.kind() {
            io::ErrorKind::AlreadyExists => "it exists; give another name".to_owned(),
            _ => error.to_string(),
        };
        wrong(format!("cannot write {script}: {reason}"))
    };
    let mut file = File::create_new(script).map_err(failed)?;
    file.write_all(made.as_bytes()).map_err(failed)
}
