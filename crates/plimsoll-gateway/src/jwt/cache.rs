//! The tokens that a worker has verified.
//!
//! A token is found by all of its bytes, through a hash with a key of this process: neither another token nor the time that
//! a look-up takes tells anything about it. Only tokens that were verified are kept.

use std::collections::hash_map::RandomState;
use std::num::NonZeroUsize;
use std::rc::Rc;

use lru::LruCache;

use super::VerifiedToken;

/// Bytes of a token that is kept; longer ones are verified each time.
const MOST_BYTES: usize = 4096;

/// Verified tokens, those that were used last.
pub(crate) struct TokenCache(Option<LruCache<Box<str>, Rc<VerifiedToken>, RandomState>>);

impl TokenCache {
    /// - `most`: tokens that are kept; none with 0.
    pub(crate) fn new(most: usize) -> Self {
        let most = NonZeroUsize::new(most);
        Self(most.map(|most| LruCache::with_hasher(most, RandomState::new())))
    }

    /// The token, if it was verified by these keys and holds at `now`, in seconds since 1970.
    pub(crate) fn find(
        &mut self,
        token: &str,
        version: u64,
        now: f64,
    ) -> Option<Rc<VerifiedToken>> {
        let cache = self.0.as_mut()?;
        let found = cache.get(token)?;
        if found.version == version && found.validity.holds_at(now) {
            return Some(Rc::clone(found));
        }
        cache.pop(token);
        None
    }

    pub(crate) fn keep(&mut self, token: &str, verified: &Rc<VerifiedToken>) {
        if let Some(cache) = &mut self.0
            && token.len() <= MOST_BYTES
        {
            cache.push(Box::from(token), Rc::clone(verified));
        }
    }
}
