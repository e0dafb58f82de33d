//! Durations as Go writes them: `1h30m`, `250ms`, `-1.5s`.

/// Nanoseconds; `None` if `text` is no duration of Go.
///
/// Units are `ns`, `us`, `µs`, `μs`, `ms`, `s`, `m` and `h`; days are not known. `0` needs no unit.
///
/// Source: documentation of `time.ParseDuration` of Go.
pub fn parse(text: &str) -> Option<i64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(end);
        if number == "." {
            return None;
        }
        let number: f64 = number.parse().ok()?;
        let end = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        total += number
            * match unit {
                "ns" => 1.0,
                "us" | "µs" | "μs" => 1e3,
                "ms" => 1e6,
                "s" => 1e9,
                "m" => 60e9,
                "h" => 3600e9,
                _ => return None,
            };
        rest = tail;
    }
    let nanos = sign * total.round();
    #[expect(clippy::cast_possible_truncation, reason = "checked against the range")]
    let nanos = (nanos.abs() < 9.2e18).then_some(nanos as i64);
    nanos
}

/// A duration above zero.
pub fn positive(text: &str) -> Option<std::time::Duration> {
    let nanos = u64::try_from(parse(text)?)
        .ok()
        .filter(|nanos| *nanos > 0)?;
    Some(std::time::Duration::from_nanos(nanos))
}

/// Whole seconds as Go shows them, without parts that are zero at the end: `336h`, `1h30m`, `1h0m15s`.
///
/// - `millis`: milliseconds, cut to whole seconds.
pub fn shown(millis: i64) -> String {
    let seconds = millis / 1000;
    let sign = if seconds < 0 { "-" } else { "" };
    let all = seconds.unsigned_abs();
    let (hours, minutes, seconds) = (all / 3600, all / 60 % 60, all % 60);
    let text = match (hours, minutes, seconds) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, 0) => format!("{minutes}m"),
        (0, minutes, seconds) => format!("{minutes}m{seconds}s"),
        (hours, 0, 0) => format!("{hours}h"),
        (hours, minutes, 0) => format!("{hours}h{minutes}m"),
        (hours, minutes, seconds) => format!("{hours}h{minutes}m{seconds}s"),
    };
    format!("{sign}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        for (text, expected) in [
            ("1h30m", Some(5_400_000_000_000)),
            ("250ms", Some(250_000_000)),
            ("-1.5s", Some(-1_500_000_000)),
            ("0", Some(0)),
            ("1µs", Some(1_000)),
            (".5s", Some(500_000_000)),
            ("5", None),
            ("1d", None),
            ("", None),
            ("s", None),
            ("1h 30m", None),
            ("99999999999h", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn durations_are_shown_without_empty_parts() {
        for (millis, expected) in [
            (336 * 3_600_000, "336h"),
            (5_400_999, "1h30m"),
            (3_615_000, "1h0m15s"),
            (0, "0s"),
            (-61_000, "-1m1s"),
            (60_000, "1m"),
        ] {
            assert_eq!(shown(millis), expected);
        }
    }
}
