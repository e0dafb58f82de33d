//! Rate limits: a bucket of tokens for each client, which fills evenly.
//!
//! A bucket is kept as one instant, the time at which it would be full (the generic cell rate algorithm).
//! All workers share the buckets. Responses say what is left by `ratelimit-policy` and `ratelimit`
//! (draft-ietf-httpapi-ratelimit-headers-10).

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use plimsoll_model::Clock;
use plimsoll_wire::SystemClock;

use crate::action::{Action, Answer};
use crate::message::request::Request;
use crate::message::response::Response;
use crate::middleware::limit_key::{Client, LimitKey};

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LEFT: HeaderName = HeaderName::from_static("ratelimit");

/// Request rate that each client is allowed.
#[derive(Debug)]
pub struct RateLimit {
    name: &'static str,
    key: LimitKey,
    /// Tokens that a full bucket holds.
    burst: u32,
    /// Tokens behind which requests wait until the rate has refilled one for each.
    at_once: u32,
    /// The status of what is beyond the limit.
    status: StatusCode,
    /// Time in which one token is refilled.
    interval: Duration,
    buckets: Mutex<Buckets>,
}

/// Bucket of all clients that find no bucket of their own.
const OVERFLOW: Client = [0xff; 32];

/// No more often are full buckets looked for.
const SWEEP: Duration = Duration::from_secs(1);

/// How many requests a client may send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RatePlan {
    /// The name of the policy, as clients see it.
    pub name: &'static str,
    /// What distinguishes clients.
    pub key: LimitKey,
    /// So many in each window.
    pub requests: u32,
    /// The time that `requests` are for.
    pub window: Duration,
    /// So many in a row, if not as many as in a window.
    pub burst: Option<u32>,
    /// So many of a burst at once, if not all of it: further ones wait until the rate lets them through.
    pub at_once: Option<u32>,
    /// The status of those beyond.
    pub status: StatusCode,
    /// Buckets at a time; more clients share one.
    pub clients: usize,
}

#[derive(Debug)]
struct Buckets {
    full_at: HashMap<Client, Instant>,
    most: usize,
    swept: Option<Instant>,
}

/// The answer of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BucketAnswer {
    /// When to ask again, if nothing was given.
    refused: Option<Duration>,
    /// Until the request may go on.
    wait: Duration,
    /// Tokens that are left.
    left: u32,
    /// Until it is full.
    full_in: Duration,
}

impl RateLimit {
    /// A limit with full buckets.
    pub fn new(plan: RatePlan) -> Self {
        let requests = plan.requests.max(1);
        let burst = plan.burst.unwrap_or(requests).max(1);
        Self {
            name: plan.name,
            key: plan.key,
            burst,
            at_once: plan.at_once.unwrap_or(burst),
            status: plan.status,
            interval: (plan.window / requests).max(Duration::from_nanos(1)),
            buckets: Mutex::new(Buckets {
                full_at: HashMap::new(),
                most: plan.clients.max(1),
                swept: None,
            }),
        }
    }

    /// What distinguishes clients.
    pub(super) fn key(&self) -> &LimitKey {
        &self.key
    }

    /// Whether there is a token now.
    fn has_token(&self, client: Client, now: Instant) -> bool {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let full_in = buckets.bucket(client, now).saturating_duration_since(now);
        full_in + self.interval <= self.interval.saturating_mul(self.burst)
    }

    fn count_request(&self, client: Client, now: Instant) -> BucketAnswer {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let full_at = buckets.bucket(client, now);
        let capacity = self.interval.saturating_mul(self.burst);
        let before = full_at.saturating_duration_since(now);
        let after = before + self.interval;
        if let Some(too_much) = after.checked_sub(capacity)
            && !too_much.is_zero()
        {
            return BucketAnswer {
                refused: Some(too_much),
                wait: Duration::ZERO,
                left: 0,
                full_in: before,
            };
        }
        *full_at = now + after;
        let left = capacity.saturating_sub(after).as_nanos() / self.interval.as_nanos();
        let at_once = self.interval.saturating_mul(self.at_once);
        BucketAnswer {
            refused: None,
            wait: after.saturating_sub(at_once),
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
    /// When the bucket of a client is full; a new one is.
    fn bucket(&mut self, client: Client, now: Instant) -> &mut Instant {
        let mut client = client;
        if self.full_at.len() >= self.most && !self.full_at.contains_key(&client) {
            if self.swept.is_none_or(|swept| now >= swept + SWEEP) {
                self.swept = Some(now);
                self.full_at.retain(|_, full_at| *full_at > now);
            }
            if self.full_at.len() >= self.most {
                client = OVERFLOW;
            }
        }
        self.full_at.entry(client).or_insert(now)
    }
}

/// Whole seconds, rounded up.
fn seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// Lets another action answer those who may ask, by all limits.
pub(super) struct Limited {
    limits: Arc<[Arc<RateLimit>]>,
    clock: SystemClock,
    inner: Rc<dyn Action>,
}

impl Limited {
    pub(super) fn new(limits: Arc<[Arc<RateLimit>]>, inner: Rc<dyn Action>) -> Self {
        Self {
            limits,
            clock: SystemClock,
            inner,
        }
    }

    /// What the limits give the clients of a request; only the one that refuses if one does.
    fn count_request(&self, request: &Request<'_>) -> Vec<(Arc<RateLimit>, BucketAnswer)> {
        let now = self.clock.now();
        let clients = self.limits.iter();
        let clients = clients.filter_map(|limit| Some((limit, limit.key.client(request)?)));
        let clients: Vec<_> = clients.collect();
        // All are checked before any takes a token: a rejected request takes none.
        let has_none =
            |(limit, client): &&(&Arc<RateLimit>, Client)| !limit.has_token(*client, now);
        let refusing = match clients.len() {
            0 | 1 => None,
            _ => clients.iter().find(has_none),
        };
        let asked = match refusing {
            Some(refusing) => std::slice::from_ref(refusing),
            None => clients.as_slice(),
        };
        let given = asked.iter();
        given
            .map(|(limit, client)| (Arc::clone(limit), limit.count_request(*client, now)))
            .collect()
    }
}

impl Action for Limited {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let given = self.count_request(request);
        let refused = given
            .iter()
            .find_map(|(limit, given)| Some((limit, given, given.refused?)));
        if let Some((limit, given, wait)) = refused {
            let wait = HeaderValue::from(seconds(wait));
            let mut response =
                Response::text(limit.status, "too many requests\n").with_field(RETRY_AFTER, wait);
            limit.report(*given, response.fields_mut());
            return Answer::now(response);
        }
        let wait = given.iter().map(|(_, given)| given.wait).max();
        let answer = match wait.filter(|wait| !wait.is_zero()) {
            None => self.inner.handle(request),
            Some(wait) => {
                let (request, inner) = (request.into_owned(), Rc::clone(&self.inner));
                Answer::Later(Box::pin(async move {
                    tokio::time::sleep(wait).await;
                    match inner.handle(&request.request()) {
                        Answer::Now(outcome) => outcome,
                        Answer::Later(later) => later.await,
                    }
                }))
            }
        };
        if given.is_empty() {
            return answer;
        }
        answer.map(move |mut response| {
            for (limit, given) in &given {
                limit.report(*given, response.fields_mut());
            }
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
        RateLimit::new(RatePlan {
            name: "x",
            key: LimitKey::All,
            requests,
            window,
            burst: Some(burst),
            at_once: None,
            status: StatusCode::TOO_MANY_REQUESTS,
            clients,
        })
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_the_rate() {
        let (limit, clock) = (limit(10, 3, 9), VirtualClock::new());
        let take = || limit.count_request([1; 32], clock.now());
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
        assert_eq!(limit.count_request([2; 32], clock.now()).left, 2);
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
    fn what_is_beyond_those_at_once_waits_for_the_rate() {
        let (mut limit, clock) = (limit(10, 5, 9), VirtualClock::new());
        limit.at_once = 2;
        let waits: Vec<_> = std::iter::repeat_with(|| limit.count_request([1; 32], clock.now()))
            .take(6)
            .map(|it| (it.refused.is_none(), it.wait.as_millis()))
            .collect();
        let given = [0, 0, 100, 200, 300].map(|wait| (true, wait));
        assert_eq!(waits, [given.as_slice(), &[(false, 0)]].concat());
    }

    #[test]
    fn the_table_has_a_bound_and_full_buckets_make_room() {
        let (limit, clock) = (limit(1, 1, 2), VirtualClock::new());
        let take = |key: u8| {
            limit
                .count_request([key; 32], clock.now())
                .refused
                .is_none()
        };
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
                if limit.count_request([0; 32], clock.now()).refused.is_none() {
                    given += 1.0;
                }
                let most = f64::from(burst) + passed * f64::from(requests);
                prop_assert!(given <= most + 0.001, "{} > {}", given, most);
            }
        }
    }
}
