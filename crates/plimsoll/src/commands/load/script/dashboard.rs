//! The dashboard of a script's run: by `--dashboard`, or by the variables and the output of k6's web dashboard.

use std::cell::RefCell;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use plimsoll_k6::{Outcome, RunProgress};
use plimsoll_model::{DurationText, grouped, parse_duration};
use plimsoll_report::dashboard::{Chart, Dashboard, Timeline};
use plimsoll_report::files::ExtraTable;
use plimsoll_report::page::Card;
use plimsoll_report::page::{short_bytes, short_number, short_share, short_time};
use serde_json::Value;

use super::super::agents;
use super::options::switch;
use super::report;
use crate::dashboard::{DashboardServer, PORT};
use crate::problem::Problem;
use crate::terminal;

/// What is wanted of a dashboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DashboardPlan {
    /// Where its parts come from.
    flag: &'static str,
    /// The address of the server; absent for the file alone.
    address: Option<String>,
    /// The least time between two pictures.
    period: Duration,
    /// Whether a browser is started.
    opens: bool,
    /// The file that has the page at the end.
    export: Option<PathBuf>,
}

/// The time between two pictures, unless `K6_WEB_DASHBOARD_PERIOD` says otherwise.
const PERIOD: Duration = Duration::from_secs(1);

/// The output of k6 that is the dashboard.
pub(super) const OUTPUT: &str = "web-dashboard";

/// The prefix of the variables of k6's dashboard.
const VARIABLE: &str = "K6_WEB_DASHBOARD";

impl DashboardPlan {
    /// - `flag`: the address of `--dashboard`.
    /// - `output`: the settings of `--out web-dashboard=…`, if it is there.
    /// - `variable`: the value of a variable of the environment.
    pub(super) fn read(
        flag: Option<&str>,
        output: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, Problem> {
        let settings = output.unwrap_or_default().split('&');
        let settings: Vec<_> = settings
            .filter(|it| !it.is_empty())
            .map(|it| it.split_once('=').unwrap_or((it, "")))
            .collect();
        if let Some((key, _)) = settings
            .iter()
            .find(|(key, _)| !["host", "port", "period", "open", "export"].contains(key))
        {
            let message = format!(
                "`{OUTPUT}` has no setting `{key}`: there are host, port, period, open and export"
            );
            return Err(Problem::with("--out", message));
        }
        let get = |key: &str| {
            let given = settings.iter().find(|(name, _)| *name == key);
            let given = given.map(|(_, value)| (*value).to_owned());
            given.or_else(|| variable(&format!("{VARIABLE}_{}", key.to_uppercase())))
        };
        let wrong = |key: &str, message: String| {
            Problem::with(&format!("{VARIABLE}_{}", key.to_uppercase()), message)
        };
        let truth = |key: &str, text: &str| {
            switch(text).ok_or_else(|| wrong(key, format!("`{text}` is neither true nor false")))
        };
        let is_on = match variable(VARIABLE) {
            Some(text) => switch(&text).ok_or_else(|| {
                Problem::with(VARIABLE, format!("`{text}` is neither true nor false"))
            })?,
            None => false,
        };
        if flag.is_none() && output.is_none() && !is_on {
            return Ok(None);
        }
        let address = match (flag, get("port").as_deref()) {
            (Some(address), _) => Some(address.to_owned()),
            // As in k6.
            (None, Some("-1")) => None,
            (None, port) => {
                let port = match port {
                    Some(text) => text
                        .parse::<u16>()
                        .map_err(|_| wrong("port", format!("`{text}` is no port")))?,
                    None => PORT,
                };
                let host = get("host").unwrap_or_else(|| "localhost".to_owned());
                Some(format!("{host}:{port}"))
            }
        };
        let period = match get("period") {
            Some(text) => {
                parse_duration(&text).map_err(|error| wrong("period", error.to_string()))?
            }
            None => PERIOD,
        };
        Ok(Some(Self {
            flag: if flag.is_some() {
                "--dashboard"
            } else {
                VARIABLE
            },
            address,
            period,
            opens: get("open").is_some_and(|text| truth("open", &text).unwrap_or(false)),
            export: get("export").map(PathBuf::from),
        }))
    }
}

const CHARTS: &[Chart] = &[
    Chart {
        title: "Requests and iterations per second",
        write: short_number,
        is_logarithmic: false,
        lines: &["requests", "iterations"],
    },
    Chart {
        title: "Duration of requests",
        write: milliseconds,
        is_logarithmic: true,
        lines: &["p50", "p95", "p99", "max"],
    },
    Chart {
        title: "Virtual users",
        write: short_number,
        is_logarithmic: false,
        lines: &["active", "initialised"],
    },
    Chart {
        title: "Failed requests",
        write: short_share,
        is_logarithmic: false,
        lines: &["failed"],
    },
    Chart {
        title: "Duration of iterations",
        write: milliseconds,
        is_logarithmic: true,
        lines: &["p50", "p95", "p99", "max"],
    },
    Chart {
        title: "Bytes per second",
        write: short_bytes,
        is_logarithmic: false,
        lines: &["received", "sent"],
    },
];

fn milliseconds(value: f64) -> String {
    short_time(value * 1e3)
}

/// With three figures.
fn rounded(millis: f64) -> String {
    let time = Duration::try_from_secs_f64(millis / 1e3).unwrap_or_default();
    DurationText(time).to_string()
}

/// A dashboard that follows a run.
#[derive(Debug)]
pub(super) struct RunDashboard {
    plan: DashboardPlan,
    script: String,
    server: Option<DashboardServer>,
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    timeline: Timeline,
    /// Of the last progress.
    last: RunProgress,
    /// When it was shown last.
    shown: Duration,
    has_ended: bool,
}

impl State {
    /// Takes over the figures of the end, which the last progress did not have yet.
    ///
    /// - `data`: of the summary.
    fn take_over(&mut self, data: &Value) {
        let value = |metric: &str, key: &str| data["metrics"][metric]["values"][key].as_f64();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "they are counts"
        )]
        let count = |metric: &str, key: &str| value(metric, key).unwrap_or_default() as u64;
        let last = &mut self.last;
        last.requests = count("http_reqs", "count");
        last.completed = count("iterations", "count");
        last.failed = value("http_req_failed", "rate").unwrap_or_default();
        last.checks = (
            count("checks", "passes"),
            count("checks", "passes") + count("checks", "fails"),
        );
        let duration = |key: &str| value("http_req_duration", key);
        last.duration = duration("med").zip(duration("p(95)")).or(last.duration);
        if let Some(millis) = data["state"]["testRunDurationMs"].as_f64() {
            last.at = Duration::try_from_secs_f64(millis / 1e3).unwrap_or(last.at);
        }
        last.agents
            .iter_mut()
            .for_each(|agent| agent.is_over = true);
        self.has_ended = true;
    }
}

impl RunDashboard {
    pub(super) fn start(plan: DashboardPlan, script: &str) -> Result<Self, Problem> {
        let mut dashboard = Self {
            script: script.to_owned(),
            server: None,
            state: RefCell::new(State {
                timeline: Timeline::new(CHARTS),
                last: RunProgress::default(),
                shown: Duration::ZERO,
                has_ended: false,
            }),
            plan,
        };
        if let Some(address) = &dashboard.plan.address {
            let first = dashboard.picture("starting");
            let server = DashboardServer::listen(dashboard.plan.flag, address, &first)?;
            if dashboard.plan.opens {
                open(&server.url());
            }
            dashboard.server = Some(server);
        }
        Ok(dashboard)
    }

    /// The URL of the page, if it is served.
    pub(super) fn url(&self) -> Option<String> {
        self.server.as_ref().map(DashboardServer::url)
    }

    /// Takes over how far the run is.
    pub(super) fn show(&self, progress: &RunProgress) {
        let is_due = {
            let mut state = self.state.borrow_mut();
            let seconds = progress.at.saturating_sub(state.last.at).as_secs_f64();
            let rate = |count: f64| (seconds > 0.0).then(|| count / seconds);
            let recent = &progress.recent;
            let trend = |trend: Option<plimsoll_k6::TrendFigures>| {
                let of = |pick: fn(plimsoll_k6::TrendFigures) -> f64| trend.map(pick);
                [
                    of(|it| it.median),
                    of(|it| it.p95),
                    of(|it| it.p99),
                    of(|it| it.max),
                ]
            };
            let mut values = vec![rate(recent.requests), rate(recent.iterations)];
            values.extend(trend(recent.duration));
            values.extend([progress.active, progress.initialised].map(|it| Some(it as f64)));
            values.push(recent.failed);
            values.extend(trend(recent.iteration));
            values.extend([rate(recent.received), rate(recent.sent)]);
            state.timeline.add(progress.at, &values);
            state.last = progress.clone();
            let is_due = progress.at.saturating_sub(state.shown) + Duration::from_millis(100)
                >= self.plan.period;
            if is_due {
                state.shown = progress.at;
            }
            is_due
        };
        if let (Some(server), true) = (&self.server, is_due) {
            server.show(&self.picture("running"));
        }
    }

    /// Shows the end of the run, and writes the page to its file.
    pub(super) fn end(self, outcome: &Outcome) -> Result<(), Problem> {
        let state = match outcome.exit.number() {
            0 => "ended".to_owned(),
            99 => "ended: thresholds were breached".to_owned(),
            105 => "stopped by a signal".to_owned(),
            code => format!("ended with exit code {code}"),
        };
        if let Some(data) = &outcome.data {
            self.state.borrow_mut().take_over(data);
        }
        let mut picture = self.picture(&state);
        picture.progress = Some(1.0);
        if let Some(data) = &outcome.data {
            let agents = picture.tables.drain(..1);
            let all = agents.chain(report::tables(data));
            picture.tables = all.collect();
        }
        let page = self.plan.export.is_some().then(|| picture.page());
        if let Some(server) = self.server {
            server.end(&picture);
        }
        let (Some(path), Some(page)) = (&self.plan.export, page) else {
            return Ok(());
        };
        std::fs::write(path, page).map_err(|error| {
            let message = format!("cannot write {}: {error}", path.display());
            Problem::with("K6_WEB_DASHBOARD_EXPORT", message)
        })
    }

    fn picture(&self, state: &str) -> Dashboard {
        let kept = self.state.borrow();
        let progress = &kept.last;
        let recent = &progress.recent;
        let mut tiles = vec![Card::new("requests", grouped(progress.requests))];
        if !kept.has_ended {
            tiles.push(Card::new(
                "requests in the last second",
                short_number(recent.requests),
            ));
        }
        if let Some((median, p95)) = progress.duration {
            tiles.push(Card::new("duration, median", rounded(median)));
            tiles.push(Card::new("duration, p95", rounded(p95)));
            let failed = short_share((progress.failed * 1e4).round() / 1e4);
            tiles.push(Card::new("failed requests", failed).bad_if(progress.failed > 0.0));
        }
        tiles.push(Card::new("iterations", grouped(progress.completed)));
        if !kept.has_ended {
            let users = format!("{} of {}", progress.active, progress.initialised);
            tiles.push(Card::new("virtual users", users));
        }
        if progress.checks.1 > 0 {
            let (passed, all) = progress.checks;
            let text = format!("{} of {}", grouped(passed), grouped(all));
            tiles.push(Card::new("checks passed", text).bad_if(passed < all));
        }
        let ends = progress.scenarios.iter().map(|it| it.start + it.length);
        let end = ends.max().unwrap_or_default();
        let share = progress.at.as_secs_f64() / end.as_secs_f64().max(1e-3);
        let by_work = progress.scenarios.iter().map(|it| it.share);
        let by_work = by_work.fold(1.0, f64::min);
        Dashboard {
            title: self.script.clone(),
            state: format!(
                "{state}, {}",
                short_time(progress.at.as_secs_f64().round() * 1e6)
            ),
            progress: (!progress.scenarios.is_empty()).then(|| share.max(by_work)),
            tiles,
            plots: kept.timeline.plots(),
            tables: vec![agents::table(&progress.agents), scenarios(progress)],
        }
    }
}

fn scenarios(progress: &RunProgress) -> ExtraTable {
    let rows = progress.scenarios.iter().map(|scenario| {
        vec![
            scenario.name.clone(),
            scenario.executor.to_owned(),
            short_share((scenario.share * 100.0).round() / 100.0),
            format!("{} of {}", scenario.vus.0, scenario.vus.1),
            short_number(scenario.completed as f64),
            short_number(scenario.dropped as f64),
        ]
    });
    let head = [
        "scenario",
        "executor",
        "done",
        "virtual users",
        "iterations",
        "dropped",
    ];
    ExtraTable {
        title: "Scenarios".to_owned(),
        head: head.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}

/// Starts the browser of the desktop.
fn open(url: &str) {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let started = Command::new(program)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Err(error) = started {
        let message = format!("cannot start {program}: {error}; open {url} yourself");
        terminal::print_warnings(&[Problem::with("K6_WEB_DASHBOARD_OPEN", message)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        flag: Option<&str>,
        output: Option<&str>,
        variables: &[(&str, &str)],
    ) -> Result<Option<DashboardPlan>, Problem> {
        DashboardPlan::read(flag, output, |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn variables_of_k6_describe_the_dashboard() {
        let on = ("K6_WEB_DASHBOARD", "true");
        assert_eq!(
            read(None, None, &[("K6_WEB_DASHBOARD_PORT", "1")]),
            Ok(None)
        );
        let plan = read(None, None, &[on]).unwrap().unwrap();
        assert_eq!(plan.address.as_deref(), Some("localhost:5665"));
        let variables = [
            on,
            ("K6_WEB_DASHBOARD_HOST", "0.0.0.0"),
            ("K6_WEB_DASHBOARD_PORT", "0"),
            ("K6_WEB_DASHBOARD_PERIOD", "5s"),
            ("K6_WEB_DASHBOARD_EXPORT", "a.html"),
        ];
        let plan = read(None, None, &variables).unwrap().unwrap();
        assert_eq!(plan.address.as_deref(), Some("0.0.0.0:0"));
        assert_eq!(plan.period, Duration::from_secs(5));
        assert_eq!(plan.export, Some(PathBuf::from("a.html")));
        let plan = read(None, None, &[on, ("K6_WEB_DASHBOARD_PORT", "-1")]);
        assert_eq!(plan.unwrap().unwrap().address, None);
        assert!(read(None, None, &[on, ("K6_WEB_DASHBOARD_PORT", "x")]).is_err());
        assert!(read(None, None, &[("K6_WEB_DASHBOARD", "perhaps")]).is_err());
    }

    #[test]
    fn an_output_has_its_own_settings_and_a_flag_goes_first() {
        let plan = read(None, Some("port=7&period=2s"), &[]).unwrap().unwrap();
        assert_eq!(plan.address.as_deref(), Some("localhost:7"));
        assert_eq!(plan.period, Duration::from_secs(2));
        assert!(read(None, Some("colour=red"), &[]).is_err());
        let plan = read(Some(":9"), Some("port=7"), &[]).unwrap().unwrap();
        assert_eq!(plan.address.as_deref(), Some(":9"));
    }
}
