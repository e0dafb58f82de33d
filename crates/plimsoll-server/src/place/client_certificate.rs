//! Parts of the certificate that a client showed.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plimsoll_wire::tls::{CertificateNames, certificate_names};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use rustls::pki_types::CertificateDer;

/// A part of a client's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CertificatePart {
    /// The name of its owner (RFC 4514).
    Subject,
    /// The name of its issuer.
    Issuer,
    /// Its number in hexadecimal digits.
    Serial,
    /// The SHA-1 of its DER in hexadecimal digits, as other servers have it.
    Fingerprint,
    /// The certificate in PEM, percent-encoded for a field.
    EscapedPem,
    /// `SUCCESS`, since a certificate that cannot be verified ends the handshake, or `NONE` without one.
    Verified,
}

impl CertificatePart {
    /// Appends the part; false without a certificate.
    ///
    /// - `shown`: the certificate of the client and those that vouch for it.
    pub(super) fn write(self, shown: &[CertificateDer<'_>], out: &mut Vec<u8>) -> bool {
        let Some(certificate) = shown.first() else {
            if self == Self::Verified {
                out.extend_from_slice(b"NONE");
            }
            return self == Self::Verified;
        };
        let mut named = |part: fn(CertificateNames) -> String| {
            let names = certificate_names(certificate);
            let is_there = names.is_some();
            out.extend(names.map(part).unwrap_or_default().into_bytes());
            is_there
        };
        match self {
            Self::Subject => named(|it| it.subject),
            Self::Issuer => named(|it| it.issuer),
            Self::Serial => named(|it| it.serial),
            Self::Fingerprint => {
                for byte in digest(&SHA1_FOR_LEGACY_USE_ONLY, certificate).as_ref() {
                    write!(out, "{byte:02x}").expect("a Vec takes whatever is written");
                }
                true
            }
            Self::EscapedPem => {
                escaped_pem(certificate, out);
                true
            }
            Self::Verified => {
                out.extend_from_slice(b"SUCCESS");
                true
            }
        }
    }
}

/// Appends PEM in which all but letters, digits and `-._~` are percent-encoded.
fn escaped_pem(certificate: &CertificateDer<'_>, out: &mut Vec<u8>) {
    let base64 = STANDARD.encode(certificate);
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    for (at, character) in base64.chars().enumerate() {
        if at > 0 && at % 64 == 0 {
            pem.push('\n');
        }
        pem.push(character);
    }
    pem.push_str("\n-----END CERTIFICATE-----\n");
    for byte in pem.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte);
        } else {
            write!(out, "%{byte:02X}").expect("a Vec takes whatever is written");
        }
    }
}
