//! What `plimsoll load` shows while it runs and leaves behind when it is done.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_load::RunPlan;
use plimsoll_model::{RunSummary, Tick};
use plimsoll_report::export::{Exporter, Junit, Markdown};
use plimsoll_report::text::{self, Progress};
use plimsoll_report::{RunRecord, SummaryDocument, files, samples_csv};

use super::Args;
use crate::exit::Exit;
use crate::problem::{Failed, Problem};
use crate::terminal;

/// One line on standard error that tells how the run goes on, written over each second.
pub(super) struct LiveLine {
    is_shown: bool,
    progress: Progress,
}

impl LiveLine {
    pub(super) fn new(args: &Args, plan: &RunPlan) -> Self {
        Self {
            is_shown: !args.output.no_tui && io::stderr().is_terminal(),
            progress: Progress {
                duration: plan.stop.duration.map(|duration| plan.warm_up + duration),
                requests: plan.stop.requests,
                ..Progress::default()
            },
        }
    }

    pub(super) fn show(&mut self, tick: &Tick) {
        if !self.is_shown {
            return;
        }
        self.progress.errors += tick.failed + tick.other_errors;
        if !tick.warm_up {
            self.progress.done += tick.ok + tick.failed;
        }
        let line = text::live(tick, &self.progress, terminal::style_of_stderr());
        terminal::overwrite_line(&line);
    }

    pub(super) fn clear(&self) {
        if self.is_shown {
            terminal::overwrite_line("");
        }
    }
}

/// Prints the summary on standard output.
pub(super) fn print(args: &Args, summary: &RunSummary) -> Result<(), Failed> {
    let samples = args.output.samples_csv.as_deref();
    let text = if samples == Some(Path::new("-")) {
        samples_csv(summary, Duration::from_millis(args.server.sample_ms))
    } else if args.output.json {
        SummaryDocument::of(summary).to_json()
    } else {
        text::summary(summary, terminal::style_of_stdout())
    };
    terminal::print(text.trim_end()).map_err(|error| {
        Problem::new(format!("cannot write to standard output: {error}")).could_not_run()
    })
}

/// Writes the files of single formats.
pub(super) fn export(args: &Args, summary: &RunSummary) -> Result<(), Failed> {
    let files: [(&str, &Option<PathBuf>, &dyn Exporter); 2] = [
        ("--junit", &args.output.junit, &Junit),
        ("--markdown", &args.output.markdown, &Markdown),
    ];
    for (flag, path, exporter) in files {
        let Some(path) = path else { continue };
        let record = RunRecord::of("plimsoll load", summary);
        write(flag, path, &exporter.export(&[record]))?;
    }
    match args.output.samples_csv.as_deref() {
        Some(path) if path != Path::new("-") => {
            let csv = samples_csv(summary, Duration::from_millis(args.server.sample_ms));
            write("--samples-csv", path, csv.as_bytes())
        }
        _ => Ok(()),
    }
}

fn write(flag: &str, path: &Path, bytes: &[u8]) -> Result<(), Failed> {
    fs::write(path, bytes).map_err(|error| {
        let message = format!("cannot write {}: {error}", path.display());
        Problem::with(flag, message).could_not_run()
    })
}

/// The folder of `--out`, known to be writable before the run starts.
#[derive(Debug)]
pub(super) struct ResultFolder {
    path: PathBuf,
}

/// Behind the names of files that are not complete yet.
const PARTIAL: &str = ".partial";

impl ResultFolder {
    /// Makes the folder, and checks that results can be written to it and that none are there.
    pub(super) fn prepare(path: &Path) -> Result<Self, Failed> {
        let folder = Self {
            path: path.to_owned(),
        };
        let existing = files::NAMES
            .iter()
            .map(|name| path.join(name))
            .find(|file| file.exists());
        if let Some(file) = existing {
            return Err(
                Problem::with("--out", format!("{} exists already", file.display()))
                    .hint("name another folder, or remove the results in this one")
                    .usage(),
            );
        }
        let probe = path.join(format!(".plimsoll{PARTIAL}"));
        fs::create_dir_all(path)
            .and_then(|()| fs::write(&probe, b""))
            .and_then(|()| fs::remove_file(&probe))
            .map_err(|error| folder.unwritable(&error))?;
        Ok(folder)
    }

    /// Writes all result files, or none.
    pub(super) fn write(&self, summary: &RunSummary) -> Result<(), Failed> {
        let files = files::of_run(summary);
        let partial = |name: &str| self.path.join(format!("{name}{PARTIAL}"));
        let mut written = Ok(());
        for (name, bytes) in &files {
            written = written.and_then(|()| fs::write(partial(name), bytes));
        }
        for (name, _) in &files {
            if written.is_ok() {
                written = fs::rename(partial(name), self.path.join(name));
            } else {
                // What could not be written may not be there to be removed either.
                fs::remove_file(partial(name)).ok();
            }
        }
        written.map_err(|error| self.unwritable(&error))
    }

    fn unwritable(&self, error: &io::Error) -> Failed {
        let message = format!("cannot write to {}: {error}", self.path.display());
        Failed {
            exit: Exit::CouldNotRun,
            problems: vec![Problem::with("--out", message)],
        }
    }
}

const MASK: &str = "…";
/// A URL would encode the mask itself.
const MASK_IN_URL: &str = "masked-password";

/// The command line without the secrets that stand in it.
pub(super) fn masked_command(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let mut masked = Vec::new();
    let mut previous = String::new();
    for argument in arguments {
        let is_secret_of = |flag: &str| match flag {
            "-a" | "--basic-auth" => true,
            "-H" | "--header" => is_secret_header(&argument),
            _ => false,
        };
        let shown = if is_secret_of(&previous) {
            match argument.split_once(':') {
                Some((name, _)) => format!("{name}:{MASK}"),
                None => MASK.to_owned(),
            }
        } else if let Some((flag, value)) = argument.split_once('=')
            && (flag == "--basic-auth" || (flag == "--header" && is_secret_header(value)))
        {
            format!("{flag}={MASK}")
        } else if argument.starts_with("-a") && !argument.starts_with("--") && argument != "-a" {
            format!("-a{MASK}")
        } else {
            without_password(&argument)
        };
        masked.push(shown);
        previous = argument;
    }
    masked
}

fn is_secret_header(header: &str) -> bool {
    let name = header.split(':').next().unwrap_or_default().trim();
    let name = name.to_ascii_lowercase();
    [
        "authorization",
        "cookie",
        "token",
        "secret",
        "api-key",
        "apikey",
        "password",
    ]
    .iter()
    .any(|word| name.contains(word))
}

/// A URL without the password in it; anything else as it is.
fn without_password(argument: &str) -> String {
    let Some(mut url) = url::Url::parse(argument)
        .ok()
        .filter(|url| url.password().is_some())
    else {
        return argument.to_owned();
    };
    match url.set_password(Some(MASK_IN_URL)) {
        Ok(()) => url.to_string().replace(MASK_IN_URL, MASK),
        Err(()) => argument.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_the_command_line_are_masked() {
        let masked = |arguments: &[&str]| {
            masked_command(arguments.iter().map(|&text| text.to_owned())).join(" ")
        };
        assert_eq!(
            masked(&["load", "-a", "user:hunter2", "-c", "5"]),
            "load -a user:… -c 5"
        );
        assert_eq!(masked(&["--basic-auth=user:hunter2"]), "--basic-auth=…");
        assert_eq!(masked(&["-auser:hunter2"]), "-a…");
        assert_eq!(
            masked(&[
                "-H",
                "Authorization: Bearer abc",
                "-H",
                "accept: text/plain"
            ]),
            "-H Authorization:… -H accept: text/plain"
        );
        assert_eq!(masked(&["--header=x-api-key: abc"]), "--header=…");
        assert_eq!(
            masked(&["-x", "http://me:hunter2@proxy:3128/", "http://127.0.0.1/"]),
            "-x http://me:…@proxy:3128/ http://127.0.0.1/"
        );
    }
}
