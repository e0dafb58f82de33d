//! A matrix as text for a terminal, as wide as the terminal.

use std::fmt::{self, Write};

use plimsoll_model::counted;

use super::outcome::{CellResult, Figure, Matrix};
use super::table::{cell, limit, load, percent, remark, size, winners};
use crate::text_table::TextTable;
use crate::wording::{TextFormat, write_machine, write_wrapped};

/// A block for each row, the winners, the conditions; ends with a line break.
pub fn to_text(matrix: &Matrix, format: TextFormat) -> String {
    let mut text = String::new();
    write_all(&mut text, matrix, format).expect("a string takes all that is written");
    text
}

fn write_all(out: &mut String, matrix: &Matrix, format: TextFormat) -> fmt::Result {
    writeln!(
        out,
        "{}: {} × {} × {}",
        matrix.name,
        counted(matrix.targets.len() as u64, "target"),
        counted(matrix.loads.len() as u64, "load"),
        counted(matrix.sizes.len() as u64, "size"),
    )?;
    writeln!(
        out,
        "{} of {:?} after {:?} each, in random order (seed {}); medians",
        counted(u64::from(matrix.repeats), "trial"),
        matrix.window,
        matrix.warm_up,
        matrix.seed
    )?;
    for size_index in 0..matrix.sizes.len() {
        writeln!(out, "\n{}", size(&matrix.sizes[size_index]))?;
        for load_index in 0..matrix.loads.len() {
            write_row(out, matrix, size_index, load_index, format)?;
        }
    }
    writeln!(out)?;
    write_machine(out, format, &matrix.conditions)?;
    for warning in &matrix.conditions.warnings {
        write_wrapped(out, format, &format!("warning: {warning}"))?;
    }
    Ok(())
}

fn write_row(
    out: &mut String,
    matrix: &Matrix,
    size: usize,
    load_index: usize,
    format: TextFormat,
) -> fmt::Result {
    let row: Vec<&CellResult> = matrix.row(size, load_index).collect();
    let connections = row.first().map_or(0, |cell| cell.connections);
    writeln!(out, "\n  {}", load(&matrix.loads[load_index], connections))?;
    let name = |result: &CellResult| matrix.targets[result.cell.target].0.clone();
    let (measured, others): (Vec<_>, Vec<_>) = row
        .into_iter()
        .partition(|result| result.measured().count() > 0);
    write_figures(out, &measured, &name, format)?;
    for result in measured.into_iter().chain(others) {
        if let Some(remark) = remark(result) {
            write_wrapped(out, format, &format!("  {}: {remark}", name(result)))?;
        }
    }
    let winners = winners(matrix, size, load_index);
    if !winners.is_empty() {
        write_wrapped(out, format, &format!("  ahead: {winners}"))?;
    }
    Ok(())
}

/// The figures of the cells that were measured, a row for each.
fn write_figures(
    out: &mut String,
    measured: &[&CellResult],
    name: &dyn Fn(&CellResult) -> String,
    format: TextFormat,
) -> fmt::Result {
    const INDENT: &str = "  ";
    const HEADINGS: [&str; 12] = [
        "", "µs/req", "±%", "req/s", "±%", "p50", "p99", "p99.9", "CPU %", "peak RSS", "fds",
        "limit",
    ];
    // Descriptors, p99.9, the processor, the intervals.
    const DISPENSABLE: [usize; 5] = [10, 7, 8, 4, 2];
    if measured.is_empty() {
        return Ok(());
    }
    let rows = measured.iter().map(|result| {
        vec![
            name(result),
            cell(result, Figure::CpuUsPerRequest),
            percent(result, Figure::CpuUsPerRequest),
            cell(result, Figure::RequestsPerSecond),
            percent(result, Figure::RequestsPerSecond),
            cell(result, Figure::P50Us),
            cell(result, Figure::P99Us),
            cell(result, Figure::P999Us),
            cell(result, Figure::CpuPercent),
            cell(result, Figure::PeakMemoryBytes),
            cell(result, Figure::PeakFds),
            limit(result),
        ]
    });
    let table = TextTable {
        headings: HEADINGS.map(str::to_owned).to_vec(),
        rows: rows.collect(),
        has_names: true,
        dispensable: &DISPENSABLE,
        emphasised: &[],
    };
    let mut text = String::new();
    let narrower = TextFormat {
        columns: format.columns().saturating_sub(INDENT.len()),
        ..format
    };
    table.write(&mut text, narrower)?;
    for line in text.lines() {
        writeln!(out, "{INDENT}{line}")?;
    }
    Ok(())
}
