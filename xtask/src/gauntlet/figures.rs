//! What plimsoll reports, read from each of its formats by other means than its own.

mod csv;
mod hdr;
mod html;
mod json;
mod text;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::Failure;

pub(super) use self::json::Summary;

/// A figure as a format shows it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shown {
    /// Counts and bytes as they are, times in microseconds.
    pub(super) value: f64,
    /// Whether it is marked as a lower bound.
    pub(super) is_bound: bool,
    /// Relative error of how it is written.
    pub(super) rounding: f64,
}

/// Figures are printed with three digits.
const THREE_DIGITS: f64 = 0.005_1;

/// Buckets of histograms have three digits, of which the last one is not exact.
const BUCKET: f64 = 0.001_1;

/// Units of texts have three digits.
fn rounded(value: f64, is_bound: bool) -> Shown {
    Shown {
        value,
        is_bound,
        rounding: THREE_DIGITS,
    }
}

fn exact(value: f64) -> Shown {
    Shown {
        value,
        is_bound: false,
        rounding: 0.0,
    }
}

/// Figures by name: `ok`, `p99`.
pub(super) type Figures = BTreeMap<&'static str, Shown>;

/// What a figure cannot be below or above, by its name.
pub(super) type Ranges = BTreeMap<&'static str, (f64, f64)>;

/// How often each status came.
pub(super) type Statuses = BTreeMap<u16, u64>;

/// The outputs of one run.
pub(super) struct Outputs {
    pub(super) json: Summary,
    pub(super) others: Vec<Format>,
}

/// A format other than JSON.
pub(super) struct Format {
    pub(super) name: &'static str,
    pub(super) figures: Figures,
    pub(super) ranges: Ranges,
    /// `None` if it has none.
    pub(super) statuses: Option<Statuses>,
}

impl Outputs {
    /// - `folder`: what `--out` wrote.
    /// - `terminal`: what was printed.
    /// - `is_script`: the text is then that of k6.
    pub(super) fn read(folder: &Path, terminal: &str, is_script: bool) -> Result<Self, Failure> {
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let (text, statuses) = if is_script {
            (text::script_figures(terminal), None)
        } else {
            let details = read("summary.txt")?;
            (
                text::figures(terminal, &details),
                Some(text::statuses(&details)),
            )
        };
        let format = |name, figures, statuses| Format {
            name,
            figures,
            ranges: Ranges::new(),
            statuses,
        };
        let page = read("report.html")?;
        let (sums, ranges) = csv::figures(&read("series.csv")?)?;
        Ok(Self {
            json: Summary::parse(&read("summary.json")?)?,
            others: vec![
                format("text", text, statuses),
                Format {
                    ranges,
                    ..format("CSV", sums, None)
                },
                format("HTML", html::figures(&page), Some(html::statuses(&page))),
                format("HDR", hdr::figures(&read("latency.hdr")?)?, None),
            ],
        })
    }
}

/// `1,234` or `1.20` with a unit, in counts, bytes or microseconds; `None` if it is no figure.
fn parse_figure(text: &str) -> Option<Shown> {
    let text = &text.replace('\u{a0}', " ");
    let (text, is_bound) = match text.trim().strip_prefix('≥') {
        Some(rest) => (rest.trim(), true),
        None => (text.trim(), false),
    };
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let value: f64 = number.replace(',', "").parse().ok()?;
    let factor = match unit.split_whitespace().next().unwrap_or_default() {
        "" | "B" | "µs" => 1.0,
        "ns" => 1e-3,
        "ms" | "kB" => 1e3,
        "s" | "MB" => 1e6,
        "min" => 60e6,
        "GB" => 1e9,
        _ => return None,
    };
    let is_count = unit.is_empty() && !number.contains('.');
    Some(if is_count {
        exact(value)
    } else {
        rounded(value * factor, is_bound)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_with_unit_and_mark() {
        let value = |text| parse_figure(text).map(|shown| (shown.value, shown.is_bound));
        assert_eq!(value("1,234"), Some((1234.0, false)));
        assert_eq!(value("≥ 1.50 ms"), Some((1500.0, true)));
        assert_eq!(value("549 µs"), Some((549.0, false)));
        assert_eq!(value("32.8 kB sent"), Some((32800.0, false)));
        assert_eq!(value("none"), None);
    }
}
