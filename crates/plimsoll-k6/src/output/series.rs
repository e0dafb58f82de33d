//! Samples as series for databases: one for each metric and set of tags, as k6's outputs for Prometheus and OpenTelemetry make them.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_load::scenario::{Contains, MetricId, Points, Registry, Sink};

use crate::metrics::TrendStat;

/// Series that are kept; samples of more are counted and left out. Tags with many values, such as URLs with numbers, make many.
const MOST_SERIES: usize = 100_000;

/// The interval at which series are handed over, as by k6.
const EVERY: Duration = Duration::from_secs(5);

/// The value of a series at a moment, in base units: seconds and bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesValue {
    /// The metric with what the value is: `http_reqs_total`, `http_req_duration_p99`, `checks_rate`.
    pub name: String,
    /// Its tags, without empty ones.
    pub labels: Vec<(String, String)>,
    /// The value.
    pub value: f64,
}

/// The output of series.
pub struct SeriesOutput {
    /// Figures of trends, such as `p(99)`.
    pub trend_stats: Vec<String>,
    /// Gets the series that have changed, every five seconds and at the end.
    pub send: Box<dyn FnMut(Vec<SeriesValue>)>,
}

impl std::fmt::Debug for SeriesOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SeriesOutput")
            .field("trend_stats", &self.trend_stats)
            .finish_non_exhaustive()
    }
}

impl SeriesOutput {
    /// Figures that are none.
    pub fn unknown_stat(&self) -> Option<&str> {
        let mut stats = self.trend_stats.iter().map(String::as_str);
        stats.find(|stat| TrendStat::parse(stat).is_none())
    }
}

/// Adds samples up to series.
pub(crate) struct SeriesWriter<'a> {
    output: &'a mut SeriesOutput,
    registry: Registry,
    series: HashMap<SeriesKey, Series>,
    /// When they are handed over next.
    due: Duration,
    left_out: u64,
}

/// A metric with the tags of its samples.
type SeriesKey = (MetricId, Arc<[(String, String)]>);

struct Series {
    sink: Sink,
    has_changed: bool,
}

impl<'a> SeriesWriter<'a> {
    pub(crate) fn new(output: &'a mut SeriesOutput, registry: &Registry) -> Self {
        Self {
            output,
            registry: registry.clone(),
            series: HashMap::new(),
            due: EVERY,
            left_out: 0,
        }
    }

    pub(crate) fn add(&mut self, points: &Points) {
        for point in &points.all {
            let key = (point.metric, Arc::clone(&point.tags));
            let has_room = self.series.len() < MOST_SERIES;
            let series = match self.series.entry(key) {
                std::collections::hash_map::Entry::Occupied(found) => found.into_mut(),
                std::collections::hash_map::Entry::Vacant(place) if has_room => {
                    let Some(metric) = self.registry.get(point.metric) else {
                        continue;
                    };
                    place.insert(Series {
                        sink: Sink::new(metric.kind),
                        has_changed: false,
                    })
                }
                std::collections::hash_map::Entry::Vacant(_) => {
                    self.left_out += 1;
                    continue;
                }
            };
            series.sink.add(point.value, point.at);
            series.has_changed = true;
        }
    }

    /// Hands them over if it is time.
    ///
    /// - `at`: since the start of the run.
    pub(crate) fn tick(&mut self, at: Duration) {
        if at >= self.due {
            self.due = at + EVERY;
            self.send();
        }
    }

    /// Hands over the rest; returns how many samples are in no series.
    pub(crate) fn finish(mut self) -> u64 {
        self.send();
        self.left_out
    }

    fn send(&mut self) {
        let stats: Vec<_> = self
            .output
            .trend_stats
            .iter()
            .filter_map(|stat| Some((suffix(stat), TrendStat::parse(stat)?)))
            .collect();
        let mut values = Vec::new();
        for ((id, tags), series) in &mut self.series {
            if !std::mem::take(&mut series.has_changed) {
                continue;
            }
            let Some(metric) = self.registry.get(*id) else {
                continue;
            };
            // A later tag overrides an earlier one of its name.
            let labels: BTreeMap<&str, &str> = tags
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            let labels: Vec<(String, String)> = labels
                .into_iter()
                .filter(|(_, value)| !value.is_empty())
                .map(|(name, value)| (label(name), value.to_owned()))
                .collect();
            let mut add = |name: String, value| {
                values.push(SeriesValue {
                    name,
                    labels: labels.clone(),
                    value,
                });
            };
            match &series.sink {
                Sink::Counter(sum) => add(format!("{}_total", metric.name), *sum),
                Sink::Gauge(gauge) => add(metric.name.to_string(), gauge.value),
                Sink::Rate(rate) => add(format!("{}_rate", metric.name), rate.rate()),
                Sink::Trend(trend) => {
                    let unit = match metric.contains {
                        Contains::Time => 1000.0,
                        _ => 1.0,
                    };
                    for (suffix, stat) in &stats {
                        let unit = match stat {
                            TrendStat::Count => 1.0,
                            _ => unit,
                        };
                        add(
                            format!("{}_{suffix}", metric.name),
                            stat.value_in(trend) / unit,
                        );
                    }
                }
            }
        }
        if !values.is_empty() {
            (self.output.send)(values);
        }
    }
}

/// `p(99.9)` as part of a name: `p999`.
fn suffix(stat: &str) -> String {
    stat.chars().filter(char::is_ascii_alphanumeric).collect()
}

/// A name that databases take.
fn label(name: &str) -> String {
    let character = |(position, it): (usize, char)| {
        let is_valid =
            it.is_ascii_alphabetic() || it == '_' || (position > 0 && it.is_ascii_digit());
        if is_valid { it } else { '_' }
    };
    name.chars().enumerate().map(character).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use plimsoll_load::scenario::{MetricKind, Sinks};

    use super::*;

    #[test]
    fn each_set_of_tags_is_a_series_with_the_figures_of_its_kind() {
        let registry = Registry::default();
        let register = |name, kind, contains| registry.register(name, kind, contains).unwrap();
        let requests = register("http_reqs", MetricKind::Counter, Contains::Default);
        let duration = register("http_req_duration", MetricKind::Trend, Contains::Time);
        let checks = register("checks", MetricKind::Rate, Contains::Default);
        let users = register("vus", MetricKind::Gauge, Contains::Default);
        let sent = Rc::new(RefCell::new(Vec::new()));
        let kept = Rc::clone(&sent);
        let mut output = SeriesOutput {
            trend_stats: vec!["p(99)".to_owned(), "count".to_owned()],
            send: Box::new(move |values| kept.borrow_mut().push(values)),
        };
        let mut writer = SeriesWriter::new(&mut output, &registry);
        let mut sinks = Sinks::new(registry.clone()).with_points();
        let at = Duration::from_secs(1);
        for status in ["200", "200", "404"] {
            let tags = [
                ("status".into(), status.into()),
                ("my-tag".into(), "x".into()),
                ("group".into(), "".into()),
            ];
            sinks.add(requests, 1.0, &tags, at);
            sinks.add(duration, 250.0, &tags, at);
        }
        sinks.add(checks, 1.0, &[], at);
        sinks.add(checks, 0.0, &[], at);
        sinks.add(users, 5.0, &[], at);
        writer.add(&sinks.take_points());
        writer.tick(Duration::from_secs(4));
        assert!(sent.borrow().is_empty());
        writer.tick(Duration::from_secs(5));
        let mut lines: Vec<_> = sent.borrow_mut().pop().unwrap().iter().map(line).collect();
        lines.sort();
        let expected = [
            "checks_rate [] 0.5",
            r#"http_req_duration_count [("my_tag", "x"), ("status", "200")] 2"#,
            r#"http_req_duration_count [("my_tag", "x"), ("status", "404")] 1"#,
            r#"http_req_duration_p99 [("my_tag", "x"), ("status", "200")] 0.25"#,
            r#"http_req_duration_p99 [("my_tag", "x"), ("status", "404")] 0.25"#,
            r#"http_reqs_total [("my_tag", "x"), ("status", "200")] 2"#,
            r#"http_reqs_total [("my_tag", "x"), ("status", "404")] 1"#,
            "vus [] 5",
        ];
        assert_eq!(lines, expected);
        // What has not changed is not sent again.
        sinks.add(users, 6.0, &[], at);
        writer.add(&sinks.take_points());
        assert_eq!(writer.finish(), 0);
        let last: Vec<_> = sent.borrow_mut().pop().unwrap().iter().map(line).collect();
        assert_eq!(last, ["vus [] 6"]);
    }

    fn line(value: &SeriesValue) -> String {
        format!("{} {:?} {}", value.name, value.labels, value.value)
    }
}
