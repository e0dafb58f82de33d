//! The request of a channel for a message that is always the same.

use plimsoll_model::document::Document;
use serde_json::Value;

use crate::notify::channel::all::channel;
use crate::notify::channel::request::Next;
use crate::notify::channel::{HttpRequest, Notifier, Outgoing};
use crate::notify::message::{Message, NoticeKind};
use crate::notify::settings::Settings;
use crate::time::Timestamp;

pub(super) fn message(kind: NoticeKind) -> Message {
    Message {
        kind,
        title: "core/web is down".to_owned(),
        text: "status 500 <b> & \"more\"".to_owned(),
        monitor: "core_web".to_owned(),
        name: "web".to_owned(),
        group: "core".to_owned(),
        incident: "core_web/1".to_owned(),
        at: Timestamp(1_772_366_460_000),
        since: Timestamp(1_772_366_400_000),
        link: Some("https://status.example.org".to_owned()),
        acknowledge: None,
        is_escalated: false,
    }
}

/// What a channel of these settings is, or what is wrong with them.
pub(super) fn compiled(kind: &str, settings: &str) -> Result<std::sync::Arc<dyn Notifier>, String> {
    let mut document = Document::parse(settings);
    let environment = |name: &str| (name == "TOKEN").then(|| "from-env".to_owned());
    let mut settings = Settings::new(document.root(), &environment);
    let notifier = channel(kind).unwrap().compile(&mut settings);
    settings.table.finish();
    let problems = document.into_problems();
    match notifier {
        Some(notifier) if problems.is_empty() => Ok(notifier),
        _ => {
            let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
            Err(problems.join("\n"))
        }
    }
}

pub(super) fn refused(kind: &str, settings: &str) -> String {
    compiled(kind, settings).err().unwrap()
}

/// What is sent, and whether messages of several monitors are put together.
pub(super) fn outgoing(kind: &str, settings: &str, message: &Message) -> (Outgoing, bool) {
    let notifier = compiled(kind, settings).unwrap_or_else(|problems| panic!("{kind}: {problems}"));
    let now = Timestamp(1_772_366_470_000);
    (notifier.outgoing(message, now), notifier.groups())
}

/// The first request.
pub(super) fn request(kind: &str, settings: &str, of: NoticeKind) -> HttpRequest {
    first(outgoing(kind, settings, &message(of)).0)
}

pub(super) fn first(outgoing: Outgoing) -> HttpRequest {
    match outgoing {
        Outgoing::Http(request) => request,
        Outgoing::Question(question) => question.request,
        Outgoing::Mail(_) => panic!("it is sent by HTTP"),
    }
}

/// Method and URL, fields besides the media type, and the content as JSON.
pub(super) fn check(
    kind: &str,
    settings: &str,
    of: NoticeKind,
    line: &str,
    fields: &[&str],
    body: &Value,
) {
    check_request(&request(kind, settings, of), line, fields, body);
}

pub(super) fn check_request(request: &HttpRequest, line: &str, fields: &[&str], body: &Value) {
    assert_eq!(format!("{} {}", request.method, request.url), line);
    let mut found: Vec<_> = request
        .fields
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    if !request.content.is_empty() {
        let at = found
            .iter()
            .position(|it| it == "content-type: application/json");
        found.remove(at.expect("its content is JSON"));
    }
    assert_eq!(found, fields, "{line}");
    let content: Value = match request.content.as_str() {
        "" => Value::Null,
        text => serde_json::from_str(text).unwrap(),
    };
    assert_eq!(content, *body, "{line}: {content:#}");
}

/// A form: the line of the request, fields besides the media type, and the pairs.
pub(super) fn check_form(
    kind: &str,
    settings: &str,
    of: NoticeKind,
    line: &str,
    fields: &[&str],
    pairs: &[(&str, &str)],
) {
    let request = request(kind, settings, of);
    assert_eq!(format!("{} {}", request.method, request.url), line);
    let found: Vec<_> = request
        .fields
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    let media_type = "content-type: application/x-www-form-urlencoded";
    assert_eq!(found, [&[media_type], fields].concat(), "{line}");
    let given: Vec<_> = url::form_urlencoded::parse(request.content.as_bytes()).collect();
    let given: Vec<_> = given
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .collect();
    assert_eq!(given, pairs, "{line}");
}

/// The request that follows an answer; nothing if all is done.
pub(super) fn next(outgoing: &Outgoing, answer: &Value) -> Next {
    match outgoing {
        Outgoing::Question(question) => question.next(answer),
        _ => panic!("no answer leads further"),
    }
}
