//! Numbers as summaries write them.

use plimsoll_model::without_trailing_zeros;

/// A value of a metric.
///
/// - `kind`, `contains`: those of the metric, as in the data of a summary.
/// - `unit`: of durations; empty for the one that fits.
pub(crate) fn humanize(value: f64, kind: &str, contains: &str, unit: &str) -> String {
    if kind == "rate" {
        return percent(value);
    }
    match contains {
        "data" => bytes(value),
        "time" => duration(value, unit),
        _ => number(value),
    }
}

/// A rate, truncated to two decimals of a percentage.
pub(crate) fn percent(rate: f64) -> String {
    format!("{:.2}%", truncated(rate * 100.0, 100.0))
}

/// At most six decimals, without zeros at the end.
pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = without_trailing_zeros(&text);
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

/// In units of 1000, with one decimal below 10.
pub(crate) fn bytes(value: f64) -> String {
    const UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut value = value;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    // Whole bytes have no decimals; anything else has one below 10.
    let rounded = (value * 10.0 + 0.5).floor() / 10.0;
    if unit > 0 && rounded < 10.0 {
        format!("{rounded:.1} {}", UNITS[unit])
    } else {
        format!("{:.0} {}", (value + 0.5).floor(), UNITS[unit])
    }
}

/// - `millis`: the duration.
/// - `unit`: `s`, `ms`, `us`, or empty for the one that fits.
pub(crate) fn duration(millis: f64, unit: &str) -> String {
    match unit {
        "s" => return format!("{:.2}s", truncated(millis / 1000.0, 100.0)),
        "ms" => return format!("{:.2}ms", truncated(millis, 100.0)),
        "us" => return format!("{:.2}µs", truncated(millis * 1000.0, 100.0)),
        _ => {}
    }
    let in_unit = |value: f64, unit: &str| {
        let text = number(truncated(value, 100.0));
        format!("{text}{unit}")
    };
    if millis == 0.0 {
        return "0s".to_owned();
    }
    if millis < 0.001 {
        return format!("{:.0}ns", millis * 1e6);
    }
    if millis < 1.0 {
        return in_unit(millis * 1000.0, "µs");
    }
    if millis < 1000.0 {
        return in_unit(millis, "ms");
    }
    let seconds = millis / 1000.0;
    if seconds < 60.0 {
        return in_unit(seconds, "s");
    }
    let (hours, rest) = ((seconds / 3600.0).floor(), seconds % 3600.0);
    let (minutes, rest) = ((rest / 60.0).floor(), (rest % 60.0).floor());
    if hours > 0.0 {
        format!("{hours}h{minutes}m{rest}s")
    } else {
        format!("{minutes}m{rest}s")
    }
}

/// Without what is beyond the decimals; numbers that miss their decimal by rounding alone keep it.
fn truncated(value: f64, scale: f64) -> f64 {
    (value * scale + 1e-9).trunc() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_k6_writes_them() {
        for (millis, expected) in [
            (0.0, "0s"),
            (0.000_4, "400ns"),
            (0.012_345, "12.34µs"),
            (1.0, "1ms"),
            (12.349, "12.34ms"),
            (999.999, "999.99ms"),
            (1500.0, "1.5s"),
            (61_000.0, "1m1s"),
            (3_723_000.0, "1h2m3s"),
        ] {
            assert_eq!(duration(millis, ""), expected);
        }
        assert_eq!(duration(1234.567, "s"), "1.23s");
        assert_eq!(duration(1.5, "us"), "1500.00µs");
        for (value, expected) in [
            (0.0, "0 B"),
            (999.0, "999 B"),
            (1234.0, "1.2 kB"),
            (12_345.0, "12 kB"),
            (9_990_000.0, "10 MB"),
        ] {
            assert_eq!(bytes(value), expected);
        }
        assert_eq!(percent(0.666_666), "66.66%");
        assert_eq!(percent(0.29), "29.00%");
        assert_eq!(
            (number(3.0), number(3.333_333_3)),
            ("3".to_owned(), "3.333333".to_owned())
        );
        assert_eq!(humanize(0.5, "rate", "default", ""), "50.00%");
        assert_eq!(humanize(2048.0, "counter", "data", ""), "2.0 kB");
    }
}
