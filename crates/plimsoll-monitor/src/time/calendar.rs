//! Calendars (RFC 5545).

use crate::time::Timestamp;

/// An entry of a calendar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The same for the same entry.
    pub uid: String,
    /// When it begins.
    pub from: Timestamp,
    /// When it ends.
    pub to: Timestamp,
    /// Its title.
    pub summary: String,
    /// More about it.
    pub description: Option<String>,
    /// A page about it.
    pub url: Option<String>,
}

/// A calendar with its entries.
pub fn text(name: &str, events: impl Iterator<Item = Event>) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| folded(&mut text, &format!("{name}:{value}"));
    line("BEGIN", "VCALENDAR");
    line("VERSION", "2.0");
    line("PRODID", "-//plimsoll//status page//EN");
    line("NAME", &quoted(name));
    line("X-WR-CALNAME", &quoted(name));
    for event in events {
        line("BEGIN", "VEVENT");
        line("UID", &quoted(&event.uid));
        line("DTSTAMP", &utc(event.from));
        line("DTSTART", &utc(event.from));
        line("DTEND", &utc(event.to));
        line("SUMMARY", &quoted(&event.summary));
        if let Some(description) = &event.description {
            line("DESCRIPTION", &quoted(description));
        }
        if let Some(url) = &event.url {
            line("URL", url);
        }
        line("TRANSP", "TRANSPARENT");
        line("END", "VEVENT");
    }
    line("END", "VCALENDAR");
    text
}

fn utc(at: Timestamp) -> String {
    at.to_jiff().strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// A text value (section 3.3.11).
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace(';', "\\;")
        .replace(',', "\\,")
        .replace("\r\n", "\\n")
        .replace(['\r', '\n'], "\\n")
}

/// A line of at most 75 bytes, continued on others (section 3.1).
fn folded(text: &mut String, line: &str) {
    let mut length = 0;
    for c in line.chars() {
        if length + c.len_utf8() > 74 {
            text.push_str("\r\n ");
            length = 1;
        }
        text.push(c);
        length += c.len_utf8();
    }
    text.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_folded_between_characters() {
        let mut text = String::new();
        folded(&mut text, &format!("SUMMARY:{}", "ü".repeat(60)));
        for line in text.split("\r\n") {
            assert!(line.len() <= 75, "{line}");
        }
        assert_eq!(
            text.replace("\r\n ", ""),
            format!("SUMMARY:{}\r\n", "ü".repeat(60))
        );
        assert_eq!(quoted("a, b; c\\d\n"), "a\\, b\\; c\\\\d\\n");
    }

    #[test]
    fn dates_are_in_utc() {
        assert_eq!(utc(Timestamp(1_772_366_400_123)), "20260301T120000Z");
    }
}
