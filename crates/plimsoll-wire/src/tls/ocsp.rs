//! The revocation status of a certificate by its authority (RFC 6960), stapled in handshakes (RFC 6066, section 8).
//!
//! A response is valid if it is signed by the authority, or by a delegate that it has certified for that, and
//! if it is about the certificate. Nothing here opens a connection.

mod der;

use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use ring::digest::{self, SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer};
use webpki::RawPublicKeyEntity;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::parse_x509_certificate;

use self::der::{Element, Malformed, Reader, element};
use crate::tls::certificate::date;
use crate::tls::pem::{self, MaterialError};

/// Longer responses are not looked at, in bytes.
pub const MOST_OCSP_BYTES: u64 = 64 * 1024;

/// Lifetime of a response without `nextUpdate`.
const UNSAID: Duration = Duration::from_hours(24);

/// Tolerated clock difference: five minutes, as in OpenSSL's `ocsp` and Kerberos.
const SKEW: Duration = Duration::from_mins(5);

/// id-pkix-ocsp-basic, 1.3.6.1.5.5.7.48.1.1
const BASIC: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1];

/// id-ad-ocsp
const RESPONDER: &str = "1.3.6.1.5.5.7.48.1";

/// id-sha1, with its parameters.
const SHA1_ID: &[u8] = &[6, 5, 0x2b, 0x0e, 3, 2, 0x1a, 5, 0];

/// id-sha256, without parameters.
const SHA256_ID: &[u8] = &[6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1];

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const ENUMERATED: u8 = 0x0a;

/// Constructed, of the context.
const CONTEXT: u8 = 0xa0;

/// A certificate, with what an OCSP request needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OcspQuestion {
    issuer: CertificateDer<'static>,
    issuer_name: Vec<u8>,
    issuer_key: Vec<u8>,
    serial: Vec<u8>,
    responder: Option<String>,
    name: String,
}

/// The answer of an OCSP responder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OcspResponse {
    /// As it came.
    pub der: Vec<u8>,
    /// The certificate must not be believed any more.
    pub is_revoked: bool,
    /// Since when that is known to be so.
    pub since: SystemTime,
    /// Until when it may be shown.
    pub until: SystemTime,
}

/// Why there is no response, or one that is of no use.
#[derive(Debug, thiserror::Error)]
pub enum OcspError {
    /// The certificate cannot be read.
    #[error(transparent)]
    Material(#[from] MaterialError),
    /// The response cannot be read.
    #[error("cannot read `{0}`")]
    Read(String, #[source] io::Error),
    /// The file has one certificate, or the second has not issued the first.
    #[error("the certificate of the authority that has issued it does not follow")]
    NoIssuer,
    /// It is no certificate.
    #[error("the certificate cannot be understood")]
    Certificate,
    /// It is longer than [`MOST_OCSP_BYTES`].
    #[error("it is longer than {MOST_OCSP_BYTES} bytes")]
    TooLong,
    /// It is no response in DER.
    #[error("it is no response of OCSP in DER")]
    Malformed,
    /// The responder does not answer this question (RFC 6960, section 2.3).
    #[error("the responder refuses to answer: {0}")]
    Refused(&'static str),
    /// It is about other certificates.
    #[error("it is not about this certificate")]
    AnotherCertificate,
    /// The authority does not know the certificate.
    #[error("the responder does not know the certificate")]
    Unknown,
    /// Neither the authority nor anybody for it has signed it.
    #[error("it is not signed by the authority")]
    Signature,
    /// Its time is over, or has not come.
    #[error("it does not hold now")]
    Time,
}

impl From<Malformed> for OcspError {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

impl OcspQuestion {
    /// About the first certificate of a chain, whose second has issued it.
    pub fn new(chain: &[CertificateDer<'_>]) -> Result<Self, OcspError> {
        let [leaf, issuer, ..] = chain else {
            return Err(OcspError::NoIssuer);
        };
        let (_, leaf) = parse_x509_certificate(leaf).map_err(|_| OcspError::Certificate)?;
        let (_, parsed) = parse_x509_certificate(issuer).map_err(|_| OcspError::Certificate)?;
        if leaf.issuer().as_raw() != parsed.subject().as_raw() {
            return Err(OcspError::NoIssuer);
        }
        let key = parsed.public_key().subject_public_key.data.to_vec();
        Ok(Self {
            issuer_name: leaf.issuer().as_raw().to_vec(),
            issuer_key: key,
            serial: leaf.raw_serial().to_vec(),
            responder: responder(&leaf),
            name: leaf.subject().to_string(),
            issuer: issuer.clone().into_owned(),
        })
    }

    /// About the first certificate of a file in PEM.
    pub fn of_file(file: &Path) -> Result<Self, OcspError> {
        Self::new(&pem::certificates(file)?)
    }

    /// The URL of the OCSP responder, if the certificate names one.
    pub fn responder(&self) -> Option<&str> {
        self.responder.as_deref()
    }

    /// The request, in DER (RFC 6960, section 4.1): without a nonce, so that responses may be made beforehand.
    pub fn request(&self) -> Vec<u8> {
        let hash = |bytes: &[u8]| {
            let hash = digest::digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes);
            element(OCTET_STRING, &[hash.as_ref()])
        };
        let certificate = element(
            SEQUENCE,
            &[
                &element(SEQUENCE, &[SHA1_ID]),
                &hash(&self.issuer_name),
                &hash(&self.issuer_key),
                &element(INTEGER, &[&self.serial]),
            ],
        );
        let request = element(SEQUENCE, &[&certificate]);
        let list = element(SEQUENCE, &[&request]);
        element(SEQUENCE, &[&element(SEQUENCE, &[&list])])
    }

    /// Reads a response in DER, and believes it or not.
    pub fn answer(&self, der: &[u8], now: SystemTime) -> Result<OcspResponse, OcspError> {
        if der.len() as u64 > MOST_OCSP_BYTES {
            return Err(OcspError::TooLong);
        }
        let basic = basic(der)?;
        let mut basic = basic.inside();
        let data = basic.expect(SEQUENCE)?;
        let algorithm = basic.expect(SEQUENCE)?;
        let signature = bits(&basic.expect(BIT_STRING)?)?;
        let certificates = basic.optional(CONTEXT)?;
        let single = self.find(&data)?;
        let signed = Signed {
            message: data.raw,
            algorithm: algorithm.content,
            signature,
        };
        if !self.is_signed(&signed, certificates.as_ref(), now) {
            return Err(OcspError::Signature);
        }
        let response = Self::response(single, der)?;
        if response.since > now + SKEW || response.until <= now {
            return Err(OcspError::Time);
        }
        Ok(response)
    }

    /// Reads a response from a file; nothing if there is none.
    pub fn read(&self, file: &Path, now: SystemTime) -> Result<Option<OcspResponse>, OcspError> {
        match std::fs::read(file) {
            Ok(der) => self.answer(&der, now).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(OcspError::Read(file.display().to_string(), error)),
        }
    }

    /// The status of this certificate in the response.
    fn find<'a>(&self, data: &Element<'a>) -> Result<Reader<'a>, OcspError> {
        let mut data = data.inside();
        data.optional(CONTEXT)?;
        // Who answers, and when the answer was made.
        data.next()?;
        data.next()?;
        let mut all = data.expect(SEQUENCE)?.inside();
        while !all.is_at_end() {
            let mut single = all.expect(SEQUENCE)?.inside();
            if self.is_this(&single.expect(SEQUENCE)?)? {
                return Ok(single);
            }
        }
        Err(OcspError::AnotherCertificate)
    }

    fn is_this(&self, identity: &Element<'_>) -> Result<bool, Malformed> {
        let mut identity = identity.inside();
        let algorithm = identity.expect(SEQUENCE)?.content;
        let name = identity.expect(OCTET_STRING)?.content;
        let key = identity.expect(OCTET_STRING)?.content;
        let serial = identity.expect(INTEGER)?.content;
        let kind = if algorithm.starts_with(SHA256_ID) {
            &SHA256
        } else {
            &SHA1_FOR_LEGACY_USE_ONLY
        };
        let is_hash = |hash: &[u8], of: &[u8]| digest::digest(kind, of).as_ref() == hash;
        Ok(serial == self.serial
            && is_hash(name, &self.issuer_name)
            && is_hash(key, &self.issuer_key))
    }

    fn response(mut single: Reader<'_>, der: &[u8]) -> Result<OcspResponse, OcspError> {
        let status = single.next()?;
        let is_revoked = match status.tag & 0x1f {
            0 => false,
            1 => true,
            _ => return Err(OcspError::Unknown),
        };
        let since = time(&single.next()?)?;
        let until = match single.optional(CONTEXT)? {
            Some(next) => time(&next.inside().next()?)?,
            None => since + UNSAID,
        };
        Ok(OcspResponse {
            der: der.to_vec(),
            is_revoked,
            since,
            until,
        })
    }

    /// Whether it is signed by the issuer, or by a delegate it has certified for that (RFC 6960, section 4.2.2.2).
    fn is_signed(
        &self,
        signed: &Signed<'_>,
        certificates: Option<&Element<'_>>,
        now: SystemTime,
    ) -> bool {
        let Ok((_, issuer)) = parse_x509_certificate(&self.issuer) else {
            return false;
        };
        let issuer_key = issuer.public_key().raw;
        if signed.is_by(issuer_key) {
            return true;
        }
        let Some(Ok(list)) = certificates.map(|list| list.inside().expect(SEQUENCE)) else {
            return false;
        };
        let mut list = list.inside();
        while let Ok(certificate) = list.next() {
            let Ok((_, parsed)) = parse_x509_certificate(certificate.raw) else {
                continue;
            };
            if is_delegate(&parsed, now)
                && Signed::certificate(&certificate).is_ok_and(|it| it.is_by(issuer_key))
                && signed.is_by(parsed.public_key().raw)
            {
                return true;
            }
        }
        false
    }
}

impl std::fmt::Display for OcspQuestion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

/// Something with its signature.
struct Signed<'a> {
    message: &'a [u8],
    /// The content of its `AlgorithmIdentifier`.
    algorithm: &'a [u8],
    signature: &'a [u8],
}

impl<'a> Signed<'a> {
    fn certificate(certificate: &Element<'a>) -> Result<Self, Malformed> {
        let mut parts = certificate.inside();
        Ok(Self {
            message: parts.expect(SEQUENCE)?.raw,
            algorithm: parts.expect(SEQUENCE)?.content,
            signature: bits(&parts.expect(BIT_STRING)?)?,
        })
    }

    /// - `key`: a `SubjectPublicKeyInfo`.
    fn is_by(&self, key: &[u8]) -> bool {
        let key = SubjectPublicKeyInfoDer::from(key);
        let Ok(key) = RawPublicKeyEntity::try_from(&key) else {
            return false;
        };
        let known = default_provider().signature_verification_algorithms.all;
        known
            .iter()
            .filter(|known| known.signature_alg_id().as_ref() == self.algorithm)
            .any(|known| {
                key.verify_signature(*known, self.message, self.signature)
                    .is_ok()
            })
    }
}

/// Whether a certificate is for signing responses, now.
fn is_delegate(certificate: &X509Certificate<'_>, now: SystemTime) -> bool {
    let usage = certificate.extended_key_usage();
    let signs = matches!(usage, Ok(Some(usage)) if usage.value.ocsp_signing);
    let validity = certificate.validity();
    let begins = date(validity.not_before).is_some_and(|begin| begin <= now + SKEW);
    signs && begins && date(validity.not_after).is_some_and(|end| end > now)
}

fn responder(certificate: &X509Certificate<'_>) -> Option<String> {
    let mut extensions = certificate.extensions().iter();
    extensions.find_map(|extension| {
        let ParsedExtension::AuthorityInfoAccess(access) = extension.parsed_extension() else {
            return None;
        };
        access
            .accessdescs
            .iter()
            .find_map(|description| match &description.access_location {
                GeneralName::URI(url) if description.access_method.to_id_string() == RESPONDER => {
                    Some((*url).to_owned())
                }
                _ => None,
            })
    })
}

/// The basic response within a response.
fn basic(der: &[u8]) -> Result<Element<'_>, OcspError> {
    let mut whole = Reader::new(der);
    let mut parts = whole.expect(SEQUENCE)?.inside();
    if !whole.is_at_end() {
        return Err(OcspError::Malformed);
    }
    match parts.expect(ENUMERATED)?.content {
        [0] => {}
        [1] => return Err(OcspError::Refused("the request is malformed")),
        [2] => return Err(OcspError::Refused("it has failed")),
        [3] => return Err(OcspError::Refused("it will later")),
        [5] => return Err(OcspError::Refused("the request is not signed")),
        [6] => return Err(OcspError::Refused("it must not")),
        _ => return Err(OcspError::Malformed),
    }
    let mut parts = parts.expect(CONTEXT)?.inside().expect(SEQUENCE)?.inside();
    if parts.expect(OBJECT_IDENTIFIER)?.content != BASIC {
        return Err(OcspError::Malformed);
    }
    let bytes = parts.expect(OCTET_STRING)?.content;
    Ok(Reader::new(bytes).expect(SEQUENCE)?)
}

fn bits<'a>(element: &Element<'a>) -> Result<&'a [u8], Malformed> {
    match element.content {
        [0, bits @ ..] => Ok(bits),
        _ => Err(Malformed),
    }
}

fn time(element: &Element<'_>) -> Result<SystemTime, OcspError> {
    use x509_parser::asn1_rs::FromDer;
    let time = x509_parser::time::ASN1Time::from_der(element.raw);
    let (_, time) = time.map_err(|_| OcspError::Malformed)?;
    date(time).ok_or(OcspError::Malformed)
}

#[cfg(test)]
mod tests;
