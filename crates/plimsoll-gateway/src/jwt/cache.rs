//! The tokens that a worker has verified.
//!
//! A token is found by a hash of its end, with a key of this process, and has to be the same in all of its bytes. The end is
//! a part of a signature, which clients cannot choose, and only tokens that were verified are kept: neither another token nor the
//! time that a look-up takes tells anything about one.

use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroUsize;
use std::rc::Rc;

use lru::LruCache;

use super::VerifiedToken;

/// Bytes of a token that is kept; longer ones are verified each time.
const MOST_BYTES: usize = 4096;

/// Bytes at the end of a token that are hashed: 48 of its signature.
const HASHED: usize = 64;

/// Verified tokens, those that were used last.
pub(crate) struct TokenCache {
    /// By the hashes of their ends.
    tokens: Option<LruCache<u64, Known>>,
    key: RandomState,
}

/// A token with what it says.
type Known = (Box<str>, Rc<VerifiedToken>);

impl TokenCache {
    /// - `most`: tokens that are kept; none with 0.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            tokens: NonZeroUsize::new(most).map(LruCache::new),
            key: RandomState::new(),
        }
    }

    fn hash(&self, token: &str) -> u64 {
        let bytes = token.as_bytes();
        let start = bytes.len().saturating_sub(HASHED);
        self.key.hash_one(bytes.get(start..))
    }

    /// The token, if it was verified by keys that are current and holds at `now`, in seconds since 1970.
    ///
    /// - `is_current`: whether the keys of an issuer, by its number, are of that version still.
    pub(crate) fn find(
        &mut self,
        token: &str,
        is_current: impl Fn((usize, u64)) -> bool,
        now: f64,
    ) -> Option<Rc<VerifiedToken>> {
        let hash = self.hash(token);
        let tokens = self.tokens.as_mut()?;
        let (known, found) = tokens.get(&hash)?;
        if **known != *token {
            return None;
        }
        if is_current(found.keys) && found.validity.holds_at(now) {
            return Some(Rc::clone(found));
        }
        tokens.pop(&hash);
        None
    }

    pub(crate) fn keep(&mut self, token: &str, verified: &Rc<VerifiedToken>) {
        let hash = self.hash(token);
        if let Some(tokens) = &mut self.tokens
            && token.len() <= MOST_BYTES
        {
            tokens.push(hash, (Box::from(token), Rc::clone(verified)));
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_client::jwt::{JwtClaims, JwtValidity};

    use super::*;

    #[test]
    fn a_token_is_found_by_all_of_its_bytes_until_it_ends_or_its_keys_change() {
        let verified = |until| {
            let token = VerifiedToken::of_session(JwtClaims::default(), JwtValidity::until(until));
            Rc::new(token)
        };
        let end = "x".repeat(100);
        let (one, other) = (format!("a.{end}"), format!("b.{end}"));
        let mut cache = TokenCache::new(2);
        cache.keep(&one, &verified(10.0));
        assert!(cache.find(&one, |_| true, 9.0).is_some());
        assert!(
            cache.find(&other, |_| true, 9.0).is_none(),
            "it has the same end"
        );
        assert!(cache.find(&one, |_| true, 10.0).is_none());
        assert!(
            cache.find(&one, |_| true, 9.0).is_none(),
            "what has ended is forgotten"
        );
        cache.keep(&one, &verified(10.0));
        assert!(cache.find(&one, |_| false, 9.0).is_none());
        for token in ["p", "q", "r"] {
            cache.keep(token, &verified(10.0));
        }
        assert!(
            cache.find("p", |_| true, 0.0).is_none() && cache.find("r", |_| true, 0.0).is_some()
        );
        let long = "x".repeat(5000);
        cache.keep(&long, &verified(10.0));
        assert!(cache.find(&long, |_| true, 0.0).is_none());
        let mut none = TokenCache::new(0);
        none.keep("a", &verified(10.0));
        assert!(none.find("a", |_| true, 0.0).is_none());
    }
}
