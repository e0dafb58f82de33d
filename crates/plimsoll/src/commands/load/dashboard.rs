//! The dashboard of a run against a URL (`--dashboard`).

use std::time::Duration;

use plimsoll_load::{RunPlan, Standing};
use plimsoll_model::{
    AgentStanding, Bounded, Cost, DurationText, ExchangeKind, ResourceSample, grouped,
    three_figures,
};
use plimsoll_report::dashboard::{Chart, Dashboard, Timeline};
use plimsoll_report::files::ExtraTable;
use plimsoll_report::page::Card;
use plimsoll_report::page::{short_bytes, short_number, short_time};

use super::Args;
use super::agents;
use super::output::title;
use crate::dashboard::DashboardServer;
use crate::problem::Problem;
use crate::terminal;

const CHARTS: &[Chart] = &[
    Chart {
        title: "Per second",
        write: short_number,
        is_logarithmic: false,
        lines: &["ok", "errors"],
    },
    Chart {
        title: "Latency",
        write: short_time,
        is_logarithmic: true,
        lines: &["p50", "p90", "p99", "p99.9", "max"],
    },
    Chart {
        title: "In flight",
        write: short_number,
        is_logarithmic: false,
        lines: &["in flight"],
    },
    Chart {
        title: "Bytes received per second",
        write: short_bytes,
        is_logarithmic: false,
        lines: &["received"],
    },
    Chart {
        title: "Server CPU, percent of a core",
        write: short_number,
        is_logarithmic: false,
        lines: &["cpu"],
    },
    Chart {
        title: "Server memory",
        write: short_bytes,
        is_logarithmic: false,
        lines: &["rss"],
    },
];

/// Seconds that were cut short have no rate worth drawing.
const SHORTEST: Duration = Duration::from_millis(200);

/// A dashboard that follows a run.
pub(super) struct LoadDashboard {
    server: DashboardServer,
    title: String,
    duration: Option<Duration>,
    requests: Option<u64>,
    exchanges: ExchangeKind,
    timeline: Timeline,
    before: Option<(Duration, ResourceSample)>,
    last: Dashboard,
}

impl LoadDashboard {
    /// Listens, if the flags want it.
    pub(super) fn start(args: &Args, plan: &RunPlan) -> Result<Option<Self>, Problem> {
        let Some(address) = &args.output.dashboard else {
            return Ok(None);
        };
        let title = title(plan);
        let first = |state: &str| Dashboard {
            title: title.clone(),
            state: state.to_owned(),
            progress: Some(0.0),
            tiles: Vec::new(),
            plots: Vec::new(),
            tables: Vec::new(),
        };
        let server = DashboardServer::listen("--dashboard", address, &first("starting"))?;
        terminal::log_line(&format!("the dashboard is at {}", server.url()));
        Ok(Some(Self {
            server,
            last: first("starting"),
            title,
            duration: plan.stop.duration.map(|duration| plan.warm_up + duration),
            requests: plan.stop.requests,
            exchanges: plan.exchanges(),
            timeline: Timeline::new(CHARTS),
            before: None,
        }))
    }

    /// Takes over one more second.
    ///
    /// - `agents`: side by side; empty where this process makes the run.
    pub(super) fn show(&mut self, standing: &Standing<'_>, agents: &[AgentStanding]) {
        let tick = standing.tick;
        let seconds = tick.length.as_secs_f64();
        let is_whole = tick.length >= SHORTEST && !tick.grace;
        let rate = |count: u64| is_whole.then(|| count as f64 / seconds);
        let done = match self.exchanges {
            ExchangeKind::Stream => tick.events,
            ExchangeKind::Request | ExchangeKind::RoundTrip => tick.ok,
        };
        let micros = |time: Option<Bounded<Duration>>| {
            let known = time.and_then(Bounded::known);
            known.map(|time| time.as_secs_f64() * 1e6)
        };
        let cost = self
            .before
            .zip(standing.target)
            .map(|((_, before), now)| Cost::between(&before, &now));
        let cpu = cost.as_ref().zip(self.before).and_then(|(cost, (at, _))| {
            let passed = tick.at.saturating_sub(at).as_secs_f64();
            (passed > 0.0).then(|| cost.cpu.total().as_secs_f64() / passed * 100.0)
        });
        let memory = standing
            .target
            .map(|sample| sample.memory.total_bytes() as f64);
        self.before = standing.target.map(|sample| (tick.at, sample));
        let values = [
            rate(done),
            rate(tick.failed + tick.other_errors),
            micros(tick.p50),
            micros(tick.p90),
            micros(tick.p99),
            micros(tick.p99_9),
            micros(tick.max),
            Some(tick.in_flight as f64),
            rate(tick.bytes_received),
            cpu,
            memory,
        ];
        self.timeline.add(tick.at, &values);
        let state = match (tick.warm_up, tick.grace) {
            (true, _) => "warming up",
            (_, true) => "finishing what is in flight",
            _ => "running",
        };
        self.last = self.picture(standing, agents, state, rate(done));
        self.server.show(&self.last);
    }

    /// Shows that the run has ended.
    pub(super) fn end(mut self) {
        let state = self.last.state.split_once(", ");
        let at = state.map_or(String::new(), |(_, at)| format!(", {at}"));
        self.last.state = format!("ended{at}");
        self.last.progress = Some(1.0);
        self.last.plots = self.timeline.plots();
        self.server.end(&self.last);
    }

    fn picture(
        &self,
        standing: &Standing<'_>,
        agents: &[AgentStanding],
        state: &str,
        rate: Option<f64>,
    ) -> Dashboard {
        let (tick, counts) = (standing.tick, &standing.counts);
        let done = counts.ok + counts.failed;
        let errors = counts.errors();
        let tried = (counts.started + counts.dropped).max(1);
        let share = match (self.duration, self.requests) {
            (Some(duration), _) => Some(tick.at.as_secs_f64() / duration.as_secs_f64().max(1e-3)),
            (None, Some(requests)) => Some(done as f64 / requests.max(1) as f64),
            (None, None) => None,
        };
        let mut tiles = vec![Card::new(self.exchanges.plural(), grouped(done))];
        if let Some(rate) = rate {
            tiles.push(Card::new(self.exchanges.rate(), short_number(rate.round())));
        }
        let time = |quantile: f64| {
            let time = standing.latency.quantile(quantile);
            time.map_or("–".to_owned(), |time| DurationText(time).to_string())
        };
        tiles.extend(
            [("latency, p50", 0.5), ("latency, p99", 0.99)]
                .map(|(label, quantile)| Card::new(label, time(quantile))),
        );
        let percent = three_figures(errors as f64 / tried as f64 * 100.0);
        let shown = format!("{} ({percent} %)", grouped(errors));
        tiles.push(Card::new("errors", shown).bad_if(errors > 0));
        tiles.push(Card::new("in flight", grouped(tick.in_flight)));
        Dashboard {
            title: self.title.clone(),
            state: format!(
                "{state}, {}",
                short_time(tick.at.as_secs_f64().round() * 1e6)
            ),
            progress: share,
            tiles,
            plots: self.timeline.plots(),
            tables: vec![
                agents::table(agents),
                statuses(standing),
                failures(standing),
            ],
        }
    }
}

fn statuses(standing: &Standing<'_>) -> ExtraTable {
    let rows = standing.statuses.iter();
    ExtraTable {
        title: "Statuses".to_owned(),
        head: vec!["status".to_owned(), "responses".to_owned()],
        rows: rows
            .map(|(status, count)| vec![status.to_string(), grouped(*count)])
            .collect(),
    }
}

fn failures(standing: &Standing<'_>) -> ExtraTable {
    let rows = standing.failures.iter();
    ExtraTable {
        title: "Failures".to_owned(),
        head: vec!["failure".to_owned(), "number".to_owned()],
        rows: rows
            .map(|failure| {
                let name = format!("{} {}", failure.phase, failure.kind);
                vec![name, grouped(failure.count)]
            })
            .collect(),
    }
}
