//! A subscriber, as the store has it.

use plimsoll_monitor::config::ApiToken;
use plimsoll_monitor::config::subscriptions::Means;
use plimsoll_monitor::store::{Definition, DefinitionKind, OrgId, Store, StoreError};
use plimsoll_monitor::time::Timestamp;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

/// Letters of a number that is made of a hash.
const ID_LENGTH: usize = 24;

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
    /// The key in the store: the same for the same address and page, of mail in whatever letters.
    pub(crate) fn id(page: &str, means: Means, address: &str) -> String {
        let address = match means {
            Means::Email => address.to_lowercase(),
            Means::Webhook | Means::Slack => address.to_owned(),
        };
        let text = format!("{page}\n{}\n{address}", means.name());
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
        ApiToken::written(&hash).chars().take(ID_LENGTH).collect()
    }

    pub(crate) fn to_text(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }

    pub(super) fn of_text(text: &str) -> Option<Self> {
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
