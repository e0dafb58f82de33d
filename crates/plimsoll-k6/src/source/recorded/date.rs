//! Dates of places as expressions of JavaScript.

use std::fmt::Write as _;

use plimsoll_formats::{Date, DateFormat, DateOffset, DatePart, DateToken};

use super::{IN_MEMORY, within_template};

const MONTHS: &str = "['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', \
                      'November', 'December']";

const DAYS: &str = "['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']";

/// An expression whose value is the date as text.
pub(super) fn expression(date: &Date) -> String {
    let moment = moment(date);
    match &date.format {
        DateFormat::Unix => format!("Math.floor({moment}.getTime() / 1000)"),
        DateFormat::Iso8601 => format!("{moment}.toISOString()"),
        DateFormat::Rfc1123 => format!("{moment}.toUTCString()"),
        DateFormat::Pattern(parts) => {
            let mut text = String::new();
            for part in parts {
                match part {
                    DatePart::Text(plain) => text.push_str(&within_template(plain.as_bytes())),
                    DatePart::Token(token) => {
                        let value = value(*token, date.is_local);
                        write!(text, "${{{value}}}").expect(IN_MEMORY);
                    }
                }
            }
            format!("((d) => `{text}`)({moment})")
        }
    }
}

/// An expression of the moment.
fn moment(date: &Date) -> String {
    let Some(DateOffset { count, unit }) = date.offset else {
        return "new Date()".to_owned();
    };
    let milliseconds: i64 = match unit {
        "y" => {
            return format!(
                "((d) => (d.setUTCFullYear(d.getUTCFullYear() + {count}), d))(new Date())"
            );
        }
        "M" => {
            return format!("((d) => (d.setUTCMonth(d.getUTCMonth() + {count}), d))(new Date())");
        }
        "w" => 7 * 24 * 3_600_000,
        "d" => 24 * 3_600_000,
        "h" => 3_600_000,
        "m" => 60_000,
        "s" => 1_000,
        _ => 1,
    };
    format!("new Date(Date.now() + {})", milliseconds * i64::from(count))
}

/// An expression of a part of the date `d`.
fn value(token: DateToken, is_local: bool) -> String {
    let utc = if is_local { "" } else { "UTC" };
    let get = |part: &str| format!("d.get{utc}{part}()");
    let padded = |value: String, width: u32| format!("String({value}).padStart({width}, '0')");
    let hour = || format!("({} % 12 || 12)", get("Hours"));
    let half = |morning: &str, evening: &str| {
        format!("({} < 12 ? '{morning}' : '{evening}')", get("Hours"))
    };
    let month = || format!("({} + 1)", get("Month"));
    let zone = |colon: &str| {
        if is_local {
            format!(
                "((o) => (o < 0 ? '-' : '+') + String(Math.floor(Math.abs(o) / 60)).padStart(2, '0') + '{colon}' + \
                 String(Math.abs(o) % 60).padStart(2, '0'))(-d.getTimezoneOffset())"
            )
        } else {
            format!("'+00{colon}00'")
        }
    };
    match token.letters() {
        "YYYY" => padded(get("FullYear"), 4),
        "YY" => padded(format!("{} % 100", get("FullYear")), 2),
        "MMMM" => format!("{MONTHS}[{}]", get("Month")),
        "MMM" => format!("{MONTHS}[{}].slice(0, 3)", get("Month")),
        "MM" => padded(month(), 2),
        "M" => month(),
        "DD" => padded(get("Date"), 2),
        "D" => get("Date"),
        "dddd" => format!("{DAYS}[{}]", get("Day")),
        "ddd" => format!("{DAYS}[{}].slice(0, 3)", get("Day")),
        "d" => get("Day"),
        "HH" => padded(get("Hours"), 2),
        "H" => get("Hours"),
        "hh" => padded(hour(), 2),
        "h" => hour(),
        "mm" => padded(get("Minutes"), 2),
        "m" => get("Minutes"),
        "ss" => padded(get("Seconds"), 2),
        "s" => get("Seconds"),
        "SSS" => padded(get("Milliseconds"), 3),
        "A" => half("AM", "PM"),
        "a" => half("am", "pm"),
        "Z" => zone(":"),
        "ZZ" => zone(""),
        "X" => "Math.floor(d.getTime() / 1000)".to_owned(),
        _ => "d.getTime()".to_owned(),
    }
}
