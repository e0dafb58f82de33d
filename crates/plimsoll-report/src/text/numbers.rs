//! Numbers as the summary shows them.

use std::time::Duration;

use plimsoll_model::{
    Bounded, ByteSize, DurationText, Unit, grouped, percentage, share_percentage, three_figures,
};

/// Stands where there is nothing to show.
pub(super) const NOTHING: &str = "-";

/// `1,234,567`.
pub(super) fn count(value: u64) -> String {
    grouped(value)
}

/// A count with its noun: `1 core`, `2 cores`.
pub(super) fn plural(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// How far a value is from its limit, from [`JudgedThreshold::margin_percent`](plimsoll_model::JudgedThreshold):
/// `2.36 times the limit`, `12.0 % of the limit` for both a breach and what is to spare.
pub(crate) fn margin_of_limit(margin_percent: f64) -> String {
    if margin_percent < -100.0 {
        // `1,633 % of the limit` is hard to read.
        format!(
            "{} times the limit",
            three_figures(1.0 - margin_percent / 100.0)
        )
    } else {
        format!("{} of the limit", percentage(margin_percent.abs()))
    }
}

/// `part` of `whole` in percent; 100 only for all of it, 0 only for nothing.
pub(super) fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return NOTHING.to_owned();
    }
    share_percentage(part as f64 / whole as f64)
}

pub(super) fn duration(value: Duration) -> String {
    DurationText(value).to_string()
}

pub(super) fn optional(value: Option<Duration>) -> String {
    value.map_or_else(|| NOTHING.to_owned(), duration)
}

/// `47.0 ms`, or `≥ 47.0 ms` if it is a lower bound.
pub(super) fn bounded(value: Option<Bounded<Duration>>) -> String {
    value.map_or_else(|| NOTHING.to_owned(), |value| value.text(duration))
}

/// A cost that is known to within this share stands by itself.
const CERTAIN: f64 = 0.02;

/// ` ± 5.83 µs` behind a time per request of which not all digits are known, otherwise nothing.
pub(super) fn uncertainty(micros: f64, error_us: Option<f64>) -> String {
    let error = error_us.filter(|error| *error > CERTAIN * micros);
    error.map_or(String::new(), |error| {
        format!(" ± {}", Unit::Microseconds.show(error))
    })
}

pub(super) fn bytes(value: u64) -> String {
    ByteSize(value).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(count(1_234_567), "1,234,567");
    }

    #[test]
    fn a_cost_that_is_known_well_stands_by_itself() {
        assert_eq!(uncertainty(128.0, Some(5.83)), " ± 5.83 µs");
        assert_eq!(uncertainty(128.0, Some(2.5)), "");
        assert_eq!(uncertainty(128.0, None), "");
    }

    #[test]
    fn a_share_is_not_rounded_to_all_or_nothing() {
        assert_eq!(share(1, 1_000_000), "< 0.01 %");
        assert_eq!(share(999_999, 1_000_000), "> 99.99 %");
        assert_eq!(share(5, 5), "100 %");
        assert_eq!(share(0, 5), "0.00 %");
        assert_eq!(share(0, 0), "-");
    }
}
