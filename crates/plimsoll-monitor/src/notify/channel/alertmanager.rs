//! Alertmanager, API v2: an alert that fires until it is resolved.
//!
//! Source: github.com/prometheus/alertmanager, `api/v2/openapi.yaml`, `POST /api/v2/alerts`.

use serde_json::json;
use url::Url;

use crate::notify::channel::request::below;
use crate::notify::channel::{Channel, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::{Message, NoticeKind};
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "alertmanager",
    name: "Alertmanager",
    about: "An alert by `POST /api/v2/alerts`, with `endsAt` when it is over.",
    fields: &[Field::url("address of Alertmanager").required()],
    gatus: &[],
    kuma: &[],
    compile: |values| made(Alertmanager { url: values.url() }),
};

#[derive(Debug)]
struct Alertmanager {
    url: Url,
}

impl Notifier for Alertmanager {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let name = match message.kind {
            NoticeKind::NoData | NoticeKind::DataAgain => "MonitorNoData",
            NoticeKind::BudgetBurning | NoticeKind::BudgetSteady => "MonitorErrorBudget",
            NoticeKind::Test => "MonitorTest",
            _ => "MonitorDown",
        };
        let mut alert = json!({
            "labels": { "alertname": name, "monitor": message.monitor, "severity": "critical" },
            "annotations": { "summary": message.title, "description": message.text },
            "startsAt": message.since.to_string(),
        });
        if !message.kind.is_trouble() {
            alert["endsAt"] = message.at.to_string().into();
        }
        if let Some(link) = &message.link {
            alert["generatorURL"] = link.as_str().into();
        }
        HttpRequest::json(below(&self.url, "api/v2/alerts"), &json!([alert])).into()
    }

    fn groups(&self) -> bool {
        false
    }
}
