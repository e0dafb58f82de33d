use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384,
    RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512, RsaEncoding, RsaKeyPair,
};
use serde_json::{Value, json};

use super::*;

const NOW: f64 = 1_772_366_400.0;

use plimsoll_testkit::RSA_TEST_KEY;

fn encoded(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// One key of each kind, with the set that their issuer publishes.
struct Issuer {
    rsa: RsaKeyPair,
    p256: EcdsaKeyPair,
    p384: EcdsaKeyPair,
    ed25519: Ed25519KeyPair,
}

fn ecdsa(algorithm: &'static EcdsaSigningAlgorithm) -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap()
}

impl Issuer {
    fn new() -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self {
            rsa: RsaKeyPair::from_der(RSA_TEST_KEY).unwrap(),
            p256: ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING),
            p384: ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING),
            ed25519: Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap(),
        }
    }

    fn set(&self) -> Value {
        let rsa = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(self.rsa.public());
        let point = |pair: &EcdsaKeyPair, length: usize| {
            let point = pair.public_key().as_ref();
            let (x, y) = point[1..].split_at(length);
            (encoded(x), encoded(y))
        };
        let (p256, p384) = (point(&self.p256, 32), point(&self.p384, 48));
        json!({ "keys": [
            { "kty": "oct", "k": "AA", "kid": "secret" },
            { "kty": "RSA", "kid": "rsa", "n": encoded(&rsa.n), "e": encoded(&rsa.e) },
            { "kty": "EC", "crv": "P-256", "kid": "p256", "x": p256.0, "y": p256.1 },
            { "kty": "EC", "crv": "P-384", "kid": "p384", "x": p384.0, "y": p384.1 },
            { "kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": encoded(self.ed25519.public_key().as_ref()) },
        ] })
    }

    fn keys(&self) -> JwtKeySet {
        JwtKeySet::parse(self.set().to_string().as_bytes()).unwrap()
    }

    fn rsa_signature(&self, encoding: &'static dyn RsaEncoding, signed: &[u8]) -> Vec<u8> {
        let mut signature = vec![0; self.rsa.public().modulus_len()];
        self.rsa
            .sign(encoding, &SystemRandom::new(), signed, &mut signature)
            .unwrap();
        signature
    }

    fn signature(&self, algorithm: &str, signed: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match algorithm {
            "RS256" => self.rsa_signature(&RSA_PKCS1_SHA256, signed),
            "RS384" => self.rsa_signature(&RSA_PKCS1_SHA384, signed),
            "RS512" => self.rsa_signature(&RSA_PKCS1_SHA512, signed),
            "PS256" => self.rsa_signature(&RSA_PSS_SHA256, signed),
            "PS384" => self.rsa_signature(&RSA_PSS_SHA384, signed),
            "PS512" => self.rsa_signature(&RSA_PSS_SHA512, signed),
            "ES256" => self.p256.sign(&random, signed).unwrap().as_ref().to_vec(),
            "ES384" => self.p384.sign(&random, signed).unwrap().as_ref().to_vec(),
            "EdDSA" => self.ed25519.sign(signed).as_ref().to_vec(),
            other => panic!("{other}"),
        }
    }

    /// A token by the algorithm that its header names.
    fn token(&self, header: &Value, claims: &str) -> String {
        self.token_by(header["alg"].as_str().unwrap(), header, claims)
    }

    fn token_by(&self, algorithm: &str, header: &Value, claims: &str) -> String {
        let header = encoded(header.to_string().as_bytes());
        let signed = format!("{header}.{}", encoded(claims.as_bytes()));
        let signature = self.signature(algorithm, signed.as_bytes());
        format!("{signed}.{}", encoded(&signature))
    }

    fn verify(&self, token: &str) -> Result<JwtClaims, JwtError> {
        verify_jwt(token, &self.keys(), &JwtAlgorithm::ALL)
    }
}

#[test]
fn every_algorithm_verifies_with_its_own_kind_of_key_alone() {
    let issuer = Issuer::new();
    for (algorithm, id) in [
        ("RS256", "rsa"),
        ("RS384", "rsa"),
        ("RS512", "rsa"),
        ("PS256", "rsa"),
        ("PS384", "rsa"),
        ("PS512", "rsa"),
        ("ES256", "p256"),
        ("ES384", "p384"),
        ("EdDSA", "ed"),
    ] {
        let token = issuer.token(&json!({ "alg": algorithm, "kid": id }), r#"{"sub":"a"}"#);
        let claims = issuer.verify(&token).unwrap();
        assert_eq!(claims.text("sub"), Some("a"), "{algorithm}");
        // Without an identifier every key of its kind is tried.
        let token = issuer.token(&json!({ "alg": algorithm }), "{}");
        assert!(issuer.verify(&token).is_ok(), "{algorithm}");
        // The right key, signed by another algorithm than the header says.
        for other in JwtAlgorithm::ALL.map(JwtAlgorithm::name) {
            if other != algorithm {
                let header = json!({ "alg": other, "kid": id });
                let token = issuer.token_by(algorithm, &header, "{}");
                let refused = issuer.verify(&token).unwrap_err();
                let is_right = matches!(refused, JwtError::Signature | JwtError::UnknownKey);
                assert!(is_right, "{algorithm} as {other}: {refused:?}");
            }
        }
        let only = JwtAlgorithm::from_name("ES256").unwrap();
        let token = issuer.token(&json!({ "alg": algorithm }), "{}");
        let accepted = verify_jwt(&token, &issuer.keys(), &[only]).is_ok();
        assert_eq!(accepted, algorithm == "ES256");
    }
}

#[test]
fn neither_none_nor_a_secret_that_is_public_is_accepted() {
    let issuer = Issuer::new();
    let n = issuer.set()["keys"][1]["n"].as_str().unwrap().to_owned();
    let public = BASE64_URL_SAFE_NO_PAD.decode(n).unwrap();
    for algorithm in [
        "none", "None", "NONE", "nOnE", "", "HS256", "HS384", "HS512", "RS256 ",
    ] {
        let header = json!({ "alg": algorithm, "kid": "rsa" }).to_string();
        let signed = format!(
            "{}.{}",
            encoded(header.as_bytes()),
            encoded(b"{\"sub\":\"root\"}")
        );
        let key = hmac::Key::new(hmac::HMAC_SHA256, &public);
        let tag = encoded(hmac::sign(&key, signed.as_bytes()).as_ref());
        for signature in ["", tag.as_str()] {
            let refused = issuer.verify(&format!("{signed}.{signature}"));
            assert!(
                matches!(refused, Err(JwtError::Algorithm(_))),
                "{algorithm}: {refused:?}"
            );
        }
    }
    let unnamed = format!("{}.{}.", encoded(b"{}"), encoded(b"{}"));
    assert_eq!(issuer.verify(&unnamed), Err(JwtError::Malformed));
}

#[test]
fn a_token_brings_no_keys_of_its_own() {
    let (issuer, attacker) = (Issuer::new(), Issuer::new());
    let own = attacker.set()["keys"][2].clone();
    for header in [
        json!({ "alg": "ES256", "jwk": own }),
        json!({ "alg": "ES256", "jku": "https://attacker.test/keys", "kid": "p256" }),
        json!({ "alg": "ES256", "x5u": "https://attacker.test/cert", "x5c": ["AA"], "kid": "p256" }),
    ] {
        let token = attacker.token(&header, "{}");
        assert_eq!(issuer.verify(&token), Err(JwtError::Signature), "{header}");
    }
    for header in [
        json!({ "alg": "ES256", "crit": ["exp"], "exp": 1 }),
        json!({ "alg": "ES256", "crit": [], "kid": "p256" }),
        json!({ "alg": "ES256", "b64": false, "crit": ["b64"] }),
        json!({ "alg": "ES256", "kid": ["p256"] }),
    ] {
        let token = issuer.token(&header, "{}");
        assert_eq!(issuer.verify(&token), Err(JwtError::Malformed), "{header}");
    }
}

#[test]
fn a_type_can_be_required() {
    let issuer = Issuer::new();
    for (named, wanted, is_accepted) in [
        (json!("at+jwt"), "at+jwt", true),
        (json!("application/AT+JWT"), "at+jwt", true),
        (json!("at+jwt"), "application/at+jwt", true),
        (json!("JWT"), "at+jwt", false),
        (json!(""), "at+jwt", false),
        (json!(null), "at+jwt", false),
        (json!(["at+jwt"]), "at+jwt", false),
    ] {
        let token = issuer.token(&json!({ "alg": "ES256", "typ": named }), "{}");
        let algorithms = &JwtAlgorithm::ALL;
        let typed = verify_typed_jwt(&token, &issuer.keys(), algorithms, Some(wanted));
        assert_eq!(typed.is_ok(), is_accepted, "{named} {wanted}: {typed:?}");
        assert!(issuer.verify(&token).is_ok());
    }
}

#[test]
fn keys_say_what_they_are_for() {
    let issuer = Issuer::new();
    let changed = |change: fn(&mut Value)| {
        let mut set = issuer.set();
        change(&mut set["keys"][1]);
        JwtKeySet::parse(set.to_string().as_bytes()).unwrap()
    };
    let token = issuer.token(&json!({ "alg": "RS256", "kid": "rsa" }), "{}");
    for (change, is_accepted) in [
        ((|key| key["use"] = "sig".into()) as fn(&mut Value), true),
        (|key| key["use"] = "enc".into(), false),
        (|key| key["alg"] = "RS256".into(), true),
        (|key| key["alg"] = "PS256".into(), false),
        (|key| key["alg"] = "RSA-OAEP".into(), false),
        (|key| key["key_ops"] = json!(["verify"]), true),
        (|key| key["key_ops"] = json!(["encrypt"]), false),
        (|key| key["kid"] = "other".into(), false),
        (|key| _ = key.as_object_mut().unwrap().remove("kid"), true),
        // 512 bits.
        (|key| key["n"] = encoded(&[255; 64]).into(), false),
    ] {
        let verified = verify_jwt(&token, &changed(change), &JwtAlgorithm::ALL);
        let expected = if is_accepted {
            Ok(JwtClaims::default())
        } else {
            Err(JwtError::UnknownKey)
        };
        assert_eq!(verified, expected);
    }
    for broken in ["", "{}", "[]", "{\"keys\": 1}"] {
        let parsed = JwtKeySet::parse(broken.as_bytes());
        assert_eq!(parsed, Err(JwtKeySetError::Malformed), "{broken}");
    }
    let odd = r#"{"keys": [1, {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}, {"kty": "RSA", "n": "*"}]}"#;
    assert_eq!(JwtKeySet::parse(odd.as_bytes()), Err(JwtKeySetError::Empty));
}

#[test]
fn whatever_is_no_token_is_refused_without_a_panic() {
    let issuer = Issuer::new();
    let e = encoded(b"{}");
    let token = issuer.token(&json!({ "alg": "ES256" }), r#"{"sub":"a"}"#);
    let (signed, signature) = token.rsplit_once('.').unwrap();
    for broken in [
        String::new(),
        ".".to_owned(),
        "..".to_owned(),
        "a.b.c".to_owned(),
        format!("{e}.{e}.{e}"),
        "\u{fffd}.\u{fffd}.\u{fffd}".to_owned(),
        format!("{token}="),
        format!(" {token}"),
        format!("{token}.{e}"),
        format!("{signed}."),
        format!("{signed}.{}", signature.to_uppercase()),
        format!("{}.{e}.{signature}", signed.split('.').next().unwrap()),
    ] {
        assert!(issuer.verify(&broken).is_err(), "{broken}");
    }
    let long = issuer.token(
        &json!({ "alg": "ES256" }),
        &format!("{{\"a\":\"{}\"}}", "x".repeat(20_000)),
    );
    assert_eq!(issuer.verify(&long), Err(JwtError::TooLong));
    // Signed, but no claims, or claims that two readers take differently.
    for claims in [
        "",
        "[]",
        "1",
        "{\"sub\":\"a\",\"sub\":\"root\"}",
        "{\"sub\":\"a\",\"s\\u0075b\":\"root\"}",
        "{} {}",
        "{\"a\":\"\u{1}\"}",
    ] {
        let token = issuer.token(&json!({ "alg": "ES256" }), claims);
        assert_eq!(issuer.verify(&token), Err(JwtError::Malformed), "{claims}");
    }
    let twice = format!("{}.{e}", encoded(br#"{"alg":"none","alg":"ES256"}"#));
    let signature = encoded(&issuer.signature("ES256", twice.as_bytes()));
    assert_eq!(
        issuer.verify(&format!("{twice}.{signature}")),
        Err(JwtError::Malformed)
    );
}

fn rules() -> JwtRules {
    JwtRules {
        issuers: vec!["https://id.example".to_owned()],
        audiences: vec!["api".to_owned(), "web".to_owned()],
        leeway: Duration::from_mins(1),
        algorithms: JwtAlgorithm::ALL.to_vec(),
        required: vec![
            RequiredClaim {
                name: "realm.roles".to_owned(),
                values: vec!["admin".to_owned(), "ops".to_owned()],
            },
            RequiredClaim {
                name: "sub".to_owned(),
                values: Vec::new(),
            },
        ],
    }
}

fn body() -> Value {
    json!({
        "iss": "https://id.example", "aud": "api", "sub": "ann", "exp": NOW + 300.0, "nbf": NOW - 10.0,
        "realm": { "roles": ["user", "ops"] },
    })
}

fn checked(claims: &Value, now: f64) -> Result<JwtValidity, JwtError> {
    let claims = JwtClaims::parse(claims.to_string().as_bytes()).unwrap();
    rules().check(&claims, now)
}

#[test]
fn each_claim_that_is_wrong_refuses_the_token() {
    assert!(checked(&body(), NOW).is_ok());
    for (claim, value, expected) in [
        ("iss", json!("https://id.example/"), JwtError::Issuer),
        ("iss", json!(["https://id.example"]), JwtError::Issuer),
        ("iss", Value::Null, JwtError::Issuer),
        ("aud", json!("API"), JwtError::Audience),
        ("aud", json!(["a", "b"]), JwtError::Audience),
        ("aud", json!({ "api": "api" }), JwtError::Audience),
        ("aud", Value::Null, JwtError::Audience),
        ("exp", json!(NOW - 60.0), JwtError::Expired),
        ("exp", json!(-1), JwtError::Expired),
        ("exp", json!("9999999999"), JwtError::NoExpiry),
        ("exp", Value::Null, JwtError::NoExpiry),
        ("nbf", json!(NOW + 61.0), JwtError::Early),
        ("nbf", json!("0"), JwtError::Early),
        ("sub", Value::Null, JwtError::Claim("sub".to_owned())),
        (
            "realm",
            json!({ "roles": ["user"] }),
            JwtError::Claim("realm.roles".to_owned()),
        ),
        (
            "realm",
            json!({ "roles": "administrator" }),
            JwtError::Claim("realm.roles".to_owned()),
        ),
        (
            "realm",
            json!("ops"),
            JwtError::Claim("realm.roles".to_owned()),
        ),
    ] {
        let mut claims = body();
        claims[claim] = value.clone();
        assert_eq!(
            checked(&claims, NOW).unwrap_err(),
            expected,
            "{claim} = {value}"
        );
    }
    for (claim, value) in [
        ("aud", json!(["other", "web"])),
        ("exp", json!(NOW - 59.0)),
        ("exp", json!(1e300)),
        ("nbf", json!(NOW + 60.0)),
        ("realm", json!({ "roles": "admin" })),
    ] {
        let mut claims = body();
        claims[claim] = value.clone();
        assert!(checked(&claims, NOW).is_ok(), "{claim} = {value}");
    }
}

#[test]
fn claims_hold_for_a_time_with_the_leeway_on_both_sides() {
    let validity = checked(&body(), NOW).unwrap();
    for (offset, holds) in [
        (-71.0, false),
        (-70.0, true),
        (0.0, true),
        (359.0, true),
        (360.0, false),
    ] {
        assert_eq!(validity.holds_at(NOW + offset), holds, "{offset}");
    }
}

#[test]
fn claims_are_shown_so_that_no_reader_takes_them_for_more() {
    let claims = json!({
        "sub": "ann", "n": 7, "b": true, "null": null, "roles": ["a", "b", 1], "tricky": ["a,admin"], "split": "a\r\nx-admin: 1",
        "nested": { "deep": { "er": "x" } }, "https://example.org/roles": "r", "dotted.name": "own", "dotted": { "name": "other" },
        "unicode": "Ann\u{e9}", "nul": "a\u{0}", "objects": [{ "a": 1 }],
    });
    let claims = JwtClaims::parse(claims.to_string().as_bytes()).unwrap();
    for (name, shown) in [
        ("sub", Some("ann")),
        ("n", Some("7")),
        ("b", Some("true")),
        ("null", None),
        ("missing", None),
        ("roles", Some("a,b,1")),
        ("tricky", None),
        ("split", None),
        ("nul", None),
        ("objects", None),
        ("nested", Some("{\"deep\":{\"er\":\"x\"}}")),
        ("nested.deep.er", Some("x")),
        ("nested.deep.er.more", None),
        ("https://example.org/roles", Some("r")),
        ("dotted.name", Some("own")),
        ("unicode", Some("Ann\u{e9}")),
    ] {
        assert_eq!(claims.shown(name).as_deref(), shown, "{name}");
    }
}

proptest::proptest! {
    /// A token that is changed anywhere is refused, and nothing panics.
    #[test]
    fn no_other_text_is_taken_for_a_token(
        at in 0_usize..1000, change in 1_u8.., header in ".{0,60}", claims in ".{0,60}", whole in ".{0,200}",
    ) {
        let issuer = Issuer::new();
        let token = issuer.token(&json!({ "alg": "EdDSA", "kid": "ed" }), r#"{"sub":"a"}"#);
        let mut bytes = token.clone().into_bytes();
        let at = at % bytes.len();
        bytes[at] ^= change;
        let changed = String::from_utf8_lossy(&bytes).into_owned();
        proptest::prop_assert!(issuer.verify(&changed).is_err(), "{changed}");
        let made_up = format!("{}.{}.AA", encoded(header.as_bytes()), encoded(claims.as_bytes()));
        for text in [made_up, whole.clone(), format!("{whole}.{header}.{claims}")] {
            proptest::prop_assert!(issuer.verify(&text).is_err());
        }
        if let Ok(keys) = JwtKeySet::parse(whole.as_bytes()) {
            proptest::prop_assert!(keys.count() > 0);
        }
        if let Some(shown) = JwtClaims::parse(claims.as_bytes()).and_then(|it| it.shown(&header)) {
            proptest::prop_assert!(!shown.contains(char::is_control));
        }
    }
}
