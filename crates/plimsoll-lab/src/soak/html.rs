//! A soak as a page: verdicts, and for each scenario its plots and series.

use std::fmt::Write as _;

use plimsoll_model::{counted, escaped_html, grouped};
use plimsoll_report::page::{Card, cards, html_page, short_bytes, short_number, short_time};
use plimsoll_report::plot::{Axis, Line, Plot};

use super::outcome::{ScenarioResult, Soak};
use super::series::{Kind, Series};
use super::text::{by_thirds, next_step, per_response, signed, time, value};
use super::verdict::Verdict;
use crate::pages::{write_conditions, write_marks};

const IN_MEMORY: &str = "writing to memory does not fail";

/// Plots of metrics in one scenario; the table has them all.
const MOST_PLOTS: usize = 12;

/// The page.
pub fn to_html(soak: &Soak) -> String {
    let title = format!("Soak of {}", soak.name);
    let mut page = String::new();
    write!(
        page,
        "<header><h1>{}</h1><p class=\"shape\">{} of {}, sampled every {}, scale {}</p>",
        escaped_html(&title),
        counted(soak.scenarios.len() as u64, "scenario"),
        time(soak.duration_secs),
        time(soak.sample_secs),
        soak.scale
    )
    .expect(IN_MEMORY);
    write_marks(&mut page, &soak.conditions.warnings);
    page.push_str("</header>\n");
    write_cards(&mut page, soak);
    overview(&mut page, soak);
    for scenario in &soak.scenarios {
        section(&mut page, scenario);
    }
    write_conditions(&mut page, &soak.conditions);
    page.push_str(
        "<footer><p>Growth is that of the line by Theil and Sen behind the warm-up, the first tenth of the time. A series \
         drifts if it grew by more than is allowed (5 % of its level, at least 1 MiB or 4) and still grows in the last \
         third, and if its troughs rise too. By thirds: the last third's median is more than 10 % above the first's, and \
         most differences are not negative.</p></footer>\n",
    );
    html_page(&title, &page)
}

fn write_cards(page: &mut String, soak: &Soak) {
    let count = |verdict| {
        let with = soak.scenarios.iter().filter(|it| it.verdict() == verdict);
        with.count().to_string()
    };
    let verdict = soak.verdict();
    page.push_str(&cards(&[
        Card::new("verdict", verdict.name()).judged(verdict.judgement()),
        Card::new("bounded", count(Verdict::Bounded)),
        Card::new("inconclusive", count(Verdict::Inconclusive)),
        Card::new("drifting", count(Verdict::Drift)),
    ]));
}

fn overview(page: &mut String, soak: &Soak) {
    page.push_str(
        "<section><h2>Scenarios</h2><div class=\"wide\"><table><thead><tr><th>scenario</th><th>verdict</th><th>by thirds</th>\
         <th>deciding series</th><th>growth per hour</th><th>responses</th><th>failed</th></tr></thead><tbody>",
    );
    for scenario in &soak.scenarios {
        let sum = |of: fn(&super::outcome::LoadTally) -> u64| {
            grouped(scenario.loads.iter().map(of).sum::<u64>() as f64)
        };
        let deciding = scenario.deciding();
        write!(
            page,
            "<tr><th>{}</th><td class=\"{}\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escaped_html(&scenario.name),
            scenario.verdict().judgement().class(),
            scenario.verdict().name(),
            by_thirds(scenario).name(),
            escaped_html(deciding.map_or("", |it| &it.name)),
            deciding.map_or_else(String::new, |it| signed(it.kind, it.assessment.per_hour[0])),
            sum(|load| load.ok),
            sum(|load| load.failed),
        )
        .expect(IN_MEMORY);
    }
    page.push_str("</tbody></table></div></section>\n");
}

fn section(page: &mut String, scenario: &ScenarioResult) {
    write!(
        page,
        "<section><h2>{}: <span class=\"{}\">{}</span></h2>",
        escaped_html(&scenario.name),
        scenario.verdict().judgement().class(),
        scenario.verdict().name()
    )
    .expect(IN_MEMORY);
    let mut marks: Vec<String> = scenario.failure.iter().cloned().collect();
    marks.extend(scenario.series.iter().filter_map(|series| {
        let it = &series.assessment;
        let growth = per_response(scenario, series).map(|growth| format!(", {growth}"));
        let next = next_step(series).map(|step| format!("; next: {step}"));
        (it.verdict != Verdict::Bounded).then(|| {
            let [growth, next] = [growth, next].map(Option::unwrap_or_default);
            format!("{}: {}{growth}{next}", series.name, it.note)
        })
    }));
    write_marks(page, &marks);
    page.push_str("</section>\n<section class=\"plots\">\n");
    for plot in plots(scenario).iter().filter(|plot| !plot.is_empty()) {
        page.push_str(&plot.html());
    }
    page.push_str("</section>\n<section>");
    series_table(page, scenario);
    page.push_str("</section>\n");
}

fn plots(scenario: &ScenarioResult) -> Vec<Plot> {
    let named = |name: &str| scenario.samples.iter().find(|it| it.name == name);
    let line = |label: &str, series: &Series| Line {
        label: label.to_owned(),
        points: micros(&series.points),
        is_dots: false,
    };
    let lines = |names: &[(&str, &str)]| -> Vec<Line> {
        let known = names.iter();
        known
            .filter_map(|(name, label)| Some(line(label, named(name)?)))
            .collect()
    };
    let cores = Line {
        label: "cores".to_owned(),
        points: micros(&scenario.cores),
        is_dots: false,
    };
    let mut plots = vec![
        over_time(
            "Memory",
            short_bytes,
            lines(&[("anonymous_bytes", "anonymous"), ("file_bytes", "file")]),
        ),
        over_time(
            "Descriptors and threads",
            short_number,
            lines(&[("descriptors", "descriptors"), ("threads", "threads")]),
        ),
        over_time("Cores in use", short_number, vec![cores]),
    ];
    let of_processes = ["anonymous_bytes", "file_bytes", "descriptors", "threads"];
    let metrics = scenario
        .samples
        .iter()
        .filter(|series| !of_processes.contains(&series.name.as_str()));
    // A constant series makes no useful plot.
    let moving = metrics.filter(|series| {
        let known = series.known();
        known
            .windows(2)
            .any(|pair| (pair[0].1 - pair[1].1).abs() > 0.0)
    });
    plots.extend(moving.take(MOST_PLOTS).map(|series| {
        let write = match series.kind {
            Kind::Memory => short_bytes,
            Kind::Gauge | Kind::Counter | Kind::Zero => short_number,
        };
        over_time(&series.name, write, vec![line("", series)])
    }));
    plots
}

fn over_time(title: &str, write: fn(f64) -> String, lines: Vec<Line>) -> Plot {
    Plot {
        title: title.to_owned(),
        x: Axis::Time(short_time),
        across: "time since the start",
        y: Axis::Linear(write),
        lines,
        shaded: Vec::new(),
        bands: Vec::new(),
    }
}

/// The plots' time is in microseconds.
fn micros(points: &[(f64, Option<f64>)]) -> Vec<(f64, Option<f64>)> {
    points
        .iter()
        .map(|(at, value)| (at * 1e6, *value))
        .collect()
}

fn series_table(page: &mut String, scenario: &ScenarioResult) {
    page.push_str(
        "<div class=\"wide\"><table><thead><tr><th>series</th><th>verdict</th><th>shape</th><th>by thirds</th><th>first</th>\
         <th>last</th><th>least</th><th>most</th><th>growth</th><th>allowed</th><th>per hour</th></tr></thead><tbody>",
    );
    for series in &scenario.series {
        let it = &series.assessment;
        let shown = |number| value(series.kind, number);
        write!(
            page,
            "<tr><th>{}</th><td class=\"{}\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td>{}</td><td>{}</td><td>{}</td></tr>",
            escaped_html(&series.name),
            it.verdict.judgement().class(),
            it.verdict.name(),
            it.shape.name(),
            series.by_thirds.name(),
            shown(it.first),
            shown(it.last),
            shown(it.least),
            shown(it.most),
            signed(series.kind, it.growth),
            shown(it.allowed),
            signed(series.kind, it.per_hour[0]),
        )
        .expect(IN_MEMORY);
    }
    page.push_str("</tbody></table></div>");
}
