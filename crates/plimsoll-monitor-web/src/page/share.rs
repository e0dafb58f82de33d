//! Links that open a page with a password: read-only, revocable, for a time or for good.
//!
//! The store has the SHA-256 of a link's token, so a link cannot be shown again.

use plimsoll_monitor::config::ApiToken;
use plimsoll_monitor::engine::Handle;
use plimsoll_monitor::manage::Actor;
use plimsoll_monitor::store::{DefinitionChanges, DefinitionKind, PutDefinition, StoreError};
use plimsoll_monitor::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::random;

/// Links of an organisation.
const MOST: usize = 1_000;

/// Characters of a token.
pub(crate) const LENGTH: usize = 43;

const KIND: DefinitionKind = DefinitionKind::Share;

/// A link, without its token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Share {
    /// The slug of the page.
    page: String,
    /// Label of the receiver.
    pub(crate) name: String,
    /// The SHA-256 of the token, in hexadecimal.
    hash: String,
    /// Until when, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<i64>,
    /// User who made it.
    pub(crate) by: String,
}

impl Share {
    pub(crate) fn until(&self) -> Option<Timestamp> {
        self.until.map(Timestamp)
    }

    /// Whether it opens a page.
    pub(crate) fn opens(&self, page: &str, token: &str, now: Timestamp) -> bool {
        self.page == page
            && self.is_valid(now)
            && self.hash == ApiToken::written(&ApiToken::hash_of(token))
    }

    pub(crate) fn is_valid(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now.0 < until)
    }
}

/// All links with their keys and dates, the newest first.
pub(crate) async fn list(handle: &Handle) -> Result<Vec<(String, Timestamp, Share)>, StoreError> {
    let all = handle.store.definitions(handle.org, KIND).await?;
    let read = all.into_iter().filter_map(|(definition, _)| {
        let share = toml::from_str(&definition.text).ok()?;
        Some((definition.key, definition.created, share))
    });
    let mut all: Vec<_> = read.collect();
    all.sort_by_key(|(_, created, _)| std::cmp::Reverse(*created));
    Ok(all)
}

/// The links of a page.
pub(crate) async fn of_page(
    handle: &Handle,
    page: &str,
) -> Result<Vec<(String, Timestamp, Share)>, StoreError> {
    let mut all = list(handle).await?;
    all.retain(|(.., share)| share.page == page);
    Ok(all)
}

/// Makes a link; its token is returned once. Fails with [`StoreError::Busy`] if there are too many.
pub(crate) async fn add(
    handle: &Handle,
    actor: &Actor,
    page: &str,
    (name, until): (&str, Option<Timestamp>),
    now: Timestamp,
) -> Result<String, StoreError> {
    let _changing = handle.changing.lock().await;
    if list(handle).await?.len() >= MOST {
        return Err(StoreError::Busy);
    }
    let token = random::token().ok_or(StoreError::Busy)?;
    let hash = ApiToken::written(&ApiToken::hash_of(&token));
    let share = Share {
        page: page.to_owned(),
        name: name.to_owned(),
        until: until.map(|until| until.0),
        by: actor.name.clone(),
        hash: hash.clone(),
    };
    let changes = DefinitionChanges {
        puts: vec![PutDefinition {
            id: None,
            key: hash.chars().take(24).collect(),
            was: None,
            version: None,
            text: toml::to_string(&share).unwrap_or_default(),
            monitor: None,
        }],
        audit: vec![actor.audit("share.add", &format!("{page}: {name}"))],
        ..DefinitionChanges::default()
    };
    handle
        .store
        .change_definitions(handle.org, KIND, changes, now)
        .await?;
    Ok(token)
}

/// Revokes all links of a page that is gone, so that none opens another one of its slug.
pub(crate) async fn forget(
    handle: &Handle,
    actor: &Actor,
    page: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let _changing = handle.changing.lock().await;
    let all = of_page(handle, page).await?;
    if all.is_empty() {
        return Ok(());
    }
    let changes = DefinitionChanges {
        removals: all.into_iter().map(|(key, ..)| (key, None)).collect(),
        audit: vec![actor.audit("share.revoke", &format!("{page}: all"))],
        ..DefinitionChanges::default()
    };
    handle
        .store
        .change_definitions(handle.org, KIND, changes, now)
        .await?;
    Ok(())
}

/// Revokes a link of a page; it opens nothing from now on.
pub(crate) async fn revoke(
    handle: &Handle,
    actor: &Actor,
    page: &str,
    key: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let _changing = handle.changing.lock().await;
    let all = of_page(handle, page).await?;
    let found = all.into_iter().find(|(one, ..)| one == key);
    let (key, _, share) = found.ok_or(StoreError::NotFound("link"))?;
    let changes = DefinitionChanges {
        removals: vec![(key, None)],
        audit: vec![actor.audit("share.revoke", &format!("{page}: {}", share.name))],
        ..DefinitionChanges::default()
    };
    handle
        .store
        .change_definitions(handle.org, KIND, changes, now)
        .await?;
    Ok(())
}
