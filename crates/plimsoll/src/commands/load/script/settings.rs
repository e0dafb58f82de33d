//! What a run is set to: by flags, and by variables of the environment where there is no flag.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::ValueEnum as _;
use plimsoll_client::forward::Speaks;
use plimsoll_k6::{Overrides, SummaryMode, parse_script_duration};

use super::flags::{GlobalFlags, Mode, OverrideFlags, RunFlags, SourceFlags, stage};
use super::log::{Log, LogFormat, Verbosity};
use super::options;
use crate::problem::Problem;

/// Flags of k6 for which there is nothing here. A run that needs one fails.
pub(super) fn refuse_unsupported(flags: &RunFlags) -> Result<(), Problem> {
    let features = flags.features.join(",");
    let features = if features.is_empty() {
        variable("K6_FEATURES").unwrap_or_default()
    } else {
        features
    };
    if !features.is_empty() {
        let message = format!("`{features}`: plimsoll has none of k6's experiments");
        return Err(Problem::with("--features", message));
    }
    refuse_unsupported_of_all(&flags.source, &flags.global)
}

/// The same of flags that other commands have, too.
pub(crate) fn refuse_unsupported_of_all(
    source: &SourceFlags,
    global: &GlobalFlags,
) -> Result<(), Problem> {
    let traces = source.traces_output.clone();
    let traces = traces.or_else(|| variable("K6_TRACES_OUTPUT"));
    if let Some(traces) = traces.filter(|it| it != "none") {
        let message = format!(
            "`{traces}`: plimsoll sends no traces of itself; use `--out otlp=URL` for metrics"
        );
        return Err(Problem::with("--traces-output", message));
    }
    if global.profiling_enabled == Some(true) {
        let message = "plimsoll is no program of Go and has no pprof endpoints";
        return Err(Problem::with("--profiling-enabled", message));
    }
    Ok(())
}

/// Whether colours are wanted.
pub(super) fn has_colors(global: &GlobalFlags) -> bool {
    let unwanted = global.no_color.unwrap_or(false) || variable("K6_NO_COLOR").is_some();
    !unwanted
}

/// The log, by flags or variables.
///
/// - `form`: of lines if none is named; absent for that of k6.
pub(crate) fn log_of(
    global: &GlobalFlags,
    began: Instant,
    form: Option<LogFormat>,
) -> Result<Log, Problem> {
    let output = global.log_output.clone();
    let output = output.or_else(|| variable("K6_LOG_OUTPUT"));
    let format = match (global.log_format, variable("K6_LOG_FORMAT")) {
        (Some(format), _) => Some(format),
        (None, None) => form,
        (None, Some(name)) => {
            let format = LogFormat::from_str(&name, true);
            let wrong = |message| Problem::with("K6_LOG_FORMAT", format!("`{name}`: {message}"));
            Some(format.map_err(wrong)?)
        }
    };
    let verbosity = match global.verbose {
        Some(true) => Verbosity::Verbose,
        _ => Verbosity::Normal,
    };
    Log::open(
        output.as_deref().unwrap_or("stderr"),
        format,
        verbosity,
        began,
    )
}

/// Reads the options of `--config`.
fn config(path: &Path) -> Result<serde_json::Map<String, serde_json::Value>, Problem> {
    let wrong = |message: String| Problem::with("--config", message);
    let text = fs::read_to_string(path);
    let text = text.map_err(|error| wrong(format!("cannot read {}: {error}", path.display())))?;
    match serde_json::from_str(&text) {
        Ok(serde_json::Value::Object(options)) => Ok(options),
        Ok(_) => Err(wrong(format!(
            "{} is not an object of options",
            path.display()
        ))),
        Err(error) => Err(wrong(format!("{}: {error}", path.display()))),
    }
}

/// A variable of the environment that is set and not empty.
pub(crate) fn variable(name: &str) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the binary, where the environment is read"
    )]
    let value = std::env::var(name);
    value.ok().filter(|value| !value.is_empty())
}

/// The options of flags, and of variables of the environment where there is no flag.
pub(crate) fn overrides(
    flags: &OverrideFlags,
    source: &SourceFlags,
    global: &GlobalFlags,
) -> Result<Overrides, Problem> {
    let mut all = options::of_environment(variable);
    all.extend(flags.options.options());
    let wrong = |name: &str, message: String| Problem::with(name, message);
    let number = |name: &str| {
        let value = variable(name)?;
        let number = value.parse::<u64>();
        Some(number.map_err(|_| wrong(name, format!("`{value}` is not a number"))))
    };
    let vus = number(options::VUS).transpose()?;
    let vus = vus.map(|vus| u32::try_from(vus).unwrap_or(u32::MAX));
    // One flag about when iterations start takes the place of all variables about that.
    let has_flag =
        flags.duration.is_some() || flags.iterations.is_some() || !flags.stages.is_empty();
    let (mut duration, mut iterations, mut stages) =
        (flags.duration, flags.iterations, flags.stages.clone());
    if !has_flag {
        iterations = number(options::ITERATIONS).transpose()?;
        if let Some(text) = variable(options::DURATION) {
            let parsed = parse_script_duration(&text);
            duration = Some(parsed.map_err(|error| wrong(options::DURATION, error.to_string()))?);
        }
        if let Some(text) = variable(options::STAGES) {
            let parsed = text.split(',').map(|one| stage(one.trim()));
            let parsed = parsed.collect::<Result<Vec<_>, _>>();
            stages = parsed.map_err(|message| wrong(options::STAGES, message))?;
        }
    }
    let file = global.config.clone();
    let file = file.or_else(|| variable(options::CONFIG).map(PathBuf::from));
    let defaults = file.map(|path| config(&path)).transpose()?;
    Ok(Overrides {
        options: all,
        defaults: defaults.unwrap_or_default(),
        vus: flags.vus.or(vus),
        duration,
        iterations,
        stages,
        tags: flags.tags.clone(),
        no_thresholds: match source.no_thresholds {
            Some(is_off) => is_off,
            None => is_on("K6_NO_THRESHOLDS")?,
        },
        user_agent: flags.user_agent.clone(),
        trend_stats: flags.summary_trend_stats.clone(),
        time_unit: flags.summary_time_unit.clone(),
    })
}

/// The version of HTTP that flags name; without one, servers choose by ALPN.
pub(crate) fn speaks(flags: &RunFlags) -> Speaks {
    match (flags.http2, flags.http3) {
        (_, true) => Speaks::Http3,
        (true, _) => Speaks::Http2,
        _ => Speaks::Negotiated,
    }
}

/// How much the summary shows, by the flag or the variable.
pub(super) fn summary_mode(flags: &RunFlags) -> Result<SummaryMode, Problem> {
    if flags.no_summary {
        return Ok(SummaryMode::Disabled);
    }
    let mode = match (flags.source.summary_mode, variable("K6_SUMMARY_MODE")) {
        (Some(mode), _) => mode,
        (None, None) => Mode::Compact,
        (None, Some(name)) => Mode::from_str(&name, true)
            .map_err(|message| Problem::with("K6_SUMMARY_MODE", format!("`{name}`: {message}")))?,
    };
    Ok(match mode {
        Mode::Compact => SummaryMode::Compact,
        Mode::Full => SummaryMode::Full,
        Mode::Legacy => SummaryMode::Legacy,
        Mode::Disabled => SummaryMode::Disabled,
    })
}

/// Whether the summary has the new format, by the flag or the variable.
pub(super) fn has_new_summary(source: &SourceFlags) -> Result<bool, Problem> {
    match source.new_machine_readable_summary {
        Some(is_new) => Ok(is_new),
        None => is_on("K6_NEW_MACHINE_READABLE_SUMMARY"),
    }
}

/// The truth value of a variable; false if it is not set.
pub(crate) fn is_on(name: &str) -> Result<bool, Problem> {
    let Some(text) = variable(name) else {
        return Ok(false);
    };
    options::switch(&text)
        .ok_or_else(|| Problem::with(name, format!("`{text}` is neither true nor false")))
}
