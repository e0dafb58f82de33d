//! Home Assistant: a call of a notify service, or an event that automations wait for.
//!
//! Source: developers.home-assistant.io/docs/api/rest, `POST /api/services/<domain>/<service>` and
//! `POST /api/events/<event_type>`; companion.home-assistant.io/docs/notifications/notifications-basic for `tag`.

use plimsoll_model::Secret;
use serde_json::json;
use url::Url;

use crate::notify::channel::request::{below, segment};
use crate::notify::channel::{Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "home_assistant",
    name: "Home Assistant",
    about: "A call of a notify service; the end of an incident replaces its beginning on phones. With `event` an event for automations instead, whose data are those of Gatus's: `status` (`triggered` or `resolved`), `endpoint` and `description`.",
    fields: &[
        Field::url("address of Home Assistant").required(),
        Field::secret("token", "long-lived access token").required(),
        Field::text(
            "service",
            "service of the domain `notify`, such as `mobile_app_phone`",
        )
        .or("notify"),
        Field::text("event", "type of an event that is fired instead"),
    ],
    gatus: &[
        Foreign::new("homeassistant", &[("url", "url"), ("token", "token")]).and(|_, table| {
            table.insert("event".to_owned(), "gatus_alert".into());
        }),
    ],
    kuma: &[Foreign::new(
        "HomeAssistant",
        &[
            ("homeAssistantUrl", "url"),
            ("longLivedAccessToken", "token"),
            ("notificationService", "service"),
        ],
    )],
    compile: |values| {
        made(HomeAssistant {
            url: values.url(),
            token: values.secret("token"),
            service: values.text("service"),
            event: values.maybe_text("event"),
        })
    },
};

#[derive(Debug)]
struct HomeAssistant {
    url: Url,
    token: Secret,
    service: String,
    event: Option<String>,
}

impl Notifier for HomeAssistant {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let (path, body) = if let Some(event) = &self.event {
            let is_trouble = message.kind.is_trouble();
            let status = if is_trouble { "triggered" } else { "resolved" };
            let body = json!({
                "status": status,
                "endpoint": message.full_name(),
                "description": message.plain(),
            });
            (format!("api/events/{}", segment(event)), body)
        } else {
            let mut body = json!({ "title": message.title, "message": message.detail() });
            // It takes no data, and refuses a call that has them.
            if self.service != "persistent_notification" {
                body["data"] = json!({ "tag": message.incident });
                if let Some(link) = &message.link {
                    body["data"]["url"] = link.as_str().into();
                    body["data"]["clickAction"] = link.as_str().into();
                }
            }
            let path = format!("api/services/notify/{}", segment(&self.service));
            (path, body)
        };
        HttpRequest::json(below(&self.url, &path), &body)
            .bearer(self.token.expose())
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::channel::snapshot::check;
    use crate::notify::message::NoticeKind;

    const SETTINGS: &str = "url = \"http://ha.example:8123/\"\ntoken = { env = \"TOKEN\" }\n";

    #[test]
    fn the_documented_requests() {
        for kind in [NoticeKind::Opened, NoticeKind::Resolved] {
            check(
                "home_assistant",
                &format!("{SETTINGS}service = \"mobile_app_phone\""),
                kind,
                "POST http://ha.example:8123/api/services/notify/mobile%5Fapp%5Fphone",
                &["authorization: Bearer from-env"],
                &json!({
                    "title": "core/web is down",
                    "message": "status 500 <b> & \"more\"",
                    "data": {
                        "tag": "core_web/1",
                        "url": "https://status.example.org",
                        "clickAction": "https://status.example.org",
                    },
                }),
            );
        }
        for (kind, status) in [
            (NoticeKind::Opened, "triggered"),
            (NoticeKind::Resolved, "resolved"),
        ] {
            check(
                "home_assistant",
                &format!("{SETTINGS}event = \"gatus_alert\""),
                kind,
                "POST http://ha.example:8123/api/events/gatus%5Falert",
                &["authorization: Bearer from-env"],
                &json!({
                    "status": status,
                    "endpoint": "core/web",
                    "description": "core/web is down\nstatus 500 <b> & \"more\"\nhttps://status.example.org",
                }),
            );
        }
    }
}
