//! PEM files (RFC 7468) read into certificates and keys.

use std::io;
use std::path::{Path, PathBuf};

use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Why a PEM file is of no use.
#[derive(Debug, thiserror::Error)]
pub enum MaterialError {
    /// It cannot be read.
    #[error("cannot read `{}`", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// It is not PEM.
    #[error("`{}` is not valid PEM: {reason}", file.display())]
    Syntax {
        /// The file.
        file: PathBuf,
        /// Description of the syntax error.
        reason: String,
    },
    /// It holds no certificate.
    #[error("`{}` has no certificate; expected a `-----BEGIN CERTIFICATE-----` section", file.display())]
    NoCertificate {
        /// The file.
        file: PathBuf,
    },
    /// It holds no usable key.
    #[error("`{}` has no private key; expected an unencrypted `-----BEGIN PRIVATE KEY-----` section", file.display())]
    NoKey {
        /// The file.
        file: PathBuf,
    },
    /// Its key needs a passphrase.
    #[error("the private key in `{}` is encrypted; decrypt it with `openssl pkey`", file.display())]
    EncryptedKey {
        /// The file.
        file: PathBuf,
    },
}

/// Every certificate of the file, in order; at least one.
pub(crate) fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, MaterialError> {
    certificates_of(file, &read(file)?)
}

/// Every certificate of a text, in order; at least one.
///
/// - `file`: what messages name it.
pub(crate) fn certificates_of(
    file: &Path,
    text: &[u8],
) -> Result<Vec<CertificateDer<'static>>, MaterialError> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(text)
        .collect::<Result<_, _>>()
        .map_err(|error| syntax(file, &error))?;
    if certificates.is_empty() {
        return Err(MaterialError::NoCertificate {
            file: file.to_owned(),
        });
    }
    Ok(certificates)
}

/// The first private key of the file.
pub(crate) fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, MaterialError> {
    private_key_of(file, &read(file)?)
}

/// The first private key of a text.
///
/// - `file`: what messages name it.
pub(crate) fn private_key_of(
    file: &Path,
    text: &[u8],
) -> Result<PrivateKeyDer<'static>, MaterialError> {
    PrivateKeyDer::from_pem_slice(text).map_err(|error| match error {
        PemError::NoItemsFound if is_encrypted(text) => MaterialError::EncryptedKey {
            file: file.to_owned(),
        },
        PemError::NoItemsFound => MaterialError::NoKey {
            file: file.to_owned(),
        },
        other => syntax(file, &other),
    })
}

fn read(file: &Path) -> Result<Vec<u8>, MaterialError> {
    std::fs::read(file).map_err(|source| MaterialError::Read {
        file: file.to_owned(),
        source,
    })
}

fn syntax(file: &Path, error: &PemError) -> MaterialError {
    MaterialError::Syntax {
        file: file.to_owned(),
        reason: match error {
            PemError::MissingSectionEnd { .. } => {
                "the file ends inside a section, before its END line".to_owned()
            }
            PemError::IllegalSectionStart { line } => {
                format!("unexpected line `{}`", String::from_utf8_lossy(line).trim())
            }
            other => other.to_string(),
        },
    }
}

fn is_encrypted(text: &[u8]) -> bool {
    const LABEL: &[u8] = b"BEGIN ENCRYPTED PRIVATE KEY";
    text.windows(LABEL.len()).any(|window| window == LABEL)
}
