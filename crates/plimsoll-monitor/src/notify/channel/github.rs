//! Issues of GitHub: one for each incident, which is closed when it is over.
//!
//! Source: docs.github.com/rest/issues/issues, "List repository issues", "Create an issue", "Update an issue", and
//! /rest/issues/comments, "Create an issue comment". Limits: docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api,
//! whose refusals are 403 or 429.

use plimsoll_model::Secret;
use serde_json::{Value, json};
use url::Url;

use crate::notify::channel::issue::{Change, description, done, found, mark, number};
use crate::notify::channel::request::{below, segment, shortened};
use crate::notify::channel::settings_error::SettingsError;
use crate::notify::channel::{
    Answers, Channel, Compiled, Foreign, HttpRequest, Notifier, Outgoing, made,
};
use crate::notify::deliver::SendFailure;
use crate::notify::field::{Field, Values};
use crate::notify::message::Message;
use crate::time::Timestamp;

const ANSWERS: Answers = Answers {
    busy_texts: &["rate limit", "abuse detection"],
    ..Answers::PLAIN
};

pub(super) const CHANNEL: Channel = Channel {
    key: "github",
    name: "GitHub issues",
    about: "An issue for each incident, which is closed when it is over; reminders are comments. A test opens an issue and closes it.",
    fields: &[
        Field::text("repository", "the repository, as `OWNER/NAME`").required(),
        Field::secret("token", "token that may read and write issues").required(),
        Field::texts(
            "labels",
            "labels of its issues, which are also found by the first one",
        ),
        Field::vendor("https://api.github.com"),
    ],
    gatus: &[
        Foreign::new("github", &[("token", "token")]).and(|theirs, table| {
            let Some(url) = theirs("repository-url").and_then(|url| Url::parse(&url).ok()) else {
                return;
            };
            let repository = url.path().trim_matches('/').to_owned();
            table.insert("repository".to_owned(), repository.into());
            if let Some(host) = url.host_str().filter(|host| *host != "github.com") {
                // GitHub Enterprise Server.
                let api = format!("{}://{host}/api/v3", url.scheme());
                table.insert("url".to_owned(), api.into());
            }
        }),
    ],
    kuma: &[],
    compile,
};

#[derive(Debug, Clone)]
struct GitHub {
    /// Of the issues of the repository.
    url: Url,
    token: Secret,
    labels: Vec<String>,
}

fn compile(values: &Values) -> Compiled {
    let repository = values.text("repository");
    let parts: Vec<_> = repository.split('/').collect();
    let [owner, name] = parts.as_slice() else {
        return Err(SettingsError::Repository);
    };
    if owner.is_empty() || name.is_empty() {
        return Err(SettingsError::Repository);
    }
    let path = format!("repos/{}/{}/issues", plain(owner), plain(name));
    made(GitHub {
        url: below(&values.url(), &path),
        token: values.secret("token"),
        labels: values.texts("labels"),
    })
}

/// A segment in which names stay readable.
fn plain(name: &str) -> String {
    let encoded = segment(name);
    encoded
        .replace("%2D", "-")
        .replace("%2E", ".")
        .replace("%5F", "_")
}

impl GitHub {
    fn with_fields(&self, request: HttpRequest) -> HttpRequest {
        request
            .with("accept", "application/vnd.github+json")
            .with("x-github-api-version", "2022-11-28")
            .bearer(self.token.expose())
            .answered(&ANSWERS)
    }

    fn list(&self) -> HttpRequest {
        let mut url = self.url.clone();
        url.query_pairs_mut()
            .append_pair("state", "open")
            .append_pair("per_page", "100");
        if let Some(label) = self.labels.first() {
            url.query_pairs_mut().append_pair("labels", label);
        }
        self.with_fields(HttpRequest::new("GET", url))
    }

    fn create(&self, message: &Message) -> HttpRequest {
        let body = format!("{}\n\n<!-- {} -->", description(message), mark(message));
        let mut issue = json!({
            "title": shortened(&message.title, 256),
            "body": shortened(&body, 65_536),
        });
        if !self.labels.is_empty() {
            issue["labels"] = self.labels.clone().into();
        }
        self.with_fields(HttpRequest::json(self.url.clone(), &issue))
    }

    fn comment(&self, issue: &Value, message: &Message) -> Result<HttpRequest, SendFailure> {
        let url = below(&self.url, &format!("{}/comments", number(issue, "number")?));
        let body = json!({ "body": shortened(&message.plain(), 65_536) });
        Ok(self.with_fields(HttpRequest::json(url, &body)))
    }

    fn close(&self, issue: &Value) -> Result<HttpRequest, SendFailure> {
        let url = below(&self.url, &number(issue, "number")?);
        let body = json!({ "state": "closed", "state_reason": "completed" });
        Ok(self.with_fields(HttpRequest::new("PATCH", url).with_json(&body)))
    }
}

impl Notifier for GitHub {
    fn outgoing(&self, message: &Message, now: Timestamp) -> Outgoing {
        let (this, message) = (self.clone(), message.clone());
        let change = Change::by_notice(message.kind);
        if change == Change::Try {
            let create = self.create(&message);
            return create.then(move |issue| Ok(Some(this.close(issue)?.into())));
        }
        self.list().then(move |issues| {
            let known = found(issues, "body", &mark(&message));
            let next = match (change, known) {
                (Change::Open, None) => this.create(&message).into(),
                (Change::Remark, Some(issue)) => this.comment(issue, &message)?.into(),
                (Change::Close, Some(issue)) => {
                    // The remark first: an issue that is closed is not looked for again.
                    let (comment, close) = (this.comment(issue, &message)?, this.close(issue)?);
                    comment.then(move |_| Ok(Some(close.clone().into())))
                }
                _ => return done(change, known.is_some(), &message, now),
            };
            Ok(Some(next))
        })
    }

    fn groups(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::channel::snapshot::{
        check_request, first, message, next, outgoing, refused,
    };
    use crate::notify::message::NoticeKind;

    const SETTINGS: &str = "repository = \"acme/web-shop\"\ntoken = \"t\"\nlabels = [\"outage\"]";
    const FIELDS: [&str; 3] = [
        "accept: application/vnd.github+json",
        "x-github-api-version: 2022-11-28",
        "authorization: Bearer t",
    ];
    const LIST: &str = "GET https://api.github.com/repos/acme/web-shop/issues?state=open&per_page=100&labels=outage";

    fn begun(kind: NoticeKind) -> Outgoing {
        outgoing("github", SETTINGS, &message(kind)).0
    }

    #[test]
    fn an_incident_opens_one_issue() {
        let list = begun(NoticeKind::Opened);
        check_request(&first(list.clone()), LIST, &FIELDS, &Value::Null);
        let create = next(&list, &json!([{ "number": 6, "body": "another" }]))
            .unwrap()
            .unwrap();
        let mark = mark(&message(NoticeKind::Opened));
        check_request(
            &first(create),
            "POST https://api.github.com/repos/acme/web-shop/issues",
            &FIELDS,
            &json!({
                "title": "core/web is down",
                "body": format!("status 500 <b> & \"more\"\n\nhttps://status.example.org\n\nsince 2026-03-01T12:00:00Z\n\n<!-- {mark} -->"),
                "labels": ["outage"],
            }),
        );
        // A notice that is sent again finds the issue.
        let known = json!([{ "number": 7, "body": format!("<!-- {mark} -->") }]);
        assert!(next(&list, &known).unwrap().is_none());
    }

    #[test]
    fn its_end_closes_the_issue() {
        let list = begun(NoticeKind::Resolved);
        check_request(&first(list.clone()), LIST, &FIELDS, &Value::Null);
        let mark = mark(&message(NoticeKind::Opened));
        let known = json!([{ "number": 7, "body": format!("<!-- {mark} -->") }]);
        let comment = next(&list, &known).unwrap().unwrap();
        let text = "core/web is down\nstatus 500 <b> & \"more\"\nhttps://status.example.org";
        check_request(
            &first(comment.clone()),
            "POST https://api.github.com/repos/acme/web-shop/issues/7/comments",
            &FIELDS,
            &json!({ "body": text }),
        );
        let close = next(&comment, &json!({ "id": 1 })).unwrap().unwrap();
        check_request(
            &first(close),
            "PATCH https://api.github.com/repos/acme/web-shop/issues/7",
            &FIELDS,
            &json!({ "state": "closed", "state_reason": "completed" }),
        );
        // It may not be in the list yet.
        assert!(!next(&list, &json!([])).unwrap_err().is_final);
        let reminder = begun(NoticeKind::Reminder);
        let comment = next(&reminder, &known).unwrap().unwrap();
        assert!(first(comment).url.path().ends_with("/issues/7/comments"));
    }

    #[test]
    fn a_test_opens_and_closes() {
        let create = begun(NoticeKind::Test);
        assert_eq!(first(create.clone()).method, "POST");
        let close = next(&create, &json!({ "number": 8 })).unwrap().unwrap();
        assert_eq!(first(close).url.path(), "/repos/acme/web-shop/issues/8");
        assert!(
            next(&create, &json!({}))
                .unwrap_err()
                .reason
                .contains("number")
        );
        for wrong in ["acme", "acme/a/b", "/a"] {
            let settings = format!("repository = \"{wrong}\"\ntoken = \"t\"");
            assert!(refused("github", &settings).contains("OWNER/NAME"));
        }
    }
}
