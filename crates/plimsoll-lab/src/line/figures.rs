//! Figures with no more digits than their interval supports, and the sentence that sums a line up.

use plimsoll_model::{Bounded, ByteSize, rate_figures, share_percentage, three_figures};

use super::outcome::{Line, Window};
use super::search::SearchEnd;
use crate::statistics::median;

/// Stands where there is nothing to show.
pub(super) const NOTHING: &str = "–";

/// A line's rate, and its bounds, as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) rate: String,
    pub(super) interval: String,
}

/// The line in the digits that its interval, or without one its precision, supports.
pub(super) fn shown(line: &Line) -> Option<Shown> {
    let SearchEnd::Line(boundary) = line.found.ended else {
        return None;
    };
    let half = match (boundary.low, boundary.high) {
        (Some(low), Some(high)) => (high - low) / 2.0,
        _ => boundary.rate * line.precision,
    };
    let unit = unit(half);
    let bound = |value: Option<f64>, round: fn(f64) -> f64| {
        value.map_or_else(
            || "?".to_owned(),
            |value| rate_figures(round(value / unit) * unit),
        )
    };
    Some(Shown {
        rate: rate_figures((boundary.rate / unit).round() * unit),
        interval: format!(
            "{}–{}",
            bound(boundary.low, f64::floor),
            bound(boundary.high, f64::ceil)
        ),
    })
}

/// The power of ten of the first digit that is in doubt.
fn unit(half: f64) -> f64 {
    if half > 0.0 {
        10_f64.powf(half.log10().floor())
    } else {
        1.0
    }
}

/// The result of the search, in one sentence.
pub(super) fn sentence(line: &Line) -> String {
    let found = &line.found;
    let up_to = found.held_up_to.map_or_else(
        || "no rate held".to_owned(),
        |held| {
            let rows = rows(line.searched());
            let mut below = rows.iter().filter(|row| row.rate <= held);
            // A rate holds if most of its windows do.
            let windows = if below.all(|row| row.held == row.windows) {
                "every window"
            } else {
                "most windows"
            };
            format!(
                "{windows} of the search held up to {}/s",
                rate_figures(held)
            )
        },
    );
    match found.ended {
        SearchEnd::Line(_) => match (found.confirmed, line.confirm.is_zero()) {
            (Some(confirmed), _) => {
                let long: Vec<_> = line
                    .confirmations()
                    .into_iter()
                    .filter(|it| it.planned.rate.total_cmp(&confirmed).is_eq())
                    .collect();
                let held = long.iter().filter(|window| window.seen.held).count();
                let windows = match (held, long.len()) {
                    (held, made) if held == made => format!("a window of {:?} held", line.confirm),
                    (held, made) => format!("{held} of {made} windows of {:?} held", line.confirm),
                };
                format!("{up_to}; {windows} at {}/s", rate_figures(confirmed))
            }
            (None, true) => up_to,
            (None, false) => format!("{up_to}; no window of {:?} held there", line.confirm),
        },
        SearchEnd::Generator { rate: at } => format!(
            "the generator was the limit at {}/s, so the line is not known; {up_to}",
            rate_figures(at)
        ),
        SearchEnd::Interrupted => format!("{up_to}; interrupted before the line was found"),
        SearchEnd::Most => {
            format!("{up_to}, the highest rate that was allowed; the line is above it")
        }
        SearchEnd::Nothing { lowest } => {
            format!("no line: even {}/s broke", rate_figures(lowest))
        }
    }
}

pub(super) fn time(micros: f64) -> String {
    plimsoll_model::Unit::Microseconds.show(micros)
}

/// The medians of the windows at one rate that count: what broke by the generator's limit is no fact about the target.
pub(super) struct Row {
    pub(super) rate: f64,
    pub(super) held: usize,
    pub(super) windows: usize,
    pub(super) throughput: Option<f64>,
    pub(super) p50_us: Option<Bounded<f64>>,
    pub(super) p99_us: Option<Bounded<f64>>,
    pub(super) error_share: Option<f64>,
    pub(super) in_flight: Option<f64>,
    pub(super) cpu_us: Option<f64>,
    pub(super) generator_cpu_us: Option<f64>,
    pub(super) peak_memory_bytes: Option<f64>,
    pub(super) generator_limited: usize,
}

/// One row a rate, ascending.
pub(super) fn rows(windows: Vec<&Window>) -> Vec<Row> {
    Line::by_rate(windows)
        .iter()
        .map(|made| {
            let counts = |window: &&Window| window.seen.held || !window.seen.generator_limited;
            let windows: Vec<&Window> = made.iter().copied().filter(counts).collect();
            let windows = windows.as_slice();
            let middle = |value: fn(&Window) -> Option<f64>| {
                let values: Vec<f64> = windows.iter().filter_map(|window| value(window)).collect();
                median(&values)
            };
            Row {
                rate: made[0].planned.rate,
                held: windows.iter().filter(|window| window.seen.held).count(),
                windows: windows.len(),
                throughput: middle(|window| Some(window.throughput)),
                p50_us: middle_time(windows, |window| window.p50_us),
                p99_us: middle_time(windows, |window| window.p99_us),
                error_share: middle(|window| Some(window.error_share)),
                in_flight: middle(|window| window.in_flight),
                cpu_us: middle(|window| window.cpu_us_per_request),
                generator_cpu_us: middle(|window| window.generator_cpu_us_per_request),
                peak_memory_bytes: middle(|window| {
                    window.peak_memory_bytes.map(|bytes| bytes as f64)
                }),
                generator_limited: made.len() - windows.len(),
            }
        })
        .collect()
}

/// The median of a time of which some windows know only a lower bound.
fn middle_time(
    windows: &[&Window],
    value: fn(&Window) -> Option<Bounded<f64>>,
) -> Option<Bounded<f64>> {
    let values: Vec<_> = windows.iter().filter_map(|window| value(window)).collect();
    let lows: Vec<f64> = values.iter().map(|value| value.low()).collect();
    let highs = values.iter().map(|value| value.high());
    let highs: Vec<f64> = highs.map(|high| high.unwrap_or(f64::INFINITY)).collect();
    let high = median(&highs).filter(|high| high.is_finite());
    Some(Bounded::between(median(&lows)?, high))
}

impl Row {
    /// The cells below [`HEADINGS`].
    pub(super) fn cells(&self) -> Vec<String> {
        let or = |value: Option<f64>, show: fn(f64) -> String| {
            value.map_or_else(|| NOTHING.to_owned(), show)
        };
        let time_or = |value: Option<Bounded<f64>>| {
            value.map_or_else(|| NOTHING.to_owned(), |value| value.text(time))
        };
        let limited = match self.generator_limited {
            0 => String::new(),
            limited => format!(" +{limited}*"),
        };
        vec![
            rate_figures(self.rate),
            format!("{}/{}{limited}", self.held, self.windows),
            or(self.throughput, rate_figures),
            time_or(self.p50_us),
            time_or(self.p99_us),
            or(self.error_share, share_percentage),
            or(self.in_flight, three_figures),
            or(self.cpu_us, three_figures),
            or(self.generator_cpu_us, three_figures),
            or(self.peak_memory_bytes, |bytes| {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a median of sizes"
                )]
                let bytes = bytes as u64;
                ByteSize(bytes).to_string()
            }),
        ]
    }
}

/// Of the columns of [`Row::cells`].
pub(super) const HEADINGS: [&str; 10] = [
    "rate/s",
    "held",
    "ok/s",
    "p50",
    "p99",
    "errors",
    "in flight",
    "CPU µs",
    "ours µs",
    "memory",
];

/// Usually far below one: `7.69e-4`, but `0` rather than `0.00e0`.
fn coherency(value: f64) -> String {
    if value == 0.0 {
        "0".to_owned()
    } else {
        format!("{value:.2e}")
    }
}

/// The parameters of the law, in words.
pub(super) fn law(line: &Line) -> Option<String> {
    let usl = line.usl?;
    let text = format!(
        "λ {}/s, σ {:.2} %, κ {}, R² {:.3}",
        rate_figures(usl.throughput_of_one),
        usl.contention * 100.0,
        coherency(usl.coherency),
        usl.r_squared
    );
    let most = line.windows.iter().map(|window| window.throughput);
    let most = most.fold(0.0, f64::max);
    // A bound below what was measured is none: the fit is too coarse for that.
    if let Some(ceiling) = usl.ceiling().filter(|ceiling| *ceiling >= most) {
        let at = usl.peak().map_or_else(String::new, |peak| {
            format!(" at {} in flight", rate_figures(peak))
        });
        let ceiling = three_digits(ceiling);
        return Some(format!("{text}; at most {ceiling}/s{at}"));
    }
    Some(text)
}

/// An extrapolation is worth no more digits than these.
fn three_digits(value: f64) -> String {
    let unit = unit(value) / 100.0;
    rate_figures((value / unit).round() * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    use super::super::outcome::tests::line_with;
    use super::super::search::Purpose;

    #[test]
    fn nothing_contradicts_a_row() {
        let mut line = line_with(&[
            (100.0, Purpose::Round, true),
            (100.0, Purpose::Round, false),
            (200.0, Purpose::Round, false),
            (100.0, Purpose::Confirm, false),
            (100.0, Purpose::Confirm, true),
            (50.0, Purpose::Bracket, true),
        ]);
        line.windows[1].seen.generator_limited = true;
        // A search with fewer connections came before.
        line.windows[5].planned.connections = 32;
        let held = |windows| {
            let cells = rows(windows).into_iter().map(|row| row.cells());
            cells
                .map(|cells| format!("{} {}", cells[0], cells[1]))
                .collect::<Vec<_>>()
        };
        assert_eq!(held(line.searched()), ["100 1/1 +1*", "200 0/1"]);
        assert_eq!(held(line.confirmations()), ["100 1/2"]);
        assert_eq!(
            sentence(&line),
            "every window of the search held up to 100/s; 1 of 2 windows of 30s held at 100/s"
        );
    }

    #[test]
    fn a_fitted_bound_below_what_was_measured_is_not_shown() {
        let mut line = line_with(&[(100.0, Purpose::Round, true)]);
        line.usl = Some(super::super::usl::Usl {
            throughput_of_one: 50.0,
            contention: 0.5,
            coherency: 0.0,
            r_squared: 0.9,
        });
        line.windows[0].throughput = 99.0;
        assert!(law(&line).unwrap().ends_with("at most 100/s"));
        line.windows[0].throughput = 101.0;
        assert!(!law(&line).unwrap().contains("at most"));
    }

    #[test]
    fn digits_follow_the_doubt() {
        for (half, expected) in [
            (59.5, 10.0),
            (100.0, 100.0),
            (7.0, 1.0),
            (0.3, 0.1),
            (0.0, 1.0),
        ] {
            assert!((unit(half) - expected).abs() < 1e-12, "{half}");
        }
        assert_eq!(three_digits(123_456.0), "123,000");
    }
}
