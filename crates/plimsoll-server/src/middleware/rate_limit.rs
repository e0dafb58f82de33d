//! Rate limits: a bucket of tokens for each client, which fills evenly.
//!
//! A bucket is kept as one instant, the time at which it would be full (the generic cell rate algorithm).
//! All workers share the buckets. Responses say what is left by `ratelimit-policy` and `ratelimit`
//! (draft-ietf-httpapi-ratelimit-headers-10).

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use plimsoll_model::Clock;
use plimsoll_wire::SystemClock;
use ring::digest::{SHA256, digest};

use crate::action::{Action, Answer};
use crate::message::request::Request;
use crate::message::response::Response;
use crate::place::Template;

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LEFT: HeaderName = HeaderName::from_static("ratelimit");

/// Request rate that each client is allowed.
#[derive(Debug)]
pub struct RateLimit {
    name: &'static str,
    key: LimitKey,
    /// Tokens that a full bucket holds.
    burst: u32,
    /// Time in which one token is refilled.
    interval: Duration,
    buckets: Mutex<Buckets>,
}

/// The properties that distinguish clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitKey {
    /// Its address; of IPv6 the first 64 bits, which belong to one subscriber.
    Address,
    /// The value of this field; those without it share a bucket.
    Header(HeaderName),
    /// A text with places; requests for which it is empty are not limited.
    Template(Template),
    /// Nothing: all share one bucket.
    All,
}

type Key = [u8; 32];

/// Bucket of all clients that find no bucket of their own.
const OVERFLOW: Key = [0xff; 32];

/// No more often are full buckets looked for.
const SWEEP: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Buckets {
    full_at: HashMap<Key, Instant>,
    most: usize,
    swept: Option<Instant>,
}

/// The answer of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BucketAnswer {
    /// When to ask again, if nothing was given.
    refused: Option<Duration>,
    /// Tokens that are left.
    left: u32,
    /// Until it is full.
    full_in: Duration,
}

impl RateLimit {
    /// - `name`: of the policy, as clients see it.
    /// - `requests` may come in each `window`, and so many at once, or `burst`.
    /// - `clients`: buckets at a time; more clients share one.
    pub fn new(
        name: &'static str,
        key: LimitKey,
        requests: u32,
        window: Duration,
        burst: Option<u32>,
        clients: usize,
    ) -> Self {
        let requests = requests.max(1);
        Self {
            name,
            key,
            burst: burst.unwrap_or(requests).max(1),
            interval: (window / requests).max(Duration::from_nanos(1)),
            buckets: Mutex::new(Buckets {
                full_at: HashMap::new(),
                most: clients.max(1),
                swept: None,
            }),
        }
    }

    /// The key of a request; `None` if it is not limited.
    fn key(&self, request: &Request<'_>) -> Option<Key> {
        let mut key = Key::default();
        match &self.key {
            LimitKey::All => {}
            LimitKey::Address => {
                let address = match request.peer.ip().to_canonical() {
                    IpAddr::V4(address) => address.to_ipv6_mapped(),
                    IpAddr::V6(address) => {
                        Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))
                    }
                };
                key[..16].copy_from_slice(&address.octets());
            }
            LimitKey::Header(name) => {
                if let Some(value) = request.header(name.as_str()) {
                    key.copy_from_slice(digest(&SHA256, value).as_ref());
                }
            }
            LimitKey::Template(template) => {
                let mut text = Vec::new();
                template.fill(request, &mut text);
                if text.is_empty() {
                    return None;
                }
                key.copy_from_slice(digest(&SHA256, &text).as_ref());
            }
        }
        Some(key)
    }

    fn take(&self, key: Key, now: Instant) -> BucketAnswer {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let full_at = buckets.bucket(key, now);
        let capacity = self.interval.saturating_mul(self.burst);
        let before = full_at.saturating_duration_since(now);
        let after = before + self.interval;
        if let Some(too_much) = after.checked_sub(capacity)
            && !too_much.is_zero()
        {
            return BucketAnswer {
                refused: Some(too_much),
                left: 0,
                full_in: before,
            };
        }
        *full_at = now + after;
        let left = capacity.saturating_sub(after).as_nanos() / self.interval.as_nanos();
        BucketAnswer {
            refused: None,
            left: u32::try_from(left).unwrap_or(u32::MAX),
            full_in: after,
        }
    }

    fn report(&self, given: BucketAnswer, fields: &mut HeaderMap) {
        let window = seconds(self.interval.saturating_mul(self.burst));
        let policy = format!("\"{}\";q={};w={window}", self.name, self.burst);
        let left = format!(
            "\"{}\";r={};t={}",
            self.name,
            given.left,
            seconds(given.full_in)
        );
        for (name, value) in [(POLICY, policy), (LEFT, left)] {
            if let Ok(value) = HeaderValue::try_from(value) {
                fields.append(name, value);
            }
        }
    }
}

impl Buckets {
    /// When the bucket of `key` is full; a new one is.
    fn bucket(&mut self, key: Key, now: Instant) -> &mut Instant {
        let mut key = key;
        if self.full_at.len() >= self.most && !self.full_at.contains_key(&key) {
            if self.swept.is_none_or(|swept| now >= swept + SWEEP) {
                self.swept = Some(now);
                self.full_at.retain(|_, full_at| *full_at > now);
            }
            if self.full_at.len() >= self.most {
                key = OVERFLOW;
            }
        }
        self.full_at.entry(key).or_insert(now)
    }
}

/// Whole seconds, rounded up.
fn seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// Lets another action answer those who may ask.
pub(super) struct Limited {
    limit: Arc<RateLimit>,
    clock: SystemClock,
    inner: Rc<dyn Action>,
}

impl Limited {
    pub(super) fn new(limit: Arc<RateLimit>, inner: Rc<dyn Action>) -> Self {
        Self {
            limit,
            clock: SystemClock,
            inner,
        }
    }
}

impl Action for Limited {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let Some(key) = self.limit.key(request) else {
            return self.inner.handle(request);
        };
        let given = self.limit.take(key, self.clock.now());
        if let Some(wait) = given.refused {
            let wait = HeaderValue::from(seconds(wait));
            let mut response = Response::text(StatusCode::TOO_MANY_REQUESTS, "too many requests\n")
                .with_field(RETRY_AFTER, wait);
            self.limit.report(given, response.fields_mut());
            return Answer::now(response);
        }
        let limit = Arc::clone(&self.limit);
        self.inner.handle(request).map(move |mut response| {
            limit.report(given, response.fields_mut());
            response
        })
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_testkit::VirtualClock;
    use proptest::prelude::*;

    use super::*;

    fn limit(requests: u32, burst: u32, clients: usize) -> RateLimit {
        let window = Duration::from_secs(1);
        RateLimit::new("x", LimitKey::All, requests, window, Some(burst), clients)
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_the_rate() {
        let (limit, clock) = (limit(10, 3, 9), VirtualClock::new());
        let take = || limit.take([1; 32], clock.now());
        for left in [2, 1, 0] {
            assert_eq!(
                (take().refused, take_left(&limit, clock.now())),
                (None, left)
            );
        }
        assert_eq!(take().refused, Some(Duration::from_millis(100)));
        assert_eq!(take().full_in, Duration::from_millis(300));
        clock.advance(Duration::from_millis(99));
        assert_eq!(take().refused, Some(Duration::from_millis(1)));
        clock.advance(Duration::from_millis(1));
        assert_eq!(take().refused, None);
        // Another client has its own bucket.
        assert_eq!(limit.take([2; 32], clock.now()).left, 2);
    }

    /// The tokens that are left, without taking one.
    fn take_left(limit: &RateLimit, now: Instant) -> u32 {
        let mut buckets = limit.buckets.lock().unwrap();
        let full_in = buckets.bucket([1; 32], now).saturating_duration_since(now);
        u32::try_from(
            (limit.interval * limit.burst)
                .saturating_sub(full_in)
                .as_nanos()
                / limit.interval.as_nanos(),
        )
        .unwrap()
    }

    #[test]
    fn the_table_has_a_bound_and_full_buckets_make_room() {
        let (limit, clock) = (limit(1, 1, 2), VirtualClock::new());
        let take = |key: u8| limit.take([key; 32], clock.now()).refused.is_none();
        assert!(take(1) && take(2));
        // The third and the fourth share one.
        assert!(take(3) && !take(4) && !take(1));
        assert_eq!(limit.buckets.lock().unwrap().full_at.len(), 3);
        clock.advance(Duration::from_secs(2));
        assert!(take(4) && take(5));
        assert_eq!(limit.buckets.lock().unwrap().full_at.len(), 2);
    }

    proptest! {
        #[test]
        fn never_more_than_burst_and_rate(
            requests in 1u32..50,
            burst in 1u32..50,
            steps in prop::collection::vec(0u64..200, 1..300),
        ) {
            let (limit, clock) = (limit(requests, burst, 1), VirtualClock::new());
            let mut given = 0.0;
            let mut passed = 0.0;
            for step in steps {
                clock.advance(Duration::from_millis(step));
                passed += step as f64 / 1000.0;
                if limit.take([0; 32], clock.now()).refused.is_none() {
                    given += 1.0;
                }
                let most = f64::from(burst) + passed * f64::from(requests);
                prop_assert!(given <= most + 0.001, "{} > {}", given, most);
            }
        }
    }
}
