//! Secrets of the store, sealed by a key that is not in it.
//!
//! Sealed are definitions of monitors and pages, which may hold credentials, addresses of subscribers, and secrets of
//! one-time codes. Each is sealed by AES-256-GCM with a random nonce, for one organisation and kind, so that it cannot be
//! moved elsewhere. The first key seals; the others only open what was sealed before.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use plimsoll_model::Secret;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::digest::{SHA256, digest};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::{self, SystemRandom};

use crate::store::accounts::{TotpSecret, User, UserId};
use crate::store::definitions::{Definition, DefinitionChanges, DefinitionKind};
use crate::store::types::OrgId;
use crate::store::{StoreError, UserEdit};

/// Before sealed text.
const MARK: &str = "sealed:";

/// Before sealed bytes.
const MAGIC: &[u8] = b"PLSEAL1";

/// Bytes by which a key is recognised.
const ID: usize = 8;

/// Keys that seal and open.
#[derive(Default)]
pub struct Vault {
    keys: Vec<(Vec<u8>, LessSafeKey)>,
    /// Whether something was opened that the first key has not sealed.
    is_behind: AtomicBool,
}

impl Vault {
    /// - `keys`: of 32 characters or more each; the first one seals.
    pub fn new(keys: &[Secret]) -> Self {
        let keys = keys.iter().filter_map(|secret| {
            let salt = Salt::new(HKDF_SHA256, b"plimsoll monitor store");
            let extracted = salt.extract(secret.expose().as_bytes());
            let mut key = [0; 32];
            let expanded = extracted.expand(&[b"aes-256-gcm"], HKDF_SHA256).ok()?;
            expanded.fill(&mut key).ok()?;
            let id = digest(&SHA256, &key)
                .as_ref()
                .iter()
                .take(ID)
                .copied()
                .collect();
            let key = UnboundKey::new(&AES_256_GCM, &key).ok()?;
            Some((id, LessSafeKey::new(key)))
        });
        Self {
            keys: keys.collect(),
            is_behind: AtomicBool::new(false),
        }
    }

    /// Whether something is there that the first key should seal; reset by this.
    pub(crate) fn takes_over(&self) -> bool {
        !self.keys.is_empty() && self.is_behind.swap(false, Ordering::Relaxed)
    }

    fn seal(&self, plain: &[u8], place: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let Some((id, key)) = self.keys.first() else {
            return Ok(None);
        };
        let nonce: [u8; NONCE_LEN] = rand::generate(&SystemRandom::new())
            .map_err(|_| StoreError::Busy)?
            .expose();
        let mut content = plain.to_vec();
        let sealing = key.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(place.as_bytes()),
            &mut content,
        );
        sealing.map_err(|_| StoreError::Sealed)?;
        Ok(Some([MAGIC, id, &nonce, &content].concat()))
    }

    /// Opens sealed bytes; `None` for bytes that are not sealed.
    fn open(&self, bytes: &[u8], place: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(rest) = bytes.strip_prefix(MAGIC) else {
            return Ok(None);
        };
        let (id, rest) = rest.split_at_checked(ID).ok_or(StoreError::Sealed)?;
        let (nonce, content) = rest
            .split_first_chunk::<NONCE_LEN>()
            .ok_or(StoreError::Sealed)?;
        let found = self.keys.iter().position(|(known, _)| known == id);
        let found = found.ok_or(StoreError::Sealed)?;
        if found > 0 {
            self.is_behind.store(true, Ordering::Relaxed);
        }
        let mut content = content.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let place = Aad::from(place.as_bytes());
        let (_, key) = self.keys.get(found).ok_or(StoreError::Sealed)?;
        let opened = key.open_in_place(nonce, place, &mut content);
        Ok(Some(opened.map_err(|_| StoreError::Sealed)?.to_vec()))
    }

    fn seal_text(&self, text: &str, place: &str) -> Result<String, StoreError> {
        let sealed = self.seal(text.as_bytes(), place)?;
        Ok(match sealed {
            Some(sealed) => format!("{MARK}{}", BASE64_STANDARD.encode(sealed)),
            None => text.to_owned(),
        })
    }

    fn open_text(&self, text: String, place: &str) -> Result<String, StoreError> {
        let Some(sealed) = text.strip_prefix(MARK) else {
            self.is_behind.store(true, Ordering::Relaxed);
            return Ok(text);
        };
        let bytes = BASE64_STANDARD
            .decode(sealed)
            .map_err(|_| StoreError::Sealed)?;
        let opened = self.open(&bytes, place)?.ok_or(StoreError::Sealed)?;
        String::from_utf8(opened).map_err(|_| StoreError::Sealed)
    }

    /// Seals what is to be written.
    pub(super) fn sealed(
        &self,
        org: OrgId,
        kind: DefinitionKind,
        mut changes: DefinitionChanges,
    ) -> Result<DefinitionChanges, StoreError> {
        if kind.is_secret() {
            for put in &mut changes.puts {
                put.text = self.seal_text(&put.text, &place(org, kind))?;
            }
        }
        Ok(changes)
    }

    /// Opens what was read.
    pub(super) fn opened(
        &self,
        org: OrgId,
        kind: DefinitionKind,
        mut all: Vec<(Definition, Option<i64>)>,
    ) -> Result<Vec<(Definition, Option<i64>)>, StoreError> {
        for (definition, _) in &mut all {
            self.open_definition(org, kind, definition)?;
        }
        Ok(all)
    }

    /// The same of one definition, if it is there.
    pub(super) fn opened_one(
        &self,
        org: OrgId,
        kind: DefinitionKind,
        mut one: Option<Definition>,
    ) -> Result<Option<Definition>, StoreError> {
        if let Some(definition) = &mut one {
            self.open_definition(org, kind, definition)?;
        }
        Ok(one)
    }

    fn open_definition(
        &self,
        org: OrgId,
        kind: DefinitionKind,
        definition: &mut Definition,
    ) -> Result<(), StoreError> {
        if kind.is_secret() {
            let text = std::mem::take(&mut definition.text);
            definition.text = self.open_text(text, &place(org, kind))?;
        }
        Ok(())
    }

    pub(super) fn sealed_edit(
        &self,
        org: OrgId,
        user: UserId,
        mut edit: UserEdit,
    ) -> Result<UserEdit, StoreError> {
        if let Some(Some(secret)) = &mut edit.totp
            && let Some(sealed) = self.seal(&secret.0, &place_of(org, user))?
        {
            secret.0 = sealed;
        }
        Ok(edit)
    }

    pub(super) fn opened_user(&self, org: OrgId, mut user: User) -> Result<User, StoreError> {
        // A command without keys works on users, and signs nobody in.
        if let Some(TotpSecret(bytes)) = &mut user.totp
            && !self.keys.is_empty()
        {
            match self.open(bytes, &place_of(org, user.id))? {
                Some(opened) => *bytes = opened,
                None => self.is_behind.store(true, Ordering::Relaxed),
            }
        }
        Ok(user)
    }
}

fn place(org: OrgId, kind: DefinitionKind) -> String {
    format!("{}/{}", org.0, kind.name())
}

fn place_of(org: OrgId, user: UserId) -> String {
    format!("{}/user/{}", org.0, user.0)
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault")
            .field("keys", &self.keys.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: &str = "1/monitor";

    fn vault(keys: &[&str]) -> Vault {
        let keys: Vec<_> = keys.iter().map(|key| Secret::new(*key)).collect();
        Vault::new(&keys)
    }

    #[test]
    fn text_is_sealed_for_its_place_and_never_twice_the_same() {
        let vault = vault(&["a key of thirty-two characters..."]);
        let one = vault.seal_text("bearer = \"hidden\"", PLACE).unwrap();
        let other = vault.seal_text("bearer = \"hidden\"", PLACE).unwrap();
        assert_ne!(one, other);
        assert!(!one.contains("hidden"), "{one}");
        assert_eq!(
            vault.open_text(one.clone(), PLACE).unwrap(),
            "bearer = \"hidden\""
        );
        assert!(vault.open_text(one.clone(), "2/monitor").is_err());
        let cut: String = one.chars().take(one.len() - 8).collect();
        for broken in [
            cut,
            "sealed:".to_owned(),
            "sealed:%".to_owned(),
            format!("{MARK}UExTRUFMMQ=="),
        ] {
            assert!(vault.open_text(broken.clone(), PLACE).is_err(), "{broken}");
        }
        assert!(!vault.takes_over());
    }

    #[test]
    fn an_old_key_opens_and_is_replaced_and_a_missing_one_is_an_error() {
        let (first, second) = (
            "the first key, which was in use before",
            "the second key, from now on in use",
        );
        let sealed = vault(&[first]).seal_text("x", PLACE).unwrap();
        let both = vault(&[second, first]);
        assert_eq!(both.open_text(sealed.clone(), PLACE).unwrap(), "x");
        assert!(both.takes_over() && !both.takes_over());
        assert!(matches!(
            vault(&[second]).open_text(sealed.clone(), PLACE),
            Err(StoreError::Sealed)
        ));
        assert!(matches!(
            vault(&[]).open_text(sealed, PLACE),
            Err(StoreError::Sealed)
        ));
        // Text from before there was a key is opened, and is to be sealed.
        assert_eq!(both.open_text("plain".to_owned(), PLACE).unwrap(), "plain");
        assert!(both.takes_over());
        let none = vault(&[]);
        assert_eq!(none.seal_text("plain", PLACE).unwrap(), "plain");
        none.open_text("plain".to_owned(), PLACE).unwrap();
        assert!(!none.takes_over());
    }
}
