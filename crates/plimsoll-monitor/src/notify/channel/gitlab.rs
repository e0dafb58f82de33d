//! Issues of GitLab: one for each incident, which is closed when it is over.
//!
//! Source: docs.gitlab.com/api/issues, "List project issues", "Create an issue", "Update an issue", and docs.gitlab.com/api/notes,
//! "Create an issue note".

use plimsoll_model::Secret;
use serde_json::{Value, json};
use url::Url;

use crate::notify::channel::issue::{Change, description, done, found, mark, number};
use crate::notify::channel::request::{below, segment, shortened};
use crate::notify::channel::{Channel, HttpRequest, Notifier, Outgoing, made};
use crate::notify::deliver::SendFailure;
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "gitlab",
    name: "GitLab issues",
    about: "An issue for each incident, which is closed when it is over; reminders are comments. A test opens an issue and closes it.",
    fields: &[
        Field::text(
            "project",
            "number or path of the project, such as `acme/shop`",
        )
        .required(),
        Field::secret("token", "token with the scope `api`").required(),
        Field::texts("labels", "labels of its issues"),
        Field::choice("type", &["issue", "incident"], "type of its issues"),
        Field::url("address of GitLab").or("https://gitlab.com"),
    ],
    gatus: &[],
    kuma: &[],
    compile: |values| {
        let path = format!(
            "api/v4/projects/{}/issues",
            segment(&values.text("project"))
        );
        made(GitLab {
            url: below(&values.url(), &path),
            token: values.secret("token"),
            labels: values.texts("labels"),
            kind: values.text("type"),
        })
    },
};

#[derive(Debug, Clone)]
struct GitLab {
    /// Of the issues of the project.
    url: Url,
    token: Secret,
    labels: Vec<String>,
    kind: String,
}

impl GitLab {
    fn with_fields(&self, request: HttpRequest) -> HttpRequest {
        request.with("private-token", self.token.expose())
    }

    fn list(&self, mark: &str) -> HttpRequest {
        let mut url = self.url.clone();
        url.query_pairs_mut()
            .append_pair("state", "opened")
            .append_pair("in", "description")
            .append_pair("search", mark);
        self.with_fields(HttpRequest::new("GET", url))
    }

    fn create(&self, message: &Message) -> HttpRequest {
        let text = format!("{}\n\n`{}`", description(message), mark(message));
        let body = json!({
            "title": shortened(&message.title, 255),
            "description": text,
            "labels": self.labels.join(","),
            "issue_type": self.kind,
        });
        self.with_fields(HttpRequest::json(self.url.clone(), &body))
    }

    fn comment(&self, issue: &Value, message: &Message) -> Result<HttpRequest, SendFailure> {
        let url = below(&self.url, &format!("{}/notes", number(issue, "iid")?));
        Ok(self.with_fields(HttpRequest::json(url, &json!({ "body": message.plain() }))))
    }

    fn close(&self, issue: &Value) -> Result<HttpRequest, SendFailure> {
        let url = below(&self.url, &number(issue, "iid")?);
        let body = json!({ "state_event": "close" });
        Ok(self.with_fields(HttpRequest::new("PUT", url).with_json(&body)))
    }
}

impl Notifier for GitLab {
    fn outgoing(&self, message: &Message, now: Timestamp) -> Outgoing {
        let (this, message) = (self.clone(), message.clone());
        let change = Change::by_notice(message.kind);
        if change == Change::Try {
            let create = self.create(&message);
            return create.then(move |issue| Ok(Some(this.close(issue)?.into())));
        }
        let mark = mark(&message);
        self.list(&mark).then(move |issues| {
            let known = found(issues, "description", &mark);
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
    use crate::notify::channel::snapshot::{check_request, first, message, next, outgoing};
    use crate::notify::message::NoticeKind;

    const SETTINGS: &str = "project = \"acme/shop\"\ntoken = \"t\"\nlabels = [\"outage\", \"web\"]\ntype = \"incident\"\nurl = \"https://git.example.org/\"";
    const ISSUES: &str = "https://git.example.org/api/v4/projects/acme%2Fshop/issues";

    fn begun(kind: NoticeKind) -> Outgoing {
        outgoing("gitlab", SETTINGS, &message(kind)).0
    }

    #[test]
    fn an_incident_opens_one_issue_and_closes_it() {
        let mark = mark(&message(NoticeKind::Opened));
        let listed = format!("GET {ISSUES}?state=opened&in=description&search={mark}");
        let known = json!([{ "iid": 7, "description": format!("`{mark}`") }]);
        let list = begun(NoticeKind::Opened);
        check_request(
            &first(list.clone()),
            &listed,
            &["private-token: t"],
            &Value::Null,
        );
        let create = next(&list, &json!([])).unwrap().unwrap();
        check_request(
            &first(create),
            &format!("POST {ISSUES}"),
            &["private-token: t"],
            &json!({
                "title": "core/web is down",
                "description": format!("status 500 <b> & \"more\"\n\nhttps://status.example.org\n\nsince 2026-03-01T12:00:00Z\n\n`{mark}`"),
                "labels": "outage,web",
                "issue_type": "incident",
            }),
        );
        assert!(
            next(&list, &known).unwrap().is_none(),
            "it is there already"
        );
        let list = begun(NoticeKind::Resolved);
        check_request(
            &first(list.clone()),
            &listed,
            &["private-token: t"],
            &Value::Null,
        );
        let comment = next(&list, &known).unwrap().unwrap();
        check_request(
            &first(comment.clone()),
            &format!("POST {ISSUES}/7/notes"),
            &["private-token: t"],
            &json!({ "body": "core/web is down\nstatus 500 <b> & \"more\"\nhttps://status.example.org" }),
        );
        let close = next(&comment, &json!({ "id": 1 })).unwrap().unwrap();
        check_request(
            &first(close),
            &format!("PUT {ISSUES}/7"),
            &["private-token: t"],
            &json!({ "state_event": "close" }),
        );
        let create = begun(NoticeKind::Test);
        let close = next(&create, &json!({ "iid": 8 })).unwrap().unwrap();
        assert!(first(close).url.path().ends_with("/issues/8"));
    }
}
