//! Tokens of clients, sets of keys of issuers, and claims: nothing is accepted that the key has not signed, and no claim is
//! shown that would be more than one value of a field.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_client::jwt::{JwtAlgorithm, JwtClaims, JwtKeySet, verify_jwt};

/// A public key of which no private one is here (RFC 8037, appendix A.2).
const KEYS: &str = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

fuzz_target!(|data: &[u8]| {
    let keys = JwtKeySet::parse(KEYS.as_bytes()).expect("the set is one");
    if let Ok(text) = std::str::from_utf8(data) {
        assert!(verify_jwt(text, &keys, &JwtAlgorithm::ALL).is_err());
    }
    if let Ok(keys) = JwtKeySet::parse(data) {
        assert!((1..=100).contains(&keys.count()));
    }
    if let Some(claims) = JwtClaims::parse(data) {
        for name in ["sub", "aud", "realm.roles", "a.b.c"] {
            if let Some(shown) = claims.shown(name) {
                assert!(!shown.contains(char::is_control));
            }
        }
        // Read again they are the same.
        assert_eq!(JwtClaims::parse(claims.to_json().as_bytes()), Some(claims));
    }
});
