//! Several client certificates, of which each server gets one.

use std::path::Path;
use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::crypto::CryptoProvider;
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::tls::key_pair::certified_key;
use crate::tls::pem;
use crate::tls::settings::{IdentityText, TlsError, identity_problem};

/// Client certificates in the order in which they are tried.
#[derive(Debug)]
pub(super) struct Identities(Vec<Identity>);

#[derive(Debug)]
struct Identity {
    key: Arc<CertifiedKey>,
    /// The distinguished names (DER) of what signed the certificates of its chain.
    issuers: Vec<Vec<u8>>,
}

impl Identities {
    pub(super) fn compile(
        texts: &[IdentityText],
        provider: &CryptoProvider,
    ) -> Result<Self, TlsError> {
        let identities = texts.iter().map(|text| {
            let name = Path::new(&text.name);
            let chain = pem::certificates_of(name, text.certificate.as_bytes())?;
            let key = pem::private_key_of(name, text.key.expose().as_bytes())?;
            let issuers = chain.iter().filter_map(|certificate| {
                let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
                Some(parsed.issuer().as_raw().to_vec())
            });
            let issuers = issuers.collect();
            let key = certified_key(chain, key, provider);
            let key = key.map_err(|source| TlsError::Identity {
                certificate: name.to_owned(),
                key: name.to_owned(),
                reason: identity_problem(&source),
                source: Box::new(source),
            })?;
            Ok(Identity {
                key: Arc::new(key),
                issuers,
            })
        });
        identities.collect::<Result<_, _>>().map(Self)
    }
}

impl ResolvesClientCert for Identities {
    /// The first one that is signed by what the server accepts, with a key that it can verify; none if there is no such.
    fn resolve(
        &self,
        acceptable: &[&[u8]],
        schemes: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        let found = self.0.iter().find(|identity| {
            let is_accepted = acceptable.is_empty()
                || identity
                    .issuers
                    .iter()
                    .any(|issuer| acceptable.contains(&issuer.as_slice()));
            is_accepted && identity.key.key.choose_scheme(schemes).is_some()
        });
        found.map(|identity| Arc::clone(&identity.key))
    }

    fn has_certs(&self) -> bool {
        !self.0.is_empty()
    }
}
