//! States of scenarios: what has happened before decides what is answered.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::asked::{Asked, values};
use crate::store::Store;

/// The state that every scenario begins in.
pub const STARTED: &str = "Started";

/// More clients than these are not told apart: all of a scenario begin anew.
const MOST_SESSIONS: usize = 100_000;

/// The states of all scenarios and what scripts keep, shared by all workers.
#[derive(Debug, Clone, Default)]
pub struct States {
    scenarios: Arc<Mutex<HashMap<String, Sessions>>>,
    /// What scripts keep.
    pub store: Store,
}

/// The states of one scenario, by the client that is in it.
type Sessions = HashMap<String, String>;

/// By what clients of a scenario are told apart.
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
    fn of(&self, asked: &Asked<'_>) -> String {
        match self {
            Self::All => String::new(),
            Self::Cookie(name) => values(asked.cookies(), name)
                .next()
                .unwrap_or_default()
                .to_owned(),
            Self::Header(name) => {
                let value = asked.header(name).unwrap_or_default();
                String::from_utf8_lossy(value).into_owned()
            }
            Self::Address => asked.peer.ip().to_string(),
        }
    }
}

/// A scenario as a rule sees it.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Where its state lies.
    pub states: States,
    /// What it is called.
    pub name: String,
    /// Whose state it is.
    pub session: Session,
}

impl Scenario {
    /// Whether it is in that state for the client that asks.
    pub fn is_in(&self, state: &str, asked: &Asked<'_>) -> bool {
        self.state(asked) == state
    }

    /// Its state for the client that asks.
    pub fn state(&self, asked: &Asked<'_>) -> String {
        let sessions = self.states.lock();
        let state = sessions
            .get(&self.name)
            .and_then(|it| it.get(&self.session.of(asked)));
        state.map_or(STARTED, String::as_str).to_owned()
    }

    /// Which client a request is from, by what tells them apart.
    pub(crate) fn client(&self, asked: &Asked<'_>) -> String {
        self.session.of(asked)
    }

    /// From now on it is in `next` for the client that asks, if it is in `from` still.
    pub fn go(&self, from: Option<&str>, next: &str, asked: &Asked<'_>) {
        let mut all = self.states.lock();
        let sessions = all.entry(self.name.clone()).or_default();
        let session = self.session.of(asked);
        let state = sessions.get(&session).map_or(STARTED, String::as_str);
        if from.is_some_and(|from| from != state) {
            return;
        }
        if sessions.len() >= MOST_SESSIONS && !sessions.contains_key(&session) {
            sessions.clear();
        }
        sessions.insert(session, next.to_owned());
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl States {
    /// All scenarios begin anew, and what scripts have kept is forgotten.
    pub fn reset(&self) {
        self.lock().clear();
        self.store.clear();
    }

    /// One scenario begins anew.
    pub fn reset_one(&self, name: &str) {
        self.lock().remove(name);
    }

    /// The clients of a scenario that have left its beginning, with their states, in order; some of them if there are
    /// more than `most`. A scenario that does not tell clients apart has one without a name.
    pub fn clients(&self, name: &str, most: usize) -> Vec<(String, String)> {
        let all = self.lock();
        let clients = all.get(name).into_iter().flatten().take(most);
        let mut clients: Vec<_> = clients
            .map(|(client, state)| (client.clone(), state.clone()))
            .collect();
        clients.sort();
        clients
    }

    /// Puts a client of a scenario into a state.
    pub fn put(&self, name: &str, client: &str, state: &str) {
        let mut all = self.lock();
        let sessions = all.entry(name.to_owned()).or_default();
        if sessions.len() < MOST_SESSIONS || sessions.contains_key(client) {
            sessions.insert(client.to_owned(), state.to_owned());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Sessions>> {
        self.scenarios
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asked::KeptRequest;

    #[test]
    fn clients_are_told_apart() {
        let scenario = |session| Scenario {
            states: States::default(),
            name: "cart".to_owned(),
            session,
        };
        let mut one = KeptRequest::made("GET", "/");
        one.fields.push(("cookie".to_owned(), b"sid=1".to_vec()));
        let other = KeptRequest::made("GET", "/");
        let (one, other) = (one.asked(), other.asked());
        let apart = scenario(Session::Cookie("sid".to_owned()));
        apart.go(Some(STARTED), "full", &one);
        assert!(apart.is_in("full", &one) && apart.is_in(STARTED, &other));
        apart.go(Some(STARTED), "lost", &one);
        assert!(apart.is_in("full", &one));
        apart.states.reset();
        assert!(apart.is_in(STARTED, &one));
        let together = scenario(Session::All);
        together.go(None, "full", &one);
        assert!(together.is_in("full", &other));
    }
}
