//! The messages of one WebSocket, for the journal.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll_wire::ws::MessageKind;
use serde_json::{Value, json};

/// Messages that are kept; the oldest go first.
const MOST: usize = 50;

/// Longer texts are cut, in bytes.
const LONGEST: usize = 1024;

/// One WebSocket, as far as it is over.
#[derive(Debug, Default)]
pub(crate) struct Session(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    received: u64,
    sent: u64,
    messages: VecDeque<LoggedMessage>,
    end: Option<End>,
}

/// A message.
#[derive(Debug)]
struct LoggedMessage {
    is_sent: bool,
    kind: MessageKind,
    length: usize,
    /// Of a text, as much as is kept.
    text: Option<String>,
}

/// The side that ended it, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// The client, by a close frame.
    Client(Option<u16>, String),
    /// The rule, or what the client did wrong.
    Server(u16, String),
    /// The connection broke, or the client has gone.
    Connection(String),
}

impl Session {
    pub(super) fn received(&self, kind: MessageKind, message: &[u8]) {
        let mut state = self.lock();
        state.received += 1;
        state.note(false, kind, message);
    }

    pub(super) fn sent(&self, kind: MessageKind, message: &[u8]) {
        let mut state = self.lock();
        state.sent += 1;
        state.note(true, kind, message);
    }

    /// It is over; the first end that is reported holds.
    pub(super) fn ended(&self, end: End) {
        self.lock().end.get_or_insert(end);
    }

    /// As the admin API shows it.
    pub(crate) fn shown(&self) -> Value {
        let state = self.lock();
        let messages = state.messages.iter().map(|message| {
            json!({
                "from": if message.is_sent { "server" } else { "client" },
                "kind": match message.kind {
                    MessageKind::Text => "text",
                    MessageKind::Binary => "binary",
                },
                "bytes": message.length,
                "text": message.text,
            })
        });
        let end = state.end.as_ref().map(|end| match end {
            End::Client(code, reason) => json!({ "by": "client", "code": code, "reason": reason }),
            End::Server(code, reason) => json!({ "by": "server", "code": code, "reason": reason }),
            End::Connection(reason) => {
                json!({ "by": "connection", "code": null, "reason": reason })
            }
        });
        json!({
            "received": state.received,
            "sent": state.sent,
            "messages": messages.collect::<Vec<_>>(),
            "end": end,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn note(&mut self, is_sent: bool, kind: MessageKind, message: &[u8]) {
        let text = (kind == MessageKind::Text).then(|| {
            let cut = &message[..message.len().min(LONGEST)];
            String::from_utf8_lossy(cut).into_owned()
        });
        self.messages.push_back(LoggedMessage {
            is_sent,
            kind,
            length: message.len(),
            text,
        });
        if self.messages.len() > MOST {
            self.messages.pop_front();
        }
    }
}
