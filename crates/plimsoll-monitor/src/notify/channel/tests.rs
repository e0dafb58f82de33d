//! The request of each channel, as its vendor documents it.

use serde_json::{Value, json};

use super::all::{CHANNELS, channel};
use super::*;
use crate::notify::channel::snapshot::{check, compiled, message, outgoing, request};
use crate::notify::deliver::judge;
use crate::notify::field::FieldKind;
use crate::notify::message::NoticeKind;

#[test]
fn slack() {
    check(
        "slack",
        "url = \"https://hooks.slack.com/services/T/B/X\"",
        NoticeKind::Opened,
        "POST https://hooks.slack.com/services/T/B/X",
        &[],
        &json!({
            "text": "🔴 core/web is down",
            "attachments": [{
                "color": "#d9413d",
                "blocks": [{ "type": "section", "text": {
                    "type": "mrkdwn",
                    "text": "*<https://status.example.org|core/web is down>*\nstatus 500 &lt;b&gt; &amp; \"more\"",
                } }],
            }],
        }),
    );
}

#[test]
fn discord() {
    check(
        "discord",
        "url = \"https://discord.com/api/webhooks/1/x\"",
        NoticeKind::Resolved,
        "POST https://discord.com/api/webhooks/1/x",
        &[],
        &json!({
            "embeds": [{
                "title": "core/web is down",
                "description": "status 500 <b> & \"more\"",
                "url": "https://status.example.org",
                "color": 0x002d_a44e,
                "timestamp": "2026-03-01T12:01:00Z",
            }],
            "allowed_mentions": { "parse": [] },
        }),
    );
}

#[test]
fn teams() {
    check(
        "teams",
        "url = \"https://example.logic.azure.com/workflows/1\"",
        NoticeKind::Opened,
        "POST https://example.logic.azure.com/workflows/1",
        &[],
        &json!({
            "type": "message",
            "attachments": [{
                "contentType": "application/vnd.microsoft.card.adaptive",
                "contentUrl": null,
                "content": {
                    "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                    "type": "AdaptiveCard",
                    "version": "1.4",
                    "body": [
                        { "type": "TextBlock", "text": "core/web is down", "weight": "bolder", "size": "medium", "color": "attention", "wrap": true },
                        { "type": "TextBlock", "text": "status 500 <b> & \"more\"", "wrap": true },
                    ],
                    "actions": [{ "type": "Action.OpenUrl", "title": "Status", "url": "https://status.example.org" }],
                },
            }],
        }),
    );
}

#[test]
fn telegram() {
    check(
        "telegram",
        "token = \"1:abc\"\nchat = \"-100\"",
        NoticeKind::Opened,
        "POST https://api.telegram.org/bot1:abc/sendMessage",
        &[],
        &json!({
            "chat_id": "-100",
            "text": "🔴 core/web is down\nstatus 500 <b> & \"more\"\nhttps://status.example.org",
            "link_preview_options": { "is_disabled": true },
        }),
    );
}

#[test]
fn pagerduty() {
    for (of, action) in [
        (NoticeKind::Opened, "trigger"),
        (NoticeKind::Resolved, "resolve"),
    ] {
        check(
            "pagerduty",
            "routing_key = { env = \"TOKEN\" }",
            of,
            "POST https://events.pagerduty.com/v2/enqueue",
            &[],
            &json!({
                "routing_key": "from-env",
                "event_action": action,
                "dedup_key": "core_web/1",
                "client": "plimsoll",
                "payload": {
                    "summary": "core/web is down",
                    "source": "core_web",
                    "severity": "critical",
                    "timestamp": "2026-03-01T12:01:00Z",
                    "custom_details": { "text": "status 500 <b> & \"more\"", "since": "2026-03-01T12:00:00Z" },
                },
                "links": [{ "href": "https://status.example.org", "text": "status" }],
            }),
        );
    }
}

#[test]
fn opsgenie() {
    let settings = "key = \"k\"\npriority = \"P2\"\nurl = \"https://api.eu.opsgenie.com\"";
    check(
        "opsgenie",
        settings,
        NoticeKind::Opened,
        "POST https://api.eu.opsgenie.com/v2/alerts",
        &["authorization: GenieKey k"],
        &json!({
            "message": "core/web is down",
            "alias": "core_web/1",
            "description": "core/web is down\nstatus 500 <b> & \"more\"\nhttps://status.example.org",
            "priority": "P2",
            "source": "plimsoll",
            "entity": "core_web",
        }),
    );
    check(
        "opsgenie",
        settings,
        NoticeKind::Resolved,
        "POST https://api.eu.opsgenie.com/v2/alerts/core%5Fweb%2F1/close?identifierType=alias",
        &["authorization: GenieKey k"],
        &json!({ "source": "plimsoll", "note": "core/web is down" }),
    );
}

#[test]
fn ntfy() {
    check(
        "ntfy",
        "topic = \"alerts\"\ntoken = \"tk_1\"",
        NoticeKind::Opened,
        "POST https://ntfy.sh/",
        &["authorization: Bearer tk_1"],
        &json!({
            "topic": "alerts",
            "title": "core/web is down",
            "message": "status 500 <b> & \"more\"",
            "priority": 4,
            "tags": ["rotating_light"],
            "click": "https://status.example.org",
        }),
    );
}

#[test]
fn gotify() {
    check(
        "gotify",
        "url = \"https://push.example.org/gotify/\"\ntoken = \"A1\"",
        NoticeKind::Opened,
        "POST https://push.example.org/gotify/message",
        &["x-gotify-key: A1"],
        &json!({
            "title": "core/web is down",
            "message": "core/web is down\nstatus 500 <b> & \"more\"\nhttps://status.example.org",
            "priority": 8,
        }),
    );
}

#[test]
fn matrix() {
    let settings =
        "url = \"https://matrix.example.org\"\ntoken = \"t\"\nroom = \"!room:example.org\"";
    let request = request("matrix", settings, NoticeKind::Opened);
    let (path, transaction) = request.url.path().rsplit_once('/').unwrap();
    assert_eq!(request.method, "PUT");
    assert_eq!(
        path,
        "/_matrix/client/v3/rooms/%21room%3Aexample%2Eorg/send/m.room.message"
    );
    assert_eq!(
        transaction.len(),
        32,
        "the same message has the same transaction"
    );
    assert!(
        request
            .fields
            .contains(&("authorization".to_owned(), "Bearer t".to_owned()))
    );
    let content: Value = serde_json::from_str(&request.content).unwrap();
    assert_eq!(content["msgtype"], "m.text");
}

#[test]
fn google_chat_and_mattermost() {
    check(
        "google_chat",
        "url = \"https://chat.googleapis.com/v1/spaces/A/messages?key=k&token=t\"",
        NoticeKind::Resolved,
        "POST https://chat.googleapis.com/v1/spaces/A/messages?key=k&token=t",
        &[],
        &json!({ "text": "🟢 core/web is down\nstatus 500 <b> & \"more\"\nhttps://status.example.org" }),
    );
    check(
        "mattermost",
        "url = \"https://chat.example.org/hooks/x\"\nchannel = \"ops\"",
        NoticeKind::Opened,
        "POST https://chat.example.org/hooks/x",
        &[],
        &json!({
            "attachments": [{
                "fallback": "core/web is down",
                "color": "#d9413d",
                "title": "core/web is down",
                "title_link": "https://status.example.org",
                "text": "status 500 <b> & \"more\"",
            }],
            "channel": "ops",
        }),
    );
}

#[test]
fn alertmanager() {
    let alert = json!({
        "labels": { "alertname": "MonitorDown", "monitor": "core_web", "severity": "critical" },
        "annotations": { "summary": "core/web is down", "description": "status 500 <b> & \"more\"" },
        "startsAt": "2026-03-01T12:00:00Z",
        "endsAt": "2026-03-01T12:01:00Z",
        "generatorURL": "https://status.example.org",
    });
    check(
        "alertmanager",
        "url = \"http://127.0.0.1:9093\"",
        NoticeKind::Resolved,
        "POST http://127.0.0.1:9093/api/v2/alerts",
        &[],
        &json!([alert]),
    );
}

#[test]
fn forms_of_pushover_and_twilio() {
    let pushover = request(
        "pushover",
        "token = \"t\"\nuser = \"u\"",
        NoticeKind::Opened,
    );
    assert_eq!(
        pushover.url.as_str(),
        "https://api.pushover.net/1/messages.json"
    );
    assert_eq!(
        pushover.content,
        "token=t&user=u&title=core%2Fweb+is+down&message=core%2Fweb+is+down%0Astatus+500+%3Cb%3E+%26+%22more%22%0Ahttps%3A%2F%2Fstatus.example.org&priority=1&timestamp=1772366460&url=https%3A%2F%2Fstatus.example.org"
    );
    let settings = "account = \"AC1\"\ntoken = \"t\"\nfrom = \"+1\"\nto = \"+49\"";
    let twilio = request("twilio", settings, NoticeKind::Opened);
    assert_eq!(
        twilio.url.as_str(),
        "https://api.twilio.com/2010-04-01/Accounts/AC1/Messages.json"
    );
    assert!(
        twilio
            .content
            .starts_with("From=%2B1&To=%2B49&Body=core%2Fweb+is+down")
    );
    assert_eq!(twilio.fields[1].1, "Basic QUMxOnQ=");
}

#[test]
fn mail_cannot_be_given_more_fields() {
    let settings = "host = \"mail.example.org\"\nfrom = \"Monitor <m@example.org>\"\nto = [\"a@example.org\", \"b@example.org\"]";
    let mut message = message(NoticeKind::Opened);
    message.title = "down\r\nBcc: evil@example.org".to_owned();
    let (outgoing, _) = outgoing("email", settings, &message);
    let Outgoing::Mail(mail) = outgoing else {
        panic!("it is a mail");
    };
    assert_eq!(mail.subject, "down  Bcc: evil@example.org");
    assert!(mail.text.contains("status 500"), "{}", mail.text);
}

/// Receivers that close an alert by its key get each message by itself.
#[test]
fn alerts_are_not_put_together() {
    for (kind, settings, expected) in [
        ("pagerduty", "routing_key = \"k\"", false),
        ("opsgenie", "key = \"k\"", false),
        ("alertmanager", "url = \"http://a\"", false),
        ("ntfy", "topic = \"a\"", true),
    ] {
        let (_, groups) = outgoing(kind, settings, &message(NoticeKind::Opened));
        assert_eq!(groups, expected, "{kind}");
    }
}

/// Settings of every channel, besides its target.
const SETTINGS: [(&str, &str); CHANNELS.len()] = [
    ("alertmanager", ""),
    (
        "aws_sns",
        "topic = \"arn:aws:sns:eu-central-1:1:a\"\naccess_key = \"a\"\nsecret_key = \"t\"",
    ),
    ("bark", "device_key = \"t\""),
    ("dingtalk", "token = \"t\""),
    ("discord", ""),
    (
        "email",
        "host = \"127.0.0.1\"\nport = PORT\nsecurity = \"none\"\nfrom = \"a@a.example\"\nto = \"b@b.example\"",
    ),
    ("feishu", ""),
    ("github", "repository = \"a/b\"\ntoken = \"t\""),
    ("gitlab", "project = \"a/b\"\ntoken = \"t\""),
    ("google_chat", ""),
    ("gotify", "token = \"t\""),
    ("home_assistant", "token = \"t\""),
    ("incident_io", "source = \"a\"\ntoken = \"t\""),
    ("jira", "project = \"A\"\ntoken = \"t\""),
    ("line", "token = \"t\"\nto = \"U1\""),
    (
        "mailgun",
        "domain = \"a.example\"\nkey = \"t\"\nfrom = \"a@a.example\"\nto = \"b@b.example\"",
    ),
    ("matrix", "token = \"t\"\nroom = \"!a:b.example\""),
    ("mattermost", ""),
    ("n8n", ""),
    ("ntfy", "topic = \"t\""),
    ("opsgenie", "key = \"t\""),
    ("pagerduty", "routing_key = \"t\""),
    ("pushbullet", "token = \"t\""),
    ("pushover", "token = \"t\"\nuser = \"u\""),
    ("rocket_chat", ""),
    (
        "sendgrid",
        "key = \"t\"\nfrom = \"a@a.example\"\nto = \"b@b.example\"",
    ),
    (
        "ses",
        "region = \"eu-central-1\"\naccess_key = \"a\"\nsecret_key = \"t\"\nfrom = \"a@a.example\"\nto = \"b@b.example\"",
    ),
    ("signal", "number = \"+1\"\nrecipients = \"+2\""),
    ("signl4", "team_secret = \"t\""),
    ("slack", ""),
    ("splunk_on_call", "key = \"t\"\nrouting_key = \"a\""),
    ("teams", ""),
    ("telegram", "token = \"t\"\nchat = \"1\""),
    (
        "twilio",
        "account = \"a\"\ntoken = \"t\"\nfrom = \"+15550001\"\nto = \"+15550002\"",
    ),
    (
        "twilio_voice",
        "account = \"a\"\ntoken = \"t\"\nfrom = \"+15550001\"\nto = \"+15550002\"",
    ),
    ("webex", ""),
    ("webhook", ""),
    ("wecom", "key = \"t\""),
    ("zapier", ""),
    (
        "zulip",
        "user = \"a@a.example\"\nkey = \"t\"\nchannel = \"a\"",
    ),
];

/// Without the filter each of them connects, so that the test cannot pass for another reason.
#[test]
fn every_channel_connects_to_allowed_addresses_only() {
    use std::pin::pin;

    use futures_util::FutureExt as _;
    use futures_util::future::{Either, select};
    use plimsoll_client::AddressFilter;
    use plimsoll_client::fetch::Fetcher;
    use plimsoll_wire::tls::Trust;

    use crate::notify::deliver::{LIMITS, send};

    let named: Vec<_> = SETTINGS.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(CHANNELS.map(|channel| channel.key).to_vec(), named);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        for (kind, more) in SETTINGS {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let port = listener.local_addr().unwrap().port();
            let settings = match kind {
                "email" => more.replace("PORT", &port.to_string()),
                _ => format!("url = \"http://127.0.0.1:{port}/\"\n{more}"),
            };
            let (outgoing, _) = outgoing(kind, &settings, &message(NoticeKind::Opened));
            let fetcher = |filter| Fetcher::reaching(Trust::PublicRoots, LIMITS, filter).unwrap();
            let filtered = fetcher(Some(AddressFilter::public()));
            let reason = send(&outgoing, &filtered, &[]).await.err().unwrap().reason;
            assert!(reason.contains("which is not allowed"), "{kind}: {reason}");
            assert!(listener.accept().now_or_never().is_none(), "{kind}");
            let open = fetcher(None);
            let (sending, arriving) = (pin!(send(&outgoing, &open, &[])), pin!(listener.accept()));
            let connected = select(sending, arriving).await;
            assert!(matches!(connected, Either::Right((Ok(_), _))), "{kind}");
        }
    });
}

/// Receivers may answer with what they got: no credential of any channel comes back in the reason of a failure.
#[test]
fn no_receiver_shows_credentials_by_echoing_its_request() {
    for (kind, more) in SETTINGS {
        let channel = channel(kind).unwrap();
        if *kind == *"email" {
            continue;
        }
        let mut settings: toml::Table = format!("url = \"http://127.0.0.1/\"\n{more}")
            .parse()
            .unwrap();
        let mut secrets = Vec::new();
        for field in channel
            .fields
            .iter()
            .filter(|it| it.kind == FieldKind::Secret)
        {
            if settings.contains_key(field.key) {
                let secret = format!("{}+se/cret", field.key.to_uppercase());
                secrets.push(secret.clone());
                settings.insert(field.key.to_owned(), secret.into());
            }
        }
        if *kind == *"webhook" {
            secrets.push("OF+a/HEADER".to_owned());
            let fields: toml::Table = "X-K = \"OF+a/HEADER\"".parse().unwrap();
            settings.insert("headers".to_owned(), fields.into());
        }
        let notifier = compiled(kind, &settings.to_string()).unwrap();
        let outgoing =
            notifier.outgoing(&message(NoticeKind::Opened), Timestamp(1_772_366_470_000));
        let request = match &outgoing {
            Outgoing::Http(request) => request,
            Outgoing::Question(question) => &question.request,
            Outgoing::Mail(_) => continue,
        };
        let fields = request
            .fields
            .iter()
            .map(|(name, value)| format!("{name}: {value}"));
        for echo in fields.chain([request.url.to_string(), request.content.clone()]) {
            for part in echo
                .as_bytes()
                .chunks(150)
                .map(String::from_utf8_lossy)
                .chain([echo.as_str().into()])
            {
                let failure = judge(request, notifier.secrets(), 400, part.as_bytes()).unwrap_err();
                for secret in &secrets {
                    let form: String =
                        url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
                    let is_shown = [secret.as_str(), &form]
                        .iter()
                        .any(|it| failure.reason.contains(*it));
                    assert!(!is_shown, "{kind}: {}", failure.reason);
                }
            }
        }
    }
}

#[test]
fn mails_of_one_incident_are_a_thread() {
    let settings =
        "host = \"mail.example.org\"\nfrom = \"m@example.org\"\nto = [\"a@example.org\"]";
    let mail = |kind, at: i64| {
        let message = Message {
            kind,
            at: Timestamp(at),
            ..message(kind)
        };
        let Outgoing::Mail(mail) = outgoing("email", settings, &message).0 else {
            panic!("it is a mail");
        };
        String::from_utf8(mail.formatted().unwrap().formatted()).unwrap()
    };
    let field = |mail: &str, name: &str| {
        let prefix = format!("{name}: ");
        let line = mail.lines().find_map(|line| line.strip_prefix(&prefix));
        line.map(str::to_owned)
    };
    let opened = mail(NoticeKind::Opened, 1_000);
    assert_eq!(field(&opened, "MIME-Version").as_deref(), Some("1.0"));
    let root = field(&opened, "Message-ID").unwrap();
    assert!(root.ends_with("@example.org>"), "{root}");
    assert_eq!(field(&opened, "References"), None);
    assert_eq!(
        field(&mail(NoticeKind::Opened, 1_000), "Message-ID"),
        Some(root.clone()),
        "one that is sent again is the same mail"
    );
    let mut names = vec![root.clone()];
    for (kind, at) in [(NoticeKind::Reminder, 2_000), (NoticeKind::Resolved, 3_000)] {
        let mail = mail(kind, at);
        for name in ["References", "In-Reply-To"] {
            assert_eq!(field(&mail, name), Some(root.clone()), "{mail}");
        }
        names.push(field(&mail, "Message-ID").unwrap());
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 3);
}

#[test]
fn messages_that_can_be_acknowledged_have_a_link() {
    let link = "https://monitor.example.org/acknowledge/a.b";
    let asked = Message {
        acknowledge: Some(link.to_owned()),
        ..message(NoticeKind::Opened)
    };
    let content = |kind: &str, settings: &str| match outgoing(kind, settings, &asked).0 {
        Outgoing::Http(request) => request.content,
        Outgoing::Mail(mail) => mail.text,
        Outgoing::Question(_) => panic!("{kind} asks nothing"),
    };
    let slack: Value = serde_json::from_str(&content("slack", "url = \"http://a\"")).unwrap();
    let button = json!({ "type": "button", "text": { "type": "plain_text", "text": "Acknowledge" }, "url": link });
    let actions = json!({ "type": "actions", "elements": [button] });
    assert_eq!(slack["attachments"][0]["blocks"][1], actions);
    let settings = "token = \"t\"\nchat = \"1\"";
    let telegram: Value = serde_json::from_str(&content("telegram", settings)).unwrap();
    let keyboard = json!({ "inline_keyboard": [[{ "text": "Acknowledge", "url": link }]] });
    assert_eq!(telegram["reply_markup"], keyboard);
    let mail = "from = \"a@a.example\"\nto = \"b@b.example\"\n";
    for (kind, settings) in [
        ("email", "host = \"m\""),
        ("mailgun", "domain = \"a\"\nkey = \"k\""),
        ("sendgrid", "key = \"k\""),
    ] {
        let content = content(kind, &format!("{mail}{settings}"));
        let encoded = content.replace("%2F", "/").replace("%3A", ":");
        assert!(encoded.contains(link), "{kind}: {content}");
    }
    // Telegram refuses buttons that lead to this machine, and with them the message.
    let local = Message {
        acknowledge: Some("http://localhost/acknowledge/a.b".to_owned()),
        ..asked.clone()
    };
    let (Outgoing::Http(request), _) = outgoing("telegram", "token = \"t\"\nchat = \"1\"", &local)
    else {
        panic!("it is a request");
    };
    assert!(
        !request.content.contains("reply_markup") && request.content.contains("Acknowledge: http")
    );
}
