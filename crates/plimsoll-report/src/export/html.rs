//! A page that needs nothing else: figures, plots, tables, conditions.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plimsoll_model::{Bounded, Phase, counted, escaped_html, shell_line};

use super::Exporter;
use super::agents;
use super::requests;
use super::servers;
use super::table::{
    NOTHING, Table, capital, details, exchanges, margin, principal, saturation, shape,
    threshold_value,
};
use crate::RunRecord;
use crate::document::{ObservedTickDocument, TickDocument};
use crate::page::{Card, cards, html_page, short_bytes, short_number, short_time, unbroken};
use crate::plot::{Axis, COLOURS, Cell, HeatMap, Line, Plot, Stack, TIME};

/// One page, light or dark as the reader prefers, without a script.
#[derive(Debug, Clone, Copy)]
pub struct Html;

/// More points than a line can show are drawn together.
pub(crate) const MOST_POINTS: usize = 600;

/// As many columns as a heat map has room for.
const MOST_COLUMNS: usize = 180;

const IN_MEMORY: &str = "writing to memory does not fail";

impl Exporter for Html {
    fn name(&self) -> &'static str {
        "html"
    }

    fn media_type(&self) -> &'static str {
        "text/html; charset=utf-8"
    }

    fn export(&self, runs: &[RunRecord]) -> Vec<u8> {
        let mut page = String::new();
        let title = match runs {
            [run] => of_one(run),
            runs => format!("{} runs", runs.len()),
        };
        write!(page, "<header><h1>{}</h1>", escaped_html(&title)).expect(IN_MEMORY);
        for (number, run) in runs.iter().enumerate() {
            head(&mut page, run, number, runs.len());
        }
        page.push_str("</header>\n");
        if let [run] = runs {
            page.push_str(&cards(&principal_cards(run)));
        } else {
            write_table(&mut page, &principal(runs), runs);
        }
        thresholds(&mut page, runs);
        for run in runs {
            agents(&mut page, run, runs.len());
            servers(&mut page, run, runs.len());
            requests(&mut page, run, runs.len());
        }
        plots(&mut page, runs);
        page.push_str("<section class=\"tables\">\n");
        for table in details(runs) {
            write_table(&mut page, &table, runs);
        }
        page.push_str("</section>\n<footer>");
        for run in runs {
            let command = shell_line(&run.summary.conditions.command);
            write!(page, "<pre>{}</pre>", escaped_html(&command)).expect(IN_MEMORY);
        }
        page.push_str(
            "<p>Percentiles are nearest-rank from HdrHistograms with three significant figures. \
             Latency runs from the intended start in an open loop and includes opening a \
             connection.</p></footer>\n",
        );
        html_page(&title, &page).into_bytes()
    }
}

/// Method and URL, with the number of other URLs if there are several.
fn of_one(run: &RunRecord) -> String {
    let load = &run.summary.load;
    let others = match load.urls {
        0 | 1 => String::new(),
        urls => format!(" and {}", counted(urls as u64 - 1, "other URL")),
    };
    format!("{} {}{others}", load.method, load.url)
}

/// Name, load, and what a reader must know before anything else.
fn head(page: &mut String, run: &RunRecord, number: usize, of: usize) {
    let name = if of > 1 {
        let target = format!("{} {}", run.summary.load.method, run.summary.load.url);
        format!(
            "<b class=\"k{}\">{}</b> {}, ",
            number % COLOURS,
            escaped_html(&run.name),
            escaped_html(&target)
        )
    } else {
        String::new()
    };
    write!(
        page,
        "<p class=\"shape\">{name}{}</p>",
        escaped_html(&shape(run))
    )
    .expect(IN_MEMORY);
    if let Some(text) = saturation(run) {
        write!(page, "<p class=\"mark limit\">{}</p>", escaped_html(&text)).expect(IN_MEMORY);
    }
    let mut marks = run.summary.conditions.warnings.clone();
    if run.summary.interrupted {
        marks.push("interrupted: what was measured until then is shown".to_owned());
    }
    if !marks.is_empty() {
        page.push_str("<ul class=\"mark\">");
        for mark in marks {
            write!(page, "<li>{}</li>", escaped_html(&mark)).expect(IN_MEMORY);
        }
        page.push_str("</ul>");
    }
}

fn principal_cards(run: &RunRecord) -> Vec<Card> {
    let table = principal(std::slice::from_ref(run));
    let card = |(label, cells): &(String, Vec<String>)| {
        let cell = cells.first().map_or(NOTHING, String::as_str);
        let is_error = matches!(label.as_str(), "errors" | "failed" | "error statuses");
        Card::new(label, cell).bad_if(is_error && cell != "0")
    };
    table.rows.iter().map(card).collect()
}

fn thresholds(page: &mut String, runs: &[RunRecord]) {
    if runs.iter().all(|run| run.summary.thresholds.is_empty()) {
        return;
    }
    page.push_str("<section><h2>Thresholds</h2><div class=\"wide\"><table>");
    page.push_str("<tr><th>condition</th><th>verdict</th><th>value</th><th>margin</th>");
    if runs.len() > 1 {
        page.push_str("<th>run</th>");
    }
    page.push_str("</tr>");
    for run in runs {
        for threshold in &run.summary.thresholds {
            let is_met = threshold.verdict == "met";
            let mut verdict = threshold.verdict.clone();
            if threshold.ended_run {
                verdict.push_str(", ended the run");
            }
            write!(
                page,
                "<tr><td><code>{}</code></td><td class=\"{}\">{}</td><td>{}</td><td>{}</td>",
                escaped_html(&threshold.threshold),
                if is_met { "good" } else { "bad" },
                escaped_html(&verdict),
                escaped_html(&threshold_value(threshold)),
                threshold.margin_percent.map_or(NOTHING.to_owned(), margin),
            )
            .expect(IN_MEMORY);
            if runs.len() > 1 {
                write!(page, "<td>{}</td>", escaped_html(&run.name)).expect(IN_MEMORY);
            }
            page.push_str("</tr>");
        }
    }
    page.push_str("</table></div></section>\n");
}

/// Figures per request, where there are several.
fn requests(page: &mut String, run: &RunRecord, of: usize) {
    let title = title_of("Requests", run, of);
    rows(page, &title, &requests::COLUMNS, &requests::rows(run));
}

/// The agents side by side, where a fleet made the run.
fn agents(page: &mut String, run: &RunRecord, of: usize) {
    let title = title_of("Agents", run, of);
    rows(page, &title, &agents::COLUMNS, &agents::rows(run));
}

/// The cost of each server, where some were observed by name.
fn servers(page: &mut String, run: &RunRecord, of: usize) {
    let title = title_of("Cost of each server", run, of);
    rows(page, &title, &servers::COLUMNS, &servers::rows(run));
}

/// - `of`: the number of runs.
fn title_of(title: &str, run: &RunRecord, of: usize) -> String {
    match of {
        1 => title.to_owned(),
        _ => format!("{title} of {}", run.name),
    }
}

/// A table whose first column is a name; nothing without rows.
fn rows<const N: usize>(page: &mut String, title: &str, columns: &[&str; N], rows: &[[String; N]]) {
    if rows.is_empty() {
        return;
    }
    write!(
        page,
        "<section class=\"n\"><h2>{}</h2><div class=\"wide\"><table><tr>",
        escaped_html(title)
    )
    .expect(IN_MEMORY);
    for (index, column) in columns.iter().enumerate() {
        let class = if index == 0 { " class=\"name\"" } else { "" };
        write!(page, "<th{class}>{column}</th>").expect(IN_MEMORY);
    }
    page.push_str("</tr>");
    for row in rows {
        let Some((name, cells)) = row.split_first() else {
            continue;
        };
        write!(
            page,
            "<tr><th scope=\"row\" class=\"name\">{}</th>",
            escaped_html(name)
        )
        .expect(IN_MEMORY);
        for cell in cells {
            write!(page, "<td>{}</td>", escaped_html(cell)).expect(IN_MEMORY);
        }
        page.push_str("</tr>");
    }
    page.push_str("</table></div></section>\n");
}

fn write_table(page: &mut String, table: &Table, runs: &[RunRecord]) {
    write!(
        page,
        "<section class=\"t\"><h2>{}</h2><div class=\"wide\"><table>",
        escaped_html(&table.title)
    )
    .expect(IN_MEMORY);
    if runs.len() > 1 {
        page.push_str("<tr><th></th>");
        for (number, run) in runs.iter().enumerate() {
            let colour = number % COLOURS;
            write!(
                page,
                "<th class=\"k{colour}\">{}</th>",
                escaped_html(&run.name)
            )
            .expect(IN_MEMORY);
        }
        page.push_str("</tr>");
    }
    for (label, cells) in &table.rows {
        write!(page, "<tr><th>{}</th>", escaped_html(label)).expect(IN_MEMORY);
        for cell in cells {
            write!(page, "<td>{}</td>", escaped_html(&unbroken(cell))).expect(IN_MEMORY);
        }
        page.push_str("</tr>");
    }
    page.push_str("</table></div></section>\n");
}

fn plots(page: &mut String, runs: &[RunRecord]) {
    page.push_str("<section class=\"plots\">\n");
    let requests = of_ticks(
        runs,
        &format!("{} per second", capital(exchanges(runs))),
        short_number,
        &[("ok/s", |tick| per_second(tick, tick.ok))],
    );
    // Of several runs each has one line; of one run there is room for all percentiles.
    let percentiles: &[Series] = &[
        ("p50", |tick| known(tick, "p50_us", tick.p50_us)),
        ("p90", |tick| known(tick, "p90_us", tick.p90_us)),
        ("p99", |tick| known(tick, "p99_us", tick.p99_us)),
        ("p99.9", |tick| known(tick, "p99_9_us", tick.p99_9_us)),
        ("max", |tick| known(tick, "max_us", tick.max_us)),
    ];
    let (percentiles, title) = if runs.len() > 1 {
        (&percentiles[2..3], "Latency over time, p99")
    } else {
        (percentiles, "Latency over time")
    };
    let mut latency = of_ticks(runs, title, short_time, percentiles);
    latency.y = Axis::Logarithmic(short_time);
    let cpu = of_ticks(
        runs,
        "Server CPU, percent of a core",
        short_number,
        &[("cpu", |tick| tick.target_cpu_percent)],
    );
    let memory = of_ticks(
        runs,
        "Server memory",
        short_bytes,
        &[("rss", |tick| {
            tick.target_memory_bytes.map(|bytes| bytes as f64)
        })],
    );
    let servers = [
        of_servers(
            runs,
            "CPU of each server, percent of a core",
            short_number,
            |tick| tick.cpu_percent,
        ),
        of_servers(runs, "Memory of each server", short_bytes, |tick| {
            tick.memory_bytes.map(|bytes| bytes as f64)
        }),
    ];
    let in_flight = in_flight(runs);
    let failures = of_ticks(
        runs,
        "Errors",
        short_number,
        // Numbers, not rates: requests that are given up at the end are errors of the grace period.
        &[("errors", |tick| Some(errors(tick) as f64))],
    );
    let has_failures = runs.iter().any(|run| run.summary.counts.errors > 0);
    let mut all = Vec::new();
    if runs.iter().any(|run| run.summary.events.is_some()) {
        all.push(of_ticks(
            runs,
            "Events per second",
            short_number,
            &[("events/s", |tick| per_second(tick, tick.events))],
        ));
    }
    all.extend([requests, latency, distribution(runs), cpu, memory]);
    all.extend(servers);
    all.push(in_flight);
    if has_failures {
        all.push(failures);
    }
    for plot in all.iter().filter(|plot| !plot.is_empty()) {
        page.push_str(&plot.html());
    }
    for run in runs {
        let of = if runs.len() > 1 {
            format!(", {}", run.name)
        } else {
            String::new()
        };
        let phases = phases(run, format!("Phases, time per response{of}"));
        if !phases.is_empty() {
            page.push_str(&phases.html());
        }
        let heat = heat_map(run, format!("Latency over time, by number{of}"));
        if !heat.is_empty() {
            page.push_str(&heat.html());
        }
    }
    page.push_str("</section>\n");
}

/// Exchanges in flight: within a second they change too much for one number, so the most and the fewest are drawn.
///
/// Results without these have no plot: a number at the end of each second is that of a random moment.
fn in_flight(runs: &[RunRecord]) -> Plot {
    let both: &[Series] = &[
        ("most in a second", |tick| {
            tick.in_flight_most.map(|count| count as f64)
        }),
        ("fewest", |tick| {
            tick.in_flight_least.map(|count| count as f64)
        }),
    ];
    let (series, title) = if runs.len() > 1 {
        (&both[..1], "in flight, most in a second")
    } else {
        (both, "in flight")
    };
    let title = format!("{} {title}", capital(exchanges(runs)));
    of_ticks(runs, &title, short_number, series)
}

/// The phases of an exchange over time.
fn phases(run: &RunRecord, title: String) -> Stack {
    let ticks = drawn(run);
    let lines = Phase::ALL
        .iter()
        .enumerate()
        .filter(|(_, phase)| {
            let mut times = ticks.iter().map(|tick| &tick.phases_us);
            times.any(|times| times.contains_key(phase.name()))
        })
        .map(|(colour, phase)| {
            let points: Vec<_> = ticks
                .iter()
                .map(|tick| {
                    let time = tick.phases_us.get(phase.name()).copied();
                    (tick.at_us / 1e6, time)
                })
                .collect();
            let line = Line {
                label: phase.name().to_owned(),
                points: thinned(&points),
                is_dots: false,
            };
            (colour, line)
        })
        .collect();
    Stack {
        title,
        x: Axis::Time(seconds),
        across: TIME,
        y: Axis::Linear(short_time),
        lines,
        shaded: vec![warm_up(run)],
    }
}

/// Distribution of latency over time; seconds beyond the resolution are put together.
fn heat_map(run: &RunRecord, title: String) -> HeatMap {
    let ticks = &run.summary.ticks;
    let together = ticks.len().div_ceil(MOST_COLUMNS).max(1);
    let mut cells = Vec::new();
    for ticks in ticks.chunks(together) {
        let from = ticks[0].at_us - ticks[0].length_us;
        let to = ticks[ticks.len() - 1].at_us;
        let mut counts: BTreeMap<u64, (f64, u64)> = BTreeMap::new();
        for bucket in ticks.iter().flat_map(|tick| &tick.spread) {
            // Positive floats are in the order of their bits.
            let count = counts.entry(bucket.up_to_us.to_bits()).or_default();
            *count = (bucket.up_to_us, count.1 + bucket.count);
        }
        cells.extend(counts.into_values().map(|(up_to, count)| Cell {
            x: (from / 1e6, to / 1e6),
            y: (end_before(up_to), up_to),
            count,
        }));
    }
    HeatMap {
        title,
        x: Axis::Time(seconds),
        y: Axis::Logarithmic(short_time),
        cells,
        shaded: vec![warm_up(run)],
    }
}

/// Lower end of the bucket that ends at `up_to`: the number before it in the E6 series.
fn end_before(up_to: f64) -> f64 {
    let power = 10_f64.powf(up_to.log10().floor());
    let step = [1.0, 1.5, 2.2, 3.3, 4.7, 6.8]
        .into_iter()
        .rfind(|step| step * power < up_to * 0.99);
    step.unwrap_or(0.68) * power
}

fn warm_up(run: &RunRecord) -> (f64, f64) {
    (0.0, run.summary.load.warm_up_us / 1e6)
}

/// The name of a line, and its value in each second.
type Series = (&'static str, fn(&TickDocument) -> Option<f64>);

fn of_ticks(runs: &[RunRecord], title: &str, write: fn(f64) -> String, series: &[Series]) -> Plot {
    let mut lines = Vec::new();
    for run in runs {
        for (label, value) in series {
            let points: Vec<_> = drawn(run)
                .iter()
                .map(|tick| (tick.at_us / 1e6, value(tick)))
                .collect();
            lines.push(Line {
                label: if runs.len() > 1 {
                    run.name.clone()
                } else {
                    (*label).to_owned()
                },
                points: thinned(&points),
                is_dots: false,
            });
        }
    }
    let shaded = match runs {
        [run] => vec![warm_up(run)],
        _ => Vec::new(),
    };
    Plot {
        title: title.to_owned(),
        x: Axis::Time(seconds),
        across: TIME,
        y: Axis::Linear(write),
        lines,
        shaded,
        bands: Vec::new(),
    }
}

/// A line for each server that was observed by name; none if there is only one, which is the target of the run.
fn of_servers(
    runs: &[RunRecord],
    title: &str,
    write: fn(f64) -> String,
    value: fn(&ObservedTickDocument) -> Option<f64>,
) -> Plot {
    let mut plot = of_ticks(runs, title, write, &[]);
    for run in runs.iter().filter(|run| run.summary.observed.len() > 1) {
        for server in &run.summary.observed {
            let of_run = match runs.len() {
                1 => String::new(),
                _ => format!("{}, ", run.name),
            };
            let ticks = drawn(run).iter().zip(&server.ticks);
            let points: Vec<_> = ticks
                .map(|(tick, state)| (tick.at_us / 1e6, value(state)))
                .collect();
            plot.lines.push(Line {
                label: format!("{of_run}{}", server.name),
                points: thinned(&points),
                is_dots: false,
            });
        }
    }
    plot
}

/// The figure of a second, unless it is only a lower bound, which is no point of a curve.
fn known(tick: &TickDocument, name: &str, figure: Option<f64>) -> Option<f64> {
    figure.filter(|_| tick.censored.iter().all(|censored| censored != name))
}

fn errors(tick: &TickDocument) -> u64 {
    tick.failed + tick.other_errors
}

/// The seconds of a run that are drawn: a last one of a few milliseconds would be a line straight up or down at the edge.
fn drawn(run: &RunRecord) -> &[TickDocument] {
    match run.summary.ticks.split_last() {
        Some((last, ticks))
            if last.length_us < SHORTEST_SECOND_US && errors(last) == 0 && !ticks.is_empty() =>
        {
            ticks
        }
        _ => &run.summary.ticks,
    }
}

/// Neighbours drawn together at their largest value, so that no peak is lost.
pub(crate) fn thinned(points: &[(f64, Option<f64>)]) -> Vec<(f64, Option<f64>)> {
    let together = points.len().div_ceil(MOST_POINTS).max(1);
    points
        .chunks(together)
        .map(|chunk| {
            let values = chunk.iter().filter_map(|(_, value)| *value);
            (chunk[0].0, values.reduce(f64::max))
        })
        .collect()
}

/// The whole distribution, each nine as wide as the one before.
fn distribution(runs: &[RunRecord]) -> Plot {
    let lines = runs
        .iter()
        .map(|run| {
            let all = run.latency.view().len() as f64;
            // Beyond the last value there is no quantile to speak of.
            let last = 1.0 - 0.5 / all.max(1.0);
            let points = (0..=160)
                .map(|step| 1.0 - 10_f64.powf(-f64::from(step) / 20.0))
                .take_while(|quantile| *quantile <= last)
                .map(|quantile| {
                    // What is only a lower bound is no point of the curve.
                    let time = run.latency.quantile(quantile);
                    let time = time.and_then(Bounded::known);
                    (quantile, time.map(|time| time.as_nanos() as f64 / 1e3))
                })
                .collect();
            Line {
                label: run.name.clone(),
                points,
                is_dots: false,
            }
        })
        .collect();
    Plot {
        title: "Latency by percentile".to_owned(),
        x: Axis::Quantiles,
        across: "share of the responses that took no longer",
        y: Axis::Logarithmic(short_time),
        lines,
        shaded: Vec::new(),
        bands: Vec::new(),
    }
}

/// Length in microseconds from which on a second that was cut short has a rate worth drawing.
const SHORTEST_SECOND_US: f64 = 200_000.0;

fn per_second(tick: &TickDocument, count: u64) -> Option<f64> {
    // A second that was cut short says little, and responses of the grace period are no throughput.
    (tick.length_us > SHORTEST_SECOND_US && !tick.grace)
        .then(|| count as f64 / tick.length_us * 1e6)
}

pub(crate) fn seconds(value: f64) -> String {
    short_time(value * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_last_second_of_milliseconds_is_not_drawn_unless_it_is_all() {
        let mut run = fixture::closed();
        let whole = run.ticks.len();
        let mut last = run.ticks[whole - 1].clone();
        last.length = std::time::Duration::from_millis(3);
        run.ticks.push(last.clone());
        assert_eq!(drawn(&RunRecord::from_summary("a", &run)).len(), whole);
        run.ticks = vec![last];
        assert_eq!(drawn(&RunRecord::from_summary("a", &run)).len(), 1);
    }
}
