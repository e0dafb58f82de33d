//! The options of a run: those of the script, then those of the command line.

pub(crate) mod duration;

mod consolidated;

mod inspected;

mod keys;

pub(crate) mod encrypted_key;

mod network;

mod scenario;

mod spelling;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use plimsoll_load::scenario::Segment;

use self::consolidated::consolidated;
pub(crate) use self::consolidated::implied_iterations;
pub use self::duration::go_duration;
pub(crate) use self::inspected::as_inspected;
pub(crate) use self::network::{HttpDebug, NetworkOptions};
pub(crate) use self::scenario::{ScenarioOptions, scenarios};
use self::spelling::as_read;
use crate::metrics::thresholds::ThresholdOptions;

/// Options that are checked and complete.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
pub struct Options {
    /// With executors of the whole run, whatever the segment; those without work in the segment are left out.
    pub(crate) scenarios: Vec<ScenarioOptions>,
    /// The part of the run that is made here; absent for all of it.
    pub(crate) segment: Option<Segment>,
    /// By metric or sub-metric, as written.
    pub(crate) thresholds: BTreeMap<String, Vec<ThresholdOptions>>,
    pub(crate) setup_timeout: Duration,
    pub(crate) teardown_timeout: Duration,
    pub(crate) summary_timeout: Duration,
    pub(crate) has_setup: bool,
    pub(crate) has_teardown: bool,
    pub(crate) max_redirects: u32,
    pub(crate) user_agent: String,
    pub(crate) batch: usize,
    pub(crate) batch_per_host: usize,
    pub(crate) is_insecure: bool,
    pub(crate) reuses_connections: bool,
    pub(crate) reuses_connections_of_user: bool,
    pub(crate) min_iteration: Duration,
    pub(crate) throws: bool,
    /// The run waits for a client of the REST API.
    pub(crate) is_paused: bool,
    pub(crate) discards_bodies: bool,
    pub(crate) resets_cookies: bool,
    pub(crate) network: NetworkOptions,
    pub(crate) tags: Vec<(String, String)>,
    pub(crate) system_tags: Vec<String>,
    pub(crate) trend_stats: Vec<String>,
    pub(crate) time_unit: Option<TimeUnit>,
    /// As scripts read them.
    pub(crate) json: Value,
    /// Warnings.
    pub(crate) warnings: Vec<String>,
}

/// The unit of durations in summaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    Seconds,
    Milliseconds,
    Microseconds,
}

/// The detail of a summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SummaryMode {
    /// The totals.
    #[default]
    Compact,
    /// The totals with every metric, then the same for each group and scenario.
    Full,
    /// Groups with their checks, then every metric: the layout before k6 1.0.
    Legacy,
    /// Nothing.
    Disabled,
}

/// Options of the command line, which take precedence over the script's.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `--vus`
    pub vus: Option<u32>,
    /// `--duration`
    pub duration: Option<Duration>,
    /// `--iterations`
    pub iterations: Option<u64>,
    /// `--stage`, each with its target
    pub stages: Vec<(Duration, u32)>,
    /// `--tag`
    pub tags: Vec<(String, String)>,
    /// `--no-thresholds`
    pub no_thresholds: bool,
    /// `--user-agent`
    pub user_agent: Option<String>,
    /// `--summary-trend-stats`
    pub trend_stats: Option<Vec<String>>,
    /// `--summary-time-unit`
    pub time_unit: Option<String>,
    /// Other options, as scripts write them, in place of those of the script.
    pub options: Map<String, Value>,
    /// `--config`: options, as scripts write them, that those of the script take the place of.
    pub defaults: Map<String, Value>,
}

/// All that is wrong with the options.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct OptionsError(pub Vec<String>);

/// The options that k6 has and this engine does not. A script that needs one fails.
const UNSUPPORTED: [(&str, &str); 1] = [("features", "is not supported by plimsoll")];

/// Those that change nothing here.
const WITHOUT_EFFECT: [&str; 6] = [
    "cloud",
    "ext",
    "linger",
    "metricSamplesBufferSize",
    "noUsageReport",
    "tlsAIAFetch",
];

pub(crate) const SYSTEM_TAGS: [&str; 14] = [
    "proto",
    "subproto",
    "status",
    "method",
    "url",
    "name",
    "group",
    "check",
    "error",
    "error_code",
    "tls_version",
    "scenario",
    "service",
    "expected_response",
];

/// System tags that are off by default.
const MORE_TAGS: [&str; 3] = ["ip", "iter", "vu"];

const TREND_STATS: [&str; 6] = ["avg", "min", "med", "max", "p(90)", "p(95)"];

/// Options about when iterations start: each takes the place of all of them.
const WHEN: [&str; 4] = ["duration", "iterations", "stages", "scenarios"];

impl Options {
    /// Checks the options of a script and lays those of the command line over them.
    ///
    /// - `json`: the exported `options`; null if there are none.
    ///
    /// Fails with everything that is wrong.
    pub fn compile(json: &Value, overrides: &Overrides) -> Result<Self, OptionsError> {
        let laid_over = laid_over(json, overrides);
        let mut reader = Reader::new(&laid_over);
        if !matches!(json, Value::Object(_) | Value::Null) {
            reader.error("options", "must be an object");
        }
        for (name, message) in UNSUPPORTED {
            if reader
                .read_key(name)
                .is_some_and(|value| !value.is_null() && *value != Value::Bool(false))
            {
                reader.error(name, message);
            }
        }
        if reader.read_key("consoleOutput").is_some() {
            reader.warn("options.consoleOutput has no effect in a script, as in k6: use --console-output or K6_CONSOLE_OUTPUT");
        }
        for name in WITHOUT_EFFECT {
            reader.read_key(name);
        }
        let mut scenarios = scenarios(&mut reader, overrides);
        scenarios.sort_by(|one, other| one.name.cmp(&other.name));
        let segment = segment(&mut reader);
        if let Some(segment) = &segment {
            scenarios.retain(|it| it.executor.clone().in_segment(segment).has_work());
        }
        let thresholds = if overrides.no_thresholds {
            reader.read_key("thresholds");
            BTreeMap::new()
        } else {
            reader.thresholds()
        };
        let minute = Duration::from_mins(1);
        let mut tags = reader.texts("tags");
        tags.extend(overrides.tags.iter().cloned());
        let time_unit = reader.text("summaryTimeUnit");
        let time_unit = overrides.time_unit.clone().or(time_unit);
        let time_unit = time_unit.and_then(|unit| match unit.as_str() {
            "s" => Some(TimeUnit::Seconds),
            "ms" => Some(TimeUnit::Milliseconds),
            "us" => Some(TimeUnit::Microseconds),
            "" => None,
            _ => {
                reader.error("summaryTimeUnit", "must be one of \"s\", \"ms\" and \"us\"");
                None
            }
        });
        let trend_stats = reader.list("summaryTrendStats");
        let trend_stats = overrides.trend_stats.clone().or(trend_stats);
        let trend_stats = trend_stats.unwrap_or_else(|| TREND_STATS.map(str::to_owned).to_vec());
        for stat in &trend_stats {
            if crate::metrics::TrendStat::parse(stat).is_none() {
                let message =
                    format!("has `{stat}`, which is not one of avg, min, med, max, count and p(N)");
                reader.error("summaryTrendStats", &message);
            }
        }
        let system_tags = reader.list("systemTags");
        for name in system_tags.iter().flatten() {
            if name == "ocsp_status" {
                let message = "options.systemTags: `ocsp_status` has no effect: plimsoll does not read OCSP responses";
                reader.warn(message);
            } else if !SYSTEM_TAGS.contains(&name.as_str()) && !MORE_TAGS.contains(&name.as_str()) {
                // k6 ignores it too.
                reader.warn(&format!(
                    "options.systemTags: there is no system tag `{name}`"
                ));
            }
        }
        let options = Self {
            scenarios,
            segment,
            thresholds,
            setup_timeout: reader.duration("setupTimeout", minute),
            teardown_timeout: reader.duration("teardownTimeout", minute),
            summary_timeout: reader.duration("handleSummaryTimeout", minute * 2),
            has_setup: !reader.flag("noSetup"),
            has_teardown: !reader.flag("noTeardown"),
            max_redirects: reader.count("maxRedirects", 10),
            user_agent: {
                let given = reader.text("userAgent");
                let default = concat!("plimsoll/", env!("CARGO_PKG_VERSION"), " (k6)").to_owned();
                overrides.user_agent.clone().or(given).unwrap_or(default)
            },
            batch: reader.count("batch", 20) as usize,
            batch_per_host: reader.count("batchPerHost", 6) as usize,
            is_insecure: reader.flag("insecureSkipTLSVerify"),
            reuses_connections: !reader.flag("noConnectionReuse"),
            reuses_connections_of_user: !reader.flag("noVUConnectionReuse"),
            min_iteration: reader.duration("minIterationDuration", Duration::ZERO),
            throws: reader.flag("throw"),
            is_paused: reader.flag("paused"),
            discards_bodies: reader.flag("discardResponseBodies"),
            resets_cookies: !reader.flag("noCookiesReset"),
            network: NetworkOptions::read(&mut reader),
            tags,
            system_tags: system_tags.unwrap_or_else(|| SYSTEM_TAGS.map(str::to_owned).to_vec()),
            trend_stats,
            time_unit,
            json: Value::Null,
            warnings: Vec::new(),
        };
        let mut options = reader.finish(options)?;
        options.json = consolidated(&options, &Value::Object(laid_over), overrides);
        Ok(options)
    }
}

/// The options of a script over those of `--config`, and below those of flags and variables.
pub(crate) fn laid_over(json: &Value, overrides: &Overrides) -> Map<String, Value> {
    let mut laid_over = as_read(&overrides.defaults);
    if let Value::Object(script) = json {
        let script = as_read(script);
        let is_set = |name: &str| script.get(name).is_some_and(|value| !value.is_null());
        if WHEN.iter().any(|name| is_set(name)) {
            laid_over.retain(|name, _| !WHEN.contains(&name.as_str()));
        }
        for (name, value) in &script {
            if !value.is_null() || !laid_over.contains_key(name) {
                laid_over.insert(name.clone(), value.clone());
            }
        }
    }
    laid_over.extend(overrides.options.clone());
    laid_over
}

/// The segment of a run that this process executes.
fn segment(reader: &mut Reader<'_>) -> Option<Segment> {
    let segment = reader.text("executionSegment").unwrap_or_default();
    let sequence = reader.text("executionSegmentSequence").unwrap_or_default();
    if segment.is_empty() && sequence.is_empty() {
        return None;
    }
    match Segment::new(&segment, &sequence) {
        Ok(segment) => Some(segment),
        Err(error) => {
            reader.error("executionSegment", &format!("cannot be used: {error}"));
            None
        }
    }
}

/// Reads known keys of an object, and finds the rest.
pub(crate) struct Reader<'v> {
    map: &'v Map<String, Value>,
    taken: Vec<&'static str>,
    /// Before each key in messages.
    path: String,
    errors: Vec<String>,
    warnings: Vec<String>,
}

impl<'v> Reader<'v> {
    fn new(map: &'v Map<String, Value>) -> Self {
        Self {
            map,
            taken: Vec::new(),
            path: String::new(),
            errors: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// For an object within.
    pub(crate) fn within(map: &'v Map<String, Value>, path: String) -> Self {
        Self {
            map,
            taken: Vec::new(),
            path,
            errors: Vec::new(),
            warnings: Vec::new(),
        }
    }

    pub(crate) fn error(&mut self, key: &str, message: &str) {
        self.errors
            .push(format!("options.{}{key} {message}", self.path));
    }

    pub(crate) fn warn(&mut self, message: &str) {
        self.warnings.push(message.to_owned());
    }

    /// Takes over what another one found.
    pub(crate) fn absorb(&mut self, other: &Reader<'_>) {
        let unknown = other.unknown().into_iter();
        self.errors.extend(other.errors.iter().cloned());
        self.errors.extend(unknown);
    }

    pub(crate) fn read_key(&mut self, key: &'static str) -> Option<&'v Value> {
        self.taken.push(key);
        self.map.get(key).filter(|value| !value.is_null())
    }

    pub(crate) fn duration(&mut self, key: &'static str, default: Duration) -> Duration {
        self.optional_duration(key).unwrap_or(default)
    }

    pub(crate) fn optional_duration(&mut self, key: &'static str) -> Option<Duration> {
        let value = self.read_key(key)?;
        match duration::from_json(value) {
            Ok(duration) => Some(duration),
            Err(message) => {
                self.error(key, &format!("is not a duration: {message}"));
                None
            }
        }
    }

    pub(crate) fn optional_count(&mut self, key: &'static str) -> Option<u64> {
        let value = self.read_key(key)?;
        let number = value
            .as_f64()
            .filter(|it| *it >= 0.0 && it.fract() == 0.0 && *it < 1e15);
        if number.is_none() {
            self.error(key, &format!("must be a whole number, not {value}"));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is whole, not negative and small"
        )]
        number.map(|number| number as u64)
    }

    pub(crate) fn count(&mut self, key: &'static str, default: u32) -> u32 {
        let count = self.optional_count(key);
        count.map_or(default, |count| u32::try_from(count).unwrap_or(u32::MAX))
    }

    pub(crate) fn flag(&mut self, key: &'static str) -> bool {
        match self.read_key(key) {
            None => false,
            Some(Value::Bool(flag)) => *flag,
            Some(other) => {
                self.error(key, &format!("must be true or false, not {other}"));
                false
            }
        }
    }

    pub(crate) fn text(&mut self, key: &'static str) -> Option<String> {
        match self.read_key(key)? {
            Value::String(text) => Some(text.clone()),
            other => {
                self.error(key, &format!("must be a text, not {other}"));
                None
            }
        }
    }

    fn list(&mut self, key: &'static str) -> Option<Vec<String>> {
        let value = self.read_key(key)?;
        let texts = value.as_array().map(|list| {
            let texts = list.iter().map(|it| it.as_str().map(str::to_owned));
            texts.collect::<Option<Vec<_>>>()
        });
        let texts = texts.flatten();
        if texts.is_none() {
            self.error(key, "must be a list of texts");
        }
        texts
    }

    /// An object of texts, such as tags.
    pub(crate) fn texts(&mut self, key: &'static str) -> Vec<(String, String)> {
        let Some(value) = self.read_key(key) else {
            return Vec::new();
        };
        let Some(map) = value.as_object() else {
            self.error(key, "must be an object");
            return Vec::new();
        };
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        map.iter()
            .map(|(name, value)| (name.clone(), text(value)))
            .collect()
    }

    fn thresholds(&mut self) -> BTreeMap<String, Vec<ThresholdOptions>> {
        let mut all = BTreeMap::new();
        let Some(value) = self.read_key("thresholds") else {
            return all;
        };
        let Some(map) = value.as_object() else {
            self.error("thresholds", "must be an object");
            return all;
        };
        for (metric, list) in map {
            let key = format!("thresholds[\"{metric}\"]");
            let list = match list {
                Value::Array(list) => list.as_slice(),
                one @ Value::String(_) => std::slice::from_ref(one),
                _ => {
                    self.error(&key, "must be a list of thresholds");
                    continue;
                }
            };
            let mut thresholds = Vec::new();
            for one in list {
                match one {
                    Value::String(source) => thresholds.push(ThresholdOptions {
                        source: source.clone(),
                        aborts: false,
                        delay: None,
                    }),
                    Value::Object(map) => {
                        let mut reader = Reader::within(map, format!("{key}."));
                        let source = reader.text("threshold");
                        if source.is_none() {
                            reader.error("threshold", "is missing");
                        }
                        thresholds.push(ThresholdOptions {
                            source: source.unwrap_or_default(),
                            aborts: reader.flag("abortOnFail"),
                            delay: reader.optional_duration("delayAbortEval"),
                        });
                        self.absorb(&reader);
                    }
                    other => self.error(&key, &format!("has {other}, which is no threshold")),
                }
            }
            all.insert(metric.clone(), thresholds);
        }
        all
    }

    /// Unknown keys, each with a suggestion.
    fn unknown(&self) -> Vec<String> {
        let unknown = self
            .map
            .keys()
            .filter(|key| !self.taken.contains(&key.as_str()));
        let unknown = unknown.map(|key| {
            let near = self
                .taken
                .iter()
                .map(|known| (strsim::damerau_levenshtein(known, key), known));
            let hint = match near.min() {
                Some((distance, known)) if distance <= 2 => format!("; did you mean `{known}`?"),
                _ => String::new(),
            };
            format!("options.{}{key} is unknown{hint}", self.path)
        });
        unknown.collect()
    }

    /// At the top, unknown keys are warnings, as in k6.
    fn finish(self, mut options: Options) -> Result<Options, OptionsError> {
        options.warnings = self.unknown();
        options.warnings.extend(self.warnings);
        if self.errors.is_empty() {
            Ok(options)
        } else {
            Err(OptionsError(self.errors))
        }
    }
}

#[cfg(test)]
mod tests;
