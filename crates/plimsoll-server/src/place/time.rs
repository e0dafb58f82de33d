//! Times in the forms of logs.

use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A form of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeForm {
    /// `1994-11-06T08:49:37.005Z`
    Iso,
    /// `06/Nov/1994:08:49:37 +0000`, the form of the Common Log Format.
    Clf,
    /// Seconds since 1970 with three decimals.
    Unix,
}

impl TimeForm {
    /// Appends a time in UTC.
    pub(crate) fn write(self, time: SystemTime, out: &mut Vec<u8>) {
        const MONTHS: [&str; 12] = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ];
        let (year, month, day) = date(time);
        let (hour, minute, second, milli) = time_of_day(time);
        let written = match self {
            Self::Iso => write!(
                out,
                "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z"
            ),
            Self::Clf => {
                let month = MONTHS[month - 1];
                write!(
                    out,
                    "{day:02}/{month}/{year:04}:{hour:02}:{minute:02}:{second:02} +0000"
                )
            }
            Self::Unix => write!(out, "{}.{milli:03}", since_epoch(time).as_secs()),
        };
        written.expect("a Vec takes whatever is written");
    }
}

const SECONDS_OF_DAY: u64 = 86_400;

fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Hour, minute, second and millisecond in UTC.
fn time_of_day(time: SystemTime) -> (u64, u64, u64, u32) {
    let since = since_epoch(time);
    let second = since.as_secs() % SECONDS_OF_DAY;
    (
        second / 3600,
        second / 60 % 60,
        second % 60,
        since.subsec_millis(),
    )
}

/// Year, month and day in UTC: days are counted from the first of March, so that leap days come last.
fn date(time: SystemTime) -> (u64, usize, u64) {
    /// Days of 400 years, and from 0000-03-01 to 1970-01-01.
    const ERA: u64 = 146_097;
    const TO_EPOCH: u64 = 719_468;
    let days = since_epoch(time).as_secs() / SECONDS_OF_DAY + TO_EPOCH;
    let of_era = days % ERA;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = year_of_era + days / ERA * 400 + u64::from(month <= 2);
    (year, usize::try_from(month).unwrap_or(1), day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_httpdate() {
        for days in (0..80_000).step_by(7) {
            let time = UNIX_EPOCH + Duration::from_secs(days * SECONDS_OF_DAY);
            let (year, month, day) = date(time);
            let parsed = httpdate::parse_http_date(&httpdate::fmt_http_date(time)).unwrap();
            assert_eq!(parsed, time);
            let text = httpdate::fmt_http_date(time);
            assert!(text.contains(&format!(" {day:02} ")), "{text}");
            assert!(text.contains(&format!(" {year} ")), "{text}");
            let months = "JanFebMarAprMayJunJulAugSepOctNovDec";
            let name = months.get(3 * (month - 1)..3 * month).unwrap();
            assert!(text.contains(name), "{text}");
        }
    }
}
