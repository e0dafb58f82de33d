//! Issues of Jira: one for each incident, which is moved to a state of done when it is over.
//!
//! Source: developer.atlassian.com/cloud/jira/platform/rest/v2, "Create issue", "Add comment", "Get transitions", "Transition
//! issue", "Search for issues using JQL enhanced search"; Jira Data Center has the search at `/rest/api/2/search`.

use plimsoll_model::Secret;
use serde_json::{Value, json};
use url::Url;

use crate::notify::channel::issue::{Change, description, done, impossible, mark, number};
use crate::notify::channel::request::{below, segment, shortened};
use crate::notify::channel::{Channel, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "jira",
    name: "Jira issues",
    about: "An issue for each incident, which is moved to a state of the category *done* when it is over; reminders are comments. It is found by a label. A test opens an issue and closes it. Jira Cloud needs `user`; Data Center takes a personal access token alone.",
    fields: &[
        Field::url("address of Jira, such as `https://acme.atlassian.net`").required(),
        Field::text("project", "key of the project").required(),
        Field::text(
            "user",
            "address of the account that the token is of, in Jira Cloud",
        ),
        Field::secret("token", "API token, or personal access token").required(),
        Field::text("type", "type of its issues").or("Task"),
    ],
    gatus: &[],
    kuma: &[],
    compile: |values| {
        made(Jira {
            url: below(&values.url(), "rest/api/2"),
            project: values.text("project"),
            user: values.maybe_text("user"),
            token: values.secret("token"),
            kind: values.text("type"),
        })
    },
};

#[derive(Debug, Clone)]
struct Jira {
    url: Url,
    project: String,
    /// In Jira Cloud.
    user: Option<String>,
    token: Secret,
    kind: String,
}

impl Jira {
    fn with_fields(&self, request: HttpRequest) -> HttpRequest {
        match &self.user {
            Some(user) => request.basic(user, self.token.expose()),
            None => request.bearer(self.token.expose()),
        }
    }

    fn list(&self, mark: &str) -> HttpRequest {
        let path = if self.user.is_some() {
            "search/jql"
        } else {
            "search"
        };
        let mut url = below(&self.url, path);
        let project = self.project.replace(['"', '\\'], "");
        let query =
            format!("project = \"{project}\" AND labels = \"{mark}\" AND statusCategory != Done");
        url.query_pairs_mut()
            .append_pair("jql", &query)
            .append_pair("fields", "summary")
            .append_pair("maxResults", "1");
        self.with_fields(HttpRequest::new("GET", url))
    }

    fn create(&self, message: &Message) -> HttpRequest {
        let body = json!({ "fields": {
            "project": { "key": self.project },
            // One line: Jira refuses others.
            "summary": shortened(&message.subject(), 255),
            "description": shortened(&description(message), 32_767),
            "issuetype": { "name": self.kind },
            "labels": ["plimsoll", mark(message)],
        } });
        self.with_fields(HttpRequest::json(below(&self.url, "issue"), &body))
    }

    fn of_issue(&self, key: &str, path: &str) -> Url {
        let key = segment(key).replace("%2D", "-");
        below(&self.url, &format!("issue/{key}/{path}"))
    }

    fn comment(&self, key: &str, message: &Message) -> HttpRequest {
        let body = json!({ "body": shortened(&message.plain(), 32_767) });
        self.with_fields(HttpRequest::json(self.of_issue(key, "comment"), &body))
    }

    /// Asks for the transitions, and makes the first one that leads to a state of done.
    fn close(&self, key: &str) -> Outgoing {
        let url = self.of_issue(key, "transitions");
        let (this, target) = (self.clone(), url.clone());
        let ask = self.with_fields(HttpRequest::new("GET", url));
        ask.then(move |answer| {
            let mut all = answer["transitions"].as_array().into_iter().flatten();
            let is_end = |it: &&Value| it["to"]["statusCategory"]["key"] == "done";
            let Some(transition) = all.find(is_end) else {
                return Err(impossible(
                    "the issue has no transition to a state of the category done".to_owned(),
                ));
            };
            let body = json!({ "transition": { "id": transition["id"] } });
            let request = HttpRequest::json(target.clone(), &body);
            Ok(Some(this.with_fields(request).into()))
        })
    }
}

impl Notifier for Jira {
    fn outgoing(&self, message: &Message, now: Timestamp) -> Outgoing {
        let (this, message) = (self.clone(), message.clone());
        let change = Change::by_notice(message.kind);
        if change == Change::Try {
            let create = self.create(&message);
            return create.then(move |issue| Ok(Some(this.close(&number(issue, "key")?))));
        }
        self.list(&mark(&message)).then(move |answer| {
            let known = answer["issues"].get(0);
            let next = match (change, known) {
                (Change::Open, None) => this.create(&message).into(),
                (Change::Remark, Some(issue)) => {
                    this.comment(&number(issue, "key")?, &message).into()
                }
                (Change::Close, Some(issue)) => {
                    let (key, this) = (number(issue, "key")?, this.clone());
                    let comment = this.comment(&key, &message);
                    comment.then(move |_| Ok(Some(this.close(&key))))
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
    use crate::notify::channel::snapshot::{check_request, first, message, next, outgoing};
    use crate::notify::message::NoticeKind;

    const CLOUD: &str = "url = \"https://acme.atlassian.net\"\nproject = \"OPS\"\nuser = \"u@acme.example\"\ntoken = \"t\"";
    const CENTER: &str = "url = \"https://jira.example.org/jira/\"\nproject = \"OPS\"\ntoken = \"t\"\ntype = \"Bug\"";
    const BASIC: [&str; 1] = ["authorization: Basic dUBhY21lLmV4YW1wbGU6dA=="];

    fn begun(settings: &str, kind: NoticeKind) -> Outgoing {
        outgoing("jira", settings, &message(kind)).0
    }

    #[test]
    fn an_incident_opens_one_issue() {
        let mark = mark(&message(NoticeKind::Opened));
        let list = begun(CLOUD, NoticeKind::Opened);
        let query = format!(
            "project+%3D+%22OPS%22+AND+labels+%3D+%22{mark}%22+AND+statusCategory+%21%3D+Done"
        );
        check_request(
            &first(list.clone()),
            &format!(
                "GET https://acme.atlassian.net/rest/api/2/search/jql?jql={query}&fields=summary&maxResults=1"
            ),
            &BASIC,
            &Value::Null,
        );
        let create = next(&list, &json!({ "issues": [] })).unwrap().unwrap();
        check_request(
            &first(create),
            "POST https://acme.atlassian.net/rest/api/2/issue",
            &BASIC,
            &json!({ "fields": {
                "project": { "key": "OPS" },
                "summary": "core/web is down",
                "description": "status 500 <b> & \"more\"\n\nhttps://status.example.org\n\nsince 2026-03-01T12:00:00Z",
                "issuetype": { "name": "Task" },
                "labels": ["plimsoll", mark],
            } }),
        );
        let known = json!({ "issues": [{ "key": "OPS-7" }] });
        assert!(next(&list, &known).unwrap().is_none());
        let list = first(begun(CENTER, NoticeKind::Opened));
        assert_eq!(list.url.path(), "/jira/rest/api/2/search");
        assert_eq!(
            list.fields,
            [("authorization".to_owned(), "Bearer t".to_owned())]
        );
    }

    #[test]
    fn its_end_moves_the_issue_to_done() {
        let list = begun(CLOUD, NoticeKind::Resolved);
        let known = json!({ "issues": [{ "key": "OPS-7" }] });
        let comment = next(&list, &known).unwrap().unwrap();
        check_request(
            &first(comment.clone()),
            "POST https://acme.atlassian.net/rest/api/2/issue/OPS-7/comment",
            &BASIC,
            &json!({ "body": "core/web is down\nstatus 500 <b> & \"more\"\nhttps://status.example.org" }),
        );
        let ask = next(&comment, &json!({ "id": "1" })).unwrap().unwrap();
        let line = "https://acme.atlassian.net/rest/api/2/issue/OPS-7/transitions";
        check_request(
            &first(ask.clone()),
            &format!("GET {line}"),
            &BASIC,
            &Value::Null,
        );
        let transitions = json!({ "transitions": [
            { "id": "11", "name": "Start", "to": { "statusCategory": { "key": "indeterminate" } } },
            { "id": "31", "name": "Fertig", "to": { "statusCategory": { "key": "done" } } },
        ] });
        let close = next(&ask, &transitions).unwrap().unwrap();
        check_request(
            &first(close),
            &format!("POST {line}"),
            &BASIC,
            &json!({ "transition": { "id": "31" } }),
        );
        assert!(
            next(&ask, &json!({ "transitions": [] }))
                .unwrap_err()
                .reason
                .contains("no transition")
        );
        // It may not be in the list yet.
        assert!(!next(&list, &json!({ "issues": [] })).unwrap_err().is_final);
    }
}
