//! States of scenarios: what has happened before decides what is answered.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::request::{RequestView, values};
use crate::store::Store;

/// The state that every scenario begins in.
pub const STARTED: &str = "Started";

/// Bytes of the names and states of all clients by default: over 100,000 clients with a session ID each.
pub const MOST_BYTES: u64 = 16 << 20;

/// The size of a client's state besides its texts, approximately.
const OVERHEAD: u64 = 64;

/// The states of all scenarios and what scripts keep, shared by all workers.
#[derive(Debug, Clone, Default)]
pub struct States {
    scenarios: Arc<Mutex<Scenarios>>,
    /// The store of scripts.
    pub store: Store,
}

#[derive(Debug)]
struct Scenarios {
    by_name: HashMap<String, Sessions>,
    bytes: u64,
    most: u64,
    /// Clients that found no room.
    refused: u64,
}

impl Default for Scenarios {
    fn default() -> Self {
        Self {
            by_name: HashMap::new(),
            bytes: 0,
            most: MOST_BYTES,
            refused: 0,
        }
    }
}

/// There is no room for the state of another client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "no room for the state of another client: the scenarios have {0} bytes (`limits.sessions`)"
)]
pub struct SessionsFull(u64);

/// Memory that the states of scenarios take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionsUse {
    /// Bytes of names and states.
    pub bytes: u64,
    /// Bytes that they may take.
    pub most: u64,
    /// Number of states refused because there was no room.
    pub refused: u64,
}

/// The states of one scenario, by the client that is in it.
type Sessions = HashMap<String, String>;

/// The property that identifies clients of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Session {
    /// They are not: there is one state for all.
    All,
    /// By a cookie.
    Cookie(String),
    /// By a header field.
    Header(String),
    /// By their address.
    Address,
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Cookie(name) => write!(f, "cookie:{name}"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Address => f.write_str("address"),
        }
    }
}

impl Session {
    /// Which client a request is from.
    fn id_of(&self, request: &RequestView<'_>) -> String {
        match self {
            Self::All => String::new(),
            Self::Cookie(name) => values(request.cookies(), name)
                .next()
                .unwrap_or_default()
                .to_owned(),
            Self::Header(name) => {
                let value = request.header(name).unwrap_or_default();
                String::from_utf8_lossy(value).into_owned()
            }
            Self::Address => request.peer.ip().to_string(),
        }
    }
}

/// A scenario as a rule sees it.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The store of its state.
    pub states: States,
    /// Its name.
    pub name: String,
    /// Whose state it is.
    pub session: Session,
}

impl Scenario {
    /// Whether it is in that state for the client that asks.
    pub fn is_in(&self, state: &str, request: &RequestView<'_>) -> bool {
        self.state(request) == state
    }

    /// Its state for the client that asks.
    pub fn state(&self, request: &RequestView<'_>) -> String {
        let sessions = self.states.lock();
        let state = sessions
            .by_name
            .get(&self.name)
            .and_then(|it| it.get(&self.session.id_of(request)));
        state.map_or(STARTED, String::as_str).to_owned()
    }

    /// Which request this is of the client that asks, counted from 1, in a scenario that counts.
    pub fn number(&self, request: &RequestView<'_>) -> u64 {
        counted(&self.state(request)).saturating_add(1)
    }

    /// Counts a request of the client that asks; fails if there is no room.
    pub fn count(&self, request: &RequestView<'_>) -> Result<(), SessionsFull> {
        let mut all = self.states.lock();
        let session = self.session.id_of(request);
        let sessions = all.by_name.get(&self.name);
        let state = sessions.and_then(|it| it.get(&session));
        let next = state.map_or(0, |state| counted(state)).saturating_add(1);
        all.put(&self.name, session, &next.to_string())
    }

    /// Which client a request is from, by the identifying property.
    pub(crate) fn client(&self, request: &RequestView<'_>) -> String {
        self.session.id_of(request)
    }

    /// From now on it is in `next` for the client that asks, if it is in `from` still; fails if there is no room.
    pub fn go(
        &self,
        from: Option<&str>,
        next: &str,
        request: &RequestView<'_>,
    ) -> Result<(), SessionsFull> {
        let mut all = self.states.lock();
        let session = self.session.id_of(request);
        let sessions = all.by_name.get(&self.name);
        let state = sessions.and_then(|it| it.get(&session));
        if from.is_some_and(|from| from != state.map_or(STARTED, String::as_str)) {
            return Ok(());
        }
        all.put(&self.name, session, next)
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl States {
    /// Bounds what states of clients may take, in bytes.
    pub fn limit(&self, most: u64) {
        self.lock().most = most;
    }

    /// Memory that the states of scenarios take.
    pub fn usage(&self) -> SessionsUse {
        let all = self.lock();
        SessionsUse {
            bytes: all.bytes,
            most: all.most,
            refused: all.refused,
        }
    }

    /// All scenarios begin anew, and what scripts have kept is forgotten.
    pub fn reset(&self) {
        let mut all = self.lock();
        all.by_name.clear();
        all.bytes = 0;
        drop(all);
        self.store.clear();
    }

    /// One scenario begins anew.
    pub fn reset_one(&self, name: &str) {
        let mut all = self.lock();
        let removed = all.by_name.remove(name).unwrap_or_default();
        let bytes: u64 = removed.iter().map(|it| weight(it.0, it.1)).sum();
        all.bytes -= bytes;
    }

    /// The clients of a scenario that have left its beginning, with their states, in order; some of them if there are
    /// more than `most`. A scenario that does not distinguish clients has one without a name.
    pub fn clients(&self, name: &str, most: usize) -> Vec<(String, String)> {
        let all = self.lock();
        let clients = all.by_name.get(name).into_iter().flatten().take(most);
        let mut clients: Vec<_> = clients
            .map(|(client, state)| (client.clone(), state.clone()))
            .collect();
        clients.sort();
        clients
    }

    /// Puts a client of a scenario into a state; fails if there is no room.
    pub fn put(&self, name: &str, client: &str, state: &str) -> Result<(), SessionsFull> {
        self.lock().put(name, client.to_owned(), state)
    }

    fn lock(&self) -> MutexGuard<'_, Scenarios> {
        self.scenarios
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scenarios {
    fn put(&mut self, name: &str, client: String, state: &str) -> Result<(), SessionsFull> {
        let known = self.by_name.get(name).and_then(|it| it.get(&client));
        let before = known.map_or(0, |known| weight(&client, known));
        let after = weight(&client, state);
        let bytes = self.bytes - before + after;
        if after > before && bytes > self.most {
            self.refused += 1;
            return Err(SessionsFull(self.most));
        }
        self.bytes = bytes;
        let sessions = self.by_name.entry(name.to_owned()).or_default();
        sessions.insert(client, state.to_owned());
        Ok(())
    }
}

/// The count that a state is; none in the beginning.
fn counted(state: &str) -> u64 {
    state.parse().unwrap_or(0)
}

fn weight(client: &str, state: &str) -> u64 {
    (client.len() + state.len()) as u64 + OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::KeptRequest;

    #[test]
    fn clients_are_distinguished() {
        let scenario = |session| Scenario {
            states: States::default(),
            name: "cart".to_owned(),
            session,
        };
        let mut one = KeptRequest::made("GET", "/");
        one.fields.push(("cookie".to_owned(), b"sid=1".to_vec()));
        let other = KeptRequest::made("GET", "/");
        let (one, other) = (one.view(), other.view());
        let apart = scenario(Session::Cookie("sid".to_owned()));
        apart.go(Some(STARTED), "full", &one).unwrap();
        assert!(apart.is_in("full", &one) && apart.is_in(STARTED, &other));
        apart.go(Some(STARTED), "lost", &one).unwrap();
        assert!(apart.is_in("full", &one));
        apart.states.reset();
        assert!(apart.is_in(STARTED, &one));
        let together = scenario(Session::All);
        together.go(None, "full", &one).unwrap();
        assert!(together.is_in("full", &other));
    }

    #[test]
    fn requests_are_counted_for_each_client() {
        let scenario = Scenario {
            states: States::default(),
            name: "visits".to_owned(),
            session: Session::Cookie("sid".to_owned()),
        };
        let mut one = KeptRequest::made("GET", "/");
        one.fields.push(("cookie".to_owned(), b"sid=1".to_vec()));
        let other = KeptRequest::made("GET", "/");
        let (one, other) = (one.view(), other.view());
        assert_eq!(scenario.number(&one), 1);
        scenario.count(&one).unwrap();
        scenario.count(&one).unwrap();
        assert_eq!((scenario.number(&one), scenario.number(&other)), (3, 1));
        scenario.states.reset();
        assert_eq!(scenario.number(&one), 1);
    }

    #[test]
    fn clients_that_find_no_room_are_refused_and_counted() {
        let scenario = Scenario {
            states: States::default(),
            name: "cart".to_owned(),
            session: Session::Header("x-client".to_owned()),
        };
        scenario.states.limit(100_000);
        let client = |number: usize| {
            let mut request = KeptRequest::made("GET", "/");
            let value = format!("{number:032768}").into_bytes();
            request.fields.push(("x-client".to_owned(), value));
            request
        };
        let came = (0..10).filter(|number| {
            let request = client(*number);
            scenario.go(None, "full", &request.view()).is_ok()
        });
        assert_eq!(came.count(), 3);
        let usage = scenario.states.usage();
        assert_eq!(usage.refused, 7);
        assert!(usage.bytes <= usage.most);
        // Those that have room keep their states, and may change them.
        assert!(scenario.is_in("full", &client(0).view()));
        assert!(scenario.go(None, "paid", &client(0).view()).is_ok());
        scenario.states.reset_one("cart");
        assert_eq!(scenario.states.usage().bytes, 0);
        assert!(scenario.go(None, "full", &client(9).view()).is_ok());
    }
}
