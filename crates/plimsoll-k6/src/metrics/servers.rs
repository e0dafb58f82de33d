//! Metrics of observed servers, on which the thresholds of a script can be put: names, units and conditions are those of plain
//! loads. Their figures are known when the run has ended.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_load::scenario::metric::GaugeSink;
use plimsoll_load::scenario::{Contains, MetricKind, Registry, SeriesFigures, Sink, Sinks};
use plimsoll_model::{
    Bounded, Counts, Measured, Metric, ResourceSample, ServerCost, ServerFigures, Threshold,
    ThresholdError, TimesView, Trend, WindowBytes,
};

use super::thresholds::ThresholdOptions;

/// Servers that are observed while a script runs.
pub trait ObservedServers {
    /// Their names. The first one is the target of the run; one that is known by its process has none.
    fn names(&self) -> Vec<Option<String>>;

    /// Called once, when `teardown()` has ended: what each has spent since the run began, in the order of their names; `None` for
    /// one that was not observed at both ends.
    ///
    /// - `requests`: of the run, those of `setup()` and `teardown()` included.
    fn end(&self, requests: u64) -> Vec<Option<ServerCost>>;
}

/// Where the servers of a run are observed.
#[derive(Clone, Copy, Default)]
pub enum RunServers<'a> {
    /// None is: thresholds on servers are refused.
    #[default]
    None,
    /// By this process.
    Here(&'a dyn ObservedServers),
    /// By another process, which judges the thresholds on them; or there is no run.
    Elsewhere,
}

impl std::fmt::Debug for RunServers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Here(_) => "Here",
            Self::Elsewhere => "Elsewhere",
        })
    }
}

impl RunServers<'_> {
    /// The names of the servers; `None` where another process knows them.
    pub(crate) fn names(self) -> Option<Vec<Option<String>>> {
        match self {
            Self::None => Some(Vec::new()),
            Self::Here(servers) => Some(servers.names()),
            Self::Elsewhere => None,
        }
    }
}

/// The metrics, with the meaning of their numbers in the summary of a script.
const METRICS: [(Metric, Contains); 4] = [
    (Metric::ServerCpuPerRequest, Contains::Time),
    (Metric::ServerCpu, Contains::Default),
    (Metric::ServerMemory, Contains::Data),
    (Metric::ServerDescriptors, Contains::Default),
];

/// The metrics of servers that a script has no metrics of its own for, under the same names.
pub(crate) struct ServerMetrics(Vec<(Metric, Contains)>);

impl ServerMetrics {
    /// - `registry`: with the metrics of the script.
    pub(crate) fn beside(registry: &Registry) -> Self {
        let free = METRICS.into_iter();
        let free = free.filter(|(metric, _)| registry.find(metric.name()).is_err());
        Self(free.collect())
    }

    /// The metric of that name, if it is one of servers.
    pub(crate) fn find(&self, name: &str) -> Option<(Metric, Contains)> {
        let mut all = self.0.iter();
        all.find(|(metric, _)| metric.name() == name).copied()
    }
}

/// The series of a server on which thresholds are put.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JudgedServer {
    metric: Metric,
    contains: Contains,
    /// Its position among the servers.
    position: usize,
}

/// What is wrong in a threshold on a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ServerThresholdError {
    #[error(
        "it is a figure of a server, and none is observed; name the server: --pid 4711, or --observe NAME=https://HOST:7070/?unit=…"
    )]
    NoServer,
    #[error(
        "no server `{name}` is observed; add --observe {name}=https://HOST:7070/?unit=…{others}"
    )]
    Unknown {
        name: String,
        /// What else can be written.
        others: String,
    },
    #[error("a figure of a server has one tag, the name of the server: `{0}{{name:db}}`")]
    Tag(&'static str),
    #[error(
        "figures of servers are those of the whole run, and judged at its end: leave out `abortOnFail`, `over` and `abort`"
    )]
    AtEnd,
    #[error(transparent)]
    Condition(#[from] ThresholdError),
}

impl JudgedServer {
    /// - `tags`: of the selector, if there is one.
    /// - `names`: of the servers.
    pub(crate) fn find(
        (metric, contains): (Metric, Contains),
        tags: Option<&BTreeMap<String, String>>,
        names: &[Option<String>],
    ) -> Result<Self, ServerThresholdError> {
        let position = match server_of(metric, tags)? {
            // That of a run without processes that are named is the first one.
            None => (!names.is_empty()).then_some(0),
            Some(name) => {
                let mut known = names.iter();
                let found = known.position(|known| known.as_deref() == Some(name));
                Some(found.ok_or_else(|| unknown(name, names))?)
            }
        };
        Ok(Self {
            metric,
            contains,
            position: position.ok_or(ServerThresholdError::NoServer)?,
        })
    }

    /// The name of its metric.
    pub(crate) fn name(&self) -> &'static str {
        self.metric.name()
    }

    /// The meaning of its numbers.
    pub(crate) fn contains(&self) -> Contains {
        self.contains
    }

    /// What thresholds are judged on; `None` without figures.
    pub(crate) fn measured(&self, costs: &[Option<ServerCost>]) -> Option<OfServer> {
        let cost = costs.get(self.position)?.as_ref()?;
        Some(OfServer(cost.figures()))
    }

    /// Adds its figures to the series of that name. The metric itself has those of the target.
    ///
    /// - `name`: of the metric, or of the sub-metric.
    pub(crate) fn add_to(
        &self,
        sinks: &mut Sinks,
        costs: &[Option<ServerCost>],
        name: &str,
        at: Duration,
    ) {
        let sub_metric = (name != self.name()).then(|| name.to_owned());
        let of_target = (0, None);
        for (position, sub_metric) in [of_target, (self.position, sub_metric)] {
            let cost = costs.get(position).and_then(Option::as_ref);
            let Some(gauge) = cost.and_then(|cost| gauge(self.metric, cost, at)) else {
                continue;
            };
            let figures = SeriesFigures {
                metric: self.name().to_owned(),
                kind: MetricKind::Gauge,
                contains: self.contains,
                sub_metric,
                sink: Sink::Gauge(gauge),
            };
            let added = sinks.add_figures(&figures);
            added.expect("it was registered as such a metric");
        }
    }
}

/// Checks what needs no server.
pub(crate) fn condition(
    metric: Metric,
    one: &ThresholdOptions,
) -> Result<Threshold, ServerThresholdError> {
    let threshold = Threshold::parse(&format!("{}:{}", metric.name(), one.source))?;
    if one.aborts || threshold.over.is_some() || threshold.abort_after.is_some() {
        return Err(ServerThresholdError::AtEnd);
    }
    Ok(threshold)
}

/// The server that a selector names; `None` without a selector.
pub(crate) fn server_of(
    metric: Metric,
    tags: Option<&BTreeMap<String, String>>,
) -> Result<Option<&str>, ServerThresholdError> {
    let Some(tags) = tags else { return Ok(None) };
    match tags.get("name").filter(|_| tags.len() == 1) {
        Some(name) => Ok(Some(name)),
        None => Err(ServerThresholdError::Tag(metric.name())),
    }
}

fn unknown(name: &str, names: &[Option<String>]) -> ServerThresholdError {
    let others: Vec<_> = names.iter().flatten().map(String::as_str).collect();
    ServerThresholdError::Unknown {
        name: name.to_owned(),
        others: if others.is_empty() {
            String::new()
        } else {
            format!(", or name one of {}", others.join(", "))
        },
    }
}

/// The figure as a gauge of the script: durations in milliseconds, as all of k6 are.
fn gauge(metric: Metric, cost: &ServerCost, at: Duration) -> Option<GaugeSink> {
    let figures = cost.figures();
    let one = |value: f64| (value, value, value);
    let seen = |last: u64, most: u64, of: fn(&ResourceSample) -> u64| {
        let least = cost.samples.iter().map(of).fold(last, u64::min);
        (last as f64, least as f64, most as f64)
    };
    let (value, min, max) = match metric {
        Metric::ServerCpuPerRequest => one(figures.cost.cpu_us_per_request()? / 1e3),
        Metric::ServerCpu => one(figures.cost.cpu_percent()?),
        Metric::ServerMemory => seen(figures.memory_bytes, figures.peak_memory_bytes, |sample| {
            sample.memory.total_bytes()
        }),
        // Every server holds some; none means that they could not be counted.
        Metric::ServerDescriptors if figures.peak_fds > 0 => {
            seen(figures.fds, figures.peak_fds, |sample| sample.fds)
        }
        _ => return None,
    };
    Some(GaugeSink {
        value,
        min,
        max,
        at: Some(at),
    })
}

/// A server, as a threshold without a name sees it.
pub(crate) struct OfServer(ServerFigures);

impl OfServer {
    /// The value that a threshold compares; `None` if there is nothing to compute it from.
    pub(crate) fn value(&self, threshold: &Threshold) -> Option<Bounded<f64>> {
        threshold.value(self)
    }
}

impl Measured for OfServer {
    fn length(&self) -> Duration {
        self.0.cost.window
    }

    fn counts(&self) -> Counts {
        Counts::default()
    }

    fn unexpected(&self) -> u64 {
        0
    }

    fn bytes_sent(&self) -> u64 {
        0
    }

    fn bytes_received(&self) -> u64 {
        0
    }

    fn bytes_in_window(&self) -> WindowBytes {
        WindowBytes::default()
    }

    fn times(&self, _trend: Trend) -> Option<TimesView<'_>> {
        None
    }

    fn server(&self, _name: Option<&str>) -> Option<ServerFigures> {
        Some(self.0)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_load::scenario::Registry;
    use plimsoll_model::{Cost, CpuTime, Memory};

    use super::*;
    use crate::metrics::thresholds::Thresholds;

    fn cost(micros: u64, bytes: u64) -> ServerCost {
        let memory = |bytes| Memory {
            anonymous_bytes: bytes,
            file_bytes: 0,
        };
        let sample = |bytes, fds| ResourceSample {
            memory: memory(bytes),
            fds,
            ..ResourceSample::default()
        };
        ServerCost {
            name: "server".to_owned(),
            cost: Cost {
                cpu: CpuTime {
                    user: Duration::from_micros(micros),
                    system: Duration::ZERO,
                },
                window: Duration::from_secs(1),
                exchanges: 100,
            },
            memory: memory(bytes),
            peak_memory_bytes: 2 * bytes,
            fds: 7,
            peak_fds: 9,
            threads: 1,
            processes: 1,
            samples: vec![sample(bytes / 2, 5), sample(2 * bytes, 9)],
        }
    }

    fn options(thresholds: &[(&str, &str)]) -> BTreeMap<String, Vec<ThresholdOptions>> {
        let mut options = BTreeMap::<String, Vec<_>>::new();
        for (metric, source) in thresholds {
            let one = ThresholdOptions {
                source: (*source).to_owned(),
                aborts: false,
                delay: None,
            };
            options.entry((*metric).to_owned()).or_default().push(one);
        }
        options
    }

    fn names(names: &[Option<&str>]) -> Vec<Option<String>> {
        let names = names.iter().map(|name| name.map(str::to_owned));
        names.collect()
    }

    #[test]
    fn figures_of_servers_are_judged_at_the_end_and_in_the_units_of_plain_loads() {
        let registry = Registry::default();
        let options = options(&[
            // 30 µs are 0.03 ms.
            ("server_cpu_per_request", "value<0.04"),
            ("server_cpu_per_request", "value<20us"),
            ("server_cpu_per_request{ name:'db' }", "value<20us"),
            ("server_rss", "max<2kB"),
            ("server_rss{name:db}", "max < 300"),
            ("server_cpu", "value<1%"),
            ("server_fds{name:db}", "value==7"),
        ]);
        let known = names(&[None, Some("db")]);
        let mut thresholds = Thresholds::compile(&options, &registry, Some(&known)).unwrap();
        let mut sinks = Sinks::new(registry.clone());
        let at = Duration::from_secs(1);
        assert!(!thresholds.judge(&sinks, at));
        thresholds.judge_at_end(&sinks, at);
        assert!(thresholds.are_met(), "nothing is known yet");
        thresholds.judge_servers(
            &[Some(cost(3_000, 1_000)), Some(cost(1_000, 100))],
            &mut sinks,
            at,
        );
        let found = thresholds.verdicts();
        assert_eq!(
            found,
            [
                ("server_cpu", vec![true]),
                ("server_cpu_per_request", vec![true, false]),
                ("server_cpu_per_request{name:'db'}", vec![true]),
                ("server_fds{name:db}", vec![true]),
                // The largest memory is 2,000 bytes.
                ("server_rss", vec![false]),
                ("server_rss{name:db}", vec![true]),
            ]
        );
        let metric = registry.metric(registry.find("server_rss").unwrap());
        let gauge = |series| match sinks.series(series) {
            Some(Sink::Gauge(gauge)) => (gauge.value, gauge.min, gauge.max),
            other => panic!("{other:?}"),
        };
        assert_eq!(gauge(metric.series), (1_000.0, 500.0, 2_000.0));
        let of_db = metric.sub_metrics[0].series;
        assert_eq!(gauge(of_db), (100.0, 50.0, 200.0));
        // A metric of which only another server is judged has the figures of the target.
        let fds = registry.metric(registry.find("server_fds").unwrap());
        assert_eq!(gauge(fds.series), (7.0, 5.0, 9.0));
    }

    #[test]
    fn a_server_without_figures_is_not_shown_to_be_within_its_limit() {
        let registry = Registry::default();
        let options = options(&[("server_rss", "value>0")]);
        let mut thresholds =
            Thresholds::compile(&options, &registry, Some(&names(&[Some("web")]))).unwrap();
        let mut sinks = Sinks::new(registry);
        thresholds.judge_servers(&[None], &mut sinks, Duration::from_secs(1));
        assert!(!thresholds.are_met());
        assert!(thresholds.judges_server("server_rss"));
        assert!(sinks.is_empty());
    }

    #[test]
    fn what_cannot_be_judged_is_refused_with_what_to_write() {
        let wrong = |metric: &str, source: &str, aborts: bool, known: &[Option<&str>]| {
            let mut options = options(&[(metric, source)]);
            options.get_mut(metric).unwrap()[0].aborts = aborts;
            let known = names(known);
            let compiled = Thresholds::compile(&options, &Registry::default(), Some(&known));
            compiled.unwrap_err().join("\n")
        };
        let (none, web): ([Option<&str>; 0], _) = ([], [Some("web"), Some("db")]);
        for (metric, source, aborts, known, part) in [
            (
                "server_cpu",
                "value<1",
                false,
                &none[..],
                "name the server: --pid 4711",
            ),
            (
                "server_cpu{name:cache}",
                "value<1",
                false,
                &web[..],
                "no server `cache` is observed; add --observe cache=https://HOST:7070/?unit=…, or name one of web, db",
            ),
            (
                "server_cpu{tier:db}",
                "value<1",
                false,
                &web[..],
                "`server_cpu{name:db}`",
            ),
            (
                "server_cpu",
                "value<1",
                true,
                &web[..],
                "leave out `abortOnFail`",
            ),
            (
                "server_cpu",
                "value<1 over 10s",
                false,
                &web[..],
                "judged at its end",
            ),
            (
                "server_cpu",
                "max<1",
                false,
                &web[..],
                "`server_cpu` has no `max`",
            ),
            ("server_rss", "value<many", false, &web[..], "many"),
        ] {
            let message = wrong(metric, source, aborts, known);
            assert!(message.contains(part), "no {part} in {message}");
            let key = format!("options.thresholds[\"{metric}\"]: ");
            assert!(message.starts_with(&key), "{message}");
        }
    }

    #[test]
    fn where_another_process_observes_it_judges_and_the_form_is_checked_all_the_same() {
        let compile = |metric: &str, source: &str| {
            Thresholds::compile(&options(&[(metric, source)]), &Registry::default(), None)
        };
        let compiled = compile("server_cpu{name:db}", "value<1").unwrap();
        assert!(compiled.judged.is_empty());
        assert!(compile("server_cpu", "max<1").is_err());
        assert!(compile("server_cpu{tier:db}", "value<1").is_err());
    }

    #[test]
    fn a_metric_of_the_script_has_its_own_name() {
        let registry = Registry::default();
        let own = registry.register("server_cpu", MetricKind::Trend, Contains::Default);
        let options = options(&[("server_cpu", "avg<1")]);
        let mut thresholds = Thresholds::compile(&options, &registry, Some(&[])).unwrap();
        let mut sinks = Sinks::new(registry);
        sinks.add(own.unwrap(), 2.0, &[], Duration::ZERO);
        thresholds.judge_at_end(&sinks, Duration::from_secs(1));
        assert!(!thresholds.are_met());
    }
}
