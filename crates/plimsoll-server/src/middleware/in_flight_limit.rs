//! Limits of the requests that a client has in flight, from their heads to the last bytes of their responses.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use http::StatusCode;

use crate::action::{Action, Answer, Outcome, TakeOver};
use crate::message::request::Request;
use crate::message::response::Response;
use crate::middleware::limit_key::{Client, LimitKey};

/// How many requests a client may have in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InFlightPlan {
    /// What distinguishes clients.
    pub key: LimitKey,
    /// So many at a time.
    pub requests: u32,
    /// The status of those beyond.
    pub status: StatusCode,
}

/// The requests in flight of all clients; all workers share it.
#[derive(Debug)]
pub struct InFlightLimit {
    plan: InFlightPlan,
    /// Only clients that have some: no more of them than there are requests.
    counts: Mutex<HashMap<Client, u32>>,
}

impl InFlightLimit {
    /// A limit without requests.
    pub fn new(plan: InFlightPlan) -> Self {
        Self {
            plan,
            counts: Mutex::default(),
        }
    }

    /// What distinguishes clients.
    pub(super) fn key(&self) -> &LimitKey {
        &self.plan.key
    }

    /// Counts a request of a client until the value is dropped; `None` if it has as many as it may.
    fn begin(self: &Arc<Self>, client: Client) -> Option<Flight> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(client).or_default();
        if *count >= self.plan.requests {
            return None;
        }
        *count += 1;
        Some(Flight {
            limit: Arc::clone(self),
            client,
        })
    }
}

/// A request in flight.
struct Flight {
    limit: Arc<InFlightLimit>,
    client: Client,
}

impl Drop for Flight {
    fn drop(&mut self) {
        let counts = self.limit.counts.lock();
        let mut counts = counts.unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut entry) = counts.entry(self.client) {
            match entry.get().checked_sub(1) {
                None | Some(0) => _ = entry.remove(),
                Some(left) => *entry.get_mut() = left,
            }
        }
    }
}

/// Lets another action answer those who have few enough requests in flight, by all limits.
pub(super) struct Counted {
    limits: Arc<[Arc<InFlightLimit>]>,
    inner: Rc<dyn Action>,
}

impl Counted {
    pub(super) fn new(limits: Arc<[Arc<InFlightLimit>]>, inner: Rc<dyn Action>) -> Self {
        Self { limits, inner }
    }
}

impl Action for Counted {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let mut flights = Vec::new();
        for limit in &*self.limits {
            let Some(client) = limit.plan.key.client(request) else {
                continue;
            };
            let Some(flight) = limit.begin(client) else {
                let text = "too many requests in flight\n";
                return Answer::now(Response::text(limit.plan.status, text));
            };
            flights.push(flight);
        }
        if flights.is_empty() {
            return self.inner.handle(request);
        }
        let flights = Rc::new(flights);
        request.hold(Rc::clone(&flights));
        match self.inner.handle(request) {
            Answer::Now(outcome) => Answer::Now(held_on(outcome, flights)),
            Answer::Later(later) => {
                Answer::Later(Box::pin(async move { held_on(later.await, flights) }))
            }
        }
    }

    fn methods(&self) -> Option<&'static str> {
        self.inner.methods()
    }
}

/// A connection that is taken over is in flight until its end.
fn held_on(outcome: Outcome, flights: Rc<Vec<Flight>>) -> Outcome {
    let holding = |take_over: TakeOver| -> TakeOver {
        Box::new(move |stream, drain| {
            Box::pin(async move {
                take_over(stream, drain).await;
                drop(flights);
            })
        })
    };
    match outcome {
        Outcome::Respond(response) => Outcome::Respond(response),
        Outcome::Upgrade(response, take_over) => Outcome::Upgrade(response, holding(take_over)),
        Outcome::Raw(take_over) => Outcome::Raw(holding(take_over)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_have_so_many_in_flight_and_are_forgotten_after() {
        let limit = Arc::new(InFlightLimit::new(InFlightPlan {
            key: LimitKey::All,
            requests: 2,
            status: StatusCode::SERVICE_UNAVAILABLE,
        }));
        let (first, second) = (limit.begin([1; 32]), limit.begin([1; 32]));
        assert!(first.is_some() && second.is_some());
        assert!(limit.begin([1; 32]).is_none());
        assert!(limit.begin([2; 32]).is_some());
        drop(first);
        assert!(limit.begin([1; 32]).is_some());
        drop(second);
        assert!(limit.counts.lock().unwrap().is_empty());
    }
}
