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

#[cfg(test)]
mod tests {
    use super::*;

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
