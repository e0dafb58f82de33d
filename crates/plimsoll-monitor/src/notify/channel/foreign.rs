//! What other monitors call a channel and its settings.

use std::cell::RefCell;

use toml::Value;

use crate::notify::channel::Channel;
use crate::notify::field::FieldKind;

/// The settings of a channel in another monitor's configuration, by their keys there.
pub(crate) type Theirs<'a> = dyn Fn(&'static str) -> Option<String> + 'a;

/// A channel as another monitor knows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Foreign {
    /// Its name there.
    pub(crate) name: &'static str,
    /// Keys there, with ours.
    pub(crate) keys: &'static [(&'static str, &'static str)],
    /// What else is made of theirs.
    more: Option<fn(&Theirs<'_>, &mut toml::Table)>,
}

impl Foreign {
    pub(super) const fn new(
        name: &'static str,
        keys: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self {
            name,
            keys,
            more: None,
        }
    }

    pub(super) const fn and(self, more: fn(&Theirs<'_>, &mut toml::Table)) -> Self {
        Self {
            more: Some(more),
            ..self
        }
    }

    /// Our settings. What a field is says how its text is read: several are divided by commas.
    pub(crate) fn settings(&self, channel: &Channel, theirs: &Theirs<'_>) -> ForeignSettings {
        let read = RefCell::new(Vec::new());
        let theirs = |key| {
            read.borrow_mut().push(key);
            theirs(key)
        };
        let table = self.table(channel, &theirs);
        ForeignSettings {
            table,
            read: read.into_inner(),
        }
    }

    fn table(&self, channel: &Channel, theirs: &Theirs<'_>) -> toml::Table {
        let mut table = toml::Table::new();
        for (key, ours) in self.keys {
            let text = theirs(key).filter(|text| !text.trim().is_empty());
            let field = channel.fields.iter().find(|field| field.key == *ours);
            if let Some((text, field)) = text.zip(field) {
                table.insert((*ours).to_owned(), read(&text, field.kind));
            }
        }
        if let Some(more) = self.more {
            more(theirs, &mut table);
        }
        table
    }
}

/// Settings of another monitor as ours.
#[derive(Debug)]
pub(crate) struct ForeignSettings {
    pub(crate) table: toml::Table,
    /// The keys of theirs that were asked for, given or not: what else they have is not carried over.
    pub(crate) read: Vec<&'static str>,
}

fn read(text: &str, kind: FieldKind) -> Value {
    let text = text.trim();
    let written = || Value::String(text.to_owned());
    match kind {
        FieldKind::Number(..) => text.parse().map_or_else(|_| written(), Value::Integer),
        FieldKind::Texts | FieldKind::Addresses => {
            let parts = text.split(',').map(str::trim).filter(|one| !one.is_empty());
            Value::Array(parts.map(|one| one.to_owned().into()).collect())
        }
        _ => written(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::notify::channel::all::{CHANNELS, notifier_of};
    use crate::notify::channel::snapshot::check;
    use crate::notify::channel::{Channel, Foreign};
    use crate::notify::message::NoticeKind;

    type All = fn(&'static Channel) -> &'static [Foreign];

    fn made(all: All, name: &str, theirs: &[(&str, &str)]) -> String {
        let (channel, foreign) = CHANNELS
            .iter()
            .find_map(|channel| {
                let mut named = all(channel).iter().filter(|it| it.name == name);
                Some((channel, named.next()?))
            })
            .unwrap_or_else(|| panic!("no channel is like {name}"));
        let value = |key: &'static str| {
            let found = theirs.iter().find(|(known, _)| *known == key);
            found.map(|(_, value)| (*value).to_owned())
        };
        let settings = foreign.settings(channel, &value).table;
        notifier_of(channel.key, &settings).unwrap_or_else(|error| panic!("{name}: {error}"));
        format!("{} = {}", channel.key, toml::Value::Table(settings))
    }

    #[test]
    fn no_name_is_of_two_channels() {
        let of: [All; 2] = [|channel| channel.gatus, |channel| channel.kuma];
        for all in of {
            let mut names: Vec<_> = CHANNELS
                .iter()
                .flat_map(|channel| all(channel))
                .map(|it| it.name)
                .collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count);
        }
    }

    /// Source: Gatus v5.36.0, README, "Alerting".
    #[test]
    fn providers_of_gatus_become_channels() {
        for (name, theirs, ours) in [
            (
                "homeassistant",
                &[("url", "http://ha"), ("token", "t")][..],
                r#"home_assistant = { event = "gatus_alert", token = "t", url = "http://ha" }"#,
            ),
            (
                "signal",
                &[
                    ("api-url", "http://s/v2/send"),
                    ("number", "+1"),
                    ("recipients", "+2, +3"),
                ],
                r#"signal = { number = "+1", recipients = ["+2", "+3"], url = "http://s/v2/send" }"#,
            ),
            (
                "incident-io",
                &[
                    ("url", "https://api.incident.io/v2/alert_events/http/01AB"),
                    ("auth-token", "t"),
                ],
                r#"incident_io = { source = "01AB", token = "t" }"#,
            ),
            (
                "zulip",
                &[
                    ("bot-email", "b@z"),
                    ("bot-api-key", "k"),
                    ("domain", "z.example"),
                    ("channel-id", "12"),
                ],
                r#"zulip = { channel = "12", key = "k", url = "https://z.example", user = "b@z" }"#,
            ),
            (
                "webex",
                &[("webhook-url", "https://w")],
                r#"webex = { url = "https://w" }"#,
            ),
            (
                "rocketchat",
                &[("webhook-url", "https://r"), ("channel", "#a")],
                r##"rocket_chat = { channel = "#a", url = "https://r" }"##,
            ),
            (
                "zapier",
                &[("webhook-url", "https://z")],
                r#"zapier = { url = "https://z" }"#,
            ),
            (
                "n8n",
                &[("webhook-url", "https://n")],
                r#"n8n = { url = "https://n" }"#,
            ),
            (
                "aws-ses",
                &[
                    ("access-key-id", "A"),
                    ("secret-access-key", "s"),
                    ("region", "us-east-1"),
                    ("from", "a@a.example"),
                    ("to", "b@b.example,c@c.example"),
                ],
                r#"ses = { access_key = "A", from = "a@a.example", region = "us-east-1", secret_key = "s", to = ["b@b.example", "c@c.example"] }"#,
            ),
            (
                "sendgrid",
                &[
                    ("api-key", "k"),
                    ("from", "a@a.example"),
                    ("to", "b@b.example"),
                ],
                r#"sendgrid = { from = "a@a.example", key = "k", to = ["b@b.example"] }"#,
            ),
            (
                "github",
                &[("repository-url", "https://github.com/a/b"), ("token", "t")],
                r#"github = { repository = "a/b", token = "t" }"#,
            ),
            (
                "github",
                &[
                    ("repository-url", "https://git.example/a/b/"),
                    ("token", "t"),
                ],
                r#"github = { repository = "a/b", token = "t", url = "https://git.example/api/v3" }"#,
            ),
            (
                "signl4",
                &[("team-secret", "s")],
                r#"signl4 = { team_secret = "s" }"#,
            ),
            (
                "line",
                &[("channel-access-token", "t"), ("user-ids", "U1,U2")],
                r#"line = { to = ["U1", "U2"], token = "t" }"#,
            ),
            (
                "email",
                &[
                    ("host", "m"),
                    ("from", "a@a.example"),
                    ("to", "b@b.example"),
                ],
                r#"email = { from = "a@a.example", host = "m", port = 587, security = "starttls", to = ["b@b.example"] }"#,
            ),
        ] {
            assert_eq!(made(|channel| channel.gatus, name, theirs), ours);
        }
    }

    #[test]
    fn alerts_to_gitlab_have_their_documented_form() {
        let theirs = [
            ("webhook-url", "https://gitlab.example/alerts/1.json"),
            ("authorization-key", "k"),
            ("service", "a \"b\""),
        ];
        let made = made(|channel| channel.gatus, "gitlab", &theirs);
        let settings = made.strip_prefix("webhook = ").unwrap();
        let settings: toml::Table = format!("it = {settings}").parse().unwrap();
        let settings = settings["it"].as_table().unwrap().to_string();
        for (kind, end) in [
            (NoticeKind::Opened, json!(null)),
            (NoticeKind::Resolved, json!("2026-03-01T12:01:00Z")),
        ] {
            check(
                "webhook",
                &settings,
                kind,
                "POST https://gitlab.example/alerts/1.json",
                &["authorization: Bearer k"],
                &json!({
                    "title": "core/web is down",
                    "description": "status 500 <b> & \"more\"",
                    "start_time": "2026-03-01T12:00:00Z",
                    "end_time": end,
                    "hosts": "web",
                    "fingerprint": "core_web/1",
                    "severity": "critical",
                    "monitoring_tool": "gatus",
                    "service": "a \"b\"",
                    "gitlab_environment_name": "",
                }),
            );
        }
    }

    /// Source: Uptime Kuma 2, `server/notification-providers`.
    #[test]
    fn notifications_of_uptime_kuma_become_channels() {
        for (name, theirs, ours) in [
            (
                "HomeAssistant",
                &[
                    ("homeAssistantUrl", "http://ha/"),
                    ("longLivedAccessToken", "t"),
                    ("notificationService", "phone"),
                ][..],
                r#"home_assistant = { service = "phone", token = "t", url = "http://ha/" }"#,
            ),
            (
                "signal",
                &[
                    ("signalURL", "http://s/v2/send"),
                    ("signalNumber", "+1"),
                    ("signalRecipients", "+2,+3"),
                ],
                r#"signal = { number = "+1", recipients = ["+2", "+3"], url = "http://s/v2/send" }"#,
            ),
            (
                "rocket.chat",
                &[("rocketwebhookURL", "https://r")],
                r#"rocket_chat = { url = "https://r" }"#,
            ),
            (
                "SendGrid",
                &[
                    ("sendgridApiKey", "k"),
                    ("sendgridFromEmail", "a@a.example"),
                    ("sendgridToEmail", "b@b.example"),
                ],
                r#"sendgrid = { from = "a@a.example", key = "k", to = ["b@b.example"] }"#,
            ),
            (
                "Splunk",
                &[
                    (
                        "splunkRestURL",
                        "https://alert.victorops.com/integrations/generic/20131114/alert/KEY/ops",
                    ),
                    ("splunkSeverity", "WARNING"),
                ],
                r#"splunk_on_call = { key = "KEY", routing_key = "ops", severity = "WARNING" }"#,
            ),
            (
                "SIGNL4",
                &[("webhookURL", "https://connect.signl4.com/webhook/abc")],
                r#"signl4 = { team_secret = "abc" }"#,
            ),
            (
                "pushbullet",
                &[("pushbulletAccessToken", "t")],
                r#"pushbullet = { token = "t" }"#,
            ),
            (
                "Bark",
                &[
                    ("barkEndpoint", "https://api.day.app/KEY/"),
                    ("barkGroup", "g"),
                ],
                r#"bark = { device_key = "KEY", group = "g", url = "https://api.day.app" }"#,
            ),
            (
                "line",
                &[("lineChannelAccessToken", "t"), ("lineUserID", "U1")],
                r#"line = { to = ["U1"], token = "t" }"#,
            ),
            (
                "Feishu",
                &[("feishuWebHookUrl", "https://f")],
                r#"feishu = { url = "https://f" }"#,
            ),
            (
                "DingDing",
                &[
                    (
                        "webHookUrl",
                        "https://oapi.dingtalk.com/robot/send?access_token=t",
                    ),
                    ("secretKey", "s"),
                ],
                r#"dingtalk = { secret = "s", token = "t" }"#,
            ),
            (
                "WeCom",
                &[("weComBotKey", "k"), ("weComMentionedMobileList", "1, 2")],
                r#"wecom = { key = "k", mobiles = ["1", "2"] }"#,
            ),
            (
                "webhook",
                &[
                    ("webhookURL", "https://w"),
                    ("webhookContentType", "custom"),
                    ("webhookCustomBody", "{\"m\": \"{{ msg }}\"}"),
                    ("webhookAdditionalHeaders", "{\"A\": \"b\"}"),
                ],
                r#"webhook = { body = '{"m": "[{{ name }}] [{{ emoji }} {{ state }}] {{ text }}"}', headers = { A = "b" }, url = "https://w" }"#,
            ),
            (
                "webhook",
                &[("webhookURL", "https://w/?a=1"), ("httpMethod", "get")],
                r#"webhook = { method = "GET", url = "https://w/?a=1&msg={{ title }}" }"#,
            ),
        ] {
            assert_eq!(made(|channel| channel.kuma, name, theirs), ours);
        }
        let json = made(
            |channel| channel.kuma,
            "webhook",
            &[("webhookURL", "https://w"), ("webhookContentType", "json")],
        );
        assert!(
            json.contains("\"heartbeat\": {\"status\": {{ up }}"),
            "{json}"
        );
    }
}
