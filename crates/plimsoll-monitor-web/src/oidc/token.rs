//! ID tokens: JSON Web Tokens (RFC 7519) signed by RS256 or ES256. Pure: the time is an argument.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use plimsoll_monitor::time::Timestamp;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::Value;

/// Keys of a provider that are kept.
const MOST_KEYS: usize = 100;

/// How far the clocks of both sides may differ, in seconds.
const SKEW: i64 = 60;

/// The public keys of a provider (RFC 7517).
#[derive(Debug, Default)]
pub(crate) struct KeySet(Vec<Key>);

#[derive(Debug)]
struct Key {
    id: Option<String>,
    material: Material,
}

#[derive(Debug)]
enum Material {
    /// Modulus and exponent, big-endian.
    Rsa(Vec<u8>, Vec<u8>),
    /// An uncompressed point of P-256.
    P256(Vec<u8>),
}

/// Required claims of a token.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected<'e> {
    pub(super) issuer: &'e str,
    pub(super) client_id: &'e str,
    pub(super) nonce: &'e str,
}

/// The user of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claims {
    /// Never given to another user by the same provider.
    pub(crate) subject: String,
    /// An address that the provider has verified.
    pub(crate) email: Option<String>,
}

/// Why a token is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("the ID token is not a signed JSON Web Token")]
    Malformed,
    #[error("the ID token is signed by `{0}`; RS256 and ES256 are supported")]
    Algorithm(String),
    #[error("the provider does not publish the key of the ID token")]
    UnknownKey,
    #[error("the signature of the ID token is wrong")]
    Signature,
    #[error("the ID token is of another issuer")]
    Issuer,
    #[error("the ID token is for another client")]
    Audience,
    #[error("the ID token has expired; are the clocks right?")]
    Expired,
    #[error("the ID token is from the future; are the clocks right?")]
    Early,
    #[error("the ID token is of another sign-in")]
    Nonce,
}

#[derive(Debug, Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    /// Extensions that have to be understood (RFC 7515, section 4.1.11); none is.
    crit: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Body {
    iss: String,
    sub: String,
    aud: Value,
    azp: Option<String>,
    exp: f64,
    iat: Option<f64>,
    nonce: Option<String>,
}

/// Claims about the user, in ID tokens and of the endpoint `userinfo`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Profile {
    email: Option<String>,
    /// Some providers write it as a text.
    email_verified: Option<Value>,
}

impl Profile {
    /// The address, if the provider says that it has verified it.
    pub(super) fn verified(self) -> Option<String> {
        let is_verified = match self.email_verified {
            Some(Value::Bool(verified)) => verified,
            Some(Value::String(text)) => text == "true",
            _ => false,
        };
        self.email
            .filter(|email| is_verified && email.contains('@'))
    }
}

impl KeySet {
    /// The keys that can verify ID tokens; others are left out.
    pub(super) fn parse(content: &[u8]) -> Option<Self> {
        let set: Value = serde_json::from_slice(content).ok()?;
        let keys = set.get("keys")?.as_array()?;
        let keys = keys.iter().filter_map(key).take(MOST_KEYS);
        Some(Self(keys.collect()))
    }

    /// The keys for a token: that of its identifier, or all if it names none.
    fn for_token<'k>(&'k self, id: Option<&'k str>) -> impl Iterator<Item = &'k Material> {
        let is_meant =
            move |key: &&Key| id.is_none() || key.id.is_none() || key.id.as_deref() == id;
        self.0.iter().filter(is_meant).map(|key| &key.material)
    }
}

fn key(value: &Value) -> Option<Key> {
    let text = |name| value.get(name).and_then(Value::as_str);
    let number = |name| BASE64_URL_SAFE_NO_PAD.decode(text(name)?).ok();
    if text("use").is_some_and(|purpose| purpose != "sig") {
        return None;
    }
    let material = match (text("kty")?, text("crv")) {
        ("RSA", _) => Material::Rsa(number("n")?, number("e")?),
        ("EC", Some("P-256")) => {
            let (x, y) = (number("x")?, number("y")?);
            if x.len() != 32 || y.len() != 32 {
                return None;
            }
            // SEC 1, section 2.3.3.
            Material::P256([vec![4], x, y].concat())
        }
        _ => return None,
    };
    Some(Key {
        id: text("kid").map(str::to_owned),
        material,
    })
}

/// The user of an ID token, if all of `OpenID` Connect Core 1.0, section 3.1.3.7, holds.
pub(super) fn verify(
    token: &str,
    keys: &KeySet,
    expected: Expected<'_>,
    now: Timestamp,
) -> Result<Claims, TokenError> {
    let (signed, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
    let (header, body) = signed.split_once('.').ok_or(TokenError::Malformed)?;
    let decoded = |part: &str| {
        BASE64_URL_SAFE_NO_PAD
            .decode(part)
            .map_err(|_| TokenError::Malformed)
    };
    let header: Header =
        serde_json::from_slice(&decoded(header)?).map_err(|_| TokenError::Malformed)?;
    if header.crit.is_some() {
        return Err(TokenError::Malformed);
    }
    let signature = decoded(signature)?;
    check(&header, keys, signed.as_bytes(), &signature)?;
    let content = decoded(body)?;
    let body: Body = serde_json::from_slice(&content).map_err(|_| TokenError::Malformed)?;
    let profile: Profile = serde_json::from_slice(&content).map_err(|_| TokenError::Malformed)?;
    if body.iss != expected.issuer {
        return Err(TokenError::Issuer);
    }
    let is_for_us = match &body.aud {
        Value::String(one) => one == expected.client_id,
        Value::Array(all) => all.iter().any(|one| one == expected.client_id),
        _ => false,
    };
    let is_ours = body.azp.is_none_or(|party| party == expected.client_id);
    if !is_for_us || !is_ours {
        return Err(TokenError::Audience);
    }
    #[expect(clippy::cast_precision_loss, reason = "seconds of dates")]
    let (now, skew) = (now.0.div_euclid(1_000) as f64, SKEW as f64);
    // JSON has no NaN, so these are comparable.
    if body.exp + skew <= now {
        return Err(TokenError::Expired);
    }
    if body.iat.is_some_and(|issued| issued - skew > now) {
        return Err(TokenError::Early);
    }
    if body.nonce.as_deref() != Some(expected.nonce) {
        return Err(TokenError::Nonce);
    }
    if body.sub.is_empty() || body.sub.len() > 255 {
        return Err(TokenError::Malformed);
    }
    Ok(Claims {
        subject: body.sub,
        email: profile.verified(),
    })
}

fn check(
    header: &Header,
    keys: &KeySet,
    signed: &[u8],
    signature: &[u8],
) -> Result<(), TokenError> {
    let is_rsa = match header.alg.as_str() {
        "RS256" => true,
        "ES256" => false,
        other => return Err(TokenError::Algorithm(other.chars().take(20).collect())),
    };
    let mut has_key = false;
    for material in keys.for_token(header.kid.as_deref()) {
        let verified = match material {
            Material::Rsa(n, e) if is_rsa => RsaPublicKeyComponents { n, e }.verify(
                &RSA_PKCS1_2048_8192_SHA256,
                signed,
                signature,
            ),
            Material::P256(point) if !is_rsa => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(signed, signature)
            }
            _ => continue,
        };
        has_key = true;
        if verified.is_ok() {
            return Ok(());
        }
    }
    Err(if has_key {
        TokenError::Signature
    } else {
        TokenError::UnknownKey
    })
}

#[cfg(test)]
mod tests;
