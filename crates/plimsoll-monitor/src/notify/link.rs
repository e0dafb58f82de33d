//! Links by which the receiver of a notice acknowledges its incident, without signing in.
//!
//! A link is for one incident and one action, and ends. It is signed by a key of the store, so that it is valid in every process
//! of an organisation and after a restart. What it says can be read by all who have it: numbers, and the name of the channel.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use plimsoll_model::Secret;
use ring::hmac;
use serde::{Deserialize, Serialize};

use crate::store::{
    DefinitionChanges, DefinitionKind, IncidentId, OrgId, PutDefinition, Store, StoreError,
};
use crate::time::Timestamp;
use crate::token::ApiToken;

const KIND: DefinitionKind = DefinitionKind::LinkKey;

/// The name of the key in the store.
const NAME: &str = "acknowledge";

/// Characters of a link's token at most.
const MOST_TOKEN: usize = 1_000;

/// Links in notices, as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcknowledgePlan {
    /// Where browsers reach this monitor; no slash at its end.
    pub url: String,
    /// How long a link is valid.
    pub lasts: Duration,
}

/// Signs links, and reads them.
#[derive(Debug)]
pub struct LinkKey {
    org: OrgId,
    key: hmac::Key,
}

/// What a link is for: to acknowledge an incident.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledgement {
    /// The number of the incident.
    pub incident: i64,
    /// The channel whose notice has the link.
    pub channel: String,
    /// Until when it is valid, in milliseconds.
    until: i64,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    key: String,
}

impl LinkKey {
    /// The key of an organisation, which is made unless the store has it.
    pub async fn of_store(
        store: &dyn Store,
        org: OrgId,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        if let Some(key) = Self::stored(store, org).await? {
            return Ok(key);
        }
        let key = ApiToken::generate().map_err(|_| StoreError::Busy)?;
        let text = toml::to_string(&Stored { key }).unwrap_or_default();
        let changes = DefinitionChanges {
            puts: vec![PutDefinition {
                id: None,
                key: NAME.to_owned(),
                was: None,
                version: None,
                text,
                monitor: None,
            }],
            ..DefinitionChanges::default()
        };
        let written = store.change_definitions(org, KIND, changes, now).await;
        // Another process may have been the first.
        match (Self::stored(store, org).await?, written) {
            (Some(key), _) => Ok(key),
            (None, Err(error)) => Err(error),
            (None, Ok(_)) => Err(StoreError::Busy),
        }
    }

    async fn stored(store: &dyn Store, org: OrgId) -> Result<Option<Self>, StoreError> {
        let stored = store.definitions(org, KIND).await?;
        let found = stored.iter().find(|(found, _)| found.key == NAME);
        let text = found.and_then(|(found, _)| toml::from_str::<Stored>(&found.text).ok());
        Ok(text.map(|stored| Self::new(org, &Secret::new(stored.key))))
    }

    fn new(org: OrgId, secret: &Secret) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
        Self { org, key }
    }

    /// The token of a link.
    pub fn sign(&self, incident: IncidentId, channel: &str, until: Timestamp) -> String {
        let what = Acknowledgement {
            incident: incident.0,
            channel: channel.to_owned(),
            until: until.0,
        };
        let content = serde_json::to_string(&what).unwrap_or_default();
        let tag = hmac::sign(&self.key, &self.signed(&content));
        let encoded = BASE64_URL_SAFE_NO_PAD.encode(&content);
        format!("{encoded}.{}", BASE64_URL_SAFE_NO_PAD.encode(tag))
    }

    /// What a token permits; nothing if it was not signed by this key, or if its time is over.
    pub fn read(&self, token: &str, now: Timestamp) -> Option<Acknowledgement> {
        let (encoded, tag) = Some(token)
            .filter(|token| token.len() <= MOST_TOKEN)?
            .split_once('.')?;
        let content = BASE64_URL_SAFE_NO_PAD.decode(encoded).ok()?;
        let content = String::from_utf8(content).ok()?;
        let tag = BASE64_URL_SAFE_NO_PAD.decode(tag).ok()?;
        hmac::verify(&self.key, &self.signed(&content), &tag).ok()?;
        let what: Acknowledgement = serde_json::from_str(&content).ok()?;
        (now.0 < what.until).then_some(what)
    }

    /// What is signed: the action and the organisation are part of it.
    fn signed(&self, content: &str) -> Vec<u8> {
        format!("acknowledge\n{}\n{content}", self.org.0).into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_of_one_incident_one_organisation_and_ends() {
        let secret = Secret::new("s");
        let key = LinkKey::new(OrgId(1), &secret);
        let token = key.sign(IncidentId(7), "on call", Timestamp(1_000));
        let what = key.read(&token, Timestamp(999)).unwrap();
        assert_eq!((what.incident, what.channel.as_str()), (7, "on call"));
        assert_eq!(key.read(&token, Timestamp(1_000)), None);
        assert_eq!(
            LinkKey::new(OrgId(2), &secret).read(&token, Timestamp(0)),
            None
        );
        let other = LinkKey::new(OrgId(1), &Secret::new("t"));
        assert_eq!(other.read(&token, Timestamp(0)), None);
        // Another incident, or a longer time, under the same tag.
        let (content, tag) = token.split_once('.').unwrap();
        let content = BASE64_URL_SAFE_NO_PAD.decode(content).unwrap();
        let content = String::from_utf8(content).unwrap();
        for changed in [
            content.replace(":7,", ":8,"),
            content.replace("1000", "9000"),
        ] {
            assert_ne!(changed, content);
            let changed = BASE64_URL_SAFE_NO_PAD.encode(changed);
            assert_eq!(key.read(&format!("{changed}.{tag}"), Timestamp(0)), None);
        }
        for wrong in ["", ".", "a.b", "é.é", &"a".repeat(5_000)] {
            assert_eq!(key.read(wrong, Timestamp(0)), None);
        }
    }
}
