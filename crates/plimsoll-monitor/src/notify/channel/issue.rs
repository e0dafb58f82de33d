//! Issues of an incident: found again by a mark that its first message leaves: their numbers are the receiver's.

use std::time::Duration;

use serde_json::Value;

use crate::notify::channel::request::Next;
use crate::notify::deliver::SendFailure;
use crate::notify::message::{Message, NoticeKind};
use crate::time::Timestamp;
use crate::token::ApiToken;

/// An issue that was made is in every list after so long.
const FRESH: Duration = Duration::from_mins(1);

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
    pub(super) fn by_notice(kind: NoticeKind) -> Self {
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
pub(super) fn number(issue: &Value, member: &str) -> Result<String, SendFailure> {
    match &issue[member] {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(impossible(format!(
            "the answer has no `{member}` of the issue"
        ))),
    }
}

pub(super) fn impossible(reason: String) -> SendFailure {
    SendFailure {
        reason,
        is_final: true,
    }
}

/// What follows if there is nothing to do with the issue that was found, or with none.
///
/// - `is_there`: whether it was found. Lists lag behind what was written: while the end is fresh, it is looked for again.
pub(super) fn done(change: Change, is_there: bool, message: &Message, now: Timestamp) -> Next {
    let is_fresh = now.since(message.at) < FRESH;
    if change == Change::Close && !is_there && is_fresh {
        return Err(SendFailure {
            reason: "the issue of the incident is not in the list yet".to_owned(),
            is_final: false,
        });
    }
    Ok(None)
}

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
        let ended = message(NoticeKind::Resolved);
        let after = |seconds: i64| Timestamp(ended.at.0 + seconds * 1_000);
        let later = done(Change::Close, false, &ended, after(59)).err();
        assert!(later.is_some_and(|failure| !failure.is_final));
        for (change, is_there, seconds) in [
            (Change::Close, false, 60),
            (Change::Close, true, 1),
            (Change::Open, true, 1),
            (Change::Remark, false, 1),
        ] {
            assert!(
                done(change, is_there, &ended, after(seconds))
                    .unwrap()
                    .is_none()
            );
        }
    }
}
