//! A subscriber, as the store has it.

use lettre::Address;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::config::ApiToken;
use crate::store::timestamp::Timestamp;
use crate::store::{Definition, DefinitionKind, OrgId, Store, StoreError};

/// Characters of an address.
const MOST_ADDRESS: usize = 500;

/// Letters of a number that is made of a hash.
const ID_LENGTH: usize = 24;

/// Address of a subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Means {
    Email,
    Webhook,
    Slack,
}

impl Means {
    pub(crate) const ALL: [Self; 3] = [Self::Email, Self::Webhook, Self::Slack];

    /// The name in forms, stores and JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Webhook => "webhook",
            Self::Slack => "slack",
        }
    }

    /// The key of its name for readers.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Email => "subscribe_email",
            Self::Webhook => "subscribe_webhook",
            Self::Slack => "subscribe_slack",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|means| means.name() == name)
    }

    /// The address in the form in which it is compared; `None` if it is none.
    ///
    /// - `allows_private`: whether a URL may be any; otherwise that of Slack must be its own.
    pub(crate) fn address(self, given: &str, allows_private: bool) -> Option<String> {
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

/// A subscriber.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Subscriber {
    /// The slug of the page.
    pub(crate) page: String,
    pub(crate) means: Means,
    pub(crate) address: String,
    /// The code of the language.
    pub(crate) language: String,
    /// The token in the links of messages; also the key by which webhooks are signed.
    pub(crate) token: String,
    /// Keys of the components that it is about; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) components: Vec<String>,
    /// When the address was left, in milliseconds.
    pub(crate) asked: i64,
    /// When the link was followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) confirmed: Option<i64>,
}

impl Subscriber {
    /// The key in the store: the same for the same address and page.
    pub(crate) fn id(page: &str, means: Means, address: &str) -> String {
        let text = format!("{page}\n{}\n{address}", means.name());
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
        ApiToken::written(&hash).chars().take(ID_LENGTH).collect()
    }

    pub(crate) fn to_text(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }

    fn of_text(text: &str) -> Option<Self> {
        toml::from_str(text).ok()
    }

    /// All subscribers of an organisation with their definitions.
    pub(super) async fn all(
        store: &dyn Store,
        org: OrgId,
    ) -> Result<Vec<(Definition, Self)>, StoreError> {
        let kind = DefinitionKind::Subscriber;
        let stored = store.definitions(org, kind).await?;
        let read = stored.into_iter().filter_map(|(definition, _)| {
            let subscriber = Self::of_text(&definition.text)?;
            Some((definition, subscriber))
        });
        Ok(read.collect())
    }

    /// Whether it receives an update of that date.
    pub(crate) fn receives(&self, at: Timestamp) -> bool {
        self.confirmed.is_some_and(|since| since <= at.0)
    }

    /// Whether it receives the updates of an incident, by the components that this affects; one without any is for all.
    pub(crate) fn is_about(&self, affected: &[(String, String)]) -> bool {
        let is_chosen = |(key, _): &(String, String)| self.components.contains(key);
        self.components.is_empty() || affected.is_empty() || affected.iter().any(is_chosen)
    }

    /// Compares without telling by its time how far the tokens are the same.
    pub(crate) fn has_token(&self, given: &str) -> bool {
        ApiToken::hash_of(given) == ApiToken::hash_of(&self.token)
    }
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

    #[test]
    fn a_subscriber_survives_the_store_and_gets_what_comes_later() {
        let mut subscriber = Subscriber {
            page: "acme".to_owned(),
            means: Means::Webhook,
            address: "https://a.example/".to_owned(),
            language: "de".to_owned(),
            token: "t".to_owned(),
            components: vec!["_api".to_owned()],
            asked: 5,
            confirmed: None,
        };
        assert_eq!(
            Subscriber::of_text(&subscriber.to_text()).as_ref(),
            Some(&subscriber)
        );
        assert!(!subscriber.receives(Timestamp(100)));
        subscriber.confirmed = Some(50);
        assert_eq!(
            Subscriber::of_text(&subscriber.to_text()).as_ref(),
            Some(&subscriber)
        );
        let affects = |key: &str| vec![(key.to_owned(), "A".to_owned())];
        assert!(subscriber.is_about(&affects("_api")) && subscriber.is_about(&[]));
        assert!(!subscriber.is_about(&affects("_web")));
        assert!(subscriber.receives(Timestamp(50)) && !subscriber.receives(Timestamp(49)));
    }
}
