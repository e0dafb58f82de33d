//! Flags of scripts: those of `k6 run`, `k6 archive` and `k6 inspect`, in the groups in which these commands share them.
//!
//! Switches have a value, as in k6: `--throw=false` takes the place of an option of the script.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use plimsoll_model::parse_duration;

use super::log::LogFormat;
use super::options::{OptionFlags, switch};
use crate::flags::ObserveArgs;

/// Which script, and what it sees.
#[derive(Debug, clap::Args)]
pub(crate) struct SourceFlags {
    /// Script or archive to load; `-` reads it from standard input
    #[arg(value_name = "SCRIPT")]
    pub(crate) script: String,

    /// Compare modules that are imported by https with the hashes of this file, and add those of new ones
    #[arg(long, value_name = "FILE")]
    pub(crate) module_lock: Option<PathBuf>,

    /// Set a variable of `__ENV`, repeatable; without a value it is empty
    #[arg(short = 'e', long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) environment: Vec<(String, String)>,

    /// Make the variables of the environment part of `__ENV` [default: true for runs, else false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    pub(crate) include_system_env_vars: Option<bool>,

    /// Accepted, without effect: `global` is there in both modes [default: extended]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) compatibility_mode: Option<Compatibility>,

    /// Do not judge thresholds
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    pub(crate) no_thresholds: Option<bool>,

    /// Summary to print at the end [default: compact]
    #[arg(long, value_enum)]
    pub(crate) summary_mode: Option<Mode>,

    /// Write the summary as JSON to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) summary_export: Option<PathBuf>,

    /// Write the new format 1.0.0 of k6 to `--summary-export`, and pass it to `handleSummary()`
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true, value_parser = boolean)]
    pub(crate) new_machine_readable_summary: Option<bool>,

    /// Traces of k6 itself: `none` alone is supported
    #[arg(long, value_name = "OUTPUT")]
    pub(crate) traces_output: Option<String>,
}

/// What every command of k6 has.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct GlobalFlags {
    /// Read options from this file of JSON; those of the script take precedence
    #[arg(short = 'c', long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Serve k6's REST API at this address, such as `localhost:6565`, until the run ends; empty for none
    #[arg(short = 'a', long, value_name = "HOST:PORT")]
    pub(crate) address: Option<String>,

    /// Source of `k6/secrets`, repeatable: `file=PATH` with lines KEY=VALUE, or `mock=KEY=VALUE`
    #[arg(long = "secret-source", value_name = "SOURCE")]
    pub(crate) secret_sources: Vec<String>,

    /// Where log lines go: `stderr`, `stdout`, `none` or `file=PATH` [default: stderr]
    #[arg(long, value_name = "OUTPUT")]
    pub(crate) log_output: Option<String>,

    /// Form of log lines [default: text]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,

    /// Print `console.debug()` too
    #[arg(short, long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    pub(crate) verbose: Option<bool>,

    /// Print the summary without colours
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    pub(crate) no_color: Option<bool>,

    /// Do not show the progress of the run
    #[arg(short, long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    pub(crate) quiet: Option<bool>,

    /// Not supported: profiles of a program of Go
    #[arg(long, hide = true, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    pub(crate) profiling_enabled: Option<bool>,
}

/// Options in place of those of the script.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct OverrideFlags {
    /// Number of virtual users
    #[arg(short = 'u', long, value_name = "N")]
    pub(crate) vus: Option<u32>,

    /// Run for this time
    #[arg(short = 'd', long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) duration: Option<Duration>,

    /// Number of iterations that all virtual users share
    #[arg(short = 'i', long, value_name = "N")]
    pub(crate) iterations: Option<u64>,

    /// Ramp to a number of virtual users, repeatable or separated by commas: `30s:10`
    #[arg(short = 's', long = "stage", value_name = "TIME:N", value_delimiter = ',', value_parser = stage)]
    pub(crate) stages: Vec<(Duration, u32)>,

    /// Add a tag to all samples, repeatable
    #[arg(long = "tag", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) tags: Vec<(String, String)>,

    /// User agent of requests
    #[arg(long, value_name = "TEXT")]
    pub(crate) user_agent: Option<String>,

    /// Figures of trends, such as `avg,p(99.9)`
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) summary_trend_stats: Option<Vec<String>>,

    /// Unit of durations in the summary: s, ms or us
    #[arg(long, value_name = "UNIT")]
    pub(crate) summary_time_unit: Option<String>,

    /// Write lines of the script's console to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) console_output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) options: OptionFlags,
}

/// Everything that a run takes from the command line.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag")]
pub(crate) struct RunFlags {
    #[command(flatten)]
    pub(crate) source: SourceFlags,

    #[command(flatten)]
    pub(crate) overrides: OverrideFlags,

    #[command(flatten)]
    pub(crate) global: GlobalFlags,

    /// Send requests over HTTP/2: by ALPN for https, with prior knowledge (h2c) for http
    #[arg(long)]
    pub(crate) http2: bool,

    /// Send requests over HTTP/3 (https only)
    #[arg(long, conflicts_with = "http2")]
    pub(crate) http3: bool,

    /// Keep every value of trends, 8 bytes each, for exact percentiles
    #[arg(long)]
    pub(crate) exact_trends: bool,

    /// Write result files into the folder OUTPUT, every sample to a file, or send series to a database; repeatable: `DIR`, `json=FILE`,
    /// `csv=FILE` (`-` is standard output; compressed if the name ends in .gz), `prometheus-rw[=URL]`, `otlp[=URL]`
    #[arg(short = 'o', long = "out", value_name = "OUTPUT")]
    pub(crate) outputs: Vec<String>,

    /// Print no summary, as `--summary-mode disabled`
    #[arg(long)]
    pub(crate) no_summary: bool,

    /// Do not show the progress of the run
    #[arg(long)]
    pub(crate) no_tui: bool,

    /// Measure what this process, the server, and its children spend, and print it per request
    #[arg(long, value_name = "PID|NAME", value_parser = crate::flags::number::process)]
    pub(crate) pid: Option<u32>,

    #[command(flatten)]
    pub(crate) observe: ObserveArgs,

    /// Serve a page with live charts of the run at this address: `:5665`, `HOST:PORT`
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) dashboard: Option<String>,

    /// Keep the REST API until a signal after the run has ended
    #[arg(short, long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    pub(crate) linger: Option<bool>,

    /// Accepted, without effect: plimsoll reports no usage
    #[arg(long, hide = true, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    pub(crate) no_usage_report: Option<bool>,

    /// Not supported: experiments of k6
    #[arg(long, hide = true, value_name = "LIST")]
    pub(crate) features: Vec<String>,
}

/// What the argument is, besides its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TestType {
    /// A script
    Js,
    /// A tar file that `k6 archive` has made
    Archive,
}

/// Modes of k6's compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Compatibility {
    /// With `global`
    Extended,
    /// Without it
    Base,
    /// As base
    ExperimentalEnhanced,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Totals
    Compact,
    /// Totals with every metric, then the same for each group and scenario
    Full,
    /// The layout of k6 before version 1: groups with their checks, then every metric
    Legacy,
    /// Nothing
    Disabled,
}

/// A truth value as k6 has it.
pub(super) fn boolean(text: &str) -> Result<bool, String> {
    switch(text).ok_or_else(|| format!("`{text}` is neither true nor false"))
}

pub(super) fn stage(text: &str) -> Result<(Duration, u32), String> {
    let (duration, target) = text
        .split_once(':')
        .ok_or_else(|| format!("`{text}` is not a stage such as 30s:10"))?;
    let duration = parse_duration(duration).map_err(|error| error.to_string())?;
    let target = target
        .parse()
        .map_err(|_| format!("`{target}` is not a number of virtual users"))?;
    Ok((duration, target))
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| format!("`{text}` is not NAME=VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
}

/// A variable of `__ENV`; one without a value is empty, as in k6.
fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let is_name = |name: &str| {
        let mut characters = name.chars();
        let first = characters.next();
        first.is_some_and(|it| it.is_ascii_alphabetic() || it == '_')
            && characters.all(|it| it.is_ascii_alphanumeric() || it == '_')
    };
    if !is_name(name) {
        return Err(format!(
            "`{name}` is not the name of a variable: it has letters, digits and `_`"
        ));
    }
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_need_a_name_and_no_value() {
        assert_eq!(variable("A=b=c"), Ok(("A".to_owned(), "b=c".to_owned())));
        assert_eq!(variable("_a1"), Ok(("_a1".to_owned(), String::new())));
        for wrong in ["", "=x", "1a=x", "a-b=x", "ä=1"] {
            assert!(variable(wrong).is_err(), "{wrong}");
        }
    }
}
