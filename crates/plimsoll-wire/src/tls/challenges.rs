//! Certificates by which a server proves to an authority that names are its own: `tls-alpn-01` (RFC 8737).

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::sign::CertifiedKey;

/// The ALPN protocol of an authority that validates a name (RFC 8737, section 6.2).
pub const ACME_TLS: &[u8] = b"acme-tls/1";

/// The certificates for challenges, by name; shared between the ACME client and the listeners.
#[derive(Debug, Clone, Default)]
pub struct TlsChallenges(Arc<RwLock<HashMap<String, Arc<CertifiedKey>>>>);

/// A challenge that is answered as long as this is kept.
#[derive(Debug)]
#[must_use]
pub struct AnsweringChallenge {
    challenges: TlsChallenges,
    name: String,
}

/// Why a challenge cannot be answered.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a certificate that answers for {name}: {reason}")]
pub struct TlsChallengeError {
    name: String,
    reason: String,
}

impl TlsChallenges {
    /// Answers for `name`, a host in lower case.
    ///
    /// - `digest`: SHA-256 of the key authorization.
    pub fn answer(
        &self,
        name: &str,
        digest: &[u8; 32],
    ) -> Result<AnsweringChallenge, TlsChallengeError> {
        let wrong = |reason: &dyn ToString| TlsChallengeError {
            name: name.to_owned(),
            reason: reason.to_string(),
        };
        let (chain, key) = certified(name, digest).map_err(|error| wrong(&error))?;
        let key = ring::sign::any_ecdsa_type(&key.into()).map_err(|error| wrong(&error))?;
        // Not parsed as others are: only a certificate authority knows what its extension means.
        let key = CertifiedKey::new(chain, key);
        let mut certificates = self.0.write().unwrap_or_else(PoisonError::into_inner);
        certificates.insert(name.to_owned(), Arc::new(key));
        Ok(AnsweringChallenge {
            challenges: self.clone(),
            name: name.to_owned(),
        })
    }

    pub(crate) fn certificate(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let certificates = self.0.read().unwrap_or_else(PoisonError::into_inner);
        certificates.get(name).cloned()
    }
}

impl Drop for AnsweringChallenge {
    fn drop(&mut self) {
        let mut certificates = self
            .challenges
            .0
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        certificates.remove(&self.name);
    }
}

type ChallengeCertificate = (
    Vec<rustls::pki_types::CertificateDer<'static>>,
    PrivatePkcs8KeyDer<'static>,
);

fn certified(name: &str, digest: &[u8; 32]) -> Result<ChallengeCertificate, rcgen::Error> {
    let mut params = CertificateParams::new([name.to_owned()])?;
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    Ok((vec![certificate.der().clone()], key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_answered_as_long_as_it_is_kept() {
        let challenges = TlsChallenges::default();
        let answering = challenges.answer("a.example", &[7; 32]).unwrap();
        let shown = challenges.certificate("a.example").unwrap();
        let leaf = shown.cert.first().unwrap();
        // The extension (OID 1.3.6.1.5.5.7.1.31), critical, with the digest.
        let expected = [
            &[0x06, 8, 0x2b, 6, 1, 5, 5, 7, 1, 0x1f, 1, 1, 0xff][..],
            &[4, 34, 4, 32, 7, 7, 7],
        ]
        .concat();
        assert!(leaf.windows(expected.len()).any(|it| it == expected));
        assert!(challenges.certificate("b.example").is_none());
        drop(answering);
        assert!(challenges.certificate("a.example").is_none());
        assert!(challenges.answer("a\u{e9}.example", &[7; 32]).is_err());
    }
}
