//! Texts of requests with placeholders such as `{{ title }}`.

use std::fmt::Write as _;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::notify::message::Message;

/// What a template makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    /// JSON: a value within quotes is escaped; one outside of them is a value by itself: a text, a number, or null.
    Json,
    /// A URL or a form: values are percent-encoded.
    Encoded,
    /// One line, such as a header field: values are without control characters.
    Line,
    /// Any other text.
    Plain,
}

/// A text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    syntax: Syntax,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    /// A placeholder, and whether it stands within the quotes of JSON.
    Place(Place, bool),
}

/// The placeholders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Kind,
    State,
    Up,
    Emoji,
    Title,
    Text,
    Monitor,
    Name,
    Group,
    Incident,
    At,
    Since,
    Ended,
    Link,
    Acknowledge,
}

impl Place {
    /// Each with its name and what it stands for.
    const ALL: [(Self, &'static str, &'static str); 15] = [
        (
            Self::Kind,
            "kind",
            "`opened`, `resolved` and so on, as in `on`",
        ),
        (Self::State, "state", "`down`, `up again` and so on"),
        (Self::Up, "up", "`0` for trouble and `1` for its end"),
        (Self::Emoji, "emoji", "🔴, 🟠, 🟢 or 🔵"),
        (Self::Title, "title", "the title of the message"),
        (Self::Text, "text", "its text"),
        (Self::Monitor, "monitor", "the key of the monitor"),
        (Self::Name, "name", "the name of the monitor"),
        (Self::Group, "group", "the group of the monitor"),
        (
            Self::Incident,
            "incident",
            "joins the messages of one incident",
        ),
        (Self::At, "at", "when it happened (RFC 3339)"),
        (Self::Since, "since", "when the incident opened (RFC 3339)"),
        (Self::Ended, "ended", "when it ended (RFC 3339), if it did"),
        (Self::Link, "link", "the address of the status page"),
        (
            Self::Acknowledge,
            "acknowledge",
            "the link by which the incident is acknowledged",
        ),
    ];

    fn named(name: &str) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|(_, known, _)| *known == name);
        found.map(|(place, ..)| place)
    }

    /// Nothing if the message has no such thing.
    fn value(self, message: &Message) -> Option<String> {
        Some(match self {
            Self::Kind => message.kind.name().to_owned(),
            Self::State => message.kind.state().to_owned(),
            Self::Up => u8::from(!message.kind.is_trouble()).to_string(),
            Self::Emoji => message.kind.emoji().to_owned(),
            Self::Title => message.title.clone(),
            Self::Text => message.text.clone(),
            Self::Monitor => message.monitor.clone(),
            Self::Name => message.name.clone(),
            Self::Group => message.group.clone(),
            Self::Incident => message.incident.clone(),
            Self::Ended if message.kind.is_trouble() => return None,
            Self::At | Self::Ended => message.at.to_string(),
            Self::Since => message.since.to_string(),
            Self::Link => message.link.clone()?,
            Self::Acknowledge => message.acknowledge.clone()?,
        })
    }

    /// Whether it stands for something of one monitor, which a message about several does not have.
    const fn is_of_one(self) -> bool {
        matches!(
            self,
            Self::Monitor | Self::Name | Self::Group | Self::Incident
        )
    }
}

/// The names of placeholders with what they stand for.
pub fn placeholders() -> impl Iterator<Item = (&'static str, &'static str)> {
    let all = Place::ALL.into_iter();
    all.map(|(_, name, about)| (name, about))
}

/// Why a text is no template.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TemplateError {
    #[error("a placeholder does not end: `}}}}` is missing")]
    Unclosed,
    #[error("`{{{{ {0} }}}}` is not one of {known}", known = names())]
    Unknown(String),
}

fn names() -> String {
    let known: Vec<_> = placeholders().map(|(name, _)| name).collect();
    known.join(", ")
}

impl Template {
    /// Fails with the first placeholder that is not known.
    pub(super) fn parse(text: &str, syntax: Syntax) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut is_quoted = false;
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("{{") {
            is_quoted = is_quoted_after(before, is_quoted);
            parts.push(Part::Text(before.to_owned()));
            let Some((inside, after)) = behind.split_once("}}") else {
                return Err(TemplateError::Unclosed);
            };
            let name = inside.trim();
            let Some(place) = Place::named(name) else {
                return Err(TemplateError::Unknown(name.to_owned()));
            };
            parts.push(Part::Place(place, is_quoted));
            rest = after;
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Self { syntax, parts })
    }

    /// Values are put in at once, so that a value that looks like a placeholder stays as it is.
    pub(super) fn filled(&self, message: &Message) -> String {
        let mut filled = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Place(place, is_quoted) => {
                    let value = place.value(message);
                    self.write(&mut filled, *place, value, *is_quoted);
                }
            }
        }
        filled
    }

    /// Whether it is about one monitor: messages of several are not put together for it.
    pub(super) fn is_of_one(&self) -> bool {
        let is_of_one = |part: &Part| matches!(part, Part::Place(place, _) if place.is_of_one());
        self.parts.iter().any(is_of_one)
    }

    fn write(&self, filled: &mut String, place: Place, value: Option<String>, is_quoted: bool) {
        let is_absent = value.is_none();
        let value = &value.unwrap_or_default();
        match self.syntax {
            Syntax::Json if is_absent && !is_quoted => filled.push_str("null"),
            Syntax::Json if place == Place::Up => filled.push_str(value),
            Syntax::Json => {
                let quoted = serde_json::Value::from(value.as_str()).to_string();
                let written = if is_quoted {
                    quoted.get(1..quoted.len().saturating_sub(1))
                } else {
                    Some(quoted.as_str())
                };
                filled.push_str(written.unwrap_or_default());
            }
            Syntax::Encoded => {
                let encoded = utf8_percent_encode(value, NON_ALPHANUMERIC);
                write!(filled, "{encoded}").expect("text can be written to memory");
            }
            Syntax::Line => {
                let spaced = value
                    .chars()
                    .map(|it| if it.is_control() { ' ' } else { it });
                filled.extend(spaced);
            }
            Syntax::Plain => filled.push_str(value),
        }
    }
}

/// Whether what follows a part of JSON is within quotes.
fn is_quoted_after(text: &str, mut is_quoted: bool) -> bool {
    let mut is_escaped = false;
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ => {}
        }
    }
    is_quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::channel::snapshot::message;
    use crate::notify::message::NoticeKind;

    fn filled(text: &str, syntax: Syntax) -> String {
        let message = Message {
            title: "a \"b\"\n{{ text }}".to_owned(),
            ..message(NoticeKind::Opened)
        };
        Template::parse(text, syntax).unwrap().filled(&message)
    }

    #[test]
    fn values_are_written_as_their_place_demands() {
        assert_eq!(
            filled(
                "{\"a\": \"x {{title}}\", \"b\": {{ title }}, \"up\": {{up}}}",
                Syntax::Json
            ),
            "{\"a\": \"x a \\\"b\\\"\\n{{ text }}\", \"b\": \"a \\\"b\\\"\\n{{ text }}\", \"up\": 0}"
        );
        assert_eq!(
            filled("{\"a\\\"{{ name }}\": {{ group }}}", Syntax::Json),
            "{\"a\\\"web\": \"core\"}"
        );
        assert_eq!(
            filled("q={{ title }}", Syntax::Encoded),
            "q=a%20%22b%22%0A%7B%7B%20text%20%7D%7D"
        );
        assert_eq!(
            filled(
                "[\"{{ ended }}\", {{ ended }}, {{ acknowledge }}, {{ link }}]",
                Syntax::Json
            ),
            "[\"\", null, null, \"https://status.example.org\"]"
        );
        assert_eq!(filled("{{ title }}", Syntax::Line), "a \"b\" {{ text }}");
        assert_eq!(
            filled("{{ title }}!", Syntax::Plain),
            "a \"b\"\n{{ text }}!"
        );
    }

    #[test]
    fn mistakes_are_named() {
        let wrong = |text| {
            Template::parse(text, Syntax::Plain)
                .unwrap_err()
                .to_string()
        };
        assert!(wrong("{{ nme }}").starts_with("`{{ nme }}` is not one of kind, state"));
        assert!(wrong("{{ name }").contains("does not end"));
    }

    proptest::proptest! {
        /// Whatever is in a message, JSON stays what the template says, and a URL keeps its host.
        #[test]
        fn no_value_leaves_its_place(title in "(?s).{0,40}", text in "(?s).{0,40}", name in "(?s).{0,40}") {
            let message = Message {
                title: title.clone(),
                text: text.clone(),
                name,
                ..message(NoticeKind::Opened)
            };
            let made = |text: &str, syntax| Template::parse(text, syntax).unwrap().filled(&message);
            let json = made("{\"a\": \"<{{ title }}>\", \"b\": [{{ text }}, {{ up }}]}", Syntax::Json);
            let json: serde_json::Value = serde_json::from_str(&json).unwrap();
            proptest::prop_assert_eq!(&json, &serde_json::json!({ "a": format!("<{title}>"), "b": [text, 0] }));
            let url = made("https://a.example/{{ title }}?b={{ text }}&c={{ name }}", Syntax::Encoded);
            let url = url::Url::parse(&url).unwrap();
            proptest::prop_assert_eq!(url.host_str(), Some("a.example"));
            let pairs: Vec<_> = url.query_pairs().collect();
            proptest::prop_assert_eq!(pairs.len(), 2);
            proptest::prop_assert_eq!(&*pairs[0].1, message.text.as_str());
            let line = made("{{ title }}", Syntax::Line);
            proptest::prop_assert!(!line.contains(['\r', '\n', '\0']));
        }
    }
}
