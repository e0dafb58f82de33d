//! Durations as load tools print them.

/// Microseconds of a duration such as `137.00us`, `5.04ms`, `1.2 s` or `1m3s`.
pub(super) fn microseconds(text: &str) -> Option<f64> {
    let mut rest = text.trim();
    let mut total = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let (number, after) = rest.split_at(digits);
        let after = after.trim_start();
        let end = after
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, tail) = after.split_at(end);
        let factor = match unit.trim() {
            "ns" => 1e-3,
            "us" | "µs" | "μs" => 1.0,
            "ms" => 1e3,
            "s" | "sec" => 1e6,
            "m" => 60e6,
            "h" => 3600e6,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * factor;
        rest = tail;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_the_tools() {
        for (text, expected) in [
            ("137.00us", Some(137.0)),
            ("233.51µs", Some(233.51)),
            ("5.04ms", Some(5040.0)),
            ("0.1935 ms", Some(193.5)),
            ("1.00s", Some(1e6)),
            ("1m3s", Some(63e6)),
            ("500ns", Some(0.5)),
            ("", None),
            ("12", None),
            ("ms", None),
            ("1.2.3ms", None),
            ("5 parsecs", None),
        ] {
            let seen = microseconds(text);
            assert_eq!(seen.is_some(), expected.is_some(), "{text}");
            if let (Some(seen), Some(expected)) = (seen, expected) {
                assert!((seen - expected).abs() < 1e-6, "{text}: {seen}");
            }
        }
    }
}
