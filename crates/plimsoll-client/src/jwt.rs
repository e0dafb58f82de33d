//! JSON Web Tokens (RFC 7519) that others signed: verified by the public keys of their issuer, and their claims checked.
//!
//! Pure: keys, time and rules are arguments. A token chooses nothing about its verification but which of the issuer's keys
//! signed it: keys and URLs in its header (`jwk`, `jku`, `x5c`, `x5u`) are ignored, extensions (`crit`) refused, and an
//! algorithm has to fit the kind of the key, so neither `none` nor an HMAC with a public key is ever accepted (RFC 8725).

mod algorithm;

mod claims;

mod keys;

mod rules;

mod token;

pub use crate::jwt::algorithm::JwtAlgorithm;
pub use crate::jwt::claims::JwtClaims;
pub use crate::jwt::keys::{JwtKeySet, JwtKeySetError};
pub use crate::jwt::rules::{JwtRules, JwtValidity, RequiredClaim};
pub use crate::jwt::token::{
    JwtError, MOST_JWT_BYTES, unverified_issuer, verify_jwt, verify_typed_jwt,
};

#[cfg(test)]
mod tests;
