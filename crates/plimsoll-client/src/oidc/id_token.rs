//! ID tokens. Pure: the time is an argument.

use crate::jwt::{JwtAlgorithm, JwtClaims, JwtError, JwtKeySet, JwtRules, verify_jwt};

/// How far the clocks of both sides may differ, in seconds.
const SKEW: f64 = 60.0;

/// Required claims of a token.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected<'e> {
    pub(super) issuer: &'e str,
    pub(super) client_id: &'e str,
    pub(super) nonce: &'e str,
}

/// Why an ID token is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdTokenError {
    /// It has another form, or lacks a claim.
    #[error("the ID token is not a signed JSON Web Token")]
    Malformed,
    /// It is signed by an algorithm that is not accepted.
    #[error("the ID token is signed by `{0}`, which is not supported")]
    Algorithm(String),
    /// Its key is none of the provider's.
    #[error("the provider does not publish the key of the ID token")]
    UnknownKey,
    /// The signature was not made by the key for these contents.
    #[error("the signature of the ID token is wrong")]
    Signature,
    /// `iss` is another one.
    #[error("the ID token is of another issuer")]
    Issuer,
    /// `aud` or `azp` is another one.
    #[error("the ID token is for another client")]
    Audience,
    /// `exp` has passed.
    #[error("the ID token has expired; are the clocks right?")]
    Expired,
    /// `iat` or `nbf` is to come.
    #[error("the ID token is from the future; are the clocks right?")]
    Early,
    /// `nonce` is another one.
    #[error("the ID token is of another sign-in")]
    Nonce,
}

impl From<JwtError> for IdTokenError {
    fn from(error: JwtError) -> Self {
        match error {
            JwtError::Algorithm(name) => Self::Algorithm(name),
            JwtError::UnknownKey => Self::UnknownKey,
            JwtError::Signature => Self::Signature,
            JwtError::Issuer => Self::Issuer,
            JwtError::Audience => Self::Audience,
            JwtError::Expired => Self::Expired,
            JwtError::Early => Self::Early,
            JwtError::Type(_)
            | JwtError::Malformed
            | JwtError::TooLong
            | JwtError::NoExpiry
            | JwtError::Claim(_) => Self::Malformed,
        }
    }
}

/// The claims of an ID token, if all of `OpenID` Connect Core 1.0, section 3.1.3.7, holds.
///
/// - `now`: in seconds since 1970.
pub(super) fn verify(
    token: &str,
    keys: &JwtKeySet,
    expected: Expected<'_>,
    now: f64,
) -> Result<JwtClaims, IdTokenError> {
    let claims = verify_jwt(token, keys, &JwtAlgorithm::ALL)?;
    let rules = JwtRules {
        issuers: vec![expected.issuer.to_owned()],
        audiences: vec![expected.client_id.to_owned()],
        leeway: std::time::Duration::from_secs_f64(SKEW),
        algorithms: JwtAlgorithm::ALL.to_vec(),
        required: Vec::new(),
    };
    rules.check(&claims, now)?;
    if claims.find("azp").is_some() && claims.text("azp") != Some(expected.client_id) {
        return Err(IdTokenError::Audience);
    }
    let is_issued = claims.date("iat").is_none_or(|it| it - SKEW <= now);
    if !is_issued {
        return Err(IdTokenError::Early);
    }
    if claims.text("nonce") != Some(expected.nonce) {
        return Err(IdTokenError::Nonce);
    }
    let subject = claims.text("sub").unwrap_or_default();
    if subject.is_empty() || subject.len() > 255 {
        return Err(IdTokenError::Malformed);
    }
    Ok(claims)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;
    use ring::rand::SystemRandom;
    use ring::signature::{Ed25519KeyPair, KeyPair as _};
    use serde_json::{Value, json};

    use super::*;

    const NOW: u64 = 1_772_366_400;

    fn encoded(bytes: &[u8]) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    fn checked(claims: &Value) -> Result<JwtClaims, IdTokenError> {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap();
        let key = encoded(pair.public_key().as_ref());
        let set = json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "x": key }] });
        let keys = JwtKeySet::parse(set.to_string().as_bytes()).unwrap();
        let header = encoded(br#"{"alg":"EdDSA"}"#);
        let signed = format!("{header}.{}", encoded(claims.to_string().as_bytes()));
        let signature = encoded(pair.sign(signed.as_bytes()).as_ref());
        let expected = Expected {
            issuer: "https://id.example",
            client_id: "plimsoll",
            nonce: "n",
        };
        let token = format!("{signed}.{signature}");
        verify(&token, &keys, expected, 1_772_366_400.0)
    }

    fn body() -> Value {
        json!({
            "iss": "https://id.example", "sub": "248289761001", "aud": "plimsoll", "nonce": "n",
            "exp": NOW + 300, "iat": NOW,
        })
    }

    #[test]
    fn each_claim_that_is_wrong_refuses_the_token() {
        let claims = checked(&body()).unwrap();
        assert_eq!(claims.text("sub"), Some("248289761001"));
        for (claim, value, expected) in [
            ("iss", json!("https://id.example/"), IdTokenError::Issuer),
            ("aud", json!("other"), IdTokenError::Audience),
            ("aud", json!(["a", "b"]), IdTokenError::Audience),
            ("aud", json!(7), IdTokenError::Audience),
            ("azp", json!("other"), IdTokenError::Audience),
            ("azp", json!(7), IdTokenError::Audience),
            ("exp", json!(NOW - 61), IdTokenError::Expired),
            ("iat", json!(NOW + 61), IdTokenError::Early),
            ("nonce", json!("other"), IdTokenError::Nonce),
            ("nonce", Value::Null, IdTokenError::Nonce),
            ("sub", json!(""), IdTokenError::Malformed),
            ("sub", json!("x".repeat(256)), IdTokenError::Malformed),
            ("sub", Value::Null, IdTokenError::Malformed),
            ("exp", Value::Null, IdTokenError::Malformed),
        ] {
            let mut body = body();
            body[claim] = value.clone();
            assert_eq!(checked(&body), Err(expected), "{claim} = {value}");
        }
        let mut several = body();
        several["aud"] = json!(["other", "plimsoll"]);
        several["azp"] = json!("plimsoll");
        assert!(checked(&several).is_ok());
    }
}
