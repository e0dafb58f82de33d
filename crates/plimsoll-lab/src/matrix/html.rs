//! A matrix as a page: who is ahead, a table per figure, every cell, plots, the conditions.

use std::fmt::Write as _;

use plimsoll_model::{counted, escaped_html};
use plimsoll_report::page::{html_page, short_bytes, short_number, short_time};
use plimsoll_report::plot::{Axis, Line, Plot};

use super::outcome::{CellResult, Figure, Matrix, Winner};
use super::table::{cell, limit, load, remark, short, shown, size, variation};
use crate::pages::{write_conditions, write_marks};

const IN_MEMORY: &str = "writing to memory does not fail";

/// The page.
pub fn to_html(matrix: &Matrix) -> String {
    let mut page = String::new();
    write!(
        page,
        "<header><h1>{}</h1><p class=\"shape\">{} × {} × {}, {} of {:?} after \
         {:?} each, in random order (seed {})</p>",
        escaped_html(&matrix.name),
        counted(matrix.targets.len() as u64, "target"),
        counted(matrix.loads.len() as u64, "load"),
        counted(matrix.sizes.len() as u64, "size"),
        counted(u64::from(matrix.repeats), "trial"),
        matrix.window,
        matrix.warm_up,
        matrix.seed
    )
    .expect(IN_MEMORY);
    for (name, command) in &matrix.targets {
        write!(
            page,
            "<p class=\"shape\">{} <code>{}</code></p>",
            escaped_html(name),
            escaped_html(&command.join(" "))
        )
        .expect(IN_MEMORY);
    }
    write_marks(&mut page, &matrix.conditions.warnings);
    page.push_str("</header>\n");
    for figure in Figure::JUDGED {
        judged(&mut page, matrix, figure);
    }
    plots(&mut page, matrix);
    cells(&mut page, matrix);
    write_conditions(&mut page, &matrix.conditions);
    page.push_str(
        "<footer><p>Medians over the trials; ± is the standard deviation over the mean. A winner is \
         clear if the 99 % bootstrap interval of its median over the next one's excludes 1. Limit: a \
         side that used 90 % of its cores, or one of whose threads was as busy; the machine, if \
         only all sides together did; the harness, if the latency grew with the connections while \
         the target was idle.</p></footer>\n",
    );
    html_page(&matrix.name, &page)
}

/// A row for each size and load, a column for each target.
fn judged(page: &mut String, matrix: &Matrix, figure: Figure) {
    let title = match figure {
        Figure::CpuUsPerRequest => "CPU µs per request",
        Figure::RequestsPerSecond => "Requests per second",
        Figure::PeakMemoryBytes => "Peak memory",
        other => short(other),
    };
    write!(
        page,
        "<section class=\"n\"><h2>{title}</h2><div class=\"wide\"><table><tr>\
         <th scope=\"col\">size</th><th scope=\"col\">load</th>"
    )
    .expect(IN_MEMORY);
    for (name, _) in &matrix.targets {
        write!(page, "<th>{}</th>", escaped_html(name)).expect(IN_MEMORY);
    }
    if matrix.targets.len() > 1 {
        page.push_str("<th>ahead</th>");
    }
    page.push_str("</tr>");
    for (size_index, size) in matrix.sizes.iter().enumerate() {
        for (load_index, load) in matrix.loads.iter().enumerate() {
            let winner = matrix.winner(size_index, load_index, figure);
            write!(
                page,
                "<tr><th scope=\"row\">{}</th><th scope=\"row\">{}</th>",
                escaped_html(&size.name),
                escaped_html(&load.name)
            )
            .expect(IN_MEMORY);
            for result in matrix.row(size_index, load_index) {
                let ahead = winner.filter(|winner| winner.target == result.cell.target);
                page.push_str(&judged_cell(result, figure, ahead));
            }
            if matrix.targets.len() > 1 {
                let text = winner.map_or_else(String::new, |winner| {
                    let name = escaped_html(&matrix.targets[winner.target].0);
                    let clear = if winner.is_clear { "" } else { ", not clear" };
                    format!("{name}{clear}")
                });
                write!(page, "<td>{text}</td>").expect(IN_MEMORY);
            }
            page.push_str("</tr>");
        }
    }
    page.push_str("</table></div></section>\n");
}

fn judged_cell(result: &CellResult, figure: Figure, ahead: Option<Winner>) -> String {
    let Some(value) = result.median(figure) else {
        let state = result.state().replace('-', " ");
        let class = match result.state() {
            "killed" | "failed" => " class=\"bad\"",
            _ => "",
        };
        return format!("<td{class}>{state}</td>");
    };
    let text = escaped_html(&shown(figure, value));
    let spread = variation(result, figure);
    let spread = if spread.is_empty() {
        String::new()
    } else {
        format!(" <small>{}</small>", escaped_html(&spread))
    };
    match ahead {
        Some(winner) if winner.is_clear => {
            format!("<td class=\"good\"><strong>{text}</strong>{spread}</td>")
        }
        Some(_) => format!("<td><strong>{text}</strong>{spread}</td>"),
        None => format!("<td>{text}{spread}</td>"),
    }
}

/// Over the connections, where a size has loads that differ in them; else every trial.
fn plots(page: &mut String, matrix: &Matrix) {
    page.push_str("<section class=\"plots\">\n");
    let figures = [
        (Figure::RequestsPerSecond, Axis::Linear(short_number)),
        (Figure::CpuUsPerRequest, Axis::Linear(short_time)),
        (Figure::P50Us, Axis::Logarithmic(short_time)),
        (Figure::P99Us, Axis::Logarithmic(short_time)),
        (Figure::P999Us, Axis::Logarithmic(short_time)),
        (Figure::PeakMemoryBytes, Axis::Linear(short_bytes)),
    ];
    for (size_index, size) in matrix.sizes.iter().enumerate() {
        for (figure, axis) in &figures {
            for plot in [
                by_connections(matrix, size_index, *figure, axis.clone()),
                by_trial(matrix, size_index, *figure, axis.clone()),
            ] {
                if let Some(mut plot) = plot.filter(|plot| !plot.is_empty()) {
                    if matrix.sizes.len() > 1 {
                        plot.title = format!("{}: {}", size.name, plot.title);
                    }
                    page.push_str(&plot.html());
                    break;
                }
            }
        }
    }
    page.push_str("</section>\n");
}

fn by_connections(matrix: &Matrix, size: usize, figure: Figure, axis: Axis) -> Option<Plot> {
    let closed = |result: &&CellResult| {
        result.cell.size == size && matrix.loads[result.cell.load].rate.is_none()
    };
    let mut seen: Vec<u32> = matrix
        .cells
        .iter()
        .filter(closed)
        .map(|result| result.connections)
        .collect();
    seen.sort_unstable();
    seen.dedup();
    if seen.len() < 2 {
        return None;
    }
    let lines = matrix
        .targets
        .iter()
        .enumerate()
        .map(|(target, (name, _))| {
            let mut points: Vec<(f64, Option<f64>)> = matrix
                .cells
                .iter()
                .filter(closed)
                .filter(|result| result.cell.target == target)
                .map(|result| (f64::from(result.connections), result.median(figure)))
                .collect();
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
            Line {
                label: name.clone(),
                // One point joins nothing.
                is_dots: points.iter().filter(|(_, value)| value.is_some()).count() < 2,
                points,
            }
        });
    Some(Plot {
        title: format!("{} by connections", short(figure)),
        x: Axis::Time(short_number),
        across: "connections",
        y: axis,
        lines: lines.collect(),
        shaded: Vec::new(),
        bands: Vec::new(),
    })
}

fn by_trial(matrix: &Matrix, size: usize, figure: Figure, axis: Axis) -> Option<Plot> {
    if matrix.repeats < 2 {
        return None;
    }
    let lines = matrix
        .targets
        .iter()
        .enumerate()
        .map(|(target, (name, _))| {
            let trials = matrix
                .cells
                .iter()
                .filter(|result| result.cell.size == size && result.cell.target == target)
                .flat_map(CellResult::measured)
                .zip(1..)
                .map(|(figures, number)| (f64::from(number), figure.read(figures)));
            Line {
                label: name.clone(),
                points: trials.collect(),
                is_dots: true,
            }
        });
    Some(Plot {
        title: format!("{} by trial", short(figure)),
        x: Axis::Time(short_number),
        across: "trial",
        y: axis,
        lines: lines.collect(),
        shaded: Vec::new(),
        bands: Vec::new(),
    })
}

/// Every cell with all its figures.
fn cells(page: &mut String, matrix: &Matrix) {
    for (size_index, plan) in matrix.sizes.iter().enumerate() {
        write!(
            page,
            "<section class=\"n\"><h2>{}</h2><div class=\"wide\"><table><tr>\
             <th scope=\"col\">load</th><th scope=\"col\">target</th>",
            escaped_html(&size(plan))
        )
        .expect(IN_MEMORY);
        for figure in Figure::ALL {
            write!(page, "<th>{}</th>", short(figure)).expect(IN_MEMORY);
        }
        page.push_str("<th>errors</th><th>limit</th></tr>");
        for load_index in 0..matrix.loads.len() {
            for result in matrix.row(size_index, load_index) {
                one(page, matrix, result);
            }
        }
        page.push_str("</table></div></section>\n");
    }
}

fn one(page: &mut String, matrix: &Matrix, result: &CellResult) {
    write!(
        page,
        "<tr><th scope=\"row\">{}</th><th scope=\"row\">{}</th>",
        escaped_html(&load(&matrix.loads[result.cell.load], result.connections)),
        escaped_html(&matrix.targets[result.cell.target].0)
    )
    .expect(IN_MEMORY);
    if result.measured().count() > 0 {
        for figure in Figure::ALL {
            write!(page, "<td>{}</td>", escaped_html(&cell(result, figure))).expect(IN_MEMORY);
        }
        write!(
            page,
            "<td>{}</td><td>{}</td>",
            result.errors(),
            escaped_html(&limit(result))
        )
        .expect(IN_MEMORY);
    }
    page.push_str("</tr>");
    if let Some(remark) = remark(result) {
        write!(
            page,
            "<tr><td></td><td></td><td colspan=\"{}\" style=\"text-align:left;white-space:normal\">{}</td></tr>",
            Figure::ALL.len() + 2,
            escaped_html(&remark)
        )
        .expect(IN_MEMORY);
    }
}
