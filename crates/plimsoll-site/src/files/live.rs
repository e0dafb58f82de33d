//! Live reload, for development: pages hear when something below the root has changed, and load themselves again.
//!
//! HTML gets a script on its way out, which listens to a stream of server-sent events. Nothing is kept, here or by
//! browsers.

mod events;

mod inject;

mod policy;

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use http::StatusCode;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, Entry, HeaderMap, HeaderValue,
    X_CONTENT_TYPE_OPTIONS,
};
use plimsoll_model::Clock;
use plimsoll_server::{Answer, Counters, FilePart, Response, ResponseBody};
use plimsoll_wire::SystemClock;
use plimsoll_wire::sse::MEDIA_TYPE;

use crate::files::changes::Changes;
use crate::files::live::events::events;

/// The stream's path below the site; the script's is this with `.js`.
const PATH: &str = "/.plimsoll/live";

/// The script of pages: it has the state of the site when the page was made, and reloads the page when it receives
/// another one.
const SCRIPT: &str = "\
(() => {
  const { src, dataset } = document.currentScript;
  const events = new EventSource(src.replace(/\\.js$/, \"\"));
  events.onmessage = ({ data }) => {
    if (data !== dataset.site) location.reload();
  };
  addEventListener(\"pagehide\", () => events.close());
})();
";

/// Longer pages are sent as they are: they are not written by hand.
const LONGEST: u64 = 16 * 1024 * 1024;

/// State of a site that reloads its pages.
#[derive(Debug)]
pub(crate) struct Live {
    changes: Arc<Changes>,
    counters: Arc<Counters>,
    /// Another one for each start, so that pages notice one.
    started: u128,
    stream: String,
    script: String,
}

impl Live {
    /// - `counters`: report when the server drains, so that streams end.
    /// - `strip`: what the site's paths begin with.
    pub(crate) fn new(changes: Arc<Changes>, counters: Arc<Counters>, strip: &str) -> Self {
        let since = SystemClock.wall().duration_since(UNIX_EPOCH);
        let script = format!("{strip}{PATH}.js");
        Self {
            changes,
            counters,
            started: since.unwrap_or_default().as_nanos(),
            stream: format!("{strip}{PATH}"),
            script,
        }
    }

    /// The stream or the script, if that is requested.
    ///
    /// - `path`: as it was requested.
    pub(crate) fn answer(self: &Arc<Self>, path: &str) -> Option<Answer> {
        let (kind, body) = if path == self.script {
            let script = Bytes::from_static(SCRIPT.as_bytes());
            (
                "text/javascript; charset=utf-8",
                ResponseBody::Bytes(script),
            )
        } else if path == self.stream {
            let events = events(Arc::clone(self));
            (MEDIA_TYPE, ResponseBody::Stream(Box::pin(events)))
        } else {
            return None;
        };
        let response = Response::new(StatusCode::OK)
            .with_field(CONTENT_TYPE, HeaderValue::from_static(kind))
            .with_field(CACHE_CONTROL, NEVER)
            .with_field(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        Some(Answer::now(response.with_body(body)))
    }

    /// Has `fields` keep nothing, and let the script run.
    pub(crate) fn allow(fields: &mut HeaderMap) {
        fields.insert(CACHE_CONTROL, NEVER);
        if let Entry::Occupied(mut policies) = fields.entry(CONTENT_SECURITY_POLICY) {
            for value in policies.iter_mut() {
                let allowing = value.to_str().map(policy::allowing);
                let allowing = allowing.ok().and_then(|it| HeaderValue::try_from(it).ok());
                if let Some(allowing) = allowing {
                    *value = allowing;
                }
            }
        }
    }

    /// A page with the script in it; nothing for what is none.
    pub(crate) fn injected(&self, fields: &HeaderMap, part: &FilePart) -> Option<Bytes> {
        let kind = fields.get(CONTENT_TYPE)?.to_str().ok()?;
        let is_page = kind.to_ascii_lowercase().starts_with("text/html");
        if !is_page || part.length() > LONGEST {
            return None;
        }
        let tag = self.tag();
        // If it cannot be read, sending it finds that out.
        let page = part.read().ok()?;
        Some(inject::injected(&page, &tag))
    }

    /// The element that loads the script.
    pub(crate) fn tag(&self) -> String {
        format!(
            "<script src=\"{}\" nonce=\"{}\" data-site=\"{}\"></script>",
            self.script,
            policy::NONCE,
            // Before the page is read: what changes meanwhile is another state.
            self.state(),
        )
    }

    /// The state of the site: a new one once something has changed, or the server was restarted.
    fn state(&self) -> String {
        format!("{}-{}", self.started, self.changes.seen())
    }

    /// Whether there is no more to come.
    fn is_over(&self) -> bool {
        self.counters.is_draining()
    }
}

/// Neither browsers nor layers on the way may keep or change it.
const NEVER: HeaderValue = HeaderValue::from_static("no-store, no-transform");
