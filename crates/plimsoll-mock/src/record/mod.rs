//! Recording a real server: requests are passed on, and what it answers is kept as rules that answer without it.
//!
//! A [`Recorder`] keeps what was answered and writes it into a folder; [`Record`] is the action of one worker that
//! passes requests on.

mod action;

mod store;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use plimsoll_server::{Notice, Notices, Severity};

use crate::asked::KeptRequest;
use crate::forward::{Forwarded, Upstream};
use crate::import::recorded::RecordedReply;
use crate::import::redact::Redaction;

pub use self::action::Record;

use self::store::Store;

/// What is kept of a server.
#[derive(Debug)]
pub struct Recorder {
    pub(crate) upstream: Arc<Upstream>,
    folder: PathBuf,
    redaction: Redaction,
    notices: Notices,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    exchanges: Vec<KeptExchange>,
    /// Of content.
    bytes: usize,
    /// How many are in the folder.
    written: usize,
    /// Whether there is no room for more, or the folder cannot be written, which is told once.
    is_full: bool,
    is_stuck: bool,
}

/// A request by its line, with what was answered.
#[derive(Debug, Clone)]
struct KeptExchange {
    method: String,
    target: String,
    reply: RecordedReply,
}

/// More is passed on, but not kept.
const MOST_EXCHANGES: usize = 20_000;
const MOST_BYTES: usize = 256 << 20;

/// How often what came is written.
const WRITE: Duration = Duration::from_millis(300);

/// Why nothing can be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// Something is there already.
    #[error("{0} is there already; nothing is recorded over it")]
    Exists(PathBuf),
}

impl Recorder {
    /// Keeps what `upstream` answers in a folder, which must hold no rules and is made once something has come.
    ///
    /// - `notices`: told if it cannot be written, or is full.
    pub fn new(
        upstream: Upstream,
        folder: &Path,
        redaction: Redaction,
        notices: &Notices,
    ) -> Result<Arc<Self>, RecorderError> {
        store::is_free(folder)?;
        let recorder = Arc::new(Self {
            upstream: Arc::new(upstream),
            folder: folder.to_owned(),
            redaction,
            notices: notices.clone(),
            kept: Mutex::default(),
        });
        let weak = Arc::downgrade(&recorder);
        let writing = thread::Builder::new().name("mock-record".to_owned());
        // Without a thread all is written at the end.
        writing.spawn(move || write_now_and_then(&weak)).ok();
        Ok(recorder)
    }

    /// Keeps an exchange.
    fn keep(&self, asked: &KeptRequest, target: &str, answer: &Forwarded) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = kept.bytes + answer.content.len();
        let is_answer = (200..=599).contains(&answer.status.as_u16());
        if kept.exchanges.len() >= MOST_EXCHANGES || bytes > MOST_BYTES {
            if !std::mem::replace(&mut kept.is_full, true) {
                let message = "the recording is full: what comes now is passed on, and not kept";
                self.tell(message);
            }
            return;
        }
        if !is_answer {
            return;
        }
        // What every response of a mock has anyway, or what is of this moment.
        let is_kept = |name: &str| !matches!(name, "content-type" | "date");
        let text = |value: &http::HeaderValue| value.to_str().ok().map(str::to_owned);
        let fields = answer.fields.iter();
        let kind = fields.clone().find(|(name, _)| name == CONTENT_TYPE);
        let headers = fields
            .filter(|(name, _)| is_kept(name.as_str()))
            .filter_map(|(name, value)| Some((name.as_str().to_owned(), text(value)?)));
        let origin = self.upstream.origin();
        let headers = headers.map(|(name, value)| {
            // What leads elsewhere on that server leads here.
            let own = value.strip_prefix(&origin).filter(|_| name == "location");
            let own = own.filter(|rest| rest.starts_with('/')).map(str::to_owned);
            (name, own.unwrap_or(value))
        });
        let reply = RecordedReply {
            status: answer.status.as_u16(),
            headers: headers.collect(),
            kind: kind.and_then(|(_, value)| text(value)),
            body: answer.content.clone(),
        };
        kept.bytes = bytes;
        kept.exchanges.push(KeptExchange {
            method: asked.method.clone(),
            target: target.to_owned(),
            reply,
        });
    }

    /// Writes what has come since it was written last.
    fn write(&self) {
        let exchanges = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.written == kept.exchanges.len() {
                return;
            }
            kept.written = kept.exchanges.len();
            kept.exchanges.clone()
        };
        let written = Store::new(&self.folder, &self.redaction).write(exchanges);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match written {
            Ok(()) => kept.is_stuck = false,
            Err(error) => {
                // It is tried again.
                kept.written = 0;
                if !std::mem::replace(&mut kept.is_stuck, true) {
                    self.tell(format!("the recording cannot be written: {error}"));
                }
            }
        }
    }

    fn tell(&self, message: impl Into<String>) {
        let notice = Notice::new(Severity::Warning, message);
        self.notices
            .tell(&notice.about(self.folder.display().to_string()));
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.write();
    }
}

fn write_now_and_then(recorder: &Weak<Recorder>) {
    loop {
        thread::park_timeout(WRITE);
        match recorder.upgrade() {
            None => return,
            Some(recorder) => recorder.write(),
        }
    }
}
