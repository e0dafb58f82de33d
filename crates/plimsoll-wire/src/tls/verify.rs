//! Server certificate verifiers: one that says more about what it refuses, one that refuses none.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};

use crate::tls::certificate::version;
use crate::tls::key_pair::{verify_tls12_signature_by_key, verify_tls13_signature_by_key};

/// rustls's own verifier, which in addition distinguishes a self-signed certificate from one that is
/// merely untrusted, and takes a certificate that is itself among the given ones.
#[derive(Debug)]
pub(crate) struct Explaining {
    webpki: Arc<WebPkiServerVerifier>,
    /// The certificates of `--cacert`. One that `openssl req -x509` made is a CA by its extensions,
    /// which webpki refuses as a server's certificate; curl takes it, and so must we.
    given: Vec<CertificateDer<'static>>,
}

impl Explaining {
    pub(crate) fn new(
        roots: Arc<RootCertStore>,
        given: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Self {
        let webpki = WebPkiServerVerifier::builder_with_provider(roots, provider.clone())
            .build()
            .expect("there are roots, and no revocation lists that could be wrong");
        Self { webpki, given }
    }
}

impl ServerCertVerifier for Explaining {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verdict = self.webpki.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verdict {
            // webpki looks at the dates before it looks at this, so only the name is left to check.
            Err(error) if is_ca_used_as_server(&error) && self.given.contains(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            Err(error) if is_about_the_issuer(&error) && is_self_issued(end_entity) => {
                Err(Error::InvalidCertificate(CertificateError::Other(
                    OtherError(Arc::new(SelfSigned)),
                )))
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.webpki.supported_verify_schemes()
    }
}

/// The peer's certificate is its own issuer, and is not trusted.
#[derive(Debug, thiserror::Error)]
#[error("the certificate is self-signed")]
pub(crate) struct SelfSigned;

/// Whether a certificate is of a version of X.509 before 3, which webpki does not read.
fn is_old(certificate: &CertificateDer<'_>) -> bool {
    version(certificate).is_some_and(|version| version < 3)
}

fn is_about_the_issuer(error: &Error) -> bool {
    matches!(
        error,
        Error::InvalidCertificate(CertificateError::UnknownIssuer)
    ) || is_ca_used_as_server(error)
}

fn is_ca_used_as_server(error: &Error) -> bool {
    matches!(
        error,
        Error::InvalidCertificate(CertificateError::Other(OtherError(cause)))
            if matches!(cause.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
    )
}

fn is_self_issued(certificate: &CertificateDer<'_>) -> bool {
    webpki::EndEntityCert::try_from(certificate)
        .is_ok_and(|certificate| certificate.issuer() == certificate.subject())
}

/// Takes every certificate, whatever its name, dates and issuer.
///
/// The signatures of the handshake are still checked: a peer without the certificate's key is
/// broken, not merely unknown.
#[derive(Debug)]
pub(crate) struct AcceptAny {
    algorithms: WebPkiSupportedAlgorithms,
}

impl AcceptAny {
    pub(crate) fn new(provider: &CryptoProvider) -> Self {
        Self {
            algorithms: provider.signature_verification_algorithms,
        }
    }
}

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if is_old(cert) {
            return verify_tls12_signature_by_key(message, cert, dss, &self.algorithms);
        }
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if is_old(cert) {
            return verify_tls13_signature_by_key(message, cert, dss, &self.algorithms);
        }
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use plimsoll_model::Phase;
    use plimsoll_testkit::MaterialFiles;
    use rustls::{ClientConnection, ServerConnection};

    use crate::tls::server::tests::first_version;
    use crate::tls::{IdentityFiles, ServerCertificate, TlsSettings, TlsVersions, Trust};
    use crate::tls::{failure, server_config};

    /// A handshake in memory.
    fn handshake(settings: &TlsSettings, server: &ServerCertificate) -> Result<(), rustls::Error> {
        let client = settings.compile().unwrap();
        let server = server_config(std::slice::from_ref(server), None, false, None, None).unwrap();
        let name = "old.test".try_into().unwrap();
        let mut client = ClientConnection::new(client, name).unwrap();
        let mut server = ServerConnection::new(server.into()).unwrap();
        while client.is_handshaking() || server.is_handshaking() {
            let mut sent = Vec::new();
            client.write_tls(&mut sent).unwrap();
            server.read_tls(&mut sent.as_slice()).unwrap();
            server.process_new_packets()?;
            let mut sent = Vec::new();
            server.write_tls(&mut sent).unwrap();
            client.read_tls(&mut sent.as_slice()).unwrap();
            client.process_new_packets()?;
        }
        Ok(())
    }

    #[test]
    fn certificates_of_version_1_are_shown_by_both_sides_and_refused_by_who_verifies() {
        let files = MaterialFiles::new();
        let old = first_version(&files);
        let server = ServerCertificate::Files(old.clone());
        for version in ["1.2", "1.3"] {
            let version = version.parse().unwrap();
            let settings = TlsSettings {
                trust: Trust::Anyone,
                versions: TlsVersions::new(version, version).unwrap(),
                identity: Some(IdentityFiles {
                    certificate: old.certificates.clone(),
                    key: Some(old.key.clone()),
                }),
                ..TlsSettings::default()
            };
            assert_eq!(handshake(&settings, &server), Ok(()), "{version:?}");
            let verifying = TlsSettings {
                trust: Trust::PublicRoots,
                ..settings
            };
            let refused = handshake(&verifying, &server).unwrap_err();
            let refused = failure(Phase::Tls, &io::Error::other(refused));
            assert!(refused.to_string().contains("version 1"), "{refused}");
        }
    }
}
