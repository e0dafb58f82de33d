//! A trend as text for a terminal.

use std::fmt::{self, Write};

use super::changes::Change;
use super::{Series, Trend};

/// A line for each figure, and one for each of its steps; ends with a line break.
pub fn to_text(trend: &Trend) -> String {
    let mut text = String::new();
    write_all(&mut text, trend).expect("a string takes all that is written");
    text
}

fn write_all(out: &mut String, trend: &Trend) -> fmt::Result {
    let ends = match (trend.names.first(), trend.names.last()) {
        (Some(first), Some(last)) => format!(", from {first} to {last}"),
        _ => String::new(),
    };
    writeln!(out, "{} results{ends}", trend.names.len())?;
    writeln!(out)?;
    for series in &trend.series {
        let known = || series.values.iter().flatten();
        let (first, last) = (known().next(), known().next_back());
        let (Some(first), Some(last)) = (first, last) else {
            continue;
        };
        let figure = series.figure;
        writeln!(
            out,
            "{:<30}{} … {}{}",
            figure.name(),
            figure.show(*first),
            figure.show(*last),
            if series.changes.is_empty() {
                "  no step seen"
            } else {
                ""
            }
        )?;
        for change in &series.changes {
            writeln!(out, "  {}", step(trend, series, change))?;
        }
    }
    Ok(())
}

/// `4.61 µs → 5.02 µs, +8.9 %, worse, from fix-parser on`.
pub(super) fn step(trend: &Trend, series: &Series, change: &Change) -> String {
    let figure = series.figure;
    let relative = change.relative().map_or_else(String::new, |relative| {
        format!(", {:+.1} %", relative * 100.0)
    });
    format!(
        "{} → {}{relative}, {}, from {} on",
        figure.show(change.before),
        figure.show(change.after),
        if is_better(series, change) {
            "better"
        } else {
            "worse"
        },
        trend.names[change.at]
    )
}

pub(super) fn is_better(series: &Series, change: &Change) -> bool {
    (change.after > change.before) == series.figure.more_is_better()
}
