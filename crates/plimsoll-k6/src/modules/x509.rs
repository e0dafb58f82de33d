//! k6/crypto/x509: what certificates say, for `js/x509.js`.

use plimsoll_script::js;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use serde_json::{Value, json};
use x509_parser::error::X509Error;
use x509_parser::extensions::GeneralName;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::{X509Certificate, X509Name};
use x509_parser::public_key::PublicKey;
use x509_parser::time::ASN1Time;

use super::Adder;
use crate::crypto::hex;
use crate::go_error::throw_error;

pub(super) fn add(adder: &Adder<'_, '_>) -> js::Result<()> {
    // Numbers of keys are hexadecimal texts.
    adder.add("certificate", |_, ctx, arguments| {
        let text = arguments.text(0)?;
        let read = described(text.as_bytes());
        let read = read.map_err(|error| throw_error(ctx, &error.to_string()))?;
        Ok(read.to_string())
    })
}

/// Why a certificate cannot be described.
#[derive(Debug, thiserror::Error)]
enum CertificateError {
    #[error("failed to decode certificate PEM file")]
    NoPem,
    #[error("failed to parse certificate: {0}")]
    Parse(#[from] x509_parser::nom::Err<X509Error>),
    #[error("failed to parse certificate: {0}")]
    Key(#[from] X509Error),
    #[error("public key is of a kind that is not supported")]
    KeyKind,
}

fn described(text: &[u8]) -> Result<Value, CertificateError> {
    let pem = parse_x509_pem(text)
        .ok()
        .filter(|(_, pem)| pem.label == "CERTIFICATE");
    let (_, pem) = pem.ok_or(CertificateError::NoPem)?;
    let certificate = pem.parse_x509()?;
    let key = certificate.public_key().parsed()?;
    Ok(json!({
        "subject": subject(certificate.subject()),
        "issuer": issuer(certificate.issuer()),
        "notBefore": time(certificate.validity().not_before),
        "notAfter": time(certificate.validity().not_after),
        "altNames": alternative_names(&certificate),
        "signatureAlgorithm": algorithm(&certificate.signature_algorithm.algorithm.to_id_string()),
        "fingerPrint": digest(&SHA1_FOR_LEGACY_USE_ONLY, &pem.contents).as_ref(),
        "publicKey": public_key(&key).ok_or(CertificateError::KeyKind)?,
    }))
}

/// The first value of a kind; empty without one.
fn first(name: &X509Name<'_>, kind: &str) -> String {
    all(name, kind).into_iter().next().unwrap_or_default()
}

fn all(name: &X509Name<'_>, kind: &str) -> Vec<String> {
    let attributes = name.iter_attributes();
    let found = attributes.filter(|it| it.attr_type().to_id_string() == kind);
    found
        .map(|it| it.as_str().unwrap_or_default().to_owned())
        .collect()
}

fn names(name: &X509Name<'_>) -> Vec<Value> {
    let attributes = name.iter_attributes();
    let pairs = attributes.map(|it| {
        let value = it.as_str().unwrap_or_default();
        json!({ "type": it.attr_type().to_id_string(), "value": value })
    });
    pairs.collect()
}

/// Object identifiers of RFC 5280, appendix A.1.
fn subject(name: &X509Name<'_>) -> Value {
    json!({
        "commonName": first(name, "2.5.4.3"),
        "country": first(name, "2.5.4.6"),
        "postalCode": first(name, "2.5.4.17"),
        "stateOrProvinceName": first(name, "2.5.4.8"),
        "localityName": first(name, "2.5.4.7"),
        "streetAddress": first(name, "2.5.4.9"),
        "organizationName": first(name, "2.5.4.10"),
        "organizationalUnitName": all(name, "2.5.4.11"),
        "names": names(name),
    })
}

fn issuer(name: &X509Name<'_>) -> Value {
    json!({
        "commonName": first(name, "2.5.4.3"),
        "country": first(name, "2.5.4.6"),
        "stateOrProvinceName": first(name, "2.5.4.8"),
        "localityName": first(name, "2.5.4.7"),
        "organizationName": first(name, "2.5.4.10"),
        "names": names(name),
    })
}

fn time(time: ASN1Time) -> String {
    let seconds = u64::try_from(time.timestamp()).unwrap_or_default();
    let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    humantime::format_rfc3339_seconds(at).to_string()
}

/// In the order of k6: host names, addresses of mail, of hosts, then URIs.
fn alternative_names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else {
        return Vec::new();
    };
    let mut kinds: [Vec<String>; 4] = Default::default();
    for name in &extension.value.general_names {
        match name {
            GeneralName::DNSName(text) => kinds[0].push((*text).to_owned()),
            GeneralName::RFC822Name(text) => kinds[1].push((*text).to_owned()),
            GeneralName::IPAddress(bytes) => kinds[2].extend(address(bytes)),
            GeneralName::URI(text) => kinds[3].push((*text).to_owned()),
            _ => {}
        }
    }
    kinds.into_iter().flatten().collect()
}

fn address(bytes: &[u8]) -> Option<String> {
    let short = <[u8; 4]>::try_from(bytes).map(std::net::IpAddr::from);
    let address = short.or_else(|_| <[u8; 16]>::try_from(bytes).map(std::net::IpAddr::from));
    address.ok().map(|it| it.to_string())
}

/// Names of algorithms as k6 has them.
fn algorithm(identifier: &str) -> &'static str {
    match identifier {
        "1.2.840.113549.1.1.4" => "MD5-RSA",
        "1.2.840.113549.1.1.5" => "SHA1-RSA",
        "1.2.840.113549.1.1.11" => "SHA256-RSA",
        "1.2.840.113549.1.1.12" => "SHA384-RSA",
        "1.2.840.113549.1.1.13" => "SHA512-RSA",
        "1.2.840.10045.4.1" => "ECDSA-SHA1",
        "1.2.840.10045.4.3.2" => "ECDSA-SHA256",
        "1.2.840.10045.4.3.3" => "ECDSA-SHA384",
        "1.2.840.10045.4.3.4" => "ECDSA-SHA512",
        _ => "UnknownSignatureAlgorithm",
    }
}

fn public_key(key: &PublicKey<'_>) -> Option<Value> {
    match key {
        PublicKey::RSA(key) => {
            let exponent = key.try_exponent().ok()?;
            Some(json!({ "algorithm": "RSA", "key": { "n": hex(key.modulus), "e": exponent } }))
        }
        PublicKey::EC(point) => {
            // Not compressed: 4, then both coordinates.
            let coordinates = point.data().strip_prefix(&[4])?;
            let (x, y) = coordinates.split_at_checked(coordinates.len() / 2)?;
            Some(json!({ "algorithm": "ECDSA", "key": { "curve": {}, "x": hex(x), "y": hex(y) } }))
        }
        _ => None,
    }
}
