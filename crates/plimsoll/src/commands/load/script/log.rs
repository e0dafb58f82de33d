//! Where the lines of a script's console and messages of its run go, and in which form.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use clap::ValueEnum;
use plimsoll_k6::LineSource;
use plimsoll_model::Clock as _;
use plimsoll_script::Level;
use plimsoll_wire::SystemClock;
use serde_json::json;

use crate::problem::Problem;
use crate::terminal;

/// The form of log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Level, second of the run, text, source
    #[default]
    Text,
    /// `time="…" level=… msg="…" source=…`
    Logfmt,
    /// One JSON object for each line
    Json,
    /// The text alone
    Raw,
}

/// The least severe lines that are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verbosity {
    Normal,
    Verbose,
}

impl Verbosity {
    fn prints(self, level: Level) -> bool {
        match (self, level) {
            (_, Level::Warning | Level::Error) | (Self::Verbose, _) => true,
            (Self::Normal, level) => level == Level::Info,
        }
    }
}

/// The log of a run.
#[derive(Debug)]
pub(crate) struct Log {
    output: LogOutput,
    format: LogFormat,
    verbosity: Verbosity,
    began: Instant,
}

#[derive(Debug)]
enum LogOutput {
    Stderr,
    Stdout,
    File(Mutex<fs::File>),
    None,
}

impl Log {
    /// - `output`: `stderr`, `stdout`, `none` or `file=PATH`.
    /// - `format`: absent for that of k6, which depends on whether lines go to a terminal.
    pub(super) fn open(
        output: &str,
        format: Option<LogFormat>,
        verbosity: Verbosity,
        began: Instant,
    ) -> Result<Self, Problem> {
        let wrong = |message: String| Problem::with("--log-output", message);
        let output = match output {
            "stderr" => LogOutput::Stderr,
            "stdout" => LogOutput::Stdout,
            "none" => LogOutput::None,
            other => {
                let path = other.strip_prefix("file=").ok_or_else(|| {
                    let known = "stderr, stdout, none and file=PATH";
                    wrong(format!("there is no output `{other}`; known are {known}"))
                })?;
                let file = fs::OpenOptions::new().create(true).append(true).open(path);
                let file = file.map_err(|error| wrong(format!("cannot write {path}: {error}")))?;
                LogOutput::File(Mutex::new(file))
            }
        };
        let is_terminal = match &output {
            LogOutput::Stderr => io::stderr().is_terminal(),
            LogOutput::Stdout => io::stdout().is_terminal(),
            LogOutput::File(_) | LogOutput::None => false,
        };
        let format = format.unwrap_or(if is_terminal {
            LogFormat::Text
        } else {
            LogFormat::Logfmt
        });
        Ok(Self {
            output,
            format,
            verbosity,
            began,
        })
    }

    /// Writes a line. One that cannot be written is lost: a disk that is full must not end the run.
    pub(crate) fn write(&self, level: Level, text: &str, source: LineSource) {
        if !self.verbosity.prints(level) {
            return;
        }
        let line = self.line(level, text, source);
        // It may be what a server has sent.
        let shown = || terminal::without_controls(&terminal::without_colours(&line)).into_owned();
        match &self.output {
            LogOutput::Stderr => terminal::log_line(&shown()),
            LogOutput::Stdout => {
                terminal::print(&shown()).ok();
            }
            LogOutput::File(file) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                writeln!(file, "{line}").ok();
            }
            LogOutput::None => {}
        }
    }

    fn line(&self, level: Level, text: &str, source: LineSource) -> String {
        match self.format {
            LogFormat::Raw => text.to_owned(),
            LogFormat::Json => {
                let time = humantime::format_rfc3339_seconds(SystemClock.wall()).to_string();
                let mut line = json!({ "level": name(level), "msg": text, "time": time });
                if !source.name().is_empty() {
                    line["source"] = json!(source.name());
                }
                line.to_string()
            }
            LogFormat::Logfmt => {
                let source = match source.name() {
                    "" => String::new(),
                    name => format!(" source={name}"),
                };
                format!("{}{source}", logfmt(level, text))
            }
            LogFormat::Text => {
                let short = match level {
                    Level::Debug => "DEBU",
                    Level::Info => "INFO",
                    Level::Warning => "WARN",
                    Level::Error => "ERRO",
                };
                let passed = SystemClock.now().saturating_duration_since(self.began);
                let source = match source.name() {
                    "" => String::new(),
                    name => format!("  source={name}"),
                };
                format!("{short}[{:04}] {text}{source}", passed.as_secs())
            }
        }
    }
}

/// The name of a level in logs of k6.
fn name(level: Level) -> &'static str {
    match level {
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warning => "warning",
        Level::Error => "error",
    }
}

/// A file for the lines that a script prints, in the format of k6's log.
#[derive(Debug)]
pub(super) struct ConsoleFile(Mutex<fs::File>);

impl ConsoleFile {
    /// Lines are appended to those that are there.
    pub(super) fn create(path: &Path) -> Result<Self, String> {
        let file = fs::OpenOptions::new().create(true).append(true).open(path);
        let file = file.map_err(|error| {
            let path = path.display();
            format!("--console-output: cannot write {path}: {error}")
        })?;
        Ok(Self(Mutex::new(file)))
    }

    /// Appends a line.
    pub(super) fn write(&self, level: Level, text: &str) -> io::Result<()> {
        let line = format!("{}\n", logfmt(level, text));
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes())
    }
}

/// A line of k6's log where it does not go to a terminal.
fn logfmt(level: Level, text: &str) -> String {
    let time = humantime::format_rfc3339_seconds(SystemClock.wall());
    format!("time=\"{time}\" level={} msg={}", name(level), quoted(text))
}

/// A value of a log in `key=value` form: bare if it has plain characters only, otherwise quoted as by `%q` of Go.
fn quoted(text: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-._/@^+".contains(it);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for it in text.chars() {
        match it {
            '"' | '\\' => quoted.extend(['\\', it]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            it if it.is_ascii_control() => {
                write!(quoted, "\\x{:02x}", u32::from(it)).expect("a string grows");
            }
            it => quoted.push(it),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(format: LogFormat, output: &str) -> Log {
        Log::open(output, Some(format), Verbosity::Normal, SystemClock.now()).unwrap()
    }

    #[test]
    fn lines_have_the_form_that_was_chosen() {
        let line =
            |format| log(format, "none").line(Level::Warning, "two words", LineSource::Console);
        assert_eq!(line(LogFormat::Raw), "two words");
        assert_eq!(
            line(LogFormat::Text),
            "WARN[0000] two words  source=console"
        );
        let plain = line(LogFormat::Logfmt);
        let (_, plain) = plain.split_once("Z\" ").unwrap();
        assert_eq!(plain, "level=warning msg=\"two words\" source=console");
        let json: serde_json::Value = serde_json::from_str(&line(LogFormat::Json)).unwrap();
        assert_eq!(json["level"], "warning");
        assert_eq!(json["msg"], "two words");
        assert_eq!(json["source"], "console");
    }

    #[test]
    fn a_log_is_appended_to_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.log");
        let output = format!("file={}", path.display());
        for text in ["one", "two"] {
            log(LogFormat::Raw, &output).write(Level::Info, text, LineSource::Run);
        }
        log(LogFormat::Raw, &output).write(Level::Debug, "three", LineSource::Run);
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    }

    #[test]
    fn an_unknown_output_is_an_error() {
        let began = SystemClock.now();
        let opened = Log::open("loki", None, Verbosity::Normal, began);
        assert!(opened.is_err());
    }

    #[test]
    fn values_with_spaces_are_quoted() {
        assert_eq!(quoted("plain/1.0"), "plain/1.0");
        assert_eq!(quoted("a \"b\"\n"), r#""a \"b\"\n""#);
        assert_eq!(quoted(""), "\"\"");
        assert_eq!(quoted("\u{1b}[1mü"), r#""\x1b[1mü""#);
    }
}
