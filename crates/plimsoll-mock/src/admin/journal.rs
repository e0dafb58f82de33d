//! The requests that a mock got, and what answered them.
//!
//! It is kept only where it can be read. Bounded in entries and in bytes: the oldest go first, and are counted,
//! so that a part is never taken for the whole.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;
use plimsoll_model::Clock as _;
use plimsoll_server::Answer;
use plimsoll_wire::SystemClock;

use crate::openapi::OpenApi;
use crate::request::{KeptRequest, RequestView};
use crate::rules::Rule;
use crate::streaming::websocket::Session;

/// Requests that the journal keeps by default: several runs of a test suite, at a few MiB.
pub const ENTRIES: usize = 1000;

/// Bytes of all kept requests: a journal must not be what ends the process, and 64 MiB hold 1,000 requests of 64 KiB.
const MOST_BYTES: usize = 64 << 20;

/// Bytes of content that an entry keeps; the rest is cut. Documents that people compare by eye are far shorter.
const LONGEST_CONTENT: usize = 1 << 20;

/// The size of an entry besides its texts, approximately.
const OVERHEAD: usize = 512;

/// A request that a mock got.
#[derive(Debug)]
pub struct Journal {
    /// The prefix of the mock in the paths of its requests.
    prefix: String,
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    entries: VecDeque<Arc<Entry>>,
    bytes: usize,
    /// So many were noted.
    count: u64,
    /// So many had to go since it was last emptied.
    dropped: u64,
}

/// One request.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Counted from 1.
    pub(crate) number: u64,
    pub(crate) at: SystemTime,
    /// Its content cut if it is too long.
    pub(crate) request: KeptRequest,
    /// Bytes of its whole content.
    pub(crate) length: usize,
    pub(crate) by: AnsweredBy,
    prefix: String,
    status: AtomicU16,
}

/// The part of a mock that answered a request.
#[derive(Debug, Clone)]
pub(crate) enum AnsweredBy {
    Rule(Arc<Rule>),
    /// A rule, by a WebSocket.
    Session(Arc<Rule>, Arc<Session>),
    /// The script of this name.
    Middleware(String),
    /// The one at this path.
    Collection(String),
    Document(Arc<OpenApi>),
    /// A file of the folder, or nothing.
    Folder,
    /// Nothing: there is no folder.
    Nothing,
    /// It was a preflight, which no rule sees.
    Preflight,
    /// Its content was too long, or not what it claimed.
    Refusal,
}

impl Journal {
    /// An empty one.
    ///
    /// - `entries`: requests that it keeps at most.
    /// - `prefix`: what paths begin with that rules do not see, without a slash at its end.
    pub fn new(entries: usize, prefix: &str) -> Self {
        Self {
            prefix: prefix.trim_end_matches('/').to_owned(),
            most: entries,
            state: Mutex::default(),
        }
    }

    /// Notes a request, and the status of its answer once there is one.
    pub(crate) fn note(&self, mut request: KeptRequest, by: AnsweredBy, answer: Answer) -> Answer {
        if let AnsweredBy::Rule(rule) | AnsweredBy::Session(rule, _) = &by {
            rule.state.hit();
        }
        let length = request.body.len();
        if length > LONGEST_CONTENT {
            // A copy, since a part would keep the whole alive.
            request.body = Bytes::copy_from_slice(&request.body[..LONGEST_CONTENT]);
        }
        let at = SystemClock.wall();
        let mut state = self.lock();
        state.count += 1;
        let entry = Arc::new(Entry {
            number: state.count,
            at,
            request,
            length,
            by,
            prefix: self.prefix.clone(),
            status: AtomicU16::new(0),
        });
        state.bytes += entry.weight();
        state.entries.push_back(Arc::clone(&entry));
        while state.entries.len() > self.most || state.bytes > MOST_BYTES {
            let Some(oldest) = state.entries.pop_front() else {
                break;
            };
            state.bytes -= oldest.weight();
            state.dropped += 1;
        }
        drop(state);
        answer.map(move |response| {
            let status = response.status().as_u16();
            entry.status.store(status, Ordering::Relaxed);
            response
        })
    }

    /// All that are kept, the oldest first, and how many had to go.
    pub(crate) fn entries(&self) -> (Vec<Arc<Entry>>, u64) {
        let state = self.lock();
        (state.entries.iter().cloned().collect(), state.dropped)
    }

    /// The one of that number, if it is still kept.
    pub(crate) fn entry(&self, number: u64) -> Option<Arc<Entry>> {
        let state = self.lock();
        let at = state
            .entries
            .binary_search_by_key(&number, |entry| entry.number);
        Some(Arc::clone(&state.entries[at.ok()?]))
    }

    /// Forgets requests; numbers go on.
    pub(crate) fn clear(&self) {
        let mut state = self.lock();
        let entries = std::mem::take(&mut state.entries);
        state.bytes = 0;
        state.dropped = 0;
        drop(state);
        drop(entries);
    }

    /// Forgets one; whether it was there.
    pub(crate) fn remove(&self, number: u64) -> bool {
        let mut state = self.lock();
        let at = state
            .entries
            .binary_search_by_key(&number, |entry| entry.number);
        let Ok(at) = at else {
            return false;
        };
        if let Some(entry) = state.entries.remove(at) {
            state.bytes -= entry.weight();
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// As rules see it.
    pub(crate) fn view(&self) -> RequestView<'_> {
        let mut request = self.request.view();
        request.strip(&self.prefix);
        request
    }

    /// The status that it was answered with; nothing if it has no answer yet, or none that is HTTP.
    pub(crate) fn status(&self) -> Option<u16> {
        Some(self.status.load(Ordering::Relaxed)).filter(|status| *status > 0)
    }

    /// Whether nothing answered it.
    pub(crate) fn is_unmatched(&self) -> bool {
        match self.by {
            AnsweredBy::Nothing => true,
            AnsweredBy::Folder => self.status() == Some(404),
            _ => false,
        }
    }

    /// The rule that answered it.
    pub(crate) fn rule(&self) -> Option<&Arc<Rule>> {
        match &self.by {
            AnsweredBy::Rule(rule) | AnsweredBy::Session(rule, _) => Some(rule),
            _ => None,
        }
    }

    /// The messages of the WebSocket that it opened.
    pub(crate) fn session(&self) -> Option<&Session> {
        match &self.by {
            AnsweredBy::Session(_, session) => Some(session),
            _ => None,
        }
    }

    /// Bytes that it takes, about.
    fn weight(&self) -> usize {
        let request = &self.request;
        let fields = request.fields.iter();
        let fields: usize = fields
            .map(|(name, value)| name.len() + value.len() + 2 * size_of::<String>())
            .sum();
        let query = request.query.as_ref().map_or(0, String::len);
        OVERHEAD + fields + query + request.target_path.len() + request.body.len()
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use plimsoll_server::Response;

    use super::*;

    fn noted(journal: &Journal, path: &str, body: usize) {
        let mut request = KeptRequest::made("POST", path);
        request.body = Bytes::from(vec![b'x'; body]);
        let answer = Answer::now(Response::new(StatusCode::NOT_FOUND));
        journal.note(request, AnsweredBy::Folder, answer);
    }

    #[test]
    fn the_oldest_go_first_and_are_counted() {
        let journal = Journal::new(3, "/api/");
        for number in 1..=5 {
            noted(&journal, &format!("/api/{number}"), 10);
        }
        let (entries, dropped) = journal.entries();
        let numbers: Vec<_> = entries.iter().map(|entry| entry.number).collect();
        assert_eq!((numbers, dropped), (vec![3, 4, 5], 2));
        assert_eq!(entries[0].view().path, "/3");
        assert!(entries[0].is_unmatched());
        assert!(journal.entry(2).is_none());
        assert_eq!(journal.entry(4).unwrap().number, 4);
        assert!(journal.remove(4) && !journal.remove(4));
        journal.clear();
        noted(&journal, "/", 0);
        let (entries, dropped) = journal.entries();
        assert_eq!((entries.len(), entries[0].number, dropped), (1, 6, 0));
    }

    #[test]
    fn long_content_is_cut_and_all_of_it_is_bounded() {
        let journal = Journal::new(10_000, "/");
        for _ in 0..100 {
            noted(&journal, "/", 2 << 20);
        }
        let (entries, dropped) = journal.entries();
        assert_eq!(entries.len() as u64 + dropped, 100);
        assert!((60..64).contains(&entries.len()), "{}", entries.len());
        assert_eq!(entries[0].length, 2 << 20);
        assert_eq!(entries[0].request.body.len(), LONGEST_CONTENT);
        for entry in &entries {
            journal.remove(entry.number);
        }
        assert_eq!(journal.lock().bytes, 0);
    }
}
