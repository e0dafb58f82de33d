//! Tables in Markdown, for a comment on a change.

use super::Exporter;
use super::agents;
use super::requests;
use super::servers;
use super::table::{Table, margin, principal, saturation, shape, threshold_value};
use crate::RunRecord;

/// GitHub Flavored Markdown: the principal figures, the thresholds, what else to know.
#[derive(Debug, Clone, Copy)]
pub struct Markdown;

impl Exporter for Markdown {
    fn name(&self) -> &'static str {
        "markdown"
    }

    fn media_type(&self) -> &'static str {
        "text/markdown; charset=utf-8"
    }

    fn export(&self, runs: &[RunRecord]) -> Vec<u8> {
        let mut lines = Vec::new();
        for run in runs {
            let load = &run.summary.load;
            let target = escaped(&format!("{} {}", load.method, load.url));
            lines.push(format!(
                "**{}**: {target}, {}",
                escaped(&run.name),
                escaped(&shape(run))
            ));
            lines.extend(saturation(run).map(|text| format!("> ⚠ {}", escaped(&text))));
            lines.push(String::new());
        }
        table(&mut lines, &principal(runs), runs);
        let mut thresholds = Vec::new();
        for run in runs {
            for threshold in &run.summary.thresholds {
                let mark = if threshold.verdict == "met" {
                    "✅"
                } else {
                    "❌"
                };
                let margin = threshold.margin_percent.map_or(String::new(), margin);
                thresholds.push(format!(
                    "| {mark} {} | {} | {} | {} | {margin} |",
                    escaped(&threshold.verdict),
                    escaped(&run.name),
                    escaped(&threshold.threshold),
                    escaped(&threshold_value(threshold)),
                ));
            }
        }
        if !thresholds.is_empty() {
            lines.push("| threshold | run | condition | value | margin |".to_owned());
            lines.push("|---|---|---|---:|---:|".to_owned());
            lines.extend(thresholds);
            lines.push(String::new());
        }
        for run in runs {
            rows(&mut lines, &agents::COLUMNS, agents::rows(run));
            rows(&mut lines, &servers::COLUMNS, servers::rows(run));
            rows(&mut lines, &requests::COLUMNS, requests::rows(run));
        }
        lines.join("\n").into_bytes()
    }
}

/// A table whose first column is a name; nothing without rows.
fn rows<const N: usize>(lines: &mut Vec<String>, columns: &[&str; N], rows: Vec<[String; N]>) {
    if rows.is_empty() {
        return;
    }
    lines.push(format!("| {} |", columns.join(" | ")));
    lines.push(format!("|---|{}", "---:|".repeat(N - 1)));
    for row in rows {
        let cells = row.map(|cell| escaped(&cell));
        lines.push(format!("| {} |", cells.join(" | ")));
    }
    lines.push(String::new());
}

fn table(lines: &mut Vec<String>, table: &Table, runs: &[RunRecord]) {
    let names: Vec<_> = runs.iter().map(|run| escaped(&run.name)).collect();
    lines.push(format!("| | {} |", names.join(" | ")));
    lines.push(format!("|---|{}", "---:|".repeat(runs.len())));
    for (label, cells) in &table.rows {
        let cells: Vec<_> = cells.iter().map(|cell| escaped(cell)).collect();
        lines.push(format!("| {} | {} |", escaped(label), cells.join(" | ")));
    }
    lines.push(String::new());
}

/// Escapes markup, and replaces characters that would break a row.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '\\' | '|' | '`' | '*' | '_' | '[' | ']' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c if c.is_control() => escaped.push('·'),
            c => escaped.push(c),
        }
    }
    escaped
}
