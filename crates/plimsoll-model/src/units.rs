//! Units as people write them: `1m30s`, `64KiB`, `5k/s`.

pub(crate) mod figures;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::three_figures;

/// A count with its noun: `1 file`, `2 files`.
pub fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Errors in a written quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// Nothing was written.
    #[error("empty; write for example `{example}`")]
    Empty {
        /// A valid quantity of the kind wanted.
        example: &'static str,
    },
    /// There is no number where one is needed.
    #[error("`{text}` does not start with a number; write for example `{example}`")]
    Number {
        /// The text as written.
        text: String,
        /// A valid quantity of the kind wanted.
        example: &'static str,
    },
    /// The unit is not known.
    #[error("unknown unit `{unit}`; known are {known}")]
    Unit {
        /// The unit as written.
        unit: String,
        /// The units that would do.
        known: &'static str,
    },
    /// The quantity is negative, not finite or too large to hold.
    #[error("`{text}` is out of range")]
    Range {
        /// The text as written.
        text: String,
    },
}

/// Longer durations are refused, so that none can overflow when it is added to a moment: 100 years.
const LONGEST_DURATION: Duration = Duration::from_hours(100 * 365 * 24);

/// Parses a duration: numbers with a unit (`ns`, `us`, `ms`, `s`, `m`, `h`, `d`), added up; a bare
/// number is seconds.
///
/// ```text
/// 10s   1m30s   250ms   0.5s   2
/// ```
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    const EXAMPLE: &str = "10s";
    const KNOWN: &str = "ns, us, ms, s, m, h, d";

    let out_of_range = || UnitError::Range {
        text: text.to_owned(),
    };
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(UnitError::Empty { example: EXAMPLE });
    }
    let mut total = Duration::ZERO;
    let mut first = true;
    while !rest.is_empty() {
        let (number, after) = split_number(rest, EXAMPLE)?;
        let end = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, tail) = after.split_at(end);
        let seconds = match unit {
            "ns" => 1e-9,
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "" if first && tail.is_empty() => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => {
                return Err(UnitError::Unit {
                    unit: unit.to_owned(),
                    known: KNOWN,
                });
            }
        };
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| out_of_range())?;
        total = total.checked_add(part).ok_or_else(out_of_range)?;
        if total > LONGEST_DURATION {
            return Err(out_of_range());
        }
        rest = tail;
        first = false;
    }
    Ok(total)
}

/// Parses a size in bytes: a number with a decimal (`kB`, `MB`, `GB`) or binary (`KiB`, `MiB`,
/// `GiB`) unit; a bare number is bytes.
pub fn parse_byte_size(text: &str) -> Result<ByteSize, UnitError> {
    const KNOWN: &str = "B, kB, MB, GB, KiB, MiB, GiB";

    let (number, unit) = split_number(text.trim(), "64KiB")?;
    let factor = match unit.trim() {
        "" | "B" | "b" => 1.0,
        "k" | "kB" | "KB" | "kb" => 1e3,
        "M" | "MB" | "mb" => 1e6,
        "G" | "GB" | "gb" => 1e9,
        "Ki" | "KiB" | "kib" => 1024.0,
        "Mi" | "MiB" | "mib" => 1024.0 * 1024.0,
        "Gi" | "GiB" | "gib" => 1024.0 * 1024.0 * 1024.0,
        other => {
            return Err(UnitError::Unit {
                unit: other.to_owned(),
                known: KNOWN,
            });
        }
    };
    let bytes = number * factor;
    if bytes > u64::MAX as f64 {
        return Err(UnitError::Range {
            text: text.to_owned(),
        });
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be in range; a fraction of a byte means nothing"
    )]
    Ok(ByteSize(bytes as u64))
}

/// Parses a rate: a number with an optional `k` or `M` and an optional `/s` (default), `/m` or `/h`.
///
/// ```text
/// 500   5k   2.5k/s   90/m
/// ```
pub fn parse_rate(text: &str) -> Result<Rate, UnitError> {
    const KNOWN: &str = "k, M, followed by /s, /m or /h";

    let (number, unit) = split_number(text.trim(), "500/s")?;
    let (scale, per) = unit.split_once('/').unwrap_or((unit, "s"));
    let unknown = || UnitError::Unit {
        unit: unit.to_owned(),
        known: KNOWN,
    };
    let factor = match scale {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        _ => return Err(unknown()),
    };
    let seconds = match per {
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(unknown()),
    };
    Rate::new(number * factor / seconds).ok_or_else(|| UnitError::Range {
        text: text.to_owned(),
    })
}

/// The number at the start of `text`, and the rest.
fn split_number<'a>(text: &'a str, example: &'static str) -> Result<(f64, &'a str), UnitError> {
    if text.is_empty() {
        return Err(UnitError::Empty { example });
    }
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let number = f64::from_str(digits).map_err(|_| UnitError::Number {
        text: text.to_owned(),
        example,
    })?;
    Ok((number, rest))
}

/// Arrivals per second: finite and not negative.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Rate(f64);

impl Rate {
    /// `per_second` arrivals each second; `None` if that is negative or not finite.
    pub fn new(per_second: f64) -> Option<Self> {
        (per_second.is_finite() && per_second >= 0.0).then_some(Self(per_second))
    }

    /// Arrivals per second.
    pub const fn per_second(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", self.0)
    }
}

/// A number of bytes; shown with a decimal unit and three figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteSize(pub u64);

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [Unit; 3] = [
            ("kB", 1e3, 1e3),
            ("MB", 1e6, 1e3),
            ("GB", 1e9, f64::INFINITY),
        ];

        if self.0 < 1_000 {
            return f.pad(&format!("{} B", self.0));
        }
        f.pad(&in_suited_unit(self.0 as f64, &UNITS))
    }
}

/// A duration as people read it: three figures and the unit that suits them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurationText(pub Duration);

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [Unit; 5] = [
            ("µs", 1e3, 1e3),
            ("ms", 1e6, 1e3),
            ("s", 1e9, 120.0),
            ("min", 60e9, 120.0),
            ("h", 3600e9, f64::INFINITY),
        ];

        let nanos = self.0.as_nanos();
        if nanos < 1_000 {
            return f.pad(&format!("{nanos} ns"));
        }
        f.pad(&in_suited_unit(nanos as f64, &UNITS))
    }
}

/// Name, size, and from how many of it on the next larger unit is used.
type Unit = (&'static str, f64, f64);

/// `amount` in the first of `units` that suits it; the last one suits everything.
fn in_suited_unit(amount: f64, units: &[Unit]) -> String {
    units
        .iter()
        .map(|&(unit, size, limit)| (amount / size, unit, limit))
        // A value that would be rounded up to the limit belongs to the next unit.
        .find(|(value, _, limit)| value.round() < *limit)
        .map(|(value, unit, _)| format!("{} {unit}", three_figures(value)))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations() {
        let parsed = |text| parse_duration(text).map_err(|error| error.to_string());
        assert_eq!(parsed("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(parsed("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(parsed("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parsed("0.5s"), Ok(Duration::from_millis(500)));
        assert_eq!(parsed("2"), Ok(Duration::from_secs(2)));
        assert_eq!(parsed("1h"), Ok(Duration::from_hours(1)));
        assert_eq!(
            parsed("10x"),
            Err("unknown unit `x`; known are ns, us, ms, s, m, h, d".into())
        );
        assert_eq!(
            parsed("-3s"),
            Err("`-3s` does not start with a number; write for example `10s`".into())
        );
        assert!(parsed("").is_err());
        assert!(parsed("1m30").is_err());
        assert!(parsed("99999999999999999999999d").is_err());
    }

    #[test]
    fn sizes_and_rates() {
        assert_eq!(parse_byte_size("64KiB"), Ok(ByteSize(65_536)));
        assert_eq!(parse_byte_size("1.5MB"), Ok(ByteSize(1_500_000)));
        assert!(parse_byte_size("12 parsecs").is_err());
        assert_eq!(parse_rate("5k").map(Rate::per_second), Ok(5_000.0));
        assert_eq!(parse_rate("90/m").map(Rate::per_second), Ok(1.5));
        assert!(parse_rate("5 apples").is_err());
        assert!(parse_rate("1/fortnight").is_err());
    }

    #[test]
    fn three_figures_are_shown() {
        let shown = |nanos| DurationText(Duration::from_nanos(nanos)).to_string();
        assert_eq!(shown(999), "999 ns");
        assert_eq!(shown(1_234), "1.23 µs");
        assert_eq!(shown(99_960), "100 µs");
        assert_eq!(shown(45_600_000), "45.6 ms");
        assert_eq!(shown(999_800_000), "1.00 s");
        assert_eq!(shown(999_499_000), "999 ms");
        assert_eq!(shown(90_000_000_000), "90.0 s");
        assert_eq!(shown(119_800_000_000), "2.00 min");
        assert_eq!(shown(u64::MAX), "5124096 h");
        assert_eq!(ByteSize(999_999).to_string(), "1.00 MB");
        assert_eq!(ByteSize(12).to_string(), "12 B");
        assert_eq!(ByteSize(18_200_000).to_string(), "18.2 MB");
        assert_eq!(format!("{:>8}|", ByteSize(12)), "    12 B|");
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in "\\PC*") {
            drop(parse_duration(&text));
            drop(parse_byte_size(&text));
            drop(parse_rate(&text));
        }

        #[test]
        fn milliseconds_survive_the_round_trip(millis in 0_u64..1_000_000_000) {
            prop_assert_eq!(
                parse_duration(&format!("{millis}ms")).map(|d| d.as_millis()),
                Ok(u128::from(millis))
            );
        }
    }
}
