//! A load line as text for a terminal, as wide as the terminal.

use std::fmt::{self, Write};

use super::figures::{HEADINGS, NOTHING, Row, law, rows, sentence, shown};
use super::limit::limit;
use super::outcome::{Line, Window};
use crate::text_table::TextTable;
use crate::wording::{TextFormat, write_labelled, write_machine, write_wrapped};
use plimsoll_model::{Threshold, rate_figures};

/// The line, the curve, the conditions; ends with a line break.
pub fn to_text(line: &Line, format: TextFormat) -> String {
    let mut text = String::new();
    write_all(&mut text, line, format).expect("a string takes all that is written");
    text
}

fn write_all(out: &mut String, line: &Line, format: TextFormat) -> fmt::Result {
    writeln!(out, "{} {}", line.method, line.url)?;
    let made = format!(
        "{} windows of {:?} each, {} about the line at each rate, {} arrivals, {} connections",
        line.windows.len(),
        line.window,
        line.rounds,
        if line.is_poisson { "random" } else { "even" },
        line.found.connections,
    );
    write_wrapped(out, format, &made)?;
    writeln!(out)?;
    if let Some(shown) = shown(line) {
        writeln!(
            out,
            "load line   {}/s  [{}, 95 %]",
            shown.rate, shown.interval
        )?;
    }
    write_labelled(out, format, "", &sentence(line))?;
    let objectives: Vec<&str> = line.objectives.iter().map(Threshold::text).collect();
    write_labelled(out, format, "objectives", &objectives.join(", "))?;
    if let Some(knee) = line.knee {
        let knee = format!(
            "{}/s: above it, load brings more waiting than throughput",
            rate_figures(knee)
        );
        write_labelled(out, format, "knee", &knee)?;
    }
    if let Some(law) = law(line) {
        write_labelled(out, format, "scaling", &law)?;
    }
    if let Some(limit) = limit(line) {
        write_labelled(out, format, "limited by", &limit)?;
    }
    writeln!(out)?;
    writeln!(out, "search, windows of {:?}", line.window)?;
    write_rows(out, format, line.searched())?;
    let confirmations = line.confirmations();
    if !confirmations.is_empty() {
        writeln!(out, "\nconfirmation, windows of {:?}", line.confirm)?;
        write_rows(out, format, confirmations)?;
    }
    writeln!(out)?;
    write_machine(out, format, &line.conditions)?;
    for warning in &line.conditions.warnings {
        write_wrapped(out, format, &format!("warning: {warning}"))?;
    }
    Ok(())
}

/// Columns that a narrow terminal can spare: the generator's own figures, and those that follow from others.
const DISPENSABLE: [&str; 3] = ["ours µs", "in flight", "ok/s"];

fn write_rows(out: &mut String, format: TextFormat, windows: Vec<&Window>) -> fmt::Result {
    let rows = rows(windows);
    let cells: Vec<Vec<String>> = rows.iter().map(Row::cells).collect();
    // Columns that nothing is known of are left out.
    let columns: Vec<usize> = (0..HEADINGS.len())
        .filter(|&column| cells.iter().any(|row| row[column] != NOTHING))
        .collect();
    let dispensable: Vec<usize> = DISPENSABLE
        .iter()
        .filter_map(|name| columns.iter().position(|&column| HEADINGS[column] == *name))
        .collect();
    let table = TextTable {
        headings: columns.iter().map(|&it| HEADINGS[it].to_owned()).collect(),
        rows: cells
            .iter()
            .map(|row| columns.iter().map(|&it| row[it].clone()).collect())
            .collect(),
        has_names: false,
        dispensable: &dispensable,
        emphasised: &[],
    };
    table.write(out, format)?;
    if rows.iter().any(|row| row.generator_limited > 0) {
        writeln!(out, "* broke by the generator's limit, and not counted")?;
    }
    Ok(())
}
