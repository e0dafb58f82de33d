//! Thresholds: conditions on metrics, judged while a run goes on and at its end.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_load::scenario::{Contains, MetricId, MetricKind, Registry, SeriesId, Sink, Sinks};
use plimsoll_model::ServerCost;

use crate::metrics::TrendStat;
use crate::metrics::servers::{self, JudgedServer, ServerMetrics, ServerThresholdError};

/// A threshold as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ThresholdOptions {
    pub(crate) source: String,
    pub(crate) aborts: bool,
    /// Since the start of the run, before which it does not abort.
    pub(crate) delay: Option<Duration>,
}

/// All thresholds of a run.
#[derive(Debug, Default)]
pub(crate) struct Thresholds {
    pub(crate) judged: Vec<Judged>,
}

/// The thresholds of one metric or sub-metric.
#[derive(Debug)]
pub(crate) struct Judged {
    /// As written, but for blanks around the name and inside the braces; that of the sub-metric where one has the same tags.
    pub(crate) metric: String,
    pub(crate) series: SeriesId,
    kind: MetricKind,
    /// Of a metric that is no script's.
    server: Option<JudgedServer>,
    pub(crate) thresholds: Vec<Threshold>,
}

/// One threshold with its last judgement.
#[derive(Debug)]
pub(crate) struct Threshold {
    pub(crate) source: String,
    condition: Condition,
    aborts: bool,
    delay: Duration,
    pub(crate) is_met: bool,
    /// The compared value; `None` without samples.
    pub(crate) value: Option<f64>,
}

/// What a threshold compares.
#[derive(Debug, Clone, PartialEq)]
enum Condition {
    /// The samples of a metric.
    Samples(SampleCondition),
    /// A figure of a server.
    Server(Box<plimsoll_model::Threshold>),
}

/// `AGG OP NUMBER`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SampleCondition {
    aggregation: Aggregation,
    operator: Operator,
    limit: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Aggregation {
    Count,
    Rate,
    Value,
    Trend(TrendStat),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

impl Thresholds {
    /// Checks thresholds against the metrics, and adds the sub-metrics that they name.
    ///
    /// - `observed`: the names of the observed servers, whose metrics can be named too; `None` if another process judges these.
    ///
    /// Fails with everything that is wrong.
    pub(crate) fn compile(
        options: &BTreeMap<String, Vec<ThresholdOptions>>,
        registry: &Registry,
        observed: Option<&[Option<String>]>,
    ) -> Result<Self, Vec<String>> {
        let mut judged: Vec<Judged> = Vec::new();
        let mut errors = Vec::new();
        let of_servers = ServerMetrics::beside(registry);
        for (metric, thresholds) in options {
            let mut error = |message: String| {
                errors.push(format!("options.thresholds[\"{metric}\"]: {message}"));
            };
            let (name, tags) = match split(metric) {
                Ok(split) => split,
                Err(wrong) => {
                    error(wrong.to_string());
                    continue;
                }
            };
            let server_metric = of_servers.find(name);
            let mut compiled = Vec::new();
            let server = match server_metric {
                None => None,
                Some(metric) => {
                    for one in thresholds {
                        match servers::condition(metric.0, one) {
                            Ok(condition) => {
                                let condition = Condition::Server(Box::new(condition));
                                compiled.push(Threshold::new(one, condition));
                            }
                            Err(wrong) => error(wrong.to_string()),
                        }
                    }
                    match found_server(metric, tags.as_ref(), observed) {
                        Ok(Some(server)) => Some(server),
                        Ok(None) => continue,
                        Err(wrong) => {
                            error(wrong.to_string());
                            continue;
                        }
                    }
                }
            };
            let id = match &server {
                None => registry.find(name),
                Some(server) => registry.register(name, MetricKind::Gauge, server.contains()),
            };
            let id = match id {
                Ok(id) => id,
                Err(unknown) => {
                    error(unknown.to_string());
                    continue;
                }
            };
            let kind = registry.metric(id).kind;
            let (canonical, series) = match tags {
                Some((inner, tags)) => sub_metric(registry, id, inner, tags),
                None => (name.to_owned(), registry.metric(id).series),
            };
            for one in thresholds.iter().filter(|_| server.is_none()) {
                match SampleCondition::parse(&one.source, kind) {
                    Ok(condition) => {
                        compiled.push(Threshold::new(one, Condition::Samples(condition)));
                    }
                    Err(wrong) => error(wrong.to_string()),
                }
            }
            match judged.iter_mut().find(|judged| judged.series == series) {
                Some(judged) => judged.thresholds.extend(compiled),
                None => judged.push(Judged {
                    metric: canonical,
                    series,
                    kind,
                    server,
                    thresholds: compiled,
                }),
            }
        }
        if errors.is_empty() {
            Ok(Self { judged })
        } else {
            Err(errors)
        }
    }

    /// Judges those on metrics of the script while the run goes on; returns whether one that aborts the run failed. Those without
    /// samples are met.
    ///
    /// - `at`: since the start of the run.
    pub(crate) fn judge(&mut self, sinks: &Sinks, at: Duration) -> bool {
        self.judge_with(sinks, at, None)
    }

    /// Judges those on metrics of the script for the last time. What has no samples counts as 0, but a rate, which is met: as in k6.
    ///
    /// - `took`: the whole run.
    pub(crate) fn judge_at_end(&mut self, sinks: &Sinks, took: Duration) {
        self.judge_with(sinks, took, Some(0.0));
    }

    /// Judges those on servers, and adds their figures to `sinks`. What has no figure was not shown to hold.
    ///
    /// - `costs`: of the servers, in the order of their names.
    /// - `took`: the whole run.
    pub(crate) fn judge_servers(
        &mut self,
        costs: &[Option<ServerCost>],
        sinks: &mut Sinks,
        took: Duration,
    ) {
        for judged in &mut self.judged {
            let Some(server) = &judged.server else {
                continue;
            };
            server.add_to(sinks, costs, &judged.metric, took);
            let measured = server.measured(costs);
            for threshold in &mut judged.thresholds {
                let Condition::Server(condition) = &threshold.condition else {
                    continue;
                };
                let value = measured.as_ref().and_then(|it| it.value(condition));
                threshold.is_met = value.is_some_and(|value| condition.is_met(value));
            }
        }
    }

    /// Whether the metric of that name is one of servers.
    pub(crate) fn judges_server(&self, metric: &str) -> bool {
        let mut servers = self.judged.iter().filter_map(|it| it.server.as_ref());
        servers.any(|server| server.name() == metric)
    }

    /// - `nothing`: the value of what has no samples, apart from rates.
    fn judge_with(&mut self, sinks: &Sinks, at: Duration, nothing: Option<f64>) -> bool {
        let mut aborts = false;
        for judged in &mut self.judged {
            let sink = sinks.series(judged.series);
            for threshold in &mut judged.thresholds {
                let Condition::Samples(condition) = threshold.condition else {
                    continue;
                };
                let value = match sink {
                    Some(sink) => condition.value(sink, at),
                    None if judged.kind == MetricKind::Rate => None,
                    None => nothing,
                };
                threshold.value = value;
                threshold.is_met = value.is_none_or(|value| condition.holds(value));
                aborts |= !threshold.is_met && threshold.aborts && at >= threshold.delay;
            }
        }
        aborts
    }

    /// True if all are met.
    pub(crate) fn are_met(&self) -> bool {
        let mut all = self.judged.iter().flat_map(|judged| &judged.thresholds);
        all.all(|threshold| threshold.is_met)
    }
}

impl Threshold {
    fn new(options: &ThresholdOptions, condition: Condition) -> Self {
        Self {
            source: options.source.clone(),
            condition,
            aborts: options.aborts,
            delay: options.delay.unwrap_or_default(),
            is_met: true,
            value: None,
        }
    }
}

/// The server of a metric; `None` if another process judges it.
fn found_server(
    metric: (plimsoll_model::Metric, Contains),
    selector: Option<&Selector<'_>>,
    observed: Option<&[Option<String>]>,
) -> Result<Option<JudgedServer>, ServerThresholdError> {
    let tags = selector.map(|(_, tags)| tags);
    match observed {
        Some(names) => JudgedServer::find(metric, tags, names).map(Some),
        None => servers::server_of(metric.0, tags).map(|_| None),
    }
}

/// Longer ones first, since they begin with shorter ones.
const OPERATORS: [(&str, Operator); 7] = [
    ("===", Operator::Equal),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

/// What is wrong in a threshold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum ThresholdError {
    #[error(
        "`{0}` is not a threshold such as `p(95)<200`: an aggregation, an operator and a number"
    )]
    Form(String),
    #[error(
        "`{written}` in `{source_text}` is not an aggregation of a {kind}, which has {allowed}"
    )]
    Aggregation {
        written: String,
        source_text: String,
        kind: &'static str,
        allowed: &'static str,
    },
}

/// What is wrong in the name of a sub-metric.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum SubMetricError {
    #[error("the tags of a sub-metric end in `}}`")]
    OpenBrace,
    #[error("`{0}` is not a tag such as `status:200`")]
    NotATag(String),
    #[error("`{0}` has no name or no value")]
    EmptyTag(String),
}

impl SampleCondition {
    fn parse(source: &str, kind: MetricKind) -> Result<Self, ThresholdError> {
        let form = || ThresholdError::Form(source.to_owned());
        let start = source.find(['<', '>', '=', '!']).ok_or_else(form)?;
        let (left, rest) = source.split_at(start);
        let found = OPERATORS
            .iter()
            .find_map(|(text, operator)| Some((*operator, rest.strip_prefix(text)?)));
        let (operator, number) = found.ok_or_else(form)?;
        let limit = number.trim().parse().map_err(|_| form())?;
        let left = left.trim();
        let allowed = match kind {
            MetricKind::Counter => "count and rate",
            MetricKind::Gauge => "value",
            MetricKind::Rate => "rate",
            MetricKind::Trend => "avg, min, max, med and p(N)",
        };
        let aggregation = match (kind, left) {
            (MetricKind::Counter, "count") => Some(Aggregation::Count),
            (MetricKind::Counter | MetricKind::Rate, "rate") => Some(Aggregation::Rate),
            (MetricKind::Gauge, "value") => Some(Aggregation::Value),
            (MetricKind::Trend, text) => TrendStat::parse(text)
                .filter(|stat| *stat != TrendStat::Count)
                .map(Aggregation::Trend),
            _ => None,
        };
        let aggregation = aggregation.ok_or_else(|| ThresholdError::Aggregation {
            written: left.to_owned(),
            source_text: source.to_owned(),
            kind: kind.name(),
            allowed,
        })?;
        Ok(Self {
            aggregation,
            operator,
            limit,
        })
    }

    fn value(self, sink: &Sink, at: Duration) -> Option<f64> {
        match (self.aggregation, sink) {
            (Aggregation::Count, Sink::Counter(sum)) => Some(*sum),
            (Aggregation::Rate, Sink::Counter(sum)) => Some(per_second(*sum, at)),
            (Aggregation::Rate, Sink::Rate(rate)) => Some(rate.rate()),
            (Aggregation::Value, Sink::Gauge(gauge)) => Some(gauge.value),
            (Aggregation::Trend(stat), Sink::Trend(trend)) => Some(stat.value_in(trend)),
            _ => None,
        }
    }

    #[expect(
        clippy::float_cmp,
        reason = "that is what the author of the threshold wrote"
    )]
    fn holds(self, value: f64) -> bool {
        match self.operator {
            Operator::Less => value < self.limit,
            Operator::LessOrEqual => value <= self.limit,
            Operator::Greater => value > self.limit,
            Operator::GreaterOrEqual => value >= self.limit,
            Operator::Equal => value == self.limit,
            Operator::NotEqual => value != self.limit,
        }
    }
}

/// The rate of a counter.
pub(crate) fn per_second(sum: f64, at: Duration) -> f64 {
    let seconds = at.as_secs_f64();
    if seconds > 0.0 { sum / seconds } else { 0.0 }
}

/// The name and the series of a sub-metric. Those with the same tags are one, named as the first.
///
/// - `inner`: what is between the braces.
fn sub_metric(
    registry: &Registry,
    id: MetricId,
    inner: &str,
    tags: BTreeMap<String, String>,
) -> (String, SeriesId) {
    let metric = registry.metric(id);
    let same = metric.sub_metrics.iter().find(|sub| {
        let of_sub: BTreeMap<_, _> = sub.tags.iter().cloned().collect();
        of_sub == tags
    });
    if let Some(same) = same {
        return (same.name.to_string(), same.series);
    }
    let name = format!("{}{{{inner}}}", metric.name);
    let series = registry.sub_metric(id, &name, tags.into_iter().collect());
    (name, series)
}

/// What is between the braces of a sub-metric, and the tags there.
type Selector<'a> = (&'a str, BTreeMap<String, String>);

/// The name of a metric, and the selector of a sub-metric.
fn split(written: &str) -> Result<(&str, Option<Selector<'_>>), SubMetricError> {
    let Some((name, rest)) = written.split_once('{') else {
        return Ok((written.trim(), None));
    };
    let inner = rest
        .trim_end()
        .strip_suffix('}')
        .ok_or(SubMetricError::OpenBrace)?
        .trim();
    let mut tags = BTreeMap::new();
    for pair in inner.split(',').filter(|pair| !pair.trim().is_empty()) {
        let (name, value) = pair
            .split_once(':')
            .ok_or_else(|| SubMetricError::NotATag(pair.trim().to_owned()))?;
        if name.trim().is_empty() || value.trim().is_empty() {
            return Err(SubMetricError::EmptyTag(pair.trim().to_owned()));
        }
        let unquoted = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
        tags.insert(unquoted(name), unquoted(value));
    }
    Ok((name.trim(), Some((inner, tags))))
}

#[cfg(test)]
impl Thresholds {
    /// Whether each threshold is met, by metric.
    pub(super) fn verdicts(&self) -> Vec<(&str, Vec<bool>)> {
        let judged = self.judged.iter().map(|judged| {
            let each = judged.thresholds.iter().map(|it| it.is_met);
            (judged.metric.as_str(), each.collect())
        });
        judged.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn one(source: &str, aborts: bool, delay: u64) -> ThresholdOptions {
        ThresholdOptions {
            source: source.to_owned(),
            aborts,
            delay: Some(Duration::from_secs(delay)),
        }
    }

    fn registry() -> Registry {
        let registry = Registry::default();
        for (name, kind) in [
            ("trend", MetricKind::Trend),
            ("rate", MetricKind::Rate),
            ("count", MetricKind::Counter),
            ("gauge", MetricKind::Gauge),
        ] {
            registry.register(name, kind, Contains::Default).unwrap();
        }
        registry
    }

    #[test]
    fn thresholds_are_judged_over_the_whole_run() {
        let registry = registry();
        let options = BTreeMap::from([
            (
                "trend".to_owned(),
                vec![
                    one("p(50)<=2", false, 0),
                    one("max < 2.5", true, 10),
                    one("avg===2", false, 0),
                ],
            ),
            (
                "trend{a:b, c:\"d\"}".to_owned(),
                vec![one("min > 2", false, 0)],
            ),
            ("rate".to_owned(), vec![one("rate>=0.5", false, 0)]),
            (
                "count".to_owned(),
                vec![one("count!=3", false, 0), one("rate==1.5", false, 0)],
            ),
            ("gauge".to_owned(), vec![one("value>100", false, 0)]),
        ]);
        let mut thresholds = Thresholds::compile(&options, &registry, None).unwrap();
        let mut sinks = Sinks::new(registry.clone());
        let tags = [
            (Cow::Borrowed("c"), Cow::Borrowed("d")),
            (Cow::Borrowed("a"), Cow::Borrowed("b")),
        ];
        let at = Duration::from_secs(2);
        let id = |name: &str| registry.find(name).unwrap();
        for value in [1.0, 2.0] {
            sinks.add(id("trend"), value, &[], at);
        }
        sinks.add(id("trend"), 3.0, &tags, at);
        sinks.add(id("rate"), 1.0, &[], at);
        sinks.add(id("rate"), 0.0, &[], at);
        sinks.add(id("count"), 3.0, &[], at);
        assert!(!thresholds.judge(&sinks, at), "its delay is not over");
        let met = thresholds.verdicts();
        assert_eq!(
            met,
            [
                ("count", vec![false, true]),
                // It was never measured.
                ("gauge", vec![true]),
                ("rate", vec![true]),
                ("trend", vec![true, false, true]),
                ("trend{a:b, c:\"d\"}", vec![true]),
            ]
        );
        assert!(thresholds.judge(&sinks, Duration::from_secs(10)));
        assert!(!thresholds.are_met());
        thresholds.judge_at_end(&Sinks::new(registry), Duration::from_secs(10));
        let met = thresholds.judged.iter().map(|judged| {
            let each = judged.thresholds.iter().map(|it| it.is_met);
            (judged.metric.as_str(), each.collect::<Vec<_>>())
        });
        // Nothing is 0 at the end, and a rate without samples is met.
        let expected = [
            ("count", vec![true, false]),
            ("gauge", vec![false]),
            ("rate", vec![true]),
        ];
        assert_eq!(met.take(3).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn blanks_in_selectors_do_not_count() {
        let registry = registry();
        let trend = registry.find("trend").unwrap();
        let tags = vec![("a".to_owned(), "b c".to_owned())];
        let built_in = registry.sub_metric(trend, "trend{a:b c}", tags);
        let options = [
            ("trend{ a: b c }", "avg<1"),
            ("trend{a:'b c'}", "max<1"),
            ("rate{ x : y , z:1 }", "rate<1"),
            ("rate{z:1,x:y}", "rate<2"),
        ];
        let options = options.map(|(name, it)| (name.to_owned(), vec![one(it, false, 0)]));
        let thresholds = Thresholds::compile(&BTreeMap::from(options), &registry, None).unwrap();
        let found = thresholds.judged.iter().map(|judged| {
            let sources = judged.thresholds.iter().map(|it| it.source.as_str());
            (judged.metric.as_str(), sources.collect::<Vec<_>>())
        });
        assert_eq!(
            found.collect::<Vec<_>>(),
            [
                ("rate{x : y , z:1}", vec!["rate<1", "rate<2"]),
                ("trend{a:b c}", vec!["avg<1", "max<1"]),
            ]
        );
        assert_eq!(thresholds.judged[1].series, built_in);
    }

    #[test]
    fn what_cannot_be_judged_is_reported() {
        let options = BTreeMap::from([
            ("nothing".to_owned(), vec![one("rate<1", false, 0)]),
            (
                "trend".to_owned(),
                vec![
                    one("p(101)<1", false, 0),
                    one("count<1", false, 0),
                    one("p(95)", false, 0),
                ],
            ),
            (
                "rate".to_owned(),
                vec![
                    one("avg<1", false, 0),
                    one("rate<x", false, 0),
                    one("rate=1", false, 0),
                ],
            ),
            ("rate{a".to_owned(), vec![]),
            ("rate{a}".to_owned(), vec![]),
        ]);
        let errors = Thresholds::compile(&options, &registry(), None)
            .unwrap_err()
            .join("\n");
        for expected in [
            "there is no metric `nothing`",
            "`p(101)` in `p(101)<1` is not an aggregation of a trend",
            "`count` in `count<1` is not an aggregation of a trend",
            "`p(95)` is not a threshold such as",
            "`avg` in `avg<1` is not an aggregation of a rate, which has rate",
            "`rate<x` is not a threshold",
            "`rate=1` is not a threshold",
            "end in `}`",
            "`a` is not a tag such as",
        ] {
            assert!(errors.contains(expected), "no {expected} in\n{errors}");
        }
    }
}
