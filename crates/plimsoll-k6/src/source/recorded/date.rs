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
///
/// Days, weeks, months and years are those of the calendar, in the zone of the date: a day with a change of the clock has 23 or 25
/// hours, and a month later than the 30th of January is the last day of February. JavaScript itself would go on into March.
fn moment(date: &Date) -> String {
    let Some(DateOffset { count, unit }) = date.offset else {
        return "new Date()".to_owned();
    };
    let utc = if date.is_local { "" } else { "UTC" };
    let moved = |part: &str, count: i64| format!("d.set{utc}{part}(d.get{utc}{part}() + {count})");
    let of_month = |moved: String| {
        format!(
            "((d) => {{ const day = d.get{utc}Date(); {moved}; if (d.get{utc}Date() !== day) d.set{utc}Date(0); return d; }})(new Date())"
        )
    };
    let count = i64::from(count);
    let of_day = |days: i64| format!("((d) => ({}, d))(new Date())", moved("Date", days));
    let milliseconds = match unit {
        "y" => return of_month(moved("FullYear", count)),
        "M" => return of_month(moved("Month", count)),
        "w" => return of_day(7 * count),
        "d" => return of_day(count),
        "h" => 3_600_000,
        "m" => 60_000,
        "s" => 1_000,
        _ => 1,
    };
    format!("new Date(Date.now() + {})", milliseconds * count)
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

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::{Arc, Mutex};

    use plimsoll_formats::{Generator, Part, Template};

    use super::*;
    use crate::{Invocation, Script, ScriptText, run};

    /// Ends of months and years, leap days, days around changes of the clock in Berlin and New York, and an ordinary hour.
    /// None leads into the hours around such a change: QuickJS looks for the offset of a local time as if it were one in UTC.
    const MOMENTS: [&str; 13] = [
        "2024-02-29T12:00:00Z",
        "2026-01-29T23:30:00Z",
        "2026-01-31T00:00:00Z",
        "2026-03-07T12:30:00Z",
        "2026-03-28T12:30:00Z",
        "2026-03-29T00:59:59.999Z",
        "2026-04-04T15:00:00Z",
        "2026-08-31T22:15:00Z",
        "2026-10-25T00:30:00Z",
        "2026-11-29T12:15:00Z",
        "2026-12-31T23:59:59Z",
        "2028-02-29T00:00:00.001Z",
        "2026-06-15T08:05:09.007Z",
    ];

    const OFFSETS: [&str; 17] = [
        "", "1 d", "-1 d", "40 d", "1 w", "-5 w", "1 M", "-1 M", "3 M", "13 M", "1 y", "-1 y",
        "4 y", "-1 h", "30 m", "-1 s", "1 ms",
    ];

    fn dates() -> Vec<Date> {
        let formats = [
            "iso8601",
            "rfc1123",
            "'YYYY-MM-DD HH:mm:ss.SSS ZZ'",
            "'dddd MMMM YY h A Z X x'",
        ];
        let mut dates = Vec::new();
        for name in ["datetime", "localDatetime"] {
            for format in formats {
                for offset in OFFSETS {
                    let place = format!("{{{{${name} {format} {offset}}}}}");
                    let template = Template::parse(&place).unwrap();
                    let [Part::Generator(Generator::Date(date))] = template.parts() else {
                        panic!("{place}: {template:?}");
                    };
                    dates.push((**date).clone());
                }
            }
        }
        dates
    }

    #[test]
    fn expressions_are_worth_what_places_are() {
        let mut script = String::from(
            "const Clock = Date; let now; globalThis.Date = class extends Clock { constructor(...at) { \
             if (at.length) super(...at); else super(now); } static now() { return now; } };\n\
             export default () => { for (const at of MOMENTS) { now = new Clock(at).getTime();\n",
        );
        script = script.replace("MOMENTS", &format!("{MOMENTS:?}"));
        let dates = dates();
        for date in &dates {
            writeln!(script, "console.log({});", expression(date)).unwrap();
        }
        script.push_str("} };");
        let text = ScriptText::Given {
            text: script,
            directory: std::env::temp_dir(),
        };
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        let outcome = run(&Invocation::new(
            Script::load(&text).unwrap(),
            Arc::new(move |_, line, _| kept.lock().unwrap().push(line.to_owned())),
            &|| false,
        ));
        assert_eq!(outcome.exit.number(), 0, "{}", outcome.message);
        let lines = lines.lock().unwrap();
        let mut values = lines.iter();
        for moment in MOMENTS {
            let now = humantime::parse_rfc3339(moment).unwrap();
            for date in &dates {
                assert_eq!(values.next(), Some(&date.text(now)), "{moment}: {date:?}");
            }
        }
        assert_eq!(values.next(), None);
    }

    /// The zone of a process cannot be changed safely.
    #[test]
    fn expressions_are_worth_what_places_are_in_other_zones() {
        for zone in [
            "Europe/Berlin",
            "America/New_York",
            "Asia/Kathmandu",
            "Asia/Kolkata",
        ] {
            let name = "source::recorded::date::tests::expressions_are_worth_what_places_are";
            let output = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", name])
                .env("TZ", zone)
                .output()
                .unwrap();
            let stdout = String::from_utf8_lossy(&output.stdout);
            assert!(stdout.contains("1 passed"), "{zone}: {stdout}");
        }
    }
}
