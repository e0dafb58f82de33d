//! Callbacks: requests that a rule sends once it has answered (webhooks).
//!
//! They are made of the request that was answered, on its worker, and sent from a thread of their own, so that no response
//! waits for another server. What cannot be sent is reported and not tried again.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use plimsoll_client::fetch::{FetchLimits, Fetcher};
use plimsoll_server::{Notice, Severity};
use plimsoll_wire::{Background, BackgroundTask};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use url::Url;

use crate::fault::delay::Delay;
use crate::request::RequestView;
use crate::script::notice_limiter::NoticeLimiter;
use crate::template::content::Content;
use crate::template::{Chance, TextTemplate};

/// Callbacks under way or waiting for their delay; more are dropped and reported. Each holds one request in memory.
const MOST: usize = 1024;

/// Limits of a callback. Its response is read and dropped.
const LIMITS: FetchLimits = FetchLimits {
    timeout: Duration::from_secs(30),
    bytes: 16 * 1024 * 1024,
    redirects: 0,
};

/// A request that a rule sends once it has answered.
#[derive(Debug, Clone)]
pub struct Callback {
    /// Its method.
    pub method: String,
    /// Its URL.
    pub url: CallbackText,
    /// Fields of its header.
    pub fields: Vec<(String, CallbackText)>,
    /// Its content.
    pub content: Content,
    /// Time after which it is sent, from when the rule has answered.
    pub delay: Delay,
    /// Source of random values.
    pub chance: Chance,
}

/// A text of a callback.
#[derive(Debug, Clone)]
pub enum CallbackText {
    /// The same for each request.
    Always(String),
    /// Made for each request.
    TextTemplate(TextTemplate),
}

impl CallbackText {
    fn fill(&self, request: &RequestView<'_>) -> String {
        match self {
            Self::Always(text) => text.clone(),
            Self::TextTemplate(template) => template.fill(request),
        }
    }
}

/// A callback for one request.
#[derive(Debug)]
pub(crate) struct OutgoingCallback {
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) content: Bytes,
    /// Time after which it is sent.
    pub(crate) delay: Duration,
}

/// A callback that has room.
#[derive(Debug)]
struct AdmittedCallback {
    callback: OutgoingCallback,
    _permit: OwnedSemaphorePermit,
}

/// Sends the callbacks of a mock.
#[derive(Debug)]
pub(crate) struct Callbacks {
    background: Background,
    sender: OnceLock<Option<Sender>>,
    room: Arc<Semaphore>,
    notices: Arc<NoticeLimiter>,
}

#[derive(Debug)]
struct Sender {
    requests: mpsc::Sender<AdmittedCallback>,
    _task: BackgroundTask,
}

impl Callbacks {
    /// - `notices`: receives what cannot be sent.
    pub(crate) fn new(notices: Arc<NoticeLimiter>) -> Self {
        Self {
            background: Background::default(),
            sender: OnceLock::new(),
            room: Arc::new(Semaphore::new(MOST)),
            notices,
        }
    }

    /// Sends callbacks for a request, in a moment.
    pub(crate) fn send(&self, callbacks: &[Callback], request: &RequestView<'_>) {
        for callback in callbacks {
            let mut fields: Vec<(String, String)> = callback
                .fields
                .iter()
                .map(|(name, value)| (name.clone(), value.fill(request)))
                .collect();
            let has_kind = fields
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
            let kind = callback.content.media_type().filter(|_| !has_kind);
            if let Some(kind) = kind.and_then(|kind| kind.to_str().ok()) {
                fields.push(("content-type".to_owned(), kind.to_owned()));
            }
            self.send_made(OutgoingCallback {
                method: callback.method.clone(),
                url: callback.url.fill(request),
                fields,
                content: callback.content.for_request(request),
                delay: callback.chance.with(|rng| callback.delay.sample(rng)),
            });
        }
    }

    /// Sends a callback, in a moment.
    pub(crate) fn send_made(&self, callback: OutgoingCallback) {
        let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() else {
            self.report("a callback is dropped: too many are under way");
            return;
        };
        let admitted = AdmittedCallback {
            callback,
            _permit: permit,
        };
        let sender = self.sender.get_or_init(|| self.start());
        // The channel has room for all permits.
        let is_sent = sender
            .as_ref()
            .is_some_and(|it| it.requests.try_send(admitted).is_ok());
        if !is_sent {
            self.report("a callback is dropped: there is no thread to send it");
        }
    }

    fn start(&self) -> Option<Sender> {
        let (requests, received) = mpsc::channel(MOST);
        let notices = Arc::clone(&self.notices);
        let task = self.background.spawn(move || run(received, notices)).ok()?;
        Some(Sender {
            requests,
            _task: task,
        })
    }

    /// Reports that a callback is not sent.
    pub(crate) fn report(&self, message: &str) {
        self.notices
            .report(&Notice::new(Severity::Warning, message));
    }
}

/// Sends what is received, all at a time.
async fn run(mut received: mpsc::Receiver<AdmittedCallback>, notices: Arc<NoticeLimiter>) {
    let fetcher = match Fetcher::new(LIMITS) {
        Ok(fetcher) => std::rc::Rc::new(fetcher),
        Err(error) => {
            let message = format!("callbacks cannot be sent: {error}");
            notices.report(&Notice::new(Severity::Error, message));
            return;
        }
    };
    while let Some(admitted) = received.recv().await {
        let (fetcher, notices) = (std::rc::Rc::clone(&fetcher), Arc::clone(&notices));
        tokio::task::spawn_local(async move {
            tokio::time::sleep(admitted.callback.delay).await;
            if let Err(error) = sent(&fetcher, &admitted.callback).await {
                notices.report(&Notice::new(Severity::Warning, error.to_string()));
            }
        });
    }
}

/// Why a callback did not arrive.
#[derive(Debug, thiserror::Error)]
enum NotSent {
    #[error("a callback is not sent: `{url}`: {cause}")]
    Url { url: String, cause: url::ParseError },
    /// The rest of the URL may hold credentials.
    #[error("a callback to {host} failed: {error}")]
    Failed { host: String, error: String },
}

async fn sent(fetcher: &Fetcher, request: &OutgoingCallback) -> Result<(), NotSent> {
    let url = Url::parse(&request.url).map_err(|cause| NotSent::Url {
        url: request.url.clone(),
        cause,
    })?;
    let content = (!request.content.is_empty()).then_some(&*request.content);
    let sending = fetcher.send(&request.method, &url, request.fields.clone(), content);
    sending.await.map(drop).map_err(|error| NotSent::Failed {
        host: url.host_str().unwrap_or_default().to_owned(),
        error: error.to_string(),
    })
}
