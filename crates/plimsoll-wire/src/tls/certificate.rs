//! The contents of certificates, for people and for conditions; nothing here decides on trust.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use plimsoll_model::Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::objects::{oid_registry, oid2abbrev};
use x509_parser::parse_x509_certificate;
use x509_parser::time::ASN1Time;
use x509_parser::x509::X509Name;

/// Reads a certificate in DER; `None` if it is not one.
pub fn certificate(der: &[u8]) -> Option<Certificate> {
    let (_, parsed) = parse_x509_certificate(der).ok()?;
    let validity = parsed.validity();
    Some(Certificate {
        subject: parsed.subject().to_string(),
        issuer: parsed.issuer().to_string(),
        names: match parsed.subject_alternative_name() {
            Ok(Some(extension)) => {
                let names = extension.value.general_names.iter();
                names.filter_map(name).collect()
            }
            _ => Vec::new(),
        },
        not_before: date(validity.not_before)?,
        not_after: date(validity.not_after)?,
    })
}

/// The names of a certificate as text (RFC 4514), and its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateNames {
    /// Such as `CN=ann,O=Example`.
    pub subject: String,
    /// The same of its issuer.
    pub issuer: String,
    /// In hexadecimal digits, as OpenSSL writes it.
    pub serial: String,
    /// Its alternative names, in their order. Those with control characters are left out.
    pub alternatives: Vec<AlternativeName>,
}

/// An alternative name of a certificate (RFC 5280, section 4.2.1.6); other kinds are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlternativeName {
    /// A host name.
    Dns(String),
    /// Such as `spiffe://example.org/shop`.
    Uri(String),
    /// An IP address.
    Ip(IpAddr),
    /// A mail address.
    Email(String),
}

/// Reads the names of a certificate in DER; `None` if it is not one.
pub fn certificate_names(der: &[u8]) -> Option<CertificateNames> {
    let (_, parsed) = parse_x509_certificate(der).ok()?;
    let serial = parsed.raw_serial();
    // A number whose first bit is set has a byte of zeros before it.
    let serial = serial.strip_prefix(&[0]).unwrap_or(serial);
    Some(CertificateNames {
        subject: distinguished_name(parsed.subject()),
        issuer: distinguished_name(parsed.issuer()),
        serial: hexadecimal(serial),
        alternatives: match parsed.subject_alternative_name() {
            Ok(Some(extension)) => {
                let names = extension.value.general_names.iter();
                names.filter_map(alternative).collect()
            }
            _ => Vec::new(),
        },
    })
}

fn alternative(name: &GeneralName<'_>) -> Option<AlternativeName> {
    let plain = |text: &str| (!text.contains(char::is_control)).then(|| text.to_owned());
    match *name {
        GeneralName::DNSName(text) => plain(text).map(AlternativeName::Dns),
        GeneralName::URI(text) => plain(text).map(AlternativeName::Uri),
        GeneralName::RFC822Name(text) => plain(text).map(AlternativeName::Email),
        GeneralName::IPAddress(bytes) => address(bytes).map(AlternativeName::Ip),
        _ => None,
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(text, "{byte:02X}").expect("writing to memory does not fail");
    }
    text
}

/// The attributes of a name, the last one first (RFC 4514, section 2.1).
fn distinguished_name(name: &X509Name<'_>) -> String {
    let parts: Vec<_> = name.iter().collect();
    let parts = parts.into_iter().rev().map(|part| {
        let attributes = part.iter().map(|attribute| {
            let kind = attribute.attr_type();
            let kind = oid2abbrev(kind, oid_registry())
                .map_or_else(|_| kind.to_id_string(), str::to_owned);
            format!("{kind}={}", escaped(attribute.as_str().unwrap_or_default()))
        });
        attributes.collect::<Vec<_>>().join("+")
    });
    parts.collect::<Vec<_>>().join(",")
}

/// RFC 4514, section 2.4.
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let last = value.chars().count().saturating_sub(1);
    for (at, character) in value.chars().enumerate() {
        let is_edge = character == ' ' && (at == 0 || at == last);
        if is_edge || "\"+,;<>\\".contains(character) || (at == 0 && character == '#') {
            text.push('\\');
        }
        if character.is_control() {
            let mut bytes = [0; 4];
            for byte in character.encode_utf8(&mut bytes).bytes() {
                text.push('\\');
                text.push_str(&hexadecimal(&[byte]));
            }
            continue;
        }
        text.push(character);
    }
    text
}

/// The public key of a certificate (`SubjectPublicKeyInfo` in DER); `None` if it is not a certificate.
pub(super) fn public_key(der: &[u8]) -> Option<Vec<u8>> {
    let (_, parsed) = parse_x509_certificate(der).ok()?;
    Some(parsed.public_key().raw.to_vec())
}

/// The common name of the subject: the host of certificates that have no names of hosts, as they once were.
pub(super) fn common_name(der: &[u8]) -> Option<String> {
    let (_, parsed) = parse_x509_certificate(der).ok()?;
    let name = parsed.subject().iter_common_name().next()?.as_str().ok()?;
    Some(name.to_owned())
}

/// The version of X.509 as people count it; `None` if it is not a certificate.
pub(super) fn version(der: &[u8]) -> Option<u32> {
    let (_, parsed) = parse_x509_certificate(der).ok()?;
    Some(parsed.version().0 + 1)
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match *name {
        GeneralName::DNSName(name) => Some(name.to_owned()),
        GeneralName::IPAddress(bytes) => address(bytes).map(|address| address.to_string()),
        _ => None,
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(bytes)
        .map(IpAddr::from)
        .or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}

pub(super) fn date(time: ASN1Time) -> Option<SystemTime> {
    let seconds = Duration::from_secs(time.timestamp().unsigned_abs());
    if time.timestamp() < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(seconds)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(seconds)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_testkit::Authority;

    use super::*;

    #[test]
    fn names_and_dates_are_read() {
        let leaf = Authority::new().issue_expired(&["a.test", "127.0.0.1", "::1"]);
        let certificate = certificate(&leaf.der()).unwrap();
        assert_eq!(certificate.subject, "CN=a.test");
        assert_eq!(certificate.issuer, "CN=plimsoll test authority");
        assert_eq!(certificate.names, ["a.test", "127.0.0.1", "::1"]);
        // 1 January 2001 and 2002.
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(certificate.not_before, at(978_307_200));
        assert_eq!(certificate.not_after, at(1_009_843_200));
    }

    #[test]
    fn names_are_written_with_the_last_part_first() {
        let leaf = Authority::new().issue(&["a.test"]);
        let names = certificate_names(&leaf.der()).unwrap();
        assert_eq!(names.subject, "CN=a.test");
        assert_eq!(names.issuer, "CN=plimsoll test authority");
        assert!(names.serial.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_eq!(
            names.alternatives,
            [AlternativeName::Dns("a.test".to_owned())]
        );
        assert_eq!(certificate_names(b"x"), None);
        for (value, expected) in [
            ("a, b", "a\\, b"),
            (" a ", "\\ a\\ "),
            ("#1", "\\#1"),
            ("a\nb", "a\\0Ab"),
            ("ä+", "ä\\+"),
        ] {
            assert_eq!(escaped(value), expected, "{value}");
        }
    }

    #[test]
    fn something_else_is_no_certificate() {
        assert_eq!(certificate(b""), None);
        assert_eq!(certificate(b"-----BEGIN CERTIFICATE-----"), None);
        let leaf = Authority::new().issue(&["a.test"]).der();
        for end in 0..leaf.len() {
            assert_eq!(certificate(&leaf[..end]), None, "{end} bytes of it");
        }
    }
}
