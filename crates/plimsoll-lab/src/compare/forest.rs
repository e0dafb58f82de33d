//! Ratios with their intervals, drawn below one another on one logarithmic scale.
//!
//! The words are text of the page and not of a drawing, so that they are as large on a phone as on a desktop.

use std::fmt::Write as _;

use plimsoll_model::escaped_html;
use plimsoll_report::page::short_number;

use super::outcome::{MetricResult, PairResult};
use super::text::{ratio_text, verdict};
use crate::statistics::Interval;

const IN_MEMORY: &str = "writing to memory does not fail";

/// The scale that all metrics of a pair share.
#[derive(Debug, Clone, Copy)]
struct Scale {
    low: f64,
    high: f64,
}

/// The `figure` element of a pair.
pub(super) fn forest(title: &str, pair: &PairResult) -> String {
    let scale = Scale::around(pair.metrics.iter().map(|result| result.estimate.interval));
    let mut html = format!(
        "<figure class=\"plot forest\"><figcaption>{}</figcaption>",
        escaped_html(title)
    );
    for result in &pair.metrics {
        row(&mut html, scale, result);
    }
    html.push_str("<div class=\"ticks\" aria-hidden=\"true\">");
    for tick in scale.ticks() {
        write!(
            html,
            "<span style=\"left:{:.2}%\">{}</span>",
            scale.place(tick),
            short_number(tick)
        )
        .expect(IN_MEMORY);
    }
    html.push_str("</div></figure>\n");
    html
}

fn row(html: &mut String, scale: Scale, result: &MetricResult) {
    let class = match result.verdict.judgement().class() {
        "" => "faint",
        class => class,
    };
    let interval = result.estimate.interval;
    let (low, high) = (scale.place(interval.low), scale.place(interval.high));
    write!(
        html,
        "<div class=\"ratio\"><span>{}</span><b>{}</b><em class=\"{class}\">{}</em>\
         <div class=\"scale {class}\" aria-hidden=\"true\"><i class=\"one\" style=\"left:{:.2}%\"></i>\
         <i class=\"range\" style=\"left:{low:.2}%;width:{:.2}%\"></i>\
         <i class=\"dot\" style=\"left:{:.2}%\"></i></div></div>",
        result.metric.title(),
        ratio_text(result),
        escaped_html(&verdict(result)),
        scale.place(1.0),
        high - low,
        scale.place(result.estimate.ratio),
    )
    .expect(IN_MEMORY);
}

impl Scale {
    /// Holds every interval, and 1.
    fn around(intervals: impl Iterator<Item = Interval>) -> Self {
        let whole = Self {
            low: 1.0,
            high: 1.0,
        };
        intervals.fold(whole, |scale, interval| Self {
            low: scale.low.min(interval.low),
            high: scale.high.max(interval.high),
        })
    }

    /// Distance from the left, in percent of the width.
    fn place(self, ratio: f64) -> f64 {
        let length = (self.high / self.low).ln();
        if length > 0.0 {
            (ratio / self.low).ln() / length * 100.0
        } else {
            50.0
        }
    }

    /// Round ratios within the scale, 1 among them, with room for the text of each.
    fn ticks(self) -> Vec<f64> {
        let steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0];
        let within = |tick: &f64| *tick >= self.low && *tick <= self.high;
        let is_wide = self.high / self.low > 4.0;
        let multiples = |step: f64| {
            let first = (self.low / step).ceil().max(1.0);
            let ticks = (0..=MOST_TICKS).map(|number| (first + f64::from(number)) * step);
            ticks.filter(within).collect::<Vec<_>>()
        };
        let few = |ticks: &Vec<f64>| ticks.len() <= MOST_TICKS as usize;
        let ticks = if is_wide {
            let powers = (-6..=6).map(|power| 10_f64.powi(power));
            let factors = [1.0, 2.0, 5.0];
            let ticks = powers.flat_map(|power| factors.map(|factor| factor * power));
            ticks.filter(within).collect()
        } else {
            let mut ticks = steps.map(multiples).into_iter();
            ticks.find(few).unwrap_or_default()
        };
        // 1 is what all others are read by.
        let near_one = |tick: f64| (self.place(tick) - self.place(1.0)).abs() < ROOM;
        let mut kept: Vec<f64> = Vec::new();
        for tick in ticks {
            let is_one = (tick - 1.0).abs() < 1e-9;
            let is_apart = kept
                .last()
                .is_none_or(|last| self.place(tick) - self.place(*last) >= ROOM);
            if is_one || (is_apart && !near_one(tick)) {
                kept.push(tick);
            }
        }
        if !kept.iter().any(|tick| (tick - 1.0).abs() < 1e-9) {
            kept.push(1.0);
        }
        kept
    }
}

/// As many as a phone has room for.
const MOST_TICKS: u32 = 7;

/// What the text of one takes, in percent of the width of a phone.
const ROOM: f64 = 11.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(low: f64, high: f64) -> Scale {
        Scale { low, high }
    }

    #[test]
    fn a_ratio_and_its_inverse_are_as_far_from_one() {
        let scale = scale(0.5, 2.0);
        assert!(scale.place(0.5).abs() < 1e-9);
        assert!((scale.place(1.0) - 50.0).abs() < 1e-9);
        assert!((scale.place(2.0) - 100.0).abs() < 1e-9);
        let nothing = Scale::around(std::iter::empty());
        assert!((nothing.place(1.0) - 50.0).abs() < 1e-9);
    }

    #[test]
    fn ticks_are_round_and_have_room() {
        for (low, high) in [
            (1.0, 1.0),
            (0.97, 1.004),
            (0.5, 2.0),
            (0.2, 40.0),
            (0.001, 1.0),
            (1.0, 1e9),
            (0.98, 3.9),
        ] {
            let scale = scale(low, high);
            let ticks = scale.ticks();
            assert!(ticks.contains(&1.0), "{low} {high}: {ticks:?}");
            assert!(ticks.len() <= 10, "{low} {high}: {ticks:?}");
            for pair in ticks.windows(2) {
                let apart = scale.place(pair[1]) - scale.place(pair[0]);
                assert!(apart >= ROOM - 1e-9, "{low} {high}: {ticks:?}");
            }
        }
        assert_eq!(scale(0.5, 2.0).ticks(), [0.5, 1.0, 1.5, 2.0]);
    }
}
