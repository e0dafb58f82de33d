//! The last exchanges of a mock with real servers, which its admin API makes mappings of.
//!
//! They are kept only where they can be read. Bounded in number and in bytes: the oldest go first.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::MOST_EXCHANGES;
use super::exchange::{ExchangeHead, KeptExchange};

/// Bytes of the contents that are kept, as much as the journal keeps of requests.
const MOST_BYTES: usize = 64 << 20;

/// Exchanges, numbered from 1.
#[derive(Debug, Default)]
pub(crate) struct ProxiedExchanges {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    exchanges: VecDeque<(u64, Arc<KeptExchange>)>,
    bytes: usize,
    count: u64,
    /// The number of the last one that was forgotten on purpose.
    forgotten: u64,
}

/// Exchanges since a number.
#[derive(Debug)]
pub(crate) struct ProxiedSince {
    /// The oldest first.
    pub(crate) exchanges: Vec<Arc<KeptExchange>>,
    /// How many of them had to make room.
    pub(crate) dropped: u64,
}

impl ProxiedExchanges {
    /// Keeps an exchange.
    ///
    /// - `content`: absent if it is too long to be kept.
    pub(crate) fn note(&self, head: ExchangeHead, content: Option<Bytes>) {
        let Some(exchange) = content.and_then(|content| head.with_content(content)) else {
            return;
        };
        let mut state = self.lock();
        state.count += 1;
        state.bytes += exchange.bytes();
        let number = state.count;
        state.exchanges.push_back((number, Arc::new(exchange)));
        while state.exchanges.len() > MOST_EXCHANGES || state.bytes > MOST_BYTES {
            let Some((_, oldest)) = state.exchanges.pop_front() else {
                break;
            };
            state.bytes -= oldest.bytes();
        }
    }

    /// The number of the last one.
    pub(crate) fn last(&self) -> u64 {
        self.lock().count
    }

    /// Those behind a number; 0 for all.
    pub(crate) fn since(&self, number: u64) -> ProxiedSince {
        let state = self.lock();
        let number = number.max(state.forgotten);
        let newer = state.exchanges.iter().filter(|(it, _)| *it > number);
        let exchanges: Vec<_> = newer.map(|(_, exchange)| Arc::clone(exchange)).collect();
        let count = state.count.saturating_sub(number);
        ProxiedSince {
            dropped: count - exchanges.len() as u64,
            exchanges,
        }
    }

    /// Forgets all; numbers go on.
    pub(crate) fn clear(&self) {
        let mut state = self.lock();
        state.bytes = 0;
        state.forgotten = state.count;
        let exchanges = std::mem::take(&mut state.exchanges);
        drop(state);
        drop(exchanges);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;
    use crate::request::KeptRequest;

    #[test]
    fn the_oldest_make_room_and_are_counted() {
        let proxied = ProxiedExchanges::default();
        let note = |bytes: usize, status| {
            let head = ExchangeHead::made(KeptRequest::made("GET", "/a"), status);
            proxied.note(head, Some(Bytes::from(vec![0; bytes])));
        };
        note(30 << 20, StatusCode::OK);
        let first = proxied.last();
        note(30 << 20, StatusCode::OK);
        note(30 << 20, StatusCode::OK);
        // No rule can answer so.
        note(1, StatusCode::SWITCHING_PROTOCOLS);
        let all = proxied.since(0);
        assert_eq!((all.exchanges.len(), all.dropped), (2, 1));
        let newer = proxied.since(first);
        assert_eq!((newer.exchanges.len(), newer.dropped), (2, 0));
        proxied.clear();
        let left = proxied.since(0);
        assert_eq!((left.exchanges.len(), left.dropped), (0, 0));
    }
}
