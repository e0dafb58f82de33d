//! A load line as a page: the line, the plots, the windows, the conditions.

use plimsoll_model::{Bounded, escaped_html, rate_figures};
use std::fmt::Write as _;

use plimsoll_report::page::{
    Card, Judgement, cards, html_page, short_bytes, short_number, short_time,
};
use plimsoll_report::plot::{Axis, Line as PlotLine, Plot};

use super::figures::{HEADINGS, NOTHING, Row, law, rows, sentence, shown};
use super::limit::limit;
use super::outcome::{Line, Window};
use super::search::SearchEnd;
use crate::pages::{write_conditions, write_marks};

const IN_MEMORY: &str = "writing to memory does not fail";

/// Points of the fitted curve.
const CURVE: usize = 80;

/// The page.
pub fn to_html(line: &Line) -> String {
    let title = format!("Load line of {} {}", line.method, line.url);
    let mut page = String::new();
    head(&mut page, line, &title);
    write_cards(&mut page, line);
    page.push_str("<section class=\"plots\">\n");
    let plots = [
        Some(held(line)),
        latency(line),
        cost(line),
        throughput(line),
        scaling(line),
        memory(line),
    ];
    for plot in plots.iter().flatten().filter(|plot| !plot.is_empty()) {
        page.push_str(&plot.html());
    }
    page.push_str("</section>\n");
    table(&mut page, line);
    write_conditions(&mut page, &line.conditions);
    page.push_str(
        "<footer><p>Latency runs from the intended start. The line is where a window keeps the \
         objectives as often as not, by isotonic regression; its interval is exact, by sign tests. \
         Figures of a rate are medians over its windows. In flight is throughput times mean latency \
         from the actual start.</p></footer>\n",
    );
    html_page(&title, &page)
}

fn head(page: &mut String, line: &Line, title: &str) {
    let objectives: Vec<String> = line
        .objectives
        .iter()
        .map(|objective| format!("<code>{}</code>", escaped_html(objective.text())))
        .collect();
    write!(
        page,
        "<header><h1>{}</h1><p class=\"shape\">{} windows of {:?}, {} at each rate about the line, {} \
         connections, objectives {}</p><p>{}</p>",
        escaped_html(title),
        line.windows.len(),
        line.window,
        line.rounds,
        line.found.connections,
        objectives.join(", "),
        escaped_html(&sentence(line)),
    )
    .expect(IN_MEMORY);
    if let Some(limit) = limit(line) {
        write!(page, "<p>Limited by {}.</p>", escaped_html(&limit)).expect(IN_MEMORY);
    }
    if let SearchEnd::Generator { .. } = line.found.ended {
        page.push_str(
            "<p class=\"mark limit\">The generator was the limit: the target may carry more.</p>",
        );
    }
    write_marks(page, &line.conditions.warnings);
    page.push_str("</header>\n");
}

fn write_cards(page: &mut String, line: &Line) {
    let mut tiles = Vec::new();
    if let Some(shown) = shown(line) {
        tiles.push(
            Card::new(
                "load line",
                format!("{}/s [{}]", shown.rate, shown.interval),
            )
            .with_note(Judgement::Neutral, "95 % interval in brackets"),
        );
    }
    if let Some(held) = line.found.held_up_to {
        tiles.push(Card::new("held up to", format!("{}/s", rate_figures(held))));
    }
    if let Some(knee) = line.knee {
        tiles.push(Card::new("knee", format!("{}/s", rate_figures(knee))));
    }
    let below = rows(line.searched())
        .into_iter()
        .rfind(|row| line.found.held_up_to.is_some_and(|held| row.rate <= held));
    if let Some(row) = below {
        let cells = row.cells();
        for (label, column) in [("p99 there, in the search", 4), ("CPU µs/request there", 7)] {
            if cells[column] != NOTHING {
                tiles.push(Card::new(label, cells[column].clone()));
            }
        }
    }
    page.push_str(&cards(&tiles));
}

/// The interval, to be shaded.
fn interval(line: &Line) -> Vec<(f64, f64)> {
    match line.found.ended {
        SearchEnd::Line(boundary) => boundary.low.zip(boundary.high).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The name of a line, and its value at each rate.
type Series = (&'static str, fn(&Row) -> Option<f64>);

fn over_rate(
    line: &Line,
    title: &str,
    write: fn(f64) -> String,
    series: &[Series],
) -> Option<Plot> {
    let rows = rows(line.searched());
    let lines: Vec<PlotLine> = series
        .iter()
        .map(|(label, value)| PlotLine {
            label: (*label).to_owned(),
            points: rows
                .iter()
                .filter_map(|row| Some((row.rate, Some(value(row)?))))
                .collect(),
            is_dots: false,
        })
        .filter(|line| !line.points.is_empty())
        .collect();
    (!lines.is_empty()).then(|| Plot {
        title: title.to_owned(),
        x: Axis::Time(short_number),
        across: "target rate, requests per second",
        y: Axis::Linear(write),
        lines,
        shaded: interval(line),
        bands: Vec::new(),
    })
}

fn latency(line: &Line) -> Option<Plot> {
    let mut plot = over_rate(
        line,
        "Latency by rate",
        short_time,
        &[
            // A lower bound is no point of a curve.
            ("p50", |row| row.p50_us.and_then(Bounded::known)),
            ("p99", |row| row.p99_us.and_then(Bounded::known)),
        ],
    )?;
    plot.y = Axis::Logarithmic(short_time);
    let bounds = rows(line.searched());
    let bounds = bounds.iter().filter_map(|row| {
        let p99 = row.p99_us.filter(|p99| p99.known().is_none())?;
        Some((row.rate, Some(p99.low())))
    });
    let bounds = PlotLine {
        label: "p99, at least".to_owned(),
        points: bounds.collect(),
        is_dots: true,
    };
    if !bounds.points.is_empty() {
        plot.lines.push(bounds);
    }
    Some(plot)
}

fn throughput(line: &Line) -> Option<Plot> {
    over_rate(
        line,
        "Responses per second by rate",
        short_number,
        &[
            ("ok/s", |row| row.throughput),
            ("target rate", |row| Some(row.rate)),
        ],
    )
}

fn cost(line: &Line) -> Option<Plot> {
    over_rate(
        line,
        "CPU µs per request by rate",
        short_number,
        // The generator's own cost says nothing of the target.
        &[("target", |row| row.cpu_us)],
    )
}

/// Memory by time and not by rate: it grows with all that came before.
fn memory(line: &Line) -> Option<Plot> {
    let points: Vec<_> = line
        .windows
        .iter()
        .filter_map(|window| {
            let bytes = window.peak_memory_bytes?;
            Some((window.began.as_secs_f64(), Some(bytes as f64)))
        })
        .collect();
    (!points.is_empty()).then(|| Plot {
        title: "Memory of the target, peak of each window".to_owned(),
        x: Axis::Time(|seconds| short_time(seconds * 1e6)),
        across: "time since the start of the search",
        y: Axis::Linear(short_bytes),
        lines: vec![PlotLine {
            label: "peak".to_owned(),
            points,
            // Windows of the search and of its confirmation have different lengths.
            is_dots: true,
        }],
        shaded: Vec::new(),
        bands: Vec::new(),
    })
}

/// Each window: whether it held, and how near it was to the limit.
fn held(line: &Line) -> Plot {
    let dots = |label: &str, windows: &[&Window], is_shown: fn(&Window) -> bool| PlotLine {
        label: label.to_owned(),
        points: windows
            .iter()
            .filter(|window| is_shown(window))
            .map(|window| (window.planned.rate, worst(line, window)))
            .collect(),
        is_dots: true,
    };
    let (searched, long) = (line.searched(), line.confirmations());
    let all = searched.iter().chain(&long).copied().collect();
    let limit = PlotLine {
        label: "limit".to_owned(),
        points: rows(all).iter().map(|row| (row.rate, Some(1.0))).collect(),
        is_dots: false,
    };
    let counts = |window: &Window| window.seen.held || !window.seen.generator_limited;
    let searched: Vec<&Window> = searched.into_iter().filter(|it| counts(it)).collect();
    let dots = [
        dots("held", &searched, |window| window.seen.held),
        dots("broke", &searched, |window| !window.seen.held),
        dots("held, confirmation", &long, |window| window.seen.held),
        dots("broke, confirmation", &long, |window| !window.seen.held),
    ];
    let dots = dots.into_iter().filter(|line| !line.points.is_empty());
    Plot {
        title: "Windows: the worst objective as a multiple of its limit".to_owned(),
        x: Axis::Time(short_number),
        across: "target rate, requests per second",
        y: Axis::Logarithmic(short_number),
        lines: std::iter::once(limit).chain(dots).collect(),
        shaded: interval(line),
        bands: Vec::new(),
    }
}

/// The largest of the objectives' values over their limits, that of the rate among them; those without a ratio are left out.
///
/// A window that broke is never below 1: one whose queue grew is at least there.
fn worst(line: &Line, window: &Window) -> Option<f64> {
    let ratios = line.objectives.iter().zip(&window.values);
    let ratios = ratios.filter_map(|(objective, value)| {
        // Of a lower bound the bound is drawn.
        let margin = objective.margin_percent(Bounded::exact((*value)?.low()))?;
        Some(1.0 - margin / 100.0)
    });
    let broke = (!window.seen.held).then_some(1.0);
    ratios
        .chain(broke)
        .map(|ratio| ratio.max(0.01))
        .reduce(f64::max)
}

fn scaling(line: &Line) -> Option<Plot> {
    let usl = line.usl?;
    let points: Vec<(f64, Option<f64>)> = line
        .searched()
        .into_iter()
        .filter_map(|window| Some((window.in_flight?, Some(window.throughput))))
        .collect();
    let most = points.iter().map(|(n, _)| *n).fold(0.0, f64::max);
    let curve = (0..=CURVE).map(|step| {
        let n = most * step as f64 / CURVE as f64;
        (n, Some(usl.throughput(n)))
    });
    Some(Plot {
        title: "Responses per second by exchanges in flight, with the fitted law".to_owned(),
        x: Axis::Time(short_number),
        across: "exchanges in flight",
        y: Axis::Linear(short_number),
        lines: vec![
            PlotLine {
                label: "fit".to_owned(),
                points: curve.collect(),
                is_dots: false,
            },
            PlotLine {
                label: "windows".to_owned(),
                points,
                is_dots: true,
            },
        ],
        shaded: Vec::new(),
        bands: Vec::new(),
    })
}

fn table(page: &mut String, line: &Line) {
    write!(
        page,
        "<section class=\"n\"><h2>Search, windows of {:?}</h2>",
        line.window
    )
    .expect(IN_MEMORY);
    table_of(page, line.searched());
    let confirmations = line.confirmations();
    if !confirmations.is_empty() {
        let confirm = line.confirm;
        write!(page, "<h2>Confirmation, windows of {confirm:?}</h2>").expect(IN_MEMORY);
        table_of(page, confirmations);
    }
    if let Some(law) = law(line) {
        write!(
            page,
            "<p class=\"shape\">Universal Scalability Law: {}</p>",
            escaped_html(&law)
        )
        .expect(IN_MEMORY);
    }
    page.push_str("</section>\n");
}

fn table_of(page: &mut String, windows: Vec<&Window>) {
    page.push_str("<div class=\"wide\"><table><tr>");
    for heading in HEADINGS {
        write!(page, "<th>{heading}</th>").expect(IN_MEMORY);
    }
    page.push_str("</tr>");
    let rows = rows(windows);
    for row in &rows {
        page.push_str("<tr>");
        for cell in row.cells() {
            write!(page, "<td>{}</td>", escaped_html(&cell)).expect(IN_MEMORY);
        }
        page.push_str("</tr>");
    }
    page.push_str("</table></div>");
    if rows.iter().any(|row| row.generator_limited > 0) {
        page.push_str("<p class=\"shape\">* broke by the generator's limit, and not counted</p>");
    }
}
