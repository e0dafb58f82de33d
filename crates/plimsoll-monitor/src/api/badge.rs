//! Badges: a label and a message in a picture.

pub(super) const GREEN: &str = "#40cc11";
pub(super) const YELLOW: &str = "#ccb311";
pub(super) const RED: &str = "#c7130a";
pub(super) const BLUE: &str = "#1747f5";
pub(super) const GREY: &str = "#999999";

/// A label and a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Badge {
    label: String,
    message: String,
    color: &'static str,
}

impl Badge {
    /// - `color`: of the message.
    pub(super) fn new(label: &str, message: &str, color: &'static str) -> Self {
        Self {
            label: label.to_owned(),
            message: message.to_owned(),
            color,
        }
    }

    /// As a picture.
    pub(super) fn svg(&self) -> String {
        let Self {
            label,
            message,
            color,
        } = self;
        let (left, right) = (width(label) + 10, width(message) + 10);
        let whole = left + right;
        let (label_at, message_at) = (left / 2, left + right / 2);
        let (label, message) = (escaped(label), escaped(message));
        format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="20" role="img" aria-label="{label}: {message}"><title>{label}: {message}</title><clipPath id="r"><rect width="{whole}" height="20" rx="3"/></clipPath><g clip-path="url(#r)"><rect width="{left}" height="20" fill="#555"/><rect x="{left}" width="{right}" height="20" fill="{color}"/></g><g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11"><text x="{label_at}" y="14">{label}</text><text x="{message_at}" y="14">{message}</text></g></svg>"##
        )
    }
}

/// Pixels of a text in Verdana of 11 pixels, roughly.
fn width(text: &str) -> usize {
    let tenths: usize = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | '.' | ',' | ':' | '\'' | '|' | '!' => 36,
            ' ' | 'f' | 't' | 'r' | '(' | ')' | '-' => 46,
            'm' | 'w' | 'M' | 'W' | '%' => 106,
            c if c.is_ascii_uppercase() => 78,
            c if c.is_ascii() => 67,
            _ => 110,
        })
        .sum();
    tenths.div_ceil(10)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A share as a percentage with up to two decimals, never rounded up to 100 %.
pub(super) fn percent(ratio: f64) -> String {
    let hundredths = (ratio * 10_000.0).floor() / 100.0;
    let text = format!("{hundredths:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}%")
}

/// The colour of an uptime, as Gatus has it.
pub(super) fn of_uptime(ratio: f64) -> &'static str {
    match ratio {
        ratio if ratio >= 0.975 => GREEN,
        ratio if ratio >= 0.95 => "#94cc11",
        ratio if ratio >= 0.9 => "#ccd311",
        ratio if ratio >= 0.8 => YELLOW,
        ratio if ratio >= 0.65 => "#cc8111",
        _ => RED,
    }
}

/// The colour of a response time by five limits, all in milliseconds, as Gatus has it.
pub(super) fn of_response_time(millis: f64, limits: &[u64; 5]) -> &'static str {
    const COLORS: [&str; 5] = [GREEN, "#94cc11", "#ccd311", YELLOW, "#cc8111"];

    let found = limits.iter().position(|limit| millis <= *limit as f64);
    found.map_or(RED, |position| COLORS[position])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_percentages_never_rounded_up() {
        let badge = Badge::new("<a & b>", "99.99%", GREEN).svg();
        assert!(
            badge.contains("&lt;a &amp; b&gt;") && !badge.contains("<a &"),
            "{badge}"
        );
        for (ratio, expected) in [
            (1.0, "100%"),
            (0.999_999, "99.99%"),
            (0.5, "50%"),
            (0.0, "0%"),
        ] {
            assert_eq!(percent(ratio), expected);
        }
    }

    #[test]
    fn colours_follow_the_limits() {
        assert_eq!(of_uptime(0.975), GREEN);
        assert_eq!(of_uptime(0.64), RED);
        let limits = [50, 200, 300, 500, 750];
        assert_eq!(of_response_time(50.0, &limits), GREEN);
        assert_eq!(of_response_time(751.0, &limits), RED);
    }
}
