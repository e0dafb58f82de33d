//! The compact form of a token (RFC 7515, section 7.1) and its signature.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::Value;

use super::algorithm::JwtAlgorithm;
use super::claims::{JwtClaims, unique_members};
use super::keys::{JwtKeySet, Verdict};

/// Bytes of a token; longer ones are refused unread.
pub const MOST_JWT_BYTES: usize = 16 * 1024;

/// Why a token is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JwtError {
    /// It has another form.
    #[error("the token is not a signed JSON Web Token")]
    Malformed,
    /// It is longer than 16 KiB.
    #[error("the token is longer than {MOST_JWT_BYTES} bytes")]
    TooLong,
    /// It is signed by an algorithm that is not accepted.
    #[error("tokens signed by `{0}` are not accepted")]
    Algorithm(String),
    /// It is of another type.
    #[error("tokens of the type `{0}` are not accepted")]
    Type(String),
    /// None of the keys is that of the token.
    #[error("the key of the token is not known")]
    UnknownKey,
    /// The signature was not made by the key for these contents.
    #[error("the signature of the token is wrong")]
    Signature,
    /// `iss` is another one.
    #[error("the token is of another issuer")]
    Issuer,
    /// `aud` is another one.
    #[error("the token is for another audience")]
    Audience,
    /// `exp` is missing.
    #[error("the token has no expiry")]
    NoExpiry,
    /// `exp` has passed.
    #[error("the token has expired")]
    Expired,
    /// `nbf` has not come.
    #[error("the token is not valid yet")]
    Early,
    /// A required claim is missing or has another value.
    #[error("the claim `{0}` is not as required")]
    Claim(String),
}

/// The claims of a token whose signature is by one of the keys. They are to be checked
/// ([`JwtRules::check`](super::JwtRules::check)).
pub fn verify_jwt(
    token: &str,
    keys: &JwtKeySet,
    algorithms: &[JwtAlgorithm],
) -> Result<JwtClaims, JwtError> {
    verify_typed_jwt(token, keys, algorithms, None)
}

/// The same for tokens of one type alone, such as `at+jwt` (RFC 9068): a token of another one is for another use (RFC 8725,
/// section 3.11).
pub fn verify_typed_jwt(
    token: &str,
    keys: &JwtKeySet,
    algorithms: &[JwtAlgorithm],
    wanted: Option<&str>,
) -> Result<JwtClaims, JwtError> {
    if token.len() > MOST_JWT_BYTES {
        return Err(JwtError::TooLong);
    }
    let (signed, signature) = token.rsplit_once('.').ok_or(JwtError::Malformed)?;
    let (header, claims) = signed.split_once('.').ok_or(JwtError::Malformed)?;
    let header = unique_members(&decoded(header)?).ok_or(JwtError::Malformed)?;
    // Extensions that have to be understood (RFC 7515, section 4.1.11); none is.
    if header.contains_key("crit") {
        return Err(JwtError::Malformed);
    }
    if let Some(wanted) = wanted {
        let named = header.get("typ").and_then(Value::as_str);
        let named = named.unwrap_or_default();
        if !is_type(named, wanted) {
            return Err(JwtError::Type(printable(named)));
        }
    }
    let name = header.get("alg").and_then(Value::as_str);
    let name = name.ok_or(JwtError::Malformed)?;
    let algorithm = JwtAlgorithm::from_name(name).filter(|it| algorithms.contains(it));
    let algorithm = algorithm.ok_or_else(|| JwtError::Algorithm(printable(name)))?;
    let id = match header.get("kid") {
        None => None,
        Some(Value::String(id)) => Some(id.as_str()),
        Some(_) => return Err(JwtError::Malformed),
    };
    let signature = decoded(signature)?;
    match keys.verify((algorithm, id), signed.as_bytes(), &signature) {
        Verdict::Valid => {}
        Verdict::Invalid => return Err(JwtError::Signature),
        Verdict::NoKey => return Err(JwtError::UnknownKey),
    }
    JwtClaims::parse(&decoded(claims)?).ok_or(JwtError::Malformed)
}

/// Media types in which `application/` may be left out (RFC 7515, section 4.1.9).
fn is_type(named: &str, wanted: &str) -> bool {
    let short = |it: &str| {
        let it = it.to_ascii_lowercase();
        it.strip_prefix("application/")
            .map(str::to_owned)
            .unwrap_or(it)
    };
    short(named) == short(wanted)
}

/// What a token says its issuer is, to choose keys by. Nothing of it is verified.
pub fn unverified_issuer(token: &str) -> Option<String> {
    let mut parts = token.get(..MOST_JWT_BYTES.min(token.len()))?.split('.');
    let claims = parts.nth(1)?;
    let claims = JwtClaims::parse(&decoded(claims).ok()?)?;
    claims.text("iss").map(str::to_owned)
}

/// Strict: without padding, other characters or bits left over, so a token has one spelling.
fn decoded(part: &str) -> Result<Vec<u8>, JwtError> {
    let decoded = BASE64_URL_SAFE_NO_PAD.decode(part);
    decoded.map_err(|_| JwtError::Malformed)
}

/// The beginning of a name that a client made up, for messages and header fields.
fn printable(name: &str) -> String {
    let characters = name.chars().take(20);
    characters
        .map(|it| match it {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '+' | '/' => it,
            _ => '?',
        })
        .collect()
}
