//! Times as logs write them.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::{rfc2822, strtime};
use jiff::tz::TimeZone;

/// The time at which a request began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Time {
    /// Since 1970 in UTC.
    pub(super) nanoseconds: i128,
    /// Whether it was written without a fraction of a second.
    pub(super) is_whole_second: bool,
}

impl Time {
    /// `10/Oct/2000:13:55:36 -0700`, with milliseconds and without a zone (which is then UTC), or a time by RFC 3339 or
    /// RFC 2822.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let timestamp = match text.as_bytes() {
            [_, _, b'/', ..] => parse_clf(text)?,
            // `Tue, 06 Feb 2018 06:31:06 GMT`, as morgan writes it.
            [_, _, _, b',', ..] => rfc2822::parse(text).ok()?.timestamp(),
            _ => parse_iso(text)?,
        };
        Some(Self {
            nanoseconds: timestamp.as_nanosecond(),
            is_whole_second: !text.contains('.'),
        })
    }

    /// A number of seconds, milliseconds, microseconds or nanoseconds since 1970: which of them, its size shows.
    pub(super) fn from_number(number: f64) -> Option<Self> {
        const DIGITS: [(f64, f64); 3] = [(1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3)];
        let unit = DIGITS.iter().find(|(least, _)| number >= *least);
        let seconds = number * unit.map_or(1.0, |(_, unit)| *unit);
        // From 2001 to 2286: a smaller number is not a date.
        if !(1e9..1e10).contains(&seconds) {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "it has eleven digits")]
        let microseconds = (seconds * 1e6).round() as i128;
        Some(Self {
            nanoseconds: microseconds * 1000,
            is_whole_second: number.fract() == 0.0 && unit.is_none(),
        })
    }

    /// The time `seconds` earlier: logs that are written at the end of a request say how long it took.
    #[must_use]
    pub(super) fn minus(self, seconds: f64) -> Self {
        if !(0.0..86_400.0).contains(&seconds) || seconds == 0.0 {
            return self;
        }
        #[expect(clippy::cast_possible_truncation, reason = "less than a day")]
        let nanoseconds = (seconds * 1e9) as i128;
        Self {
            nanoseconds: self.nanoseconds - nanoseconds,
            // When it ended is still known to the second only.
            is_whole_second: self.is_whole_second,
        }
    }
}

fn parse_clf(text: &str) -> Option<Timestamp> {
    const WITH_ZONE: [&str; 3] = [
        "%d/%b/%Y:%H:%M:%S%.f %z",
        "%d/%b/%Y:%H:%M:%S %z",
        "%d/%b/%Y %H:%M:%S %z",
    ];
    const WITHOUT: [&str; 2] = ["%d/%b/%Y:%H:%M:%S%.f", "%d/%b/%Y:%H:%M:%S"];
    let parsed = |format: &&str| strtime::parse(format, text).ok();
    let mut with_zone = WITH_ZONE.iter().filter_map(parsed);
    with_zone
        .find_map(|time| time.to_timestamp().ok())
        .or_else(|| {
            let time = WITHOUT.iter().find_map(parsed)?;
            in_utc(time.to_datetime().ok()?)
        })
}

fn parse_iso(text: &str) -> Option<Timestamp> {
    // Shorter ones are dates.
    if text.len() < "2018-07-02T22:23:00".len() {
        return None;
    }
    text.parse()
        .ok()
        .or_else(|| in_utc(text.parse::<DateTime>().ok()?))
}

fn in_utc(time: DateTime) -> Option<Timestamp> {
    TimeZone::UTC.to_timestamp(time).ok()
}
