//! The words of notices: what a message says, by the templates of a channel or without one.

use crate::detect::Resolution;
use crate::notify::message::{Message, NoticeKind};
use crate::time::Timestamp;

/// A text with placeholders such as `{name}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(String);

/// The facts that messages are made of.
#[derive(Debug, Clone)]
pub(crate) struct Facts<'a> {
    pub(crate) kind: NoticeKind,
    /// How it ended, of an end.
    pub(crate) ended: Option<Resolution>,
    /// The monitor, by the key, the name and the group of its plan.
    pub(crate) key: &'a str,
    pub(crate) name: &'a str,
    pub(crate) group: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) incident: String,
    pub(crate) at: Timestamp,
    pub(crate) since: Timestamp,
    pub(crate) link: Option<String>,
}

const PLACEHOLDERS: [&str; 7] = ["name", "group", "key", "state", "reason", "since", "link"];

/// A placeholder that is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{{{0}}}` is not one of {known}", known = PLACEHOLDERS.map(|name| format!("{{{name}}}")).join(", "))]
pub(crate) struct PlaceholderError(String);

impl Template {
    /// Fails with the first placeholder that is not known.
    pub(crate) fn parse(text: &str) -> Result<Self, PlaceholderError> {
        for part in text.split('{').skip(1) {
            let name = part.split('}').next().unwrap_or_default();
            if !PLACEHOLDERS.contains(&name) {
                return Err(PlaceholderError(name.to_owned()));
            }
        }
        Ok(Self(text.to_owned()))
    }

    /// Values are put in at once, so that a value that looks like a placeholder stays as it is.
    fn filled(&self, facts: &Facts<'_>) -> String {
        let mut filled = String::new();
        let mut rest = self.0.as_str();
        while let Some((before, behind)) = rest.split_once('{') {
            filled.push_str(before);
            let (name, after) = behind.split_once('}').unwrap_or((behind, ""));
            let since = facts.since.to_string();
            filled.push_str(match name {
                "name" => facts.name,
                "group" => facts.group,
                "key" => facts.key,
                "state" => state(facts.kind, facts.ended),
                "reason" => facts.reason,
                "since" => &since,
                _ => facts.link.as_deref().unwrap_or_default(),
            });
            rest = after;
        }
        filled.push_str(rest);
        filled
    }
}

/// The name of a monitor with that of its group.
pub(crate) fn full_name(group: &str, name: &str) -> String {
    if group.is_empty() {
        name.to_owned()
    } else {
        format!("{group}/{name}")
    }
}

/// The title of a message without a template.
pub(crate) fn title(name: &str, kind: NoticeKind, ended: Option<Resolution>) -> String {
    let was = if kind == NoticeKind::DataAgain {
        "had no results"
    } else {
        "was down"
    };
    match ended {
        None | Some(Resolution::Recovery) => format!("{name} is {}", state(kind, None)),
        Some(ended) => format!("{name} was {} while it {was}", state(kind, Some(ended))),
    }
}

const fn state(kind: NoticeKind, ended: Option<Resolution>) -> &'static str {
    match ended {
        None | Some(Resolution::Recovery) => {}
        Some(Resolution::Operator) => return "closed by an operator",
        Some(Resolution::Paused) => return "paused",
        Some(Resolution::Removed) => return "removed",
    }
    kind.state()
}

/// A message in the words of templates, or without them in those that fit every channel.
pub(super) fn message(
    facts: &Facts<'_>,
    title_template: Option<&Template>,
    text_template: Option<&Template>,
) -> Message {
    let name = full_name(facts.group, facts.name);
    let title = || title(&name, facts.kind, facts.ended);
    let text = || {
        if facts.kind.is_trouble() {
            facts.reason.to_owned()
        } else {
            String::new()
        }
    };
    let filled = |template: Option<&Template>| template.map(|it| it.filled(facts));
    Message {
        kind: facts.kind,
        title: filled(title_template).unwrap_or_else(title),
        text: filled(text_template).unwrap_or_else(text),
        monitor: facts.key.to_owned(),
        name: facts.name.to_owned(),
        group: facts.group.to_owned(),
        incident: facts.incident.clone(),
        at: facts.at,
        since: facts.since,
        link: facts.link.clone(),
        acknowledge: None,
        is_escalated: false,
    }
}
