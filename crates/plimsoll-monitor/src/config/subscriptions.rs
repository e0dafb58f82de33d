//! `[subscriptions]`: by what means readers may subscribe.

use std::sync::Arc;

use lettre::Address;
use plimsoll_model::document::Table;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::notify::{Mailer, Settings, Values};

/// Characters of an address.
const MOST_ADDRESS: usize = 500;

/// Where a subscriber is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Means {
    /// By mail.
    Email,
    /// By requests to a URL.
    Webhook,
    /// In a channel of Slack.
    Slack,
}

impl Means {
    pub(crate) const ALL: [Self; 3] = [Self::Email, Self::Webhook, Self::Slack];

    /// The name in forms, stores and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Webhook => "webhook",
            Self::Slack => "slack",
        }
    }

    /// The means of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|means| means.name() == name)
    }

    /// The address in the form in which it is compared; `None` if it is none.
    ///
    /// - `allows_private`: whether a URL may be any; otherwise that of Slack must be its own.
    pub fn address(self, given: &str, allows_private: bool) -> Option<String> {
        let given = given.trim();
        if given.is_empty() || given.len() > MOST_ADDRESS {
            return None;
        }
        if self == Self::Email {
            let address: Address = given.parse().ok()?;
            let has_dot = allows_private || address.domain().contains('.');
            return has_dot
                .then(|| format!("{}@{}", address.user(), address.domain().to_lowercase()));
        }
        let url = Url::parse(given).ok()?;
        let is_web = url.scheme() == "https" || (allows_private && url.scheme() == "http");
        let is_plain = url.username().is_empty() && url.password().is_none();
        let is_slack = url.host_str() == Some("hooks.slack.com");
        let is_fine = is_web
            && is_plain
            && url.has_host()
            && (self != Self::Slack || is_slack || allows_private);
        is_fine.then(|| url.to_string())
    }
}

/// By what means readers may subscribe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionPlan {
    /// Sends mails; without it there are no subscriptions by mail.
    pub mailer: Option<Mailer>,
    pub(crate) webhooks: bool,
    pub(crate) slack: bool,
    /// Whether webhooks may have private addresses, and those of Slack other hosts.
    pub allows_private: bool,
}

impl SubscriptionPlan {
    /// The means that are offered.
    pub fn means(&self) -> Vec<Means> {
        let offered = [
            (Means::Email, self.mailer.is_some()),
            (Means::Webhook, self.webhooks),
            (Means::Slack, self.slack),
        ];
        let offered = offered.into_iter().filter(|(_, is_offered)| *is_offered);
        offered.map(|(means, _)| means).collect()
    }
}

pub(crate) fn compile<'t>(
    mut table: Table<'t>,
    environment: &'t dyn Fn(&str) -> Option<String>,
) -> Option<Arc<SubscriptionPlan>> {
    let mailer = match table.table("email") {
        None => Some(None),
        Some(inner) => {
            let mut settings = Settings::new(inner, environment);
            let values = Values::read(&Mailer::FIELDS, &mut settings);
            let mailer = values.and_then(|values| Mailer::of_values(&values));
            settings.table.finish();
            mailer.map(Some)
        }
    };
    let webhooks = table.boolean("webhook").unwrap_or(true);
    let slack = table.boolean("slack").unwrap_or(true);
    let allows_private = table.boolean("allow_private").unwrap_or(false);
    table.finish();
    Some(Arc::new(SubscriptionPlan {
        mailer: mailer?,
        webhooks,
        slack,
        allows_private,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_and_written_one_way() {
        let email = |given| Means::Email.address(given, false);
        assert_eq!(
            email(" Ann@Example.ORG ").as_deref(),
            Some("Ann@example.org")
        );
        for wrong in [
            "",
            "ann",
            "ann@",
            "a b@example.org",
            "ann@localhost",
            "a@b.c\r\nBcc: d@e.f",
        ] {
            assert_eq!(email(wrong), None, "{wrong}");
        }
        let hook = |given| Means::Webhook.address(given, false);
        assert_eq!(
            hook("https://a.example").as_deref(),
            Some("https://a.example/")
        );
        for wrong in [
            "http://a.example/",
            "https://u:p@a.example/",
            "ftp://a.example/",
            "a",
            "https://",
        ] {
            assert_eq!(hook(wrong), None, "{wrong}");
        }
        let slack = |given, private| Means::Slack.address(given, private).is_some();
        assert!(slack("https://hooks.slack.com/services/T/B/X", false));
        assert!(!slack(
            "https://hooks.slack.com.evil.example/services/T/B/X",
            false
        ));
        assert!(slack("http://127.0.0.1:1/x", true));
    }
}
