//! Whose orders an agent runs: those that a key signed that its operator trusts.
//!
//! Keys are Ed25519, in the files that OpenSSL writes: `openssl genpkey -algorithm ed25519 -out key.pem` makes one, and
//! `openssl pkey -in key.pem -pubout` prints the half that agents are given.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};

/// What stands before the 32 bytes of a public key (RFC 8410, section 4).
const PUBLIC_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// Bytes of a public key.
const PUBLIC_BYTES: usize = 32;

/// A file that holds no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It is no PEM.
    #[error("it is not a PEM file: {0}")]
    Pem(String),
    /// It has no private key.
    #[error("it has no private key of Ed25519; `openssl genpkey -algorithm ed25519` makes one")]
    Private,
    /// It has something that is no public key.
    #[error(
        "it has a `{0}` that is no public key of Ed25519; `openssl pkey -in KEY -pubout` prints one"
    )]
    Public(String),
    /// It has no key.
    #[error("it has no public key")]
    Empty,
}

/// Signs orders.
#[derive(Debug)]
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// The key of a file.
    pub fn parse(pem: &str) -> Result<Self, KeyError> {
        let parsed = pem::parse(pem).map_err(|error| KeyError::Pem(error.to_string()))?;
        let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(parsed.contents());
        key.map(Self).map_err(|_| KeyError::Private)
    }

    /// The signature of an order, base64.
    pub fn sign(&self, order: &str) -> String {
        STANDARD.encode(self.0.sign(order.as_bytes()))
    }
}

/// Keys whose orders are run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedKeys(Vec<[u8; PUBLIC_BYTES]>);

impl TrustedKeys {
    /// The keys of a file: one or several public keys, one behind the other.
    pub fn parse(pem: &str) -> Result<Self, KeyError> {
        let all = pem::parse_many(pem).map_err(|error| KeyError::Pem(error.to_string()))?;
        let keys = all.iter().map(|one| {
            let key = one.contents().strip_prefix(&PUBLIC_PREFIX);
            let key = key.and_then(|key| key.try_into().ok());
            key.ok_or_else(|| KeyError::Public(one.tag().to_owned()))
        });
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() {
            return Err(KeyError::Empty);
        }
        Ok(Self(keys))
    }

    /// Whether one of the keys signed this order.
    pub fn have_signed(&self, order: &str, signature: &str) -> bool {
        let Ok(signature) = STANDARD.decode(signature) else {
            return false;
        };
        self.0.iter().any(|key| {
            let key = UnparsedPublicKey::new(&ED25519, key);
            key.verify(order.as_bytes(), &signature).is_ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8410, section 10.3.
    const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";

    /// RFC 8410, section 10.1.
    const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";

    /// Another one.
    const OTHER: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n";

    #[test]
    fn an_order_is_trusted_if_one_of_the_keys_signed_it() {
        let key = SigningKey::parse(PRIVATE).unwrap();
        let signature = key.sign("order");
        let trusts = |keys: &str, order: &str, signature: &str| {
            TrustedKeys::parse(keys)
                .unwrap()
                .have_signed(order, signature)
        };
        assert!(trusts(PUBLIC, "order", &signature));
        assert!(trusts(&format!("{OTHER}{PUBLIC}"), "order", &signature));
        assert!(!trusts(OTHER, "order", &signature));
        assert!(!trusts(PUBLIC, "another order", &signature));
        assert!(!trusts(PUBLIC, "order", "AAAA"));
        assert!(!trusts(PUBLIC, "order", "no base64"));
    }

    #[test]
    fn files_without_a_key_are_refused_with_the_reason() {
        assert_eq!(SigningKey::parse(PUBLIC).unwrap_err(), KeyError::Private);
        let private = TrustedKeys::parse(PRIVATE).unwrap_err();
        assert_eq!(private, KeyError::Public("PRIVATE KEY".to_owned()));
        assert!(TrustedKeys::parse("").is_err());
        assert!(matches!(SigningKey::parse("x"), Err(KeyError::Pem(_))));
    }
}
