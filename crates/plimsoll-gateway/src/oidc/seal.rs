//! Texts that browsers keep for this program and can neither read nor change: sealed by AES-256-GCM.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::{SecureRandom as _, SystemRandom};

/// Keys, of which the first seals and all open: a new one is put before the old one until that has no cookies any more.
#[derive(Debug)]
pub(crate) struct Seals {
    keys: Vec<LessSafeKey>,
    /// What the texts are for: those of another client are not opened.
    context: Vec<u8>,
}

/// The system has no randomness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system has no randomness")]
pub(crate) struct SealsError;

/// What a sealed text is; one is not opened as another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Session,
    SignIn,
}

impl Kind {
    fn name(self) -> &'static [u8] {
        match self {
            Self::Session => b"session ",
            Self::SignIn => b"sign-in ",
        }
    }
}

impl Seals {
    /// - `secrets`: the one that seals first; one is made up if there is none.
    /// - `context`: what makes texts those of one client.
    pub(crate) fn new(secrets: &[Vec<u8>], context: &str) -> Result<Self, SealsError> {
        let mut own = [0; 32];
        SystemRandom::new().fill(&mut own).map_err(|_| SealsError)?;
        let secrets = secrets.iter().map(Vec::as_slice);
        let mut keys = secrets.map(key).collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() {
            keys.push(key(&own)?);
        }
        Ok(Self {
            keys,
            context: context.as_bytes().to_vec(),
        })
    }

    fn associated(&self, kind: Kind) -> Aad<Vec<u8>> {
        Aad::from([kind.name(), &self.context].concat())
    }

    /// The text in the characters of base64url; nothing if the system has no randomness.
    pub(super) fn seal(&self, kind: Kind, text: &[u8]) -> Option<String> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).ok()?;
        let mut sealed = text.to_vec();
        let key = self.keys.first()?;
        let unique = Nonce::assume_unique_for_key(nonce);
        key.seal_in_place_append_tag(unique, self.associated(kind), &mut sealed)
            .ok()?;
        Some(BASE64_URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat()))
    }

    /// The text, if it was sealed here by one of the keys.
    pub(super) fn open(&self, kind: Kind, sealed: &str) -> Option<Vec<u8>> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_LEN>()?;
        self.keys.iter().find_map(|key| {
            let nonce = Nonce::assume_unique_for_key(*nonce);
            let mut text = sealed.to_vec();
            let length = key
                .open_in_place(nonce, self.associated(kind), &mut text)
                .ok()?
                .len();
            text.truncate(length);
            Some(text)
        })
    }
}

/// A key by HKDF (RFC 5869): secrets are texts of people, of any length.
fn key(secret: &[u8]) -> Result<LessSafeKey, SealsError> {
    let extracted = Salt::new(HKDF_SHA256, b"plimsoll oidc").extract(secret);
    let expanded = extracted.expand(&[b"cookies 1"], &AES_256_GCM);
    let key = expanded.map_err(|_| SealsError)?;
    Ok(LessSafeKey::new(UnboundKey::from(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seals(secrets: &[&str], context: &str) -> Seals {
        let secrets: Vec<_> = secrets.iter().map(|it| it.as_bytes().to_vec()).collect();
        Seals::new(&secrets, context).unwrap()
    }

    #[test]
    fn texts_are_opened_by_each_key_for_what_they_were_sealed() {
        let old = seals(&["old"], "client");
        let sealed = old.seal(Kind::Session, b"text").unwrap();
        assert_ne!(old.seal(Kind::Session, b"text").unwrap(), sealed);
        let opened = |seals: &Seals, kind| seals.open(kind, &sealed);
        assert_eq!(opened(&old, Kind::Session).unwrap(), b"text");
        assert_eq!(
            opened(&seals(&["new", "old"], "client"), Kind::Session).unwrap(),
            b"text"
        );
        for (secrets, context, kind) in [
            (&["new"][..], "client", Kind::Session),
            (&["old"][..], "other", Kind::Session),
            (&["old"][..], "client", Kind::SignIn),
            (&[][..], "client", Kind::Session),
        ] {
            assert_eq!(opened(&seals(secrets, context), kind), None);
        }
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(old.open(Kind::Session, &changed), None, "{at}");
            let (start, _) = sealed.split_at(at);
            assert_eq!(old.open(Kind::Session, start), None, "{at}");
        }
    }
}
