//! Badges: a label and a message in a picture.

use plimsoll_model::{escaped_html, percent_rounded_down, without_trailing_zeros};

pub(crate) const GREEN: &str = "#40cc11";
pub(crate) const YELLOW: &str = "#ccb311";
pub(crate) const ORANGE: &str = "#cc8111";
pub(crate) const RED: &str = "#c7130a";
pub(crate) const BLUE: &str = "#1747f5";
pub(crate) const GREY: &str = "#999999";

/// A label and a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Badge {
    label: String,
    message: String,
    color: String,
    look: Look,
}

/// The parameters of shields.io for the look of a badge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Look {
    style: Style,
    /// Of the message, instead of the one for the state.
    color: Option<String>,
    label_color: Option<String>,
    label: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Style {
    #[default]
    Flat,
    FlatSquare,
    Plastic,
    ForTheBadge,
}

impl Style {
    const ALL: [(&str, Self); 4] = [
        ("flat", Self::Flat),
        ("flat-square", Self::FlatSquare),
        ("plastic", Self::Plastic),
        ("for-the-badge", Self::ForTheBadge),
    ];
}

/// The names of colours that shields.io has beside those of CSS.
const COLORS: [(&str, &str); 12] = [
    ("brightgreen", "#4c1"),
    ("green", "#97ca00"),
    ("yellowgreen", "#a4a61d"),
    ("yellow", "#dfb317"),
    ("orange", "#fe7d37"),
    ("red", "#e05d44"),
    ("blue", "#007ec6"),
    ("lightgrey", "#9f9f9f"),
    ("grey", "#555"),
    ("success", "#4c1"),
    ("important", "#fe7d37"),
    ("critical", "#e05d44"),
];

/// Characters of a label.
const MOST_LABEL: usize = 100;

impl Look {
    /// Takes `style`, `color`, `labelColor` and `label` by a function that yields parameters; an error names the parameter.
    pub(crate) fn from_query(
        mut take: impl FnMut(&str) -> Option<String>,
    ) -> Result<Self, (&'static str, String)> {
        let name = take("style").unwrap_or_else(|| "flat".to_owned());
        let found = Style::ALL.iter().find(|(known, _)| *known == name);
        let (_, style) = *found.ok_or_else(|| {
            let known = Style::ALL.map(|(known, _)| known).join(", ");
            ("style", format!("must be one of {known}"))
        })?;
        let mut color = |key| match take(key) {
            None => Ok(None),
            Some(text) => match color_of(&text) {
                Some(color) => Ok(Some(color)),
                None => Err((
                    key,
                    "must be a colour such as `blue` or `1f6feb`".to_owned(),
                )),
            },
        };
        let (color, label_color) = (color("color")?, color("labelColor")?);
        let label = take("label");
        if label
            .as_ref()
            .is_some_and(|label| label.chars().count() > MOST_LABEL)
        {
            return Err(("label", format!("is longer than {MOST_LABEL} characters")));
        }
        Ok(Self {
            style,
            color,
            label_color,
            label,
        })
    }
}

/// A name of shields.io, or three or six hexadecimal digits.
fn color_of(text: &str) -> Option<String> {
    if let Some((_, color)) = COLORS.iter().find(|(name, _)| *name == text) {
        return Some((*color).to_owned());
    }
    let digits = text.strip_prefix('#').unwrap_or(text);
    let is_hex = matches!(digits.len(), 3 | 6) && digits.chars().all(|c| c.is_ascii_hexdigit());
    is_hex.then(|| format!("#{}", digits.to_ascii_lowercase()))
}

impl Badge {
    /// - `color`: of the message.
    pub(crate) fn new(label: &str, message: &str, color: &str) -> Self {
        Self {
            label: label.to_owned(),
            message: message.to_owned(),
            color: color.to_owned(),
            look: Look::default(),
        }
    }

    /// With a look, whose label and colour take the place of its own.
    pub(crate) fn with(self, look: Look) -> Self {
        Self {
            label: look.label.clone().unwrap_or(self.label),
            color: look.color.clone().unwrap_or(self.color),
            look,
            ..self
        }
    }

    /// As a picture, drawn as shields.io draws its styles.
    pub(crate) fn svg(&self) -> String {
        let is_tall = self.look.style == Style::ForTheBadge;
        let shown = |text: &str| {
            if is_tall {
                text.to_uppercase()
            } else {
                text.to_owned()
            }
        };
        let (label, message) = (shown(&self.label), shown(&self.message));
        let (height, margin, size, baseline) = match self.look.style {
            Style::Flat | Style::FlatSquare => (20, 10, 11, 14),
            Style::Plastic => (18, 10, 11, 13),
            Style::ForTheBadge => (28, 24, 10, 18),
        };
        // Letters of the tall style are spaced by a pixel and a quarter.
        let width = |text: &str| {
            let spacing = if is_tall {
                text.chars().count() * 5 / 4
            } else {
                0
            };
            width(text) + spacing + margin
        };
        let (left, right) = (width(&label), width(&message));
        let whole = left + right;
        let (label_at, message_at) = (left / 2, left + right / 2);
        let (label, message) = (escaped_html(&label), escaped_html(&message));
        let color = &self.color;
        let label_color = self.look.label_color.as_deref().unwrap_or("#555");
        let (gradient, shade) = match self.look.style {
            Style::Flat => (
                r##"<linearGradient id="s" x2="0" y2="100%"><stop offset="0" stop-color="#bbb" stop-opacity=".1"/><stop offset="1" stop-opacity=".1"/></linearGradient>"##,
                true,
            ),
            Style::Plastic => (
                r##"<linearGradient id="s" x2="0" y2="100%"><stop offset="0" stop-color="#fff" stop-opacity=".7"/><stop offset=".1" stop-color="#aaa" stop-opacity=".1"/><stop offset=".9" stop-opacity=".3"/><stop offset="1" stop-opacity=".5"/></linearGradient>"##,
                true,
            ),
            Style::FlatSquare | Style::ForTheBadge => ("", false),
        };
        let radius = match self.look.style {
            Style::Flat => 3,
            Style::Plastic => 4,
            Style::FlatSquare | Style::ForTheBadge => 0,
        };
        let overlay = if shade {
            format!(r#"<rect width="{whole}" height="{height}" fill="url(#s)"/>"#)
        } else {
            String::new()
        };
        let text = |at: usize, text: &str, bold: &str| {
            let shadow = if shade {
                format!(
                    r##"<text x="{at}" y="{}" fill="#010101" fill-opacity=".3" aria-hidden="true">{text}</text>"##,
                    baseline + 1
                )
            } else {
                String::new()
            };
            format!(r#"{shadow}<text x="{at}" y="{baseline}"{bold}>{text}</text>"#)
        };
        let (spacing, bold) = if is_tall {
            (r#" letter-spacing="1.25""#, r#" font-weight="bold""#)
        } else {
            ("", "")
        };
        let texts = text(label_at, &label, "") + &text(message_at, &message, bold);
        format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{height}" role="img" aria-label="{label}: {message}"><title>{label}: {message}</title>{gradient}<clipPath id="r"><rect width="{whole}" height="{height}" rx="{radius}"/></clipPath><g clip-path="url(#r)"><rect width="{left}" height="{height}" fill="{label_color}"/><rect x="{left}" width="{right}" height="{height}" fill="{color}"/>{overlay}</g><g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="{size}"{spacing}>{texts}</g></svg>"##
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

/// A share as a percentage with up to two decimals, never rounded up to 100 %.
pub(crate) fn percent(ratio: f64) -> String {
    format!(
        "{}%",
        without_trailing_zeros(&percent_rounded_down(ratio, 2))
    )
}

/// The colour of an uptime, as Gatus has it.
pub(crate) fn of_uptime(ratio: f64) -> &'static str {
    match ratio {
        ratio if ratio >= 0.975 => GREEN,
        ratio if ratio >= 0.95 => "#94cc11",
        ratio if ratio >= 0.9 => "#ccd311",
        ratio if ratio >= 0.8 => YELLOW,
        ratio if ratio >= 0.65 => ORANGE,
        _ => RED,
    }
}

/// The colour of a response time by five limits, all in milliseconds, as Gatus has it.
pub(crate) fn of_response_time(millis: f64, limits: &[u64; 5]) -> &'static str {
    const LIMITED: [&str; 5] = [GREEN, "#94cc11", "#ccd311", YELLOW, ORANGE];

    let found = limits.iter().position(|limit| millis <= *limit as f64);
    found.map_or(RED, |position| LIMITED[position])
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
    fn looks_are_those_of_shields() {
        let look = |pairs: &[(&str, &str)]| {
            Look::from_query(|key| {
                let found = pairs.iter().find(|(known, _)| *known == key);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        let badge = |pairs: &[(&str, &str)]| {
            Badge::new("api", "up", GREEN)
                .with(look(pairs).unwrap())
                .svg()
        };
        let flat = badge(&[]);
        assert!(
            flat.contains(r#"height="20""#) && flat.contains(r#"rx="3""#),
            "{flat}"
        );
        assert!(flat.contains(r#"fill="url(#s)""#), "{flat}");
        let square = badge(&[("style", "flat-square"), ("color", "blue")]);
        assert!(
            square.contains(r#"rx="0""#) && !square.contains("url(#s)"),
            "{square}"
        );
        assert!(
            square.contains("#007ec6") && !square.contains(GREEN),
            "{square}"
        );
        let plastic = badge(&[("style", "plastic"), ("labelColor", "ABC")]);
        assert!(
            plastic.contains(r#"height="18""#) && plastic.contains("#abc"),
            "{plastic}"
        );
        let tall = badge(&[("style", "for-the-badge"), ("label", "my <b>")]);
        assert!(tall.contains(r#"height="28""#), "{tall}");
        assert!(tall.contains("MY &lt;B&gt;: UP"), "{tall}");
        let long = "x".repeat(101);
        for (key, value) in [
            ("style", "social"),
            ("color", "\"/><script>"),
            ("labelColor", "12345"),
            ("label", long.as_str()),
        ] {
            assert_eq!(look(&[(key, value)]).unwrap_err().0, key);
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
