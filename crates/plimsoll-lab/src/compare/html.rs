//! A comparison as a page: verdicts, intervals, every trial, the conditions.

use std::fmt::Write as _;

use plimsoll_model::escaped_html;
use plimsoll_report::page::{Card, cards, html_page, short_bytes, short_number, short_time};
use plimsoll_report::plot::{Axis, Line, Plot};

use super::forest::forest;
use super::metric::Metric;
use super::outcome::{Comparison, PairResult};
use super::sweep::{Sweep, SweepRow, warnings};
use super::text::{figure, gate_verdict, letter, ratio_text, verdict};
use crate::pages::{write_conditions, write_marks};

const IN_MEMORY: &str = "writing to memory does not fail";

/// The page of a comparison.
pub fn to_html(comparison: &Comparison) -> String {
    let title = names(comparison).join(" / ");
    let mut page = String::new();
    write!(
        page,
        "<header><h1>{}</h1><p class=\"shape\">{} trials of {} s each, interleaved, {} connections; one \
         warm-up each was dropped</p>",
        escaped_html(&title),
        comparison.trials,
        comparison.seconds,
        comparison.connections
    )
    .expect(IN_MEMORY);
    commands(&mut page, comparison);
    write_marks(&mut page, &comparison.conditions.warnings);
    page.push_str("</header>\n");
    let tiles: Vec<Card> = comparison
        .pairs
        .iter()
        .map(|pair| tile(comparison, pair))
        .collect();
    page.push_str(&cards(&tiles));
    page.push_str("<section class=\"plots\">\n");
    for pair in &comparison.pairs {
        let level = comparison.coverage() * 100.0;
        let title = format!(
            "{}, ratio [{level:.0} % interval]",
            versus(comparison, pair)
        );
        page.push_str(&forest(&title, pair));
    }
    page.push_str("</section>\n");
    medians(&mut page, comparison);
    page.push_str("<section><h2>Trials</h2></section>\n<section class=\"plots\">\n");
    for metric in Metric::ALL {
        let plot = trials(comparison, metric);
        if !plot.is_empty() {
            page.push_str(&plot.html());
        }
    }
    page.push_str("</section>\n");
    write_conditions(&mut page, &comparison.conditions);
    let level = comparison.coverage() * 100.0;
    writeln!(
        page,
        "<footer><p>Ratios are those typical of a round, the first operand over the other; intervals of {level:.0} % \
         by signed ranks, or where trials are not paired by bootstrap of the medians (seed {}).</p></footer>",
        comparison.bootstrap.seed
    )
    .expect(IN_MEMORY);
    html_page(&title, &page)
}

/// The page of a sweep over rates.
pub fn sweep_to_html(sweep: &Sweep) -> String {
    let Some((_, first)) = sweep.comparisons.first() else {
        return html_page("rates", "");
    };
    let title = format!("{} by rate", names(first).join(" / "));
    let mut page = String::new();
    write!(
        page,
        "<header><h1>{}</h1><p class=\"shape\">{} trials of {} s at each rate, medians</p>",
        escaped_html(&title),
        first.trials,
        first.seconds
    )
    .expect(IN_MEMORY);
    commands(&mut page, first);
    write_marks(&mut page, &warnings(sweep));
    page.push_str("</header>\n<section class=\"plots\">\n");
    let rows = sweep.rows();
    let target_rate = |row: &SweepRow| Some(f64::from(row.rate));
    let rps = |row: &SweepRow| row.rps;
    let plots: [(&str, Value, Value, Write); 5] = [
        (
            "Achieved by target rate, per second",
            target_rate,
            rps,
            short_number,
        ),
        (
            "Peak memory by achieved rate",
            rps,
            |row| row.peak_rss_bytes,
            short_bytes,
        ),
        (
            "Mean latency by achieved rate",
            rps,
            |row| row.mean_us,
            short_time,
        ),
        ("p99 by achieved rate", rps, |row| row.p99_us, short_time),
        (
            "CPU per request by achieved rate",
            rps,
            |row| row.cpu_us_per_request,
            short_time,
        ),
    ];
    for (title, x, y, write) in plots {
        let lines = names(first)
            .into_iter()
            .enumerate()
            .map(|(operand, label)| Line {
                label,
                points: rows
                    .iter()
                    .filter(|row| row.operand == operand)
                    .filter_map(|row| Some((x(row)?, y(row))))
                    .collect(),
                is_dots: false,
            });
        let plot = Plot {
            title: title.to_owned(),
            x: Axis::Time(short_number),
            across: "requests per second",
            y: Axis::Linear(write),
            lines: lines.collect(),
            shaded: Vec::new(),
            bands: Vec::new(),
        };
        if !plot.is_empty() {
            page.push_str(&plot.html());
        }
    }
    page.push_str(
        "</section>\n<section class=\"n\"><h2>Rates</h2><div class=\"wide\"><table><tr>\
         <th>target rate</th><th>operand</th><th>ok/s</th><th>mean</th><th>p99</th><th>peak RSS</th>\
         <th>CPU µs</th><th>kept</th></tr>",
    );
    for row in &rows {
        let cell = |metric, value: Option<f64>| {
            value.map_or_else(|| "–".to_owned(), |value| figure(metric, value))
        };
        write!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td class=\"{}\">{}</td></tr>",
            plimsoll_model::grouped(row.rate),
            escaped_html(&format!("{} {}", letter(row.operand), row.label)),
            cell(Metric::RequestsPerSecond, row.rps),
            cell(Metric::MeanUs, row.mean_us),
            cell(Metric::P99Us, row.p99_us),
            cell(Metric::PeakRssBytes, row.peak_rss_bytes),
            cell(Metric::CpuUsPerRequest, row.cpu_us_per_request),
            if row.kept_rate { "good" } else { "bad" },
            if row.kept_rate { "yes" } else { "no" },
        )
        .expect(IN_MEMORY);
    }
    page.push_str("</table></div></section>\n");
    write_conditions(&mut page, &first.conditions);
    html_page(&title, &page)
}

/// A value of a row, and how values are written.
type Value = fn(&SweepRow) -> Option<f64>;
type Write = fn(f64) -> String;

fn names(comparison: &Comparison) -> Vec<String> {
    let operands = comparison.operands.iter().enumerate();
    operands
        .map(|(index, operand)| format!("{} {}", letter(index), operand.label))
        .collect()
}

fn commands(page: &mut String, comparison: &Comparison) {
    for (name, operand) in names(comparison).iter().zip(&comparison.operands) {
        write!(
            page,
            "<p class=\"shape\">{}: <code>{}</code></p>",
            escaped_html(name),
            escaped_html(&operand.command.join(" "))
        )
        .expect(IN_MEMORY);
    }
}

fn medians(page: &mut String, comparison: &Comparison) {
    page.push_str("<section class=\"n\"><h2>Medians</h2><div class=\"wide\"><table><tr><th></th>");
    for name in names(comparison) {
        write!(page, "<th>{}</th>", escaped_html(&name)).expect(IN_MEMORY);
    }
    page.push_str("</tr>");
    for metric in Metric::ALL {
        let cells: Vec<Option<f64>> = comparison
            .operands
            .iter()
            .map(|operand| operand.median(metric))
            .collect();
        if cells.iter().all(Option::is_none) {
            continue;
        }
        write!(page, "<tr><th scope=\"row\">{}</th>", metric.title()).expect(IN_MEMORY);
        for cell in cells {
            let text = cell.map_or_else(|| "–".to_owned(), |value| figure(metric, value));
            write!(page, "<td>{text}</td>").expect(IN_MEMORY);
        }
        page.push_str("</tr>");
    }
    page.push_str("</table></div></section>\n");
}

/// `new / base`.
fn versus(comparison: &Comparison, pair: &PairResult) -> String {
    let label = |index: usize| &comparison.operands[index].label;
    format!("{} / {}", label(0), label(pair.peer))
}

/// The ratio that is judged, with the verdict of the gate, if there is one.
fn tile(comparison: &Comparison, pair: &PairResult) -> Card {
    let label = format!(
        "{}, {}",
        comparison.metric.title(),
        versus(comparison, pair)
    );
    let (judgement, verdict) = match (comparison.gate, pair.gate) {
        (Some(gate), Some(judged)) => (judged.judgement(), gate_verdict(gate, pair)),
        _ => (pair.verdict.verdict.judgement(), verdict(&pair.verdict)),
    };
    Card::new(label, ratio_text(&pair.verdict)).with_note(judgement, verdict)
}

/// Every trial at the time when it began.
fn trials(comparison: &Comparison, metric: Metric) -> Plot {
    let lines = names(comparison)
        .into_iter()
        .zip(&comparison.operands)
        .map(|(label, operand)| Line {
            label,
            points: operand
                .trials
                .iter()
                .map(|trial| (trial.began.as_secs_f64(), trial.value(metric)))
                .collect(),
            is_dots: true,
        });
    Plot {
        title: format!("{}, each trial", metric.title()),
        x: Axis::Time(|seconds| short_time(seconds * 1e6)),
        across: "time since the start",
        y: Axis::Linear(match metric {
            Metric::PeakRssBytes => short_bytes,
            Metric::RequestsPerSecond => short_number,
            _ => short_time,
        }),
        lines: lines.collect(),
        shaded: Vec::new(),
        bands: Vec::new(),
    }
}
