//! A trend as a page: the steps, then each figure with its levels.

use std::fmt::Write as _;

use plimsoll_model::{counted, escaped_html};
use plimsoll_report::page::{html_page, short_bytes, short_number, short_share, short_time};
use plimsoll_report::plot::{Axis, Band, Line, Plot};

use super::text::{row, step};
use super::{Figure, Series, Trend};
use crate::pages::write_marks;

const IN_MEMORY: &str = "writing to memory does not fail";

/// The page.
pub fn to_html(trend: &Trend) -> String {
    let title = format!(
        "Trend over {}",
        counted(trend.points.len() as u64, "result")
    );
    let mut page = format!("<header><h1>{}</h1>", escaped_html(&title));
    if let (Some(first), Some(last)) = (trend.points.first(), trend.points.last()) {
        write!(
            page,
            "<p class=\"shape\">from {} to {}: {}</p>",
            escaped_html(&first.name),
            escaped_html(&last.name),
            escaped_html(&first.load)
        )
        .expect(IN_MEMORY);
    }
    write_marks(&mut page, &trend.warnings());
    page.push_str("</header>\n<section><h2>Steps</h2>");
    steps(&mut page, trend);
    page.push_str("</section>\n");
    levels(&mut page, trend);
    page.push_str("<section class=\"plots\">\n");
    let names: Vec<String> = trend
        .points
        .iter()
        .map(|point| point.name.clone())
        .collect();
    for series in &trend.series {
        page.push_str(&plot(series, &names).html());
    }
    page.push_str("</section>\n");
    table(&mut page, trend);
    write!(
        page,
        "<footer><p>Steps by ranks (Pettitt 1979), held against {} shuffles at level {}. A level is the median between two \
         steps; the band is its interval of 95 % by a sign test, from six results on.</p></footer>",
        trend.options.shuffles, trend.options.level
    )
    .expect(IN_MEMORY);
    html_page(&title, &page)
}

/// The steps in words.
fn steps(page: &mut String, trend: &Trend) {
    if trend.series.iter().all(|series| series.changes.is_empty()) {
        page.push_str("<p>No step was seen.</p>");
    }
    for series in &trend.series {
        for change in &series.changes {
            write!(
                page,
                "<p class=\"{}\">{}: {}</p>",
                series.judgement(change).class(),
                series.figure.title(),
                escaped_html(&step(trend, series, change))
            )
            .expect(IN_MEMORY);
        }
    }
}

/// The level of each figure since its last step.
fn levels(page: &mut String, trend: &Trend) {
    page.push_str(
        "<section class=\"n\"><h2>Levels</h2><div class=\"wide\"><table><tr><th></th><th>level</th><th>95 % interval</th>\
         <th>since</th></tr>",
    );
    for series in &trend.series {
        let [_, _, _, level, interval, since] = row(trend, series);
        write!(
            page,
            "<tr><th scope=\"row\">{}</th><td>{level}</td><td>{interval}</td><td>{}</td></tr>",
            series.figure.title(),
            escaped_html(&since)
        )
        .expect(IN_MEMORY);
    }
    page.push_str("</table></div></section>\n");
}

/// The values as dots, and the median between two steps as a line.
fn plot(series: &Series, names: &[String]) -> Plot {
    let at = |position: usize| position as f64;
    let values = series
        .values
        .iter()
        .enumerate()
        .map(|(position, value)| (at(position), *value));
    let mut lines = Vec::new();
    let mut bands = Vec::new();
    for level in &series.levels {
        let (from, to) = (at(level.from), at(level.to));
        lines.extend([
            (from, Some(level.median)),
            (to, Some(level.median)),
            (to, None),
        ]);
        bands.extend(level.interval.map(|interval| Band {
            x: (from, to),
            y: (interval.low, interval.high),
        }));
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
        title: match series.changes.last() {
            Some(change) => format!("{}, a step at {}", series.figure.title(), names[change.at]),
            None => series.figure.title().to_owned(),
        },
        x: Axis::Names(names.to_vec()),
        across: "result",
        y: Axis::Near(write),
        lines: vec![
            Line {
                label: "level".to_owned(),
                points: lines,
                is_dots: false,
            },
            Line {
                label: "results".to_owned(),
                points: values.collect(),
                is_dots: true,
            },
        ],
        shaded: Vec::new(),
        bands,
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
    for (position, point) in trend.points.iter().enumerate() {
        write!(
            page,
            "<tr><td>{}</td><th scope=\"row\">{}</th>",
            position + 1,
            escaped_html(&point.name)
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
