//! Parts of the certificate that a client showed.

use std::fmt::Write as _;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plimsoll_wire::tls::{AlternativeName, CertificateNames};
use ring::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use rustls::pki_types::CertificateDer;

use crate::message::connection::TlsInfo;

/// A part of a client's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CertificatePart {
    /// The name of its owner (RFC 4514).
    Subject,
    /// The name of its issuer.
    Issuer,
    /// Its number in hexadecimal digits.
    Serial,
    /// Its alternative names with their kinds, joined by commas.
    AlternativeNames,
    /// The SHA-1 of its DER in hexadecimal digits, as nginx has it.
    Fingerprint,
    /// The SHA-256 of its DER in hexadecimal digits.
    Sha256,
    /// The certificate in PEM, percent-encoded for a field.
    EscapedPem,
    /// `SUCCESS`, since a certificate that cannot be verified ends the handshake, or `NONE` without one.
    Verified,
    /// The element of `X-Forwarded-Client-Cert` in the format of Envoy.
    Forwarded(ForwardedParts),
}

/// A part of an element of `X-Forwarded-Client-Cert`, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ForwardedPart {
    Hash,
    Certificate,
    Chain,
    Subject,
    Uri,
    Dns,
}

/// Which parts an element has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ForwardedParts([bool; 6]);

impl ForwardedParts {
    /// The parts that are short: digest, subject, URIs and host names.
    pub(crate) const USUAL: Self = Self([true, false, false, true, true, true]);

    /// Names with commas between them, such as `hash,uri`; `None` if one is not known.
    pub(crate) fn parse(names: &str) -> Option<Self> {
        let mut parts = Self([false; 6]);
        for name in names.split(',') {
            let part = match name {
                "hash" => ForwardedPart::Hash,
                "cert" => ForwardedPart::Certificate,
                "chain" => ForwardedPart::Chain,
                "subject" => ForwardedPart::Subject,
                "uri" => ForwardedPart::Uri,
                "dns" => ForwardedPart::Dns,
                _ => return None,
            };
            parts.0[part as usize] = true;
        }
        Some(parts)
    }

    fn has(self, part: ForwardedPart) -> bool {
        self.0[part as usize]
    }
}

impl CertificatePart {
    /// Appends the part; false without a certificate.
    pub(super) fn write(self, tls: &TlsInfo, out: &mut Vec<u8>) -> bool {
        let Some(certificate) = tls.client_certificates.first() else {
            if self == Self::Verified {
                out.extend_from_slice(b"NONE");
            }
            return self == Self::Verified;
        };
        let mut named = |part: fn(&CertificateNames) -> &str| {
            let names = tls.client_names();
            out.extend_from_slice(names.map(part).unwrap_or_default().as_bytes());
            names.is_some()
        };
        match self {
            Self::Subject => named(|it| &it.subject),
            Self::Issuer => named(|it| &it.issuer),
            Self::Serial => named(|it| &it.serial),
            Self::AlternativeNames => alternative_names(tls, out),
            Self::Fingerprint => hexadecimal(&SHA1_FOR_LEGACY_USE_ONLY, certificate, out),
            Self::Sha256 => hexadecimal(&SHA256, certificate, out),
            Self::EscapedPem => {
                escaped_pem(std::slice::from_ref(certificate), out);
                true
            }
            Self::Verified => {
                out.extend_from_slice(b"SUCCESS");
                true
            }
            Self::Forwarded(parts) => {
                forwarded(tls, certificate, parts, out);
                true
            }
        }
    }
}

fn hexadecimal(
    algorithm: &'static Algorithm,
    certificate: &CertificateDer<'_>,
    out: &mut Vec<u8>,
) -> bool {
    for byte in digest(algorithm, certificate).as_ref() {
        write!(out, "{byte:02x}").expect("a Vec takes whatever is written");
    }
    true
}

/// Appends such as `DNS:a.test,URI:spiffe://a.test/b`; a comma within a name is percent-encoded.
fn alternative_names(tls: &TlsInfo, out: &mut Vec<u8>) -> bool {
    let names = tls.client_names();
    let names = names.map_or(&[][..], |names| &names.alternatives);
    for (at, name) in names.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let name = match name {
            AlternativeName::Dns(name) => format!("DNS:{name}"),
            AlternativeName::Uri(name) => format!("URI:{name}"),
            AlternativeName::Ip(address) => format!("IP:{address}"),
            AlternativeName::Email(name) => format!("email:{name}"),
        };
        out.extend_from_slice(name.replace(',', "%2C").as_bytes());
    }
    !names.is_empty()
}

/// Appends the element of a certificate in `X-Forwarded-Client-Cert`, as Envoy's HTTP connection manager documents it:
/// `key=value` with semicolons between, values with `,`, `;`, `=` or `"` in quotes.
fn forwarded(
    tls: &TlsInfo,
    certificate: &CertificateDer<'_>,
    parts: ForwardedParts,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    let begin = |name: &str, out: &mut Vec<u8>| {
        if out.len() > start {
            out.push(b';');
        }
        out.extend_from_slice(name.as_bytes());
        out.push(b'=');
    };
    if parts.has(ForwardedPart::Hash) {
        begin("Hash", out);
        hexadecimal(&SHA256, certificate, out);
    }
    if parts.has(ForwardedPart::Certificate) {
        begin("Cert", out);
        out.push(b'"');
        escaped_pem(std::slice::from_ref(certificate), out);
        out.push(b'"');
    }
    if parts.has(ForwardedPart::Chain) {
        begin("Chain", out);
        out.push(b'"');
        escaped_pem(&tls.client_certificates, out);
        out.push(b'"');
    }
    let Some(names) = tls.client_names() else {
        return;
    };
    if parts.has(ForwardedPart::Subject) {
        begin("Subject", out);
        quoted(&names.subject, true, out);
    }
    for name in &names.alternatives {
        match name {
            AlternativeName::Uri(name) if parts.has(ForwardedPart::Uri) => {
                begin("URI", out);
                quoted(name, false, out);
            }
            AlternativeName::Dns(name) if parts.has(ForwardedPart::Dns) => {
                begin("DNS", out);
                quoted(name, false, out);
            }
            _ => {}
        }
    }
}

/// Appends a value, in quotes where it needs them, or `always`.
fn quoted(value: &str, always: bool, out: &mut Vec<u8>) {
    if !always && !value.contains([',', ';', '=', '"']) {
        out.extend_from_slice(value.as_bytes());
        return;
    }
    out.push(b'"');
    for byte in value.bytes() {
        if byte == b'"' {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// Appends PEM in which all but letters, digits and `-._~` are percent-encoded.
fn escaped_pem(certificates: &[CertificateDer<'_>], out: &mut Vec<u8>) {
    let mut pem = String::new();
    for certificate in certificates {
        pem.push_str("-----BEGIN CERTIFICATE-----\n");
        let base64 = STANDARD.encode(certificate);
        for (at, character) in base64.chars().enumerate() {
            if at > 0 && at % 64 == 0 {
                pem.push('\n');
            }
            pem.push(character);
        }
        pem.push_str("\n-----END CERTIFICATE-----\n");
    }
    let mut escaped = String::with_capacity(pem.len() + pem.len() / 8);
    for byte in pem.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            write!(escaped, "%{byte:02X}").expect("a String takes whatever is written");
        }
    }
    out.extend_from_slice(escaped.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_as_envoy_reads_them() {
        for (value, expected) in [
            ("spiffe://a/b", "spiffe://a/b"),
            ("a;Subject=\"root\"", "\"a;Subject=\\\"root\\\"\""),
            ("a,b", "\"a,b\""),
            ("a=b", "\"a=b\""),
        ] {
            let mut out = Vec::new();
            quoted(value, false, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
        assert_eq!(
            ForwardedParts::parse("hash,subject,uri,dns"),
            Some(ForwardedParts::USUAL)
        );
        assert_eq!(ForwardedParts::parse("hash,by"), None);
    }
}
