//! A load line as text for a terminal, at most 90 columns wide.

use std::fmt::{self, Write};

use super::figures::{HEADINGS, NOTHING, Row, law, rate, rows, sentence, shown};
use super::limit::limit;
use super::outcome::{Line, Window};
use crate::wording::{write_machine, write_wrapped};
use plimsoll_model::Threshold;

/// The line, the curve, the conditions; ends with a line break.
pub fn to_text(line: &Line) -> String {
    let mut text = String::new();
    write_all(&mut text, line).expect("a string takes all that is written");
    text
}

fn write_all(out: &mut String, line: &Line) -> fmt::Result {
    writeln!(out, "{} {}", line.method, line.url)?;
    writeln!(
        out,
        "{} windows of {:?} each, {} about the line at each rate, {} arrivals, {} connections",
        line.windows.len(),
        line.window,
        line.rounds,
        if line.is_poisson { "random" } else { "even" },
        line.found.connections,
    )?;
    writeln!(out)?;
    if let Some(shown) = shown(line) {
        writeln!(
            out,
            "load line   {}/s  [{}, 95 %]",
            shown.rate, shown.interval
        )?;
    }
    write_wrapped(out, &format!("            {}", sentence(line)))?;
    let objectives: Vec<&str> = line.objectives.iter().map(Threshold::text).collect();
    writeln!(out, "objectives  {}", objectives.join(", "))?;
    if let Some(knee) = line.knee {
        writeln!(
            out,
            "knee        {}/s: above it, load brings more waiting than throughput",
            rate(knee)
        )?;
    }
    if let Some(law) = law(line) {
        writeln!(out, "scaling     {law}")?;
    }
    if let Some(limit) = limit(line) {
        write_wrapped(out, &format!("limited by  {limit}"))?;
    }
    writeln!(out)?;
    writeln!(out, "search, windows of {:?}", line.window)?;
    write_rows(out, line.searched())?;
    let confirmations = line.confirmations();
    if !confirmations.is_empty() {
        writeln!(out, "\nconfirmation, windows of {:?}", line.confirm)?;
        write_rows(out, confirmations)?;
    }
    writeln!(out)?;
    write_machine(out, &line.conditions)?;
    for warning in &line.conditions.warnings {
        write_wrapped(out, &format!("warning: {warning}"))?;
    }
    Ok(())
}

fn write_rows(out: &mut String, windows: Vec<&Window>) -> fmt::Result {
    let rows = rows(windows);
    let cells: Vec<Vec<String>> = rows.iter().map(Row::cells).collect();
    // Columns that nothing is known of are left out.
    let columns: Vec<usize> = (0..HEADINGS.len())
        .filter(|&column| cells.iter().any(|row| row[column] != NOTHING))
        .collect();
    let width = |column: usize| {
        let cells = cells.iter().map(|row| row[column].chars().count());
        cells
            .max()
            .unwrap_or(0)
            .max(HEADINGS[column].chars().count())
    };
    let line_of = |cell: &dyn Fn(usize) -> String| {
        let cells: Vec<String> = columns
            .iter()
            .map(|&column| {
                let width = width(column);
                format!("{:>width$}", cell(column))
            })
            .collect();
        cells.join("  ")
    };
    writeln!(out, "{}", line_of(&|column| HEADINGS[column].to_owned()))?;
    for row in &cells {
        writeln!(out, "{}", line_of(&|column| row[column].clone()))?;
    }
    if rows.iter().any(|row| row.generator_limited > 0) {
        writeln!(out, "* broke by the generator's limit, and not counted")?;
    }
    Ok(())
}
