//! Alertmanager, API v2: an alert that fires until it is resolved.
//!
//! Source: github.com/prometheus/alertmanager, `api/v2/openapi.yaml`, `POST /api/v2/alerts`.

use std::sync::Arc;

use serde_json::json;
use url::Url;

use crate::notify::channel::{HttpRequest, Notifier, Outgoing, below};
use crate::notify::message::{Message, NoticeKind};
use crate::notify::settings::Settings;
use crate::time::Timestamp;

#[derive(Debug)]
struct Alertmanager {
    url: Url,
}

pub(super) fn compile(settings: &mut Settings<'_>) -> Option<Arc<dyn Notifier>> {
    let url = settings.url("url")?;
    Some(Arc::new(Alertmanager { url }))
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
        HttpRequest::json(below(&self.url, "api/v2/alerts"), &json!([alert]))
    }

    fn groups(&self) -> bool {
        false
    }
}
