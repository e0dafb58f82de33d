//! The bearer token of requests (RFC 6750, section 2.1).

use plimsoll_model::Secret;
use ring::hmac;
use ring::rand::SystemRandom;

use crate::server::SampleServerError;

/// A token that is compared in constant time: by its authentication code under a key of this process.
#[derive(Debug)]
pub(super) struct BearerToken {
    key: hmac::Key,
    code: hmac::Tag,
}

impl BearerToken {
    pub(super) fn new(token: &Secret) -> Result<Self, SampleServerError> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        let key = key.map_err(|_| SampleServerError::Random)?;
        Ok(Self {
            code: hmac::sign(&key, token.expose().as_bytes()),
            key,
        })
    }

    /// Whether the value of `authorization` has it.
    pub(super) fn is_in(&self, authorization: Option<&[u8]>) -> bool {
        /// The scheme, whose case does not matter (RFC 9110, section 11.1).
        const SCHEME: &[u8] = b"bearer ";

        let Some((scheme, token)) =
            authorization.and_then(|value| value.split_at_checked(SCHEME.len()))
        else {
            return false;
        };
        let is_token = hmac::verify(&self.key, token.trim_ascii(), self.code.as_ref()).is_ok();
        is_token && scheme.eq_ignore_ascii_case(SCHEME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_itself_is_taken() {
        let token = BearerToken::new(&Secret::new("correct-horse")).unwrap();
        for (field, is_taken) in [
            (Some("Bearer correct-horse"), true),
            (Some("bearer  correct-horse "), true),
            (Some("Bearer correct-hors"), false),
            (Some("Bearer correct-horsee"), false),
            (Some("Basic correct-horse"), false),
            (Some("correct-horse"), false),
            (Some("Bearer "), false),
            (Some(""), false),
            (None, false),
        ] {
            assert_eq!(token.is_in(field.map(str::as_bytes)), is_taken, "{field:?}");
        }
    }
}
