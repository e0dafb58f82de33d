//! Certificates with their keys, and signatures by the keys of certificates: of every version of X.509.
//!
//! rustls reads certificates of version 3 alone. Those of version 1, which have no names of hosts, are shown by servers and
//! clients all the same, and a client that verifies nothing need not refuse them.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, SubjectPublicKeyInfoDer};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, DigitallySignedStruct, Error, InconsistentKeys, PeerMisbehaved};

use crate::tls::certificate::public_key;

/// A chain with its key. Fails if the key is of a kind that is not known, or not that of the first certificate.
pub(super) fn certified_key(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, Error> {
    let key = provider.key_provider.load_private_key(key)?;
    let of_chain = chain.first().and_then(|leaf| public_key(leaf));
    let of_chain = of_chain.ok_or_else(malformed)?;
    if key.public_key().as_deref() != Some(of_chain.as_slice()) {
        return Err(InconsistentKeys::KeyMismatch.into());
    }
    Ok(CertifiedKey::new(chain, key))
}

/// As rustls's `verify_tls13_signature`, by the key of the certificate alone.
pub(super) fn verify_tls13_signature_by_key(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    let key = public_key(certificate).ok_or_else(malformed)?;
    let key = SubjectPublicKeyInfoDer::from(key.as_slice());
    verify_tls13_signature_with_raw_key(message, &key, signed, algorithms)
}

/// As rustls's `verify_tls12_signature`, in the same way.
pub(super) fn verify_tls12_signature_by_key(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    let key = public_key(certificate).ok_or_else(malformed)?;
    let key = SubjectPublicKeyInfoDer::from(key.as_slice());
    let key = webpki::RawPublicKeyEntity::try_from(&key).map_err(|_| malformed())?;
    let mut known = algorithms.mapping.iter();
    let known = known.find(|(scheme, _)| *scheme == signed.scheme);
    let (_, algorithms) = known.ok_or(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme)?;
    let is_of_key = algorithms.iter().any(|algorithm| {
        let verified = key.verify_signature(*algorithm, message, signed.signature());
        verified.is_ok()
    });
    if is_of_key {
        Ok(HandshakeSignatureValid::assertion())
    } else {
        Err(Error::InvalidCertificate(CertificateError::BadSignature))
    }
}

fn malformed() -> Error {
    Error::InvalidCertificate(CertificateError::BadEncoding)
}
