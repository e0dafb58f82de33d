//! A certificate that vouches for itself: TLS without an authority, for development.

use std::sync::Arc;

use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// A certificate and its key, made here and kept in memory.
#[derive(Debug, Clone)]
pub struct SelfSigned(Arc<KeyAndCertificate>);

struct KeyAndCertificate {
    names: Vec<String>,
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
}

impl std::fmt::Debug for KeyAndCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts")
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

/// Why one cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a certificate for {}: {reason}", names.join(", "))]
pub struct SelfSignedError {
    names: Vec<String>,
    reason: rcgen::Error,
}

impl SelfSigned {
    /// For these hosts and addresses, with a new key of P-256.
    ///
    /// It is valid from 1975 to 4096, so that no clock that is off refuses it.
    pub fn new(names: &[String]) -> Result<Self, SelfSignedError> {
        let make = || {
            let mut params = CertificateParams::new(names)?;
            params
                .distinguished_name
                .push(DnType::CommonName, "plimsoll self-signed");
            let key = KeyPair::generate()?;
            let certificate = params.self_signed(&key)?;
            Ok(KeyAndCertificate {
                names: names.to_vec(),
                certificate: certificate.der().clone(),
                key: PrivatePkcs8KeyDer::from(key.serialize_der()),
            })
        };
        let parts = make().map_err(|reason| SelfSignedError {
            names: names.to_vec(),
            reason,
        })?;
        Ok(Self(Arc::new(parts)))
    }

    /// Its names, as they were requested.
    pub(super) fn names(&self) -> &[String] {
        &self.0.names
    }

    pub(super) fn certificate(&self) -> CertificateDer<'static> {
        self.0.certificate.clone()
    }

    pub(super) fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(self.0.key.clone_key())
    }
}
