//! A distribution as bars.

use std::time::Duration;

use plimsoll_model::Histogram;

use super::numbers::{count, duration, share};
use super::page::{padded_left, width};

/// Rows at most: the tail has the last one.
const ROWS: u32 = 10;

/// Columns of the longest bar.
const BAR: usize = 36;

/// Between these fractions the scale is spread; a few values beyond would only stretch it.
const BODY: (f64, f64) = (0.001, 0.999);

/// One line for each step of a logarithmic scale over [`BODY`], the first with what lies before it,
/// and one for what is beyond.
pub(super) fn bars(histogram: &Histogram) -> Vec<String> {
    let rows = rows(histogram);
    let most = rows.iter().map(|row| row.count).max().unwrap_or(0);
    let bounds: Vec<String> = rows.iter().map(|row| duration(row.up_to)).collect();
    let counts: Vec<String> = rows.iter().map(|row| count(row.count)).collect();
    let widest = |cells: &[String]| cells.iter().map(|cell| width(cell)).max().unwrap_or(0);
    let (bound_width, count_width) = (widest(&bounds), widest(&counts));
    rows.iter()
        .zip(bounds.iter().zip(&counts))
        .map(|(row, (bound, count))| {
            format!(
                "  ≤ {}  {}  {}  {}",
                padded_left(bound, bound_width),
                padded_left(count, count_width),
                padded_left(&share(row.count, histogram.len()), 9),
                bar(row.count, most),
            )
        })
        .collect()
}

#[derive(Debug, PartialEq)]
struct Row {
    up_to: Duration,
    count: u64,
}

fn rows(histogram: &Histogram) -> Vec<Row> {
    let (Some(low), Some(high), Some(max)) = (
        histogram.quantile(BODY.0),
        histogram.quantile(BODY.1),
        histogram.max(),
    ) else {
        return Vec::new();
    };
    let mut bounds = scale(low, high);
    if bounds.last() < Some(&max) {
        bounds.push(max);
    }
    let mut rows: Vec<Row> = bounds
        .into_iter()
        .map(|up_to| Row { up_to, count: 0 })
        .collect();
    let mut current = 0;
    for bucket in histogram.buckets() {
        while current + 1 < rows.len() && bucket.up_to > rows[current].up_to {
            current += 1;
        }
        rows[current].count += bucket.count;
    }
    rows
}

/// Upper ends of steps of equal ratio, the last one `to`; fewer where they would look the same.
fn scale(from: Duration, to: Duration) -> Vec<Duration> {
    let steps = ROWS - 1;
    let low = from.as_secs_f64().max(1e-9);
    let ratio = (to.as_secs_f64() / low).max(1.0);
    let mut bounds: Vec<Duration> = Vec::new();
    for step in 1..=steps {
        let exponent = f64::from(step) / f64::from(steps);
        let bound = if step == steps {
            to
        } else {
            Duration::from_secs_f64(low * ratio.powf(exponent))
        };
        if bounds.last().map(|last| duration(*last)) == Some(duration(bound)) {
            bounds.pop();
        }
        bounds.push(bound);
    }
    bounds
}

/// Eighths of a column distinguish small counts; what is there at all is seen.
fn bar(count: u64, most: u64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

    if count == 0 || most == 0 {
        return String::new();
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most eight times the length of a bar"
    )]
    let eighths = ((count as f64 / most as f64 * (BAR * 8) as f64).round() as usize).max(1);
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(micros: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        for value in micros {
            histogram.record(Duration::from_micros(*value));
        }
        histogram
    }

    #[test]
    fn every_value_is_in_one_row() {
        for values in [
            vec![5],
            vec![7; 100],
            vec![0, 0, 1],
            (1..5_000).collect(),
            vec![1, 1_000_000, 3_600_000_000],
        ] {
            let histogram = histogram(&values);
            let rows = rows(&histogram);
            assert!(!rows.is_empty() && rows.len() <= ROWS as usize);
            assert_eq!(
                rows.iter().map(|row| row.count).sum::<u64>(),
                histogram.len()
            );
            assert!(rows.is_sorted_by(|a, b| a.up_to < b.up_to));
        }
    }

    #[test]
    fn nothing_has_no_rows() {
        assert_eq!(bars(&Histogram::new()), [""; 0]);
    }

    #[test]
    fn one_value_is_one_row() {
        assert_eq!(bars(&histogram(&[250, 250])).len(), 1);
    }
}
