//! The contents of certificates, for people and for conditions; nothing here decides on trust.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use plimsoll_model::Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;
use x509_parser::time::ASN1Time;

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
    fn something_else_is_no_certificate() {
        assert_eq!(certificate(b""), None);
        assert_eq!(certificate(b"-----BEGIN CERTIFICATE-----"), None);
        let leaf = Authority::new().issue(&["a.test"]).der();
        for end in 0..leaf.len() {
            assert_eq!(certificate(&leaf[..end]), None, "{end} bytes of it");
        }
    }
}
