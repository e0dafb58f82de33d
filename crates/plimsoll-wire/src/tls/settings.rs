//! Client TLS settings, compiled into what rustls runs on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_model::Secret;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore};

use crate::tls::ciphers::CipherSuites;
use crate::tls::identities::Identities;
use crate::tls::key_log::KeyLogFile;
use crate::tls::key_pair::certified_key;
use crate::tls::pem::{self, MaterialError};
use crate::tls::roots;
use crate::tls::verify::{AcceptAny, Explaining};
use crate::tls::versions::TlsVersions;

/// The user's settings of TLS.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TlsSettings {
    /// Which servers are believed.
    pub trust: Trust,
    /// The certificate to show to servers that ask for one (`--cert`, `--key`).
    pub identity: Option<IdentityFiles>,
    /// Certificates in place of `identity`, of which a server gets the first one that it accepts.
    pub identities: Vec<IdentityText>,
    /// Protocols to offer by ALPN (RFC 7301), best first, e.g. `http/1.1`; none offers nothing.
    pub alpn: Vec<Vec<u8>>,
    /// Versions to offer (`--tls-min`, `--tls-max`).
    pub versions: TlsVersions,
    /// Cipher suites to offer, best first (`--ciphers`); absent means all that can be spoken.
    pub ciphers: Option<CipherSuites>,
    /// File to which session secrets are appended (`--tls-key-log`).
    pub key_log: Option<PathBuf>,
}

/// Which servers are believed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Trust {
    /// Those whose chain ends in a root of Mozilla's programme or of this system.
    #[default]
    PublicRoots,
    /// Those whose chain ends in a certificate of this PEM file, and no others (`--cacert`).
    Only(PathBuf),
    /// Those whose chain ends in a certificate of this text in PEM.
    OnlyText {
        /// The name of it in messages.
        name: String,
        /// One certificate or several.
        text: String,
    },
    /// All. Only that the peer holds the key of the certificate it shows is checked (`--insecure`).
    Anyone,
}

/// PEM files of a client certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityFiles {
    /// The certificate, then its intermediates.
    pub certificate: PathBuf,
    /// Its private key (PKCS #8, PKCS #1 or SEC1, unencrypted); absent means that the key is in
    /// the certificate's file.
    pub key: Option<PathBuf>,
}

/// A client certificate as texts in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityText {
    /// The name of it in messages.
    pub name: String,
    /// The certificate, then its intermediates.
    pub certificate: String,
    /// Its private key (PKCS #8, PKCS #1 or SEC1, unencrypted).
    pub key: Secret,
}

impl TlsSettings {
    /// Reads the files and builds the configuration, which connections share.
    ///
    /// [`Trust::PublicRoots`] reads the system's certificates, once per process; since that takes
    /// tens of milliseconds, compile only when there is an `https://` target.
    pub fn compile(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let mut provider = ring::default_provider();
        if let Some(ciphers) = &self.ciphers {
            provider.cipher_suites = ciphers.suites().to_vec();
        }
        let provider = Arc::new(provider);
        let verifier = self.trust.verifier(&provider)?;
        let identities = Identities::compile(&self.identities, &provider)?;
        let identity = self.identity.as_ref();
        let identity = identity.map(|files| identity_of(files, &provider));
        let identity = identity.transpose()?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&self.versions.supported())
            .map_err(|_| TlsError::NoSuite)?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match identity {
            _ if !self.identities.is_empty() => {
                builder.with_client_cert_resolver(Arc::new(identities))
            }
            None => builder.with_no_client_auth(),
            Some(key) => builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(key))),
        };
        config.alpn_protocols.clone_from(&self.alpn);
        if let Some(file) = &self.key_log {
            let log = KeyLogFile::open(file).map_err(|source| TlsError::KeyLog {
                file: file.clone(),
                source,
            })?;
            config.key_log = Arc::new(log);
        }
        Ok(Arc::new(config))
    }
}

fn identity_of(files: &IdentityFiles, provider: &CryptoProvider) -> Result<CertifiedKey, TlsError> {
    let chain = pem::certificates(&files.certificate)?;
    let key_file = files.key.as_ref().unwrap_or(&files.certificate);
    let key = pem::private_key(key_file)?;
    certified_key(chain, key, provider).map_err(|source| TlsError::Identity {
        certificate: files.certificate.clone(),
        key: key_file.clone(),
        reason: identity_problem(&source),
        source: Box::new(source),
    })
}

impl Trust {
    fn verifier(
        &self,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
        let (roots, given) = match self {
            Self::Anyone => return Ok(Arc::new(AcceptAny::new(provider))),
            Self::PublicRoots => (roots::public(), Vec::new()),
            Self::Only(file) => roots_of(file, pem::certificates(file)?)?,
            Self::OnlyText { name, text } => {
                let name = Path::new(name);
                roots_of(name, pem::certificates_of(name, text.as_bytes())?)?
            }
        };
        Ok(Arc::new(Explaining::new(roots, given, provider)))
    }
}

type Roots = (Arc<RootCertStore>, Vec<CertificateDer<'static>>);

fn roots_of(file: &Path, given: Vec<CertificateDer<'static>>) -> Result<Roots, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in &given {
        roots
            .add(certificate.clone())
            .map_err(|source| TlsError::Root {
                file: file.to_owned(),
                source: Box::new(source),
            })?;
    }
    Ok((Arc::new(roots), given))
}

/// Why the TLS settings cannot be used; each message names the file.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be used at all.
    #[error(transparent)]
    Material(#[from] MaterialError),
    /// The requested versions and cipher suites exclude one another.
    #[error("none of the cipher suites belongs to a version of TLS that is offered")]
    NoSuite,
    /// The secrets cannot be written down.
    #[error("cannot append to `{}`", file.display())]
    KeyLog {
        /// The file for the secrets.
        file: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A certificate of a `--cacert` file cannot be a root.
    #[error("a certificate in `{}` cannot be used as a root", file.display())]
    Root {
        /// The file of the certificate.
        file: PathBuf,
        /// The error of rustls.
        source: Box<rustls::Error>,
    },
    /// Certificate and key do not make an identity.
    #[error("`{}` and `{}` cannot be used together: {reason}", certificate.display(), key.display())]
    Identity {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// The error and its fix.
        reason: String,
        /// The error of rustls.
        source: Box<rustls::Error>,
    },
}

pub(super) fn identity_problem(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InconsistentKeys(_) => {
            "the key is not the certificate's; give the key that the certificate was issued for"
                .to_owned()
        }
        other => other.to_string(),
    }
}
