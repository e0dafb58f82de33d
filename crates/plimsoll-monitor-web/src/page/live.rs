//! Server-sent events: readers learn that a page has changed.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use plimsoll_wire::sse;
use tokio::sync::watch;

/// Readers that are connected at a time.
const MOST: usize = 2_000;

/// A comment is sent so often, which ends connections of readers that have gone.
const BEAT: Duration = Duration::from_secs(25);

/// Events of one connection before the browser opens another one.
const MOST_BEATS: u32 = 240;

static READERS: AtomicUsize = AtomicUsize::new(0);

/// A place among the readers.
#[derive(Debug)]
struct Reader;

impl Reader {
    fn new() -> Option<Self> {
        let reader = Self;
        (READERS.fetch_add(1, Ordering::Relaxed) < MOST).then_some(reader)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        READERS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A stream of `change` events, one for each change and at most one a second.
pub(crate) fn events(mut changes: watch::Receiver<u64>) -> Response {
    let Some(reader) = Reader::new() else {
        let mut response = Response::new(Body::from("too many readers\n"));
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        let later = HeaderValue::from_static("30");
        response.headers_mut().insert(RETRY_AFTER, later);
        return response;
    };
    changes.mark_unchanged();
    let reader = Arc::new(reader);
    let first = Bytes::from_static(b"retry: 5000\n\n");
    let beats = stream::unfold((Some(first), changes, 0, reader), next);
    let mut response = Response::new(Body::from_stream(beats));
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(sse::MEDIA_TYPE));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies such as nginx must not hold events back.
    let unbuffered = HeaderName::from_static("x-accel-buffering");
    fields.insert(unbuffered, HeaderValue::from_static("no"));
    response
}

type Streaming = (Option<Bytes>, watch::Receiver<u64>, u32, Arc<Reader>);

async fn next(
    (first, mut changes, beats, reader): Streaming,
) -> Option<(Result<Bytes, Infallible>, Streaming)> {
    if let Some(first) = first {
        return Some((Ok(first), (None, changes, beats, reader)));
    }
    if beats >= MOST_BEATS {
        return None;
    }
    let event = match tokio::time::timeout(BEAT, changes.changed()).await {
        Err(_) => Bytes::from_static(sse::COMMENT.as_bytes()),
        Ok(Err(_)) => return None,
        Ok(Ok(())) => {
            // Changes at the same time are one event.
            tokio::time::sleep(Duration::from_millis(300)).await;
            let version = *changes.borrow_and_update();
            Bytes::from(sse::encoded_event("event: change\n", &version.to_string()))
        }
    };
    Some((Ok(event), (None, changes, beats + 1, reader)))
}
