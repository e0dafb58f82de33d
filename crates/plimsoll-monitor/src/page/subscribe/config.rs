//! `[subscriptions]`: by what means readers may subscribe.

use std::sync::Arc;

use plimsoll_model::document::Table;

use crate::notify::{Mailer, Settings};
use crate::page::subscribe::record::Means;

/// By what means readers may subscribe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionPlan {
    /// Sends mails; without it there are no subscriptions by mail.
    pub(crate) mailer: Option<Mailer>,
    pub(crate) webhooks: bool,
    pub(crate) slack: bool,
    /// Whether webhooks may have private addresses, and those of Slack other hosts.
    pub(crate) allows_private: bool,
}

impl SubscriptionPlan {
    /// The means that are offered.
    pub(crate) fn means(&self) -> Vec<Means> {
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
            let mailer = Mailer::compile(&mut settings);
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
