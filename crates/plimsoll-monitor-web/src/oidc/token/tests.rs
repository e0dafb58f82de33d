use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::json;

use super::*;

const NOW: Timestamp = Timestamp(1_772_366_400_000);

struct Signer {
    pair: EcdsaKeyPair,
    keys: KeySet,
}

impl Signer {
    fn new() -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
        let point = pair.public_key().as_ref();
        let set = json!({ "keys": [
            { "kty": "oct", "k": "AA" },
            { "kty": "EC", "crv": "P-256", "kid": "one", "use": "sig", "x": encoded(&point[1..33]), "y": encoded(&point[33..]) },
        ] });
        let keys = KeySet::parse(set.to_string().as_bytes()).unwrap();
        Self { pair, keys }
    }

    fn token(&self, header: &Value, body: &Value) -> String {
        let signed = format!(
            "{}.{}",
            encoded(header.to_string().as_bytes()),
            encoded(body.to_string().as_bytes())
        );
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes());
        format!("{signed}.{}", encoded(signature.unwrap().as_ref()))
    }

    fn verified(&self, header: &Value, body: &Value) -> Result<Claims, TokenError> {
        check_token(&self.token(header, body), &self.keys)
    }
}

fn encoded(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

fn check_token(token: &str, keys: &KeySet) -> Result<Claims, TokenError> {
    let expected = Expected {
        issuer: "https://id.example",
        client_id: "plimsoll",
        nonce: "n",
    };
    verify(token, keys, expected, NOW)
}

fn header() -> Value {
    json!({ "alg": "ES256", "kid": "one" })
}

fn body() -> Value {
    let now = NOW.0 / 1_000;
    json!({
        "iss": "https://id.example", "sub": "248289761001", "aud": "plimsoll", "nonce": "n",
        "exp": now + 300, "iat": now, "email": "ann@example.org", "email_verified": true,
    })
}

#[test]
fn a_token_of_the_provider_names_its_user() {
    let signer = Signer::new();
    let claims = signer.verified(&header(), &body()).unwrap();
    assert_eq!(claims.subject, "248289761001");
    assert_eq!(claims.email.as_deref(), Some("ann@example.org"));
    // A token without an identifier is tried with every key.
    let claims = signer.verified(&json!({ "alg": "ES256" }), &body());
    assert!(claims.is_ok());
}

#[test]
fn each_claim_that_is_wrong_refuses_the_token() {
    let signer = Signer::new();
    let now = NOW.0 / 1_000;
    for (claim, value, expected) in [
        ("iss", json!("https://id.example/"), TokenError::Issuer),
        ("aud", json!("other"), TokenError::Audience),
        ("aud", json!(["a", "b"]), TokenError::Audience),
        ("aud", json!(7), TokenError::Audience),
        ("azp", json!("other"), TokenError::Audience),
        ("exp", json!(now - 61), TokenError::Expired),
        ("iat", json!(now + 61), TokenError::Early),
        ("nonce", json!("other"), TokenError::Nonce),
        ("nonce", Value::Null, TokenError::Nonce),
        ("sub", json!(""), TokenError::Malformed),
        ("sub", Value::Null, TokenError::Malformed),
        ("exp", Value::Null, TokenError::Malformed),
    ] {
        let mut body = body();
        body[claim] = value.clone();
        let outcome = signer.verified(&header(), &body);
        assert_eq!(outcome, Err(expected), "{claim} = {value}");
    }
    let mut several = body();
    several["aud"] = json!(["other", "plimsoll"]);
    several["azp"] = json!("plimsoll");
    assert!(signer.verified(&header(), &several).is_ok());
}

#[test]
fn addresses_count_only_if_the_provider_has_verified_them() {
    let signer = Signer::new();
    for (verified, counts) in [
        (json!(true), true),
        (json!("true"), true),
        (json!(false), false),
        (json!("false"), false),
        (json!(1), false),
        (Value::Null, false),
    ] {
        let mut body = body();
        body["email_verified"] = verified.clone();
        let claims = signer.verified(&header(), &body).unwrap();
        assert_eq!(claims.email.is_some(), counts, "{verified}");
    }
}

#[test]
fn other_signatures_keys_and_algorithms_are_refused() {
    let (signer, other) = (Signer::new(), Signer::new());
    let token = signer.token(&header(), &body());
    assert_eq!(
        check_token(&token, &other.keys),
        Err(TokenError::Signature),
        "the key of another signer"
    );
    let unknown = json!({ "alg": "ES256", "kid": "two" });
    assert_eq!(
        signer.verified(&unknown, &body()),
        Err(TokenError::UnknownKey)
    );
    let critical = json!({ "alg": "ES256", "kid": "one", "crit": ["exp"] });
    assert_eq!(
        signer.verified(&critical, &body()),
        Err(TokenError::Malformed)
    );
    for algorithm in ["none", "HS256", "RS512", ""] {
        let header = json!({ "alg": algorithm, "kid": "one" });
        assert_eq!(
            signer.verified(&header, &body()),
            Err(TokenError::Algorithm(algorithm.to_owned()))
        );
    }
    // A key of the other family does not verify.
    let rsa = json!({ "alg": "RS256", "kid": "one" });
    assert_eq!(signer.verified(&rsa, &body()), Err(TokenError::UnknownKey));
    // One changed letter of the body.
    let (content, signature) = token.rsplit_once('.').unwrap();
    let last = content.chars().last().unwrap();
    let content = content.strip_suffix(last).unwrap();
    let other = if last == 'A' { 'B' } else { 'A' };
    let changed = format!("{content}{other}.{signature}");
    assert!(check_token(&changed, &signer.keys).is_err());
}

#[test]
fn whatever_is_no_token_is_refused_without_a_panic() {
    let signer = Signer::new();
    let e = encoded(b"{}");
    for broken in [
        String::new(),
        ".".to_owned(),
        "..".to_owned(),
        "a.b.c".to_owned(),
        format!("{e}.{e}.{e}"),
        format!("{}.{e}.", encoded(header().to_string().as_bytes())),
        "\u{fffd}.\u{fffd}.\u{fffd}".to_owned(),
    ] {
        assert!(check_token(&broken, &signer.keys).is_err(), "{broken}");
    }
    for broken in ["", "{}", "[]", "{\"keys\": 1}"] {
        assert!(KeySet::parse(broken.as_bytes()).is_none(), "{broken}");
    }
    let odd = r#"{"keys": [1, {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}, {"kty": "RSA", "n": "*"}]}"#;
    assert_eq!(KeySet::parse(odd.as_bytes()).unwrap().0.len(), 0);
}
