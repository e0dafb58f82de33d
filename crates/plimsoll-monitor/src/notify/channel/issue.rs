//! Issues of an incident: found again by a mark that its first message leaves, whatever number the receiver gives them.

use serde_json::Value;

use crate::notify::channel::Outgoing;
use crate::notify::message::{Message, NoticeKind};
use crate::token::ApiToken;

/// What a message means for the issue of its incident.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// It is there, or it is made.
    Open,
    /// It is made and closed again.
    Try,
    /// A remark, if it is there.
    Remark,
    /// It is closed, if it is there.
    Close,
}

impl Change {
    pub(super) fn of(kind: NoticeKind) -> Self {
        match kind {
            NoticeKind::Opened | NoticeKind::NoData | NoticeKind::BudgetBurning => Self::Open,
            NoticeKind::Reminder => Self::Remark,
            NoticeKind::Resolved | NoticeKind::DataAgain | NoticeKind::BudgetSteady => Self::Close,
            NoticeKind::Test => Self::Try,
        }
    }
}

/// The mark of an incident's issue: a word that occurs nowhere else.
pub(super) fn mark(message: &Message) -> String {
    let hash = ApiToken::written(&ApiToken::hash_of(&message.incident));
    format!("plimsoll-{}", hash.get(..24).unwrap_or_default())
}

/// The text of an issue.
pub(super) fn description(message: &Message) -> String {
    let mut text = message.text.clone();
    if let Some(link) = &message.link {
        text = format!("{text}\n\n{link}");
    }
    format!("{text}\n\nsince {}", message.since)
        .trim()
        .to_owned()
}

/// The first of a list of issues that has the mark in a member of its JSON.
pub(super) fn found<'v>(issues: &'v Value, member: &str, mark: &str) -> Option<&'v Value> {
    let mut all = issues.as_array()?.iter();
    all.find(|issue| {
        issue[member]
            .as_str()
            .is_some_and(|text| text.contains(mark))
    })
}

/// The number of an issue, as paths have it.
pub(super) fn number(issue: &Value, member: &str) -> Result<String, String> {
    match &issue[member] {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(format!("the answer has no `{member}` of the issue")),
    }
}

/// What is sent after the last request of a chain: nothing.
pub(super) const DONE: Result<Option<Outgoing>, String> = Ok(None);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::notify::channel::snapshot::message;

    #[test]
    fn an_issue_is_found_by_its_mark() {
        let opened = message(NoticeKind::Opened);
        let mark = mark(&opened);
        assert_eq!(mark, super::mark(&message(NoticeKind::Resolved)));
        assert_eq!(mark.len(), "plimsoll-".len() + 24);
        let issues = json!([{ "id": 1, "body": null }, { "id": 2, "body": format!("a {mark} b") }]);
        assert_eq!(
            number(found(&issues, "body", &mark).unwrap(), "id").unwrap(),
            "2"
        );
        assert_eq!(found(&json!({ "message": "no list" }), "body", &mark), None);
        assert!(number(&json!({}), "id").is_err());
    }
}
