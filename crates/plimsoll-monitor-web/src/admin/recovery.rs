//! Recovery codes: what signs a user in without the authenticator app, each once.
//!
//! The store has their SHA-256. Each has 80 random bits, so that the hash gives nothing away.

use plimsoll_monitor::config::ApiToken;
use plimsoll_monitor::engine::Handle;
use plimsoll_monitor::store::{
    Definition, DefinitionChanges, DefinitionKind, PutDefinition, StoreError, UserId,
};
use plimsoll_monitor::time::Timestamp;

use crate::random;

/// Codes of a user.
const COUNT: usize = 10;

const KIND: DefinitionKind = DefinitionKind::Recovery;

fn key(user: UserId) -> String {
    user.0.to_string()
}

/// New codes, as people type them; `None` if the system has no random numbers.
fn generate() -> Option<Vec<String>> {
    (0..COUNT).map(|_| random::code(16, 4)).collect()
}

/// The hash of a code as it was typed.
fn hash_of(code: &str) -> String {
    let letters = code.chars().filter(char::is_ascii_alphanumeric);
    let plain: String = letters.collect::<String>().to_ascii_lowercase();
    ApiToken::written(&ApiToken::hash_of(&plain))
}

async fn stored(handle: &Handle, user: UserId) -> Result<Option<Definition>, StoreError> {
    let all = handle.store.definitions(handle.org, KIND).await?;
    let key = key(user);
    Ok(all
        .into_iter()
        .map(|(definition, _)| definition)
        .find(|definition| definition.key == key))
}

/// How many codes a user has left.
pub(super) async fn left(handle: &Handle, user: UserId) -> Result<usize, StoreError> {
    let stored = stored(handle, user).await?;
    Ok(stored.map_or(0, |stored| stored.text.lines().count()))
}

/// Gives a user new codes, in the place of the ones before.
pub(super) async fn renew(
    handle: &Handle,
    user: UserId,
    now: Timestamp,
) -> Result<Vec<String>, StoreError> {
    let codes = generate().ok_or(StoreError::Busy)?;
    let hashes: Vec<_> = codes.iter().map(|code| hash_of(code)).collect();
    let was = stored(handle, user).await?;
    let version = was.as_ref().map(|was| was.version);
    write(handle, user, version, hashes.join("\n"), now).await?;
    Ok(codes)
}

/// Uses a code up; false if it is none. Of two that use the same at a time, one gets in.
pub(super) async fn use_up(
    handle: &Handle,
    user: UserId,
    code: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let Some(stored) = stored(handle, user).await? else {
        return Ok(false);
    };
    let hash = hash_of(code);
    let left: Vec<_> = stored.text.lines().filter(|line| **line != *hash).collect();
    if left.len() == stored.text.lines().count() {
        return Ok(false);
    }
    match write(handle, user, Some(stored.version), left.join("\n"), now).await {
        Ok(()) => Ok(true),
        Err(StoreError::Conflict) => Ok(false),
        Err(error) => Err(error),
    }
}

async fn write(
    handle: &Handle,
    user: UserId,
    version: Option<i64>,
    text: String,
    now: Timestamp,
) -> Result<(), StoreError> {
    let key = key(user);
    let changes = DefinitionChanges {
        puts: vec![PutDefinition {
            id: None,
            was: version.map(|_| key.clone()),
            key,
            version,
            text,
            monitor: None,
        }],
        ..DefinitionChanges::default()
    };
    handle
        .store
        .change_definitions(handle.org, KIND, changes, now)
        .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_differ_and_are_read_however_they_are_typed() {
        let codes = generate().unwrap();
        assert_eq!(codes.len(), COUNT);
        for code in &codes {
            assert_eq!(code.len(), 19, "{code}");
            assert_eq!(codes.iter().filter(|other| *other == code).count(), 1);
            assert_eq!(
                hash_of(code),
                hash_of(&code.to_uppercase().replace('-', " "))
            );
        }
    }
}
