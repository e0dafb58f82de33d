//! Recording a real server: requests are passed on, and what it answers is kept as rules that answer without it.
//!
//! A [`Recorder`] keeps what was answered and writes it into a folder; [`Record`] is the action of one worker that
//! passes requests on.

mod action;

pub(crate) mod exchange;

pub(crate) mod mapping;

pub(crate) mod proxied;

pub mod redact;

mod store;

pub(crate) mod tap;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http::header::ACCEPT_ENCODING;
use plimsoll_server::{Notice, Notices, Severity};
use plimsoll_wire::tls::Trust;

use crate::proxy::record::exchange::{ExchangeHead, KeptExchange};
use crate::proxy::record::redact::Redaction;
use crate::proxy::{Upstream, UpstreamOptions};

pub use self::action::Record;

use self::store::Store;

/// Records the responses of a server.
#[derive(Debug)]
pub struct Recorder {
    pub(crate) upstream: Arc<Upstream>,
    folder: PathBuf,
    notices: Notices,
    kept: Mutex<UnwrittenExchanges>,
    /// Taken before `kept`.
    store: Mutex<Store>,
    /// Done once there is a thread that writes.
    writing: Once,
}

#[derive(Debug, Default)]
struct UnwrittenExchanges {
    exchanges: Vec<KeptExchange>,
    /// Number of exchanges, the written ones too.
    count: usize,
    /// Of content.
    bytes: usize,
    /// Whether there is no room for more, or the folder cannot be written, which is reported once.
    is_full: bool,
    is_stuck: bool,
}

/// More is passed on, but not kept.
const MOST_EXCHANGES: usize = 20_000;
const MOST_BYTES: usize = 256 << 20;

/// Settings of outgoing requests: content is requested uncompressed.
pub(crate) fn options(trust: Trust) -> UpstreamOptions {
    UpstreamOptions {
        trust,
        without: vec![ACCEPT_ENCODING],
        ..UpstreamOptions::default()
    }
}

/// How often recorded exchanges are written: soon enough that an interrupted session loses nothing a user waits to
/// see, rare enough to join a burst.
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
    /// - `notices`: receives a notice if the folder cannot be written, or is full.
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
            notices: notices.clone(),
            kept: Mutex::default(),
            store: Mutex::new(Store::new(folder, redaction)),
            writing: Once::new(),
        });
        Ok(recorder)
    }

    /// Writes at intervals from now on, on a thread of its own; called when it is served.
    pub(crate) fn follow_time(self: &Arc<Self>) {
        self.writing.call_once(|| {
            let weak = Arc::downgrade(self);
            let writing = thread::Builder::new().name("mock-record".to_owned());
            // Without a thread all is written at the end.
            writing.spawn(move || write_now_and_then(&weak)).ok();
        });
    }

    /// Keeps an exchange.
    ///
    /// - `content`: absent if it is too long to be kept.
    fn keep(&self, head: ExchangeHead, content: Option<Bytes>) {
        let Some(content) = content else {
            let longest = tap::LONGEST >> 20;
            let line = head.line();
            let message =
                format!("a response of more than {longest} MiB is passed on, and not kept: {line}");
            self.report(message);
            return;
        };
        let Some(exchange) = head.with_content(content) else {
            return;
        };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = kept.bytes + exchange.bytes();
        if kept.count >= MOST_EXCHANGES || bytes > MOST_BYTES {
            if !std::mem::replace(&mut kept.is_full, true) {
                let message = "the recording is full: what comes now is passed on, and not kept";
                self.report(message);
            }
            return;
        }
        kept.bytes = bytes;
        kept.count += 1;
        kept.exchanges.push(exchange);
    }

    /// Writes what has come since it was written last.
    ///
    /// - `is_last`: whether nothing may be left for later.
    fn write(&self, is_last: bool) {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let exchanges = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut kept.exchanges)
        };
        if exchanges.is_empty() && store.is_written() {
            return;
        }
        let mut left = exchanges.into_iter();
        let added = left.by_ref().try_for_each(|exchange| {
            // Responses that could not be written are tried again, in their place.
            store
                .add(&exchange)
                .map_err(|error| (Some(Box::new(exchange)), error))
        });
        let written = added.and_then(|()| store.write(is_last).map_err(|error| (None, error)));
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match written {
            Ok(()) => kept.is_stuck = false,
            Err((failed, error)) => {
                let newer = std::mem::take(&mut kept.exchanges);
                kept.exchanges = failed
                    .map(|it| *it)
                    .into_iter()
                    .chain(left)
                    .chain(newer)
                    .collect();
                if !std::mem::replace(&mut kept.is_stuck, true) {
                    self.report(format!("the recording cannot be written: {error}"));
                }
            }
        }
    }

    fn report(&self, message: impl Into<String>) {
        let notice = Notice::new(Severity::Warning, message);
        self.notices
            .report(&notice.about(self.folder.display().to_string()));
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.write(true);
    }
}

fn write_now_and_then(recorder: &Weak<Recorder>) {
    loop {
        thread::park_timeout(WRITE);
        match recorder.upgrade() {
            None => return,
            Some(recorder) => recorder.write(false),
        }
    }
}
