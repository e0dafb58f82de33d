//! Tables of plain text, a column a run.

use super::Exporter;
use super::table::{Table, details, principal, saturation, shape, threshold_value};
use crate::RunRecord;

/// The text for a terminal.
#[derive(Debug, Clone, Copy)]
pub struct PlainText;

/// Cells are cut at so many characters; names of machines are longer.
const WIDEST: usize = 44;

impl Exporter for PlainText {
    fn name(&self) -> &'static str {
        "text"
    }

    fn media_type(&self) -> &'static str {
        "text/plain; charset=utf-8"
    }

    fn export(&self, runs: &[RunRecord]) -> Vec<u8> {
        let mut lines = Vec::new();
        for run in runs {
            let load = &run.summary.load;
            lines.push(harmless(&format!(
                "{}: {} {}, {}",
                run.name,
                load.method,
                load.url,
                shape(run)
            )));
            lines.extend(saturation(run).map(|text| format!("! {text}")));
            for warning in &run.summary.conditions.warnings {
                lines.push(harmless(&format!("! {warning}")));
            }
        }
        table(&mut lines, &principal(runs), runs);
        for run in runs {
            for threshold in &run.summary.thresholds {
                lines.push(harmless(&format!(
                    "{} {}: {} {} ({})",
                    if threshold.verdict == "met" {
                        "✓"
                    } else {
                        "✗"
                    },
                    run.name,
                    threshold.threshold,
                    threshold.verdict,
                    threshold_value(threshold)
                )));
            }
        }
        for detail in details(runs) {
            table(&mut lines, &detail, runs);
        }
        lines.push(String::new());
        lines.join("\n").into_bytes()
    }
}

fn table(lines: &mut Vec<String>, table: &Table, runs: &[RunRecord]) {
    let mut rows = vec![(
        table.title.to_lowercase(),
        runs.iter().map(|run| run.name.clone()).collect(),
    )];
    rows.extend(table.rows.iter().cloned());
    let rows: Vec<(String, Vec<String>)> = rows
        .into_iter()
        .map(|(label, cells)| (cut(&label), cells.iter().map(|cell| cut(cell)).collect()))
        .collect();
    let label_width = rows
        .iter()
        .map(|(label, _)| width(label))
        .max()
        .unwrap_or(0);
    let widths: Vec<usize> = (0..runs.len())
        .map(|column| {
            let cells = rows.iter().filter_map(|(_, cells)| cells.get(column));
            cells.map(|cell| width(cell)).max().unwrap_or(0)
        })
        .collect();
    lines.push(String::new());
    for (number, (label, cells)) in rows.iter().enumerate() {
        let indent = if number == 0 { "" } else { "  " };
        let mut line = format!("{indent}{label}");
        line.push_str(&" ".repeat(label_width + 2 - width(&line).min(label_width + 2)));
        for (cell, widest) in cells.iter().zip(&widths) {
            line.push_str("  ");
            line.push_str(&" ".repeat(widest - width(cell)));
            line.push_str(cell);
        }
        lines.push(line.trim_end().to_owned());
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

fn cut(text: &str) -> String {
    let text = harmless(text);
    if width(&text) <= WIDEST {
        return text;
    }
    text.chars()
        .take(WIDEST - 1)
        .chain(std::iter::once('…'))
        .collect()
}

/// Replaces characters that could control a terminal.
fn harmless(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '·' } else { c })
        .collect()
}
