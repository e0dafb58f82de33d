//! The file of a soak, compiled: every mistake is reported with its place.

use std::path::Path;
use std::time::Duration;

use plimsoll_model::document::{ConfigProblem, Document, Table, as_text};
use plimsoll_observe::TargetPlace;
use url::Url;

use crate::plans::{Names, Placeholders, TargetPlan, fill, fixed, split, target, url};

/// 80 samples: thirds of some 26 are what the verdict needs to tell a ramp from a climb.
const DURATION: Duration = Duration::from_mins(20);
const SAMPLE: Duration = Duration::from_secs(15);

/// The plan of a soak.
#[derive(Debug, Clone)]
pub struct SoakPlan {
    /// The name of the soak.
    pub name: String,
    /// How long each scenario lasts.
    pub duration: Duration,
    /// Time between two samples.
    pub sample: Duration,
    /// By how much the workers of every load are multiplied.
    pub scale: f64,
    /// Scenarios that run at the same time.
    pub at_once: usize,
    /// At least one.
    pub scenarios: Vec<ScenarioPlan>,
}

/// A target with its loads.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioPlan {
    /// Its name in tables and file names.
    pub name: String,
    /// The watched processes.
    pub subject: Subject,
    /// The loads; may be empty, if something else keeps it busy.
    pub loads: Vec<SoakLoad>,
    /// The target's own metrics.
    pub metrics: Option<Metrics>,
}

/// The kinds of watched processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// Processes that the soak starts and ends; the target's are watched.
    Started(TargetPlan),
    /// A process that runs, with its descendants.
    Pid(u32),
    /// A target that runs, of any kind, here or behind an agent.
    Observed(TargetPlace),
    /// Nothing of which more than its metrics is known.
    Remote,
}

/// A load that runs as long as its scenario; its command is started again when it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoakLoad {
    /// Its name in tables.
    pub name: String,
    /// The command with its placeholders.
    pub words: Vec<String>,
    /// The value of `{workers}` before it is scaled.
    pub workers: u32,
    /// How long one run of the command lasts at most: the value of `{time}` and `{seconds}`.
    pub longest: Duration,
}

/// Metrics that are read with every sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metrics {
    /// A page in the text format of Prometheus; ports may stand in it.
    pub url: String,
    /// Which of them are watched.
    pub patterns: Patterns,
}

/// Names of metrics, in which `*` stands for anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patterns {
    /// Gauges.
    pub gauges: Vec<String>,
    /// Counters that may grow, and not ever faster.
    pub counters: Vec<String>,
    /// Counters that must not grow.
    pub zero: Vec<String>,
    /// Metrics to ignore: those that grow by their nature.
    pub ignored: Vec<String>,
}

impl Default for Patterns {
    fn default() -> Self {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            gauges: list(&["*"]),
            counters: Vec::new(),
            zero: list(&["*panic*"]),
            ignored: list(&["*uptime*", "*time_seconds*", "*timestamp*"]),
        }
    }
}

/// The words of a command line as a shell would split it, `{plimsoll}` filled in; `None` if it is empty or has an open quote.
pub fn words_of(text: &str, plimsoll: &str) -> Option<Vec<String>> {
    let fixed = fixed(Path::new(""), plimsoll);
    let words = shlex::split(text).filter(|words| !words.is_empty())?;
    Some(words.iter().map(|word| fill(word, &fixed)).collect())
}

/// Compiles the text of a plan.
///
/// - `directory`: that of the file, for `{dir}`.
/// - `plimsoll`: this program, for `{plimsoll}`.
pub fn compile(
    text: &str,
    directory: &Path,
    plimsoll: &str,
) -> Result<SoakPlan, Vec<ConfigProblem>> {
    let mut document = Document::parse(text);
    let mut root = document.root();
    let fixed = fixed(directory, plimsoll);
    let name = root.text("name");
    let duration = root.duration("duration");
    let sample = root.take_value("sample").and_then(|value| {
        let text = as_text(&value)?;
        let sample = value.check(plimsoll_model::parse_duration(text))?;
        if sample < Duration::from_millis(100) {
            return value.wrong("must be 100ms or longer");
        }
        Some(sample)
    });
    let scale = root.positive("scale");
    let at_once = root.count("at_once", 1..=64);
    let mut names = Names::default();
    let scenarios = root.tables("scenario");
    if scenarios.is_empty() {
        root.missing("scenario", "at least one [[scenario]] says what is watched");
    }
    let scenarios: Vec<_> = scenarios
        .into_iter()
        .filter_map(|table| scenario(table, &fixed, &mut names))
        .collect();
    root.finish();
    let problems = document.into_problems();
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(SoakPlan {
        name: name.unwrap_or_else(|| "soak".to_owned()),
        duration: duration.unwrap_or(DURATION),
        sample: sample.unwrap_or(SAMPLE),
        scale: scale.unwrap_or(1.0),
        at_once: at_once.unwrap_or(1),
        scenarios,
    })
}

fn scenario(mut table: Table<'_>, fixed: &Placeholders, names: &mut Names) -> Option<ScenarioPlan> {
    let target = target(&mut table, fixed, names);
    // Without a target its keys are wrong already; those of the metrics are looked at all the same.
    let any_port = [("port".to_owned(), "1".to_owned())];
    let ports = target.as_ref().map_or(&any_port[..], |(_, ports)| ports);
    let page = url(&mut table, "metrics", ports, fixed);
    if page.as_ref().is_some_and(|page| page.starts_with("https:")) {
        table.wrong(
            "`metrics` is read without TLS",
            Some("name a page of http, such as that of an admin port".to_owned()),
        );
    }
    let defaults = Patterns::default();
    let mut patterns = |key: &'static str, default: Vec<String>| {
        let given = table.take_value(key)?;
        let without_page = page
            .is_none()
            .then_some("needs `metrics`, the page to read");
        given
            .texts_with(|_| without_page.map(str::to_owned))
            .or(Some(default))
    };
    let patterns = Patterns {
        gauges: patterns("gauges", Vec::new()).unwrap_or(defaults.gauges),
        counters: patterns("counters", Vec::new()).unwrap_or(defaults.counters),
        zero: patterns("zero", Vec::new()).unwrap_or(defaults.zero),
        ignored: patterns("ignored", Vec::new()).unwrap_or(defaults.ignored),
    };
    let mut load_names = Names::default();
    let loads: Option<Vec<_>> = table
        .tables("load")
        .into_iter()
        .map(|table| load(table, fixed, &mut load_names))
        .collect();
    table.finish();
    let (target, _) = target?;
    Some(ScenarioPlan {
        name: target.name.clone(),
        subject: Subject::Started(target),
        loads: loads?,
        metrics: page.map(|url| Metrics { url, patterns }),
    })
}

fn load(mut table: Table<'_>, fixed: &Placeholders, names: &mut Names) -> Option<SoakLoad> {
    let name = names.read_name(&mut table);
    let workers = table.count("workers", 1..=1_000_000);
    let longest = table.duration("longest");
    let Some(value) = table.take_value("command") else {
        table.missing(
            "command",
            "such as command = \"{plimsoll} load -c {workers} -z {time} --json {url}\"",
        );
        return None;
    };
    let words = split(&value, fixed);
    table.finish();
    Some(SoakLoad {
        name: name?,
        words: words?,
        workers: u32::try_from(workers.unwrap_or(1)).unwrap_or(u32::MAX),
        longest: longest.unwrap_or(Duration::MAX),
    })
}

impl SoakPlan {
    /// How many workers a load has here.
    pub(super) fn workers(&self, load: &SoakLoad) -> u32 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates, and neither factor is negative"
        )]
        let scaled = (f64::from(load.workers) * self.scale).round() as u32;
        scaled.max(1)
    }
}

/// The URL of a metrics page, with its ports.
pub(super) fn metrics_url(metrics: &Metrics, ports: &Placeholders) -> Option<Url> {
    crate::plans::parse_url(&fill(&metrics.url, ports))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"
name = "gateway"
duration = "4h"
scale = 0.5
[[scenario]]
name = "h1 to h1"
command = "{plimsoll} gateway --listen 127.0.0.1:{port} --to http://127.0.0.1:{origin.port}"
url = "http://127.0.0.1:{port}/"
metrics = "http://127.0.0.1:{port}/metrics"
counters = ["retries_total"]
[[scenario.upstream]]
name = "origin"
command = "{plimsoll} origin 127.0.0.1:{port}"
ready = "http://127.0.0.1:{origin.port}/"
[[scenario.load]]
name = "keep-alive"
command = "{plimsoll} load -c {workers} -z {time} --json {url}"
workers = 6
longest = "60s"
"#;

    #[test]
    fn a_plan_is_compiled() {
        let plan = compile(PLAN, Path::new(""), "/bin/plimsoll").unwrap();
        assert_eq!(
            (plan.duration, plan.sample),
            (Duration::from_hours(4), SAMPLE)
        );
        let scenario = &plan.scenarios[0];
        let Subject::Started(target) = &scenario.subject else {
            panic!("{scenario:?}");
        };
        assert_eq!(target.process.words[0], "/bin/plimsoll");
        assert_eq!(target.url, "http://127.0.0.1:{port}/");
        assert_eq!(target.upstreams[0].name, "origin");
        assert_eq!(plan.workers(&scenario.loads[0]), 3);
        let patterns = &scenario.metrics.as_ref().unwrap().patterns;
        assert_eq!(patterns.counters, ["retries_total"]);
        assert_eq!(patterns.zero, ["*panic*"]);
    }

    #[test]
    fn the_plans_of_the_examples_are_valid() {
        for (name, text) in [
            (
                "gateway",
                include_str!("../../../../examples/soak/gateway.toml"),
            ),
            (
                "servers",
                include_str!("../../../../examples/soak/servers.toml"),
            ),
        ] {
            let plan = compile(text, Path::new("examples/soak"), "plimsoll");
            assert_eq!(plan.unwrap().name, name);
        }
    }

    #[test]
    fn every_mistake_is_reported() {
        let text = r#"
sample = "1ms"
[[scenario]]
name = "a"
comand = "x"
url = "ftp://x"
gauges = ["a"]
[[scenario.load]]
name = "l"
workers = 0
"#;
        let problems = compile(text, Path::new(""), "plimsoll").unwrap_err();
        let shown: Vec<String> = problems
            .iter()
            .map(|it| format!("{}: {it}", it.line))
            .collect();
        insta_like(&shown);
    }

    /// Each of the mistakes is there, with its line.
    #[track_caller]
    fn insta_like(shown: &[String]) {
        for (line, part) in [
            (2, "must be 100ms or longer"),
            (5, "unknown key"),
            (6, "is not an http or https URL"),
            (7, "needs `metrics`"),
            (8, "`command` is missing"),
            (10, "workers"),
        ] {
            let start = format!("{line}:");
            assert!(
                shown
                    .iter()
                    .any(|it| it.starts_with(&start) && it.contains(part)),
                "{line} {part}: {shown:#?}"
            );
        }
    }
}
