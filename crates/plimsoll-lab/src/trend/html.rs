//! A trend as a page: the steps, then each figure with its levels.

use std::fmt::Write as _;

use plimsoll_report::page::{html_page, short_bytes, short_number, short_share, short_time};
use plimsoll_report::plot::{Axis, Line, Plot, escaped};

use super::text::{is_better, step};
use super::{Figure, Series, Trend};
use crate::statistics::median;

const IN_MEMORY: &str = "writing to memory does not fail";

/// The page.
pub fn to_html(trend: &Trend) -> String {
    let title = format!("Trend over {} results", trend.names.len());
    let mut page = format!("<header><h1>{}</h1>", escaped(&title));
    if let (Some(first), Some(last)) = (trend.names.first(), trend.names.last()) {
        write!(
            page,
            "<p class=\"shape\">from {} to {}</p>",
            escaped(first),
            escaped(last)
        )
        .expect(IN_MEMORY);
    }
    page.push_str("</header>\n<section><h2>Steps</h2>");
    steps(&mut page, trend);
    page.push_str("</section>\n<section class=\"plots\">\n");
    for series in &trend.series {
        page.push_str(&plot(series, &trend.names).html());
    }
    page.push_str("</section>\n");
    table(&mut page, trend);
    write!(
        page,
        "<footer><p>Steps by ranks (Pettitt 1979), held against {} shuffles at level {}.</p></footer>",
        trend.options.shuffles, trend.options.level
    )
    .expect(IN_MEMORY);
    html_page(&title, &page)
}

fn steps(page: &mut String, trend: &Trend) {
    if trend.series.iter().all(|series| series.changes.is_empty()) {
        page.push_str("<p>No step was seen.</p>");
        return;
    }
    page.push_str("<div class=\"wide\"><table>");
    for series in &trend.series {
        for change in &series.changes {
            let class = if is_better(series, change) {
                "good"
            } else {
                "bad"
            };
            write!(
                page,
                "<tr><th>{}</th><td class=\"{class}\">{}</td></tr>",
                series.figure.title(),
                escaped(&step(trend, series, change))
            )
            .expect(IN_MEMORY);
        }
    }
    page.push_str("</table></div>");
}

/// The values as dots, and the median between two steps as a line.
fn plot(series: &Series, names: &[String]) -> Plot {
    let at = |position: usize| position as f64;
    let values = series
        .values
        .iter()
        .enumerate()
        .map(|(position, value)| (at(position), *value));
    let mut levels = Vec::new();
    let steps = series.changes.iter().map(|change| change.at);
    let ends: Vec<usize> = std::iter::once(0)
        .chain(steps)
        .chain([series.values.len()])
        .collect();
    for stretch in ends.windows(2) {
        let (from, to) = (stretch[0], stretch[1]);
        let known: Vec<f64> = series.values[from..to].iter().flatten().copied().collect();
        let level = median(&known);
        levels.push((at(from), level));
        levels.push((at(to.saturating_sub(1)), level));
        levels.push((at(to.saturating_sub(1)), None));
    }
    let write = match series.figure {
        Figure::P50Us
        | Figure::P99Us
        | Figure::CpuUsPerRequest
        | Figure::GeneratorCpuUsPerRequest => short_time,
        Figure::PeakMemoryBytes => short_bytes,
        Figure::ErrorShare => short_share,
        Figure::RequestsPerSecond => short_number,
    };
    Plot {
        title: series.figure.title().to_owned(),
        x: Axis::Names(names.to_vec()),
        across: "result",
        y: Axis::Linear(write),
        lines: vec![
            Line {
                label: "level".to_owned(),
                points: levels,
                is_dots: false,
            },
            Line {
                label: "results".to_owned(),
                points: values.collect(),
                is_dots: true,
            },
        ],
        shaded: Vec::new(),
    }
}

fn table(page: &mut String, trend: &Trend) {
    page.push_str(
        "<section class=\"n\"><h2>Results</h2><div class=\"wide\"><table><tr><th></th>\
         <th scope=\"col\">result</th>",
    );
    for series in &trend.series {
        write!(page, "<th>{}</th>", series.figure.title()).expect(IN_MEMORY);
    }
    page.push_str("</tr>");
    for (position, name) in trend.names.iter().enumerate() {
        write!(
            page,
            "<tr><td>{}</td><th scope=\"row\">{}</th>",
            position + 1,
            escaped(name)
        )
        .expect(IN_MEMORY);
        for series in &trend.series {
            let value = series.values[position];
            let cell = value.map_or_else(|| "–".to_owned(), |value| series.figure.show(value));
            write!(page, "<td>{cell}</td>").expect(IN_MEMORY);
        }
        page.push_str("</tr>");
    }
    page.push_str("</table></div></section>\n");
}
