//! Numbers as people read them in text.

use std::fmt;

/// `value` with three figures and as many decimals as they leave; whole numbers from a hundred on.
///
/// ```text
/// 4.61   45.6   131   131022
/// ```
pub fn three_figures(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// `number`, which is not negative, as a whole one with commas between thousands: `1,234,567`.
pub fn grouped(number: impl fmt::Display) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Arrivals or responses per second without their unit: three figures, from a hundred on whole with commas.
///
/// ```text
/// 0.50   45.6   48,208
/// ```
pub fn rate_figures(per_second: f64) -> String {
    if per_second < 99.95 {
        three_figures(per_second)
    } else {
        grouped(per_second)
    }
}

/// A percentage with three figures: `98.3 %`.
pub fn percentage(percent: f64) -> String {
    format!("{} %", three_figures(percent))
}

/// A fraction of a whole in percent; 100 only for all of it, 0 only for nothing.
///
/// ```text
/// 0.00 %   < 0.01 %   12.5 %   99.97 %   > 99.99 %   100 %
/// ```
pub fn share_percentage(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if fraction > 0.0 && percent < 0.01 {
        "< 0.01 %".to_owned()
    } else if fraction < 1.0 && percent > 99.99 {
        "> 99.99 %".to_owned()
    } else if fraction < 1.0 && percent >= 99.95 {
        // Three figures would make all of it.
        format!("{percent:.2} %")
    } else {
        percentage(percent)
    }
}

/// A percentage whose accuracy is about a tenth of it, without its unit: `9.9`, from ten on whole.
pub fn rough_percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent < 9.95 {
        format!("{percent:.1}")
    } else {
        format!("{percent:.0}")
    }
}

/// The same with its unit: `9.9 %`.
pub fn rough_percentage(fraction: f64) -> String {
    format!("{} %", rough_percent(fraction))
}

/// A fraction in percent without its unit, rounded down, so that only 1 is `100`: an outage never disappears.
///
/// - `decimals`: how many are kept, at most 8.
pub fn percent_rounded_down(fraction: f64, decimals: u8) -> String {
    let decimals = usize::from(decimals.min(8));
    let scale = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8][decimals];
    let percent = (fraction * (100.0 * scale)).floor() / scale;
    format!("{percent:.decimals$}")
}

/// A number without the zeros at the end of its decimals: `99.50` is `99.5`, `3.000` is `3`.
pub fn without_trailing_zeros(number: &str) -> &str {
    if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_whole_from_a_hundred_on() {
        assert_eq!(rate_figures(0.5), "0.50");
        assert_eq!(rate_figures(99.96), "100");
        assert_eq!(rate_figures(48_207.6), "48,208");
    }

    #[test]
    fn a_share_is_not_rounded_to_all_or_nothing() {
        for (fraction, expected) in [
            (0.0, "0.00 %"),
            (0.000_001, "< 0.01 %"),
            (0.000_05, "< 0.01 %"),
            (0.125, "12.5 %"),
            (0.999_4, "99.9 %"),
            (0.999_5, "99.95 %"),
            (0.999_7, "99.97 %"),
            (0.999_999, "> 99.99 %"),
            (1.0, "100 %"),
        ] {
            assert_eq!(share_percentage(fraction), expected);
        }
    }

    #[test]
    fn rough_percentages_have_two_figures() {
        assert_eq!(rough_percent(0.0314), "3.1");
        assert_eq!(rough_percent(0.0996), "10");
        assert_eq!(rough_percentage(0.0314), "3.1 %");
    }

    #[test]
    fn percentages_of_uptime_are_never_rounded_up() {
        for (fraction, decimals, expected) in [
            (1.0, 3, "100.000"),
            (0.999_999, 2, "99.99"),
            (0.999_999, 3, "99.999"),
            (0.5, 0, "50"),
            (0.0, 2, "0.00"),
        ] {
            assert_eq!(percent_rounded_down(fraction, decimals), expected);
        }
    }

    #[test]
    fn only_decimals_lose_their_zeros() {
        for (number, expected) in [
            ("99.50", "99.5"),
            ("3.000", "3"),
            ("100", "100"),
            ("0.0", "0"),
        ] {
            assert_eq!(without_trailing_zeros(number), expected);
        }
    }

    #[test]
    fn figures_are_three_whatever_is_rounded() {
        assert_eq!(three_figures(0.0), "0.00");
        assert_eq!(three_figures(4.614), "4.61");
        assert_eq!(three_figures(9.996), "10.0");
        assert_eq!(three_figures(75.21), "75.2");
        assert_eq!(three_figures(99.96), "100");
        assert_eq!(three_figures(131_022.4), "131022");
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(grouped(0.4), "0");
        assert_eq!(grouped(131_022.4), "131,022");
        assert_eq!(grouped(999_999.6), "1,000,000");
    }
}
