//! A trend as text for a terminal.

use std::fmt::{self, Write};

use plimsoll_model::counted;
use plimsoll_report::page::Judgement;

use super::changes::Change;
use super::{LEAST_RESULTS, Series, Trend, TrendLevel};
use crate::text_table::TextTable;
use crate::wording::{TextFormat, write_wrapped};

/// A table with a row for each figure, and a line for each step; ends with a line break.
pub fn to_text(trend: &Trend, format: TextFormat) -> String {
    let mut text = String::new();
    write_all(&mut text, trend, format).expect("a string takes all that is written");
    text
}

fn write_all(out: &mut String, trend: &Trend, format: TextFormat) -> fmt::Result {
    let summary = match (trend.points.first(), trend.points.last()) {
        (Some(first), Some(last)) => format!(
            "{} from {} to {}: {}",
            counted(trend.points.len() as u64, "result"),
            first.name,
            last.name,
            first.load
        ),
        _ => "no results".to_owned(),
    };
    write_wrapped(out, format, &summary)?;
    for warning in trend.warnings() {
        write_wrapped(out, format, &format!("warning: {warning}"))?;
    }
    writeln!(out)?;
    let table = TextTable {
        headings: HEADINGS.map(str::to_owned).to_vec(),
        rows: trend
            .series
            .iter()
            .map(|it| row(trend, it).to_vec())
            .collect(),
        has_names: true,
        // The first result says the least.
        dispensable: &[1],
        emphasised: &[],
    };
    table.write(out, format)?;
    if trend.series.iter().any(|series| !series.changes.is_empty()) {
        writeln!(out)?;
    }
    for series in &trend.series {
        for change in &series.changes {
            let step = format!("{}: {}", series.figure.name(), step(trend, series, change));
            let mut wrapped = String::new();
            write_wrapped(&mut wrapped, format, &step)?;
            let emphasis = series.judgement(change).emphasis();
            writeln!(out, "{}", format.style.apply(emphasis, wrapped.trim_end()))?;
        }
    }
    Ok(())
}

/// Of the columns of [`row`].
const HEADINGS: [&str; 6] = ["", "first", "last", "level", "[95 %]", "since"];

/// A figure: its first and last value, and its level since the last step.
pub(super) fn row(trend: &Trend, series: &Series) -> [String; 6] {
    let show = |value: Option<&f64>| {
        value.map_or_else(|| "–".to_owned(), |value| series.figure.show(*value))
    };
    let known = || series.values.iter().flatten();
    let level = series.levels.last();
    [
        series.figure.name().to_owned(),
        show(known().next()),
        show(known().next_back()),
        show(level.map(|level| &level.median)),
        level.map_or_else(String::new, |level| interval(series, level)),
        match series.changes.last() {
            Some(change) => trend.points[change.at].name.clone(),
            None if trend.points.len() < LEAST_RESULTS => "–".to_owned(),
            None => "no step seen".to_owned(),
        },
    ]
}

/// `[4.98–5.05 µs]`, empty if the results are too few.
fn interval(series: &Series, level: &TrendLevel) -> String {
    level.interval.map_or_else(String::new, |interval| {
        let (low, high) = (
            series.figure.show(interval.low),
            series.figure.show(interval.high),
        );
        // The same unit is not written twice.
        match (low.rsplit_once(' '), high.rsplit_once(' ')) {
            (Some((number, unit)), Some((_, other))) if unit == other => {
                format!("[{number}–{high}]")
            }
            _ => format!("[{low}–{high}]"),
        }
    })
}

/// `4.61 µs → 5.02 µs, +8.9 %, worse, from fix-parser on`, and whether the machine changed there.
pub(super) fn step(trend: &Trend, series: &Series, change: &Change) -> String {
    let figure = series.figure;
    let relative = change.relative().map_or_else(String::new, |relative| {
        format!(", {:+.1} %", relative * 100.0)
    });
    let machine = if trend.changes_machine(change.at) {
        ", on another machine"
    } else {
        ""
    };
    format!(
        "{} → {}{relative}, {}, from {} on{machine}",
        figure.show(change.before),
        figure.show(change.after),
        if series.is_better(change) {
            "better"
        } else {
            "worse"
        },
        trend.points[change.at].name
    )
}

impl Series {
    /// Whether a step is for the better.
    pub fn is_better(&self, change: &Change) -> bool {
        (change.after > change.before) == self.figure.more_is_better()
    }

    /// What a step means.
    pub fn judgement(&self, change: &Change) -> Judgement {
        if self.is_better(change) {
            Judgement::Good
        } else {
            Judgement::Bad
        }
    }
}
