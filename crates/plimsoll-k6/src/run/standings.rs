//! The parts of a run side by side, while it goes on.

use std::time::Duration;

use plimsoll_load::scenario::{SeriesFigures, Sink};
use plimsoll_model::{AgentStanding, Bounded};

use super::parts::PartFigures;

/// Figures of a shorter time have no rate worth showing.
const SHORTEST: Duration = Duration::from_millis(200);

/// How each part stands, by its position.
#[derive(Debug, Default)]
pub(super) struct PartStandings {
    standings: Vec<AgentStanding>,
    /// Until when each is counted, and whether it has made requests.
    counted: Vec<(Duration, bool)>,
}

impl PartStandings {
    /// - `parts`: name and workers of each.
    pub(super) fn new(parts: &[(String, usize)]) -> Self {
        let standings = parts.iter().map(|(name, workers)| AgentStanding {
            name: name.clone(),
            workers: *workers,
            ..AgentStanding::default()
        });
        Self {
            standings: standings.collect(),
            counted: vec![(Duration::ZERO, false); parts.len()],
        }
    }

    pub(super) fn standings(&self) -> &[AgentStanding] {
        &self.standings
    }

    /// Adds what a part has measured since the last time: requests of HTTP, or iterations as long as it makes none.
    pub(super) fn add(&mut self, part: usize, figures: &PartFigures) {
        let (Some(standing), Some((until, has_requests))) =
            (self.standings.get_mut(part), self.counted.get_mut(part))
        else {
            return;
        };
        let find = |metric: &str| {
            let is_it = |it: &&SeriesFigures| it.metric == metric && it.sub_metric.is_none();
            figures.series.iter().find(is_it).map(|it| &it.sink)
        };
        let sum = |metric: &str| match find(metric) {
            Some(Sink::Counter(sum)) => *sum,
            _ => 0.0,
        };
        let requests = sum("http_reqs");
        *has_requests |= requests > 0.0;
        let length = figures.at.saturating_sub(*until);
        *until = figures.at.max(*until);
        if let Some(Sink::Rate(failed)) = find("http_req_failed") {
            standing.errors += failed.passes;
        }
        if length >= SHORTEST {
            let busiest = figures.busiest_worker_percent;
            standing.busiest_worker_percent = (busiest > 0.0).then_some(busiest);
            let count = if *has_requests {
                requests
            } else {
                sum("iterations")
            };
            standing.per_second = Some(count / length.as_secs_f64());
            standing.p99 = match find("http_req_duration") {
                Some(Sink::Trend(trend)) if trend.count() > 0 => {
                    let millis = trend.quantile(0.99);
                    let time = Duration::try_from_secs_f64(millis / 1e3);
                    time.ok().map(Bounded::exact)
                }
                _ => None,
            };
        }
        if figures.is_last {
            standing.is_over = true;
            standing.per_second = None;
        }
    }

    /// No more comes of a part.
    pub(super) fn give_up(&mut self, part: usize) {
        if let Some(standing) = self.standings.get_mut(part) {
            standing.is_lost |= !standing.is_over;
            standing.is_over = true;
            standing.per_second = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_load::scenario::metric::{RateSink, Trend};
    use plimsoll_load::scenario::{Contains, MetricKind};

    use super::*;

    fn series(metric: &str, kind: MetricKind, sink: Sink) -> SeriesFigures {
        SeriesFigures {
            metric: metric.to_owned(),
            kind,
            contains: Contains::Default,
            sub_metric: None,
            sink,
        }
    }

    fn figures(seconds: u64, requests: f64, failed: u64, millis: &[f64]) -> PartFigures {
        let mut trend = Trend::default();
        for time in millis {
            trend.add(*time);
        }
        let rate = RateSink {
            passes: failed,
            total: failed + 1,
        };
        let of_others = SeriesFigures {
            sub_metric: Some("http_reqs{name:a}".to_owned()),
            ..series("http_reqs", MetricKind::Counter, Sink::Counter(1e6))
        };
        PartFigures {
            at: Duration::from_secs(seconds),
            series: vec![
                of_others,
                series("http_reqs", MetricKind::Counter, Sink::Counter(requests)),
                series("iterations", MetricKind::Counter, Sink::Counter(7.0)),
                series("http_req_failed", MetricKind::Rate, Sink::Rate(rate)),
                series(
                    "http_req_duration",
                    MetricKind::Trend,
                    Sink::Trend(Box::new(trend)),
                ),
            ],
            busiest_worker_percent: requests * 2.0,
            ..PartFigures::default()
        }
    }

    #[test]
    fn each_part_has_its_last_second_and_all_of_its_failures() {
        let names = ["one", "two"].map(|name| (name.to_owned(), 2));
        let mut parts = PartStandings::new(&names);
        parts.add(0, &figures(1, 10.0, 1, &[5.0]));
        parts.add(0, &figures(3, 50.0, 2, &[20.0, 20.0]));
        parts.add(1, &figures(2, 0.0, 0, &[]));
        let [one, two] = parts.standings() else {
            panic!("{parts:?}")
        };
        assert_eq!((one.name.as_str(), one.workers), ("one", 2));
        assert_eq!((one.per_second, one.errors), (Some(25.0), 3));
        assert!(one.is_limit() && !two.is_limit());
        let p99 = one.p99.unwrap().low().as_secs_f64();
        assert!((p99 - 0.02).abs() < 0.001, "{p99}");
        // Without requests iterations count.
        assert_eq!((two.per_second, two.p99), (Some(3.5), None));
        let last = PartFigures {
            is_last: true,
            ..figures(4, 1.0, 0, &[1.0])
        };
        parts.add(0, &last);
        parts.give_up(0);
        parts.give_up(1);
        let states: Vec<_> = parts
            .standings()
            .iter()
            .map(|it| (it.is_over, it.is_lost, it.per_second))
            .collect();
        assert_eq!(states, [(true, false, None), (true, true, None)]);
    }
}
