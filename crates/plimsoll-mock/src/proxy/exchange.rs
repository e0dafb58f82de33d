//! One request to a real server, up to the head of its response.

use std::io;
use std::rc::Rc;

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use plimsoll_model::FailureKind;
use plimsoll_wire::h1::{KnownHead, ResponseHead, ResponseSink};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::content::PassedContent;
use super::outgoing::{Outgoing, is_passed_back};
use super::pool::{Line, Pool};

/// Bytes that are read at once.
pub(super) const READ: usize = 16 << 10;

/// A response on its way.
#[derive(Debug)]
pub(crate) struct Passed {
    pub(crate) status: StatusCode,
    /// Without those of the connection.
    pub(crate) fields: Vec<(HeaderName, HeaderValue)>,
    pub(crate) content: PassedContent,
}

/// Why there is none: what the client is told.
pub(crate) type Refusal = (StatusCode, String);

/// What a failed attempt leaves to do.
enum Failed {
    /// Nothing was answered on a connection that the server had kept: it may have closed it at that moment.
    Stale,
    For(Refusal),
}

/// What has come of a response.
#[derive(Debug, Default)]
pub(super) struct Sink {
    pub(super) head: Option<(u16, Vec<(HeaderName, HeaderValue)>)>,
    /// What its `content-length` says.
    pub(super) length: Option<u64>,
    pub(super) content: Vec<u8>,
}

impl ResponseSink for Sink {
    fn head(&mut self, head: &ResponseHead<'_>) {
        let named = head.header("connection").unwrap_or_default();
        let named = String::from_utf8_lossy(named);
        let fields = head.headers.iter().filter_map(|field| {
            let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
            let value = HeaderValue::from_bytes(field.value).ok()?;
            is_passed_back(name.as_str(), &named).then_some((name, value))
        });
        self.head = Some((head.status, fields.collect()));
        let is_chunked = head.header("transfer-encoding").is_some();
        let length = head.header("content-length").filter(|_| !is_chunked);
        self.length = length
            .and_then(|value| std::str::from_utf8(value).ok())
            .and_then(|text| text.trim().parse().ok());
    }

    fn content(&mut self, piece: &[u8]) {
        self.content.extend_from_slice(piece);
    }
}

/// Asks the server, and again on a connection of its own if the one that was kept turns out to be closed.
pub(crate) async fn pass_on(pool: Rc<Pool>, outgoing: Outgoing) -> Result<Passed, Refusal> {
    let timeout = pool.upstream.timeout;
    for fresh in [false, true] {
        let line = Box::pin(pool.line(fresh)).await.map_err(|failure| {
            let text = format!("{} cannot be reached: {failure}\n", pool.upstream);
            let status = match failure.failure.kind {
                FailureKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
                _ => StatusCode::BAD_GATEWAY,
            };
            (status, text)
        })?;
        let attempt = tokio::time::timeout(timeout, attempt(&pool, line, &outgoing)).await;
        match attempt {
            Ok(Ok(passed)) => return Ok(passed),
            Ok(Err(Failed::Stale)) => {}
            Ok(Err(Failed::For(refusal))) => return Err(refusal),
            Err(_) => {
                let text = format!("{} has not answered within {timeout:?}\n", pool.upstream);
                return Err((StatusCode::GATEWAY_TIMEOUT, text));
            }
        }
    }
    Err(ended(&pool))
}

fn ended(pool: &Pool) -> Refusal {
    let text = format!(
        "{} closed the connection without an answer\n",
        pool.upstream
    );
    (StatusCode::BAD_GATEWAY, text)
}

async fn attempt(pool: &Rc<Pool>, line: Line, outgoing: &Outgoing) -> Result<Passed, Failed> {
    let Line {
        stream,
        mut decoder,
        is_used,
    } = line;
    let may_be_stale = is_used && outgoing.is_idempotent;
    let wrong = |error: &dyn std::fmt::Display| {
        let text = format!("{} answered what is no HTTP: {error}\n", pool.upstream);
        Failed::For((StatusCode::BAD_GATEWAY, text))
    };
    decoder.begin(outgoing.is_head);
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut known = KnownHead::new();
    let mut sink = Sink::default();
    let mut buffer = vec![0; READ];
    let mut is_written = false;
    let mut has_come = false;
    let decoded = {
        // A server may answer before it has taken everything.
        let writing = async {
            writer.write_all(&outgoing.bytes).await?;
            writer.flush().await
        };
        tokio::pin!(writing);
        loop {
            let read = tokio::select! {
                written = &mut writing, if !is_written => {
                    // Why it failed shows when reading: the answer, or the end.
                    is_written = true;
                    if written.is_err() && may_be_stale && !has_come {
                        return Err(Failed::Stale);
                    }
                    continue;
                }
                read = reader.read(&mut buffer) => read,
            };
            let count = match read {
                Ok(count) => count,
                Err(_) if may_be_stale && !has_come => return Err(Failed::Stale),
                Err(error) => return Err(broken(pool, &error)),
            };
            if count == 0 {
                return Err(match decoder.end_of_stream() {
                    _ if !has_come && may_be_stale => Failed::Stale,
                    _ if !has_come => Failed::For(ended(pool)),
                    Err(error) => wrong(&error),
                    Ok(()) => Failed::For(ended(pool)),
                });
            }
            has_come = true;
            let decoded = decoder
                .decode(&buffer[..count], &mut sink, &mut known)
                .map_err(|error| wrong(&error))?;
            if decoder.has_head() {
                break (decoded, count);
            }
        }
    };
    let (decoded, count) = decoded;
    let Some((status, fields)) = sink.head.take() else {
        return Err(Failed::For(ended(pool)));
    };
    let status = StatusCode::from_u16(status).map_err(|error| wrong(&error))?;
    let line = Line {
        stream: reader.unsplit(writer),
        decoder,
        is_used: true,
    };
    // What comes behind a response is nobody's, and half a request is none.
    let is_kept = is_written && decoded.consumed == count;
    let first = Bytes::from(std::mem::take(&mut sink.content));
    let content = PassedContent::new(Rc::clone(pool), line, sink.length, is_kept, buffer);
    Ok(Passed {
        status,
        fields,
        content: content.begun(first, decoded.complete),
    })
}

fn broken(pool: &Pool, error: &io::Error) -> Failed {
    let text = format!("the connection to {} broke: {error}\n", pool.upstream);
    Failed::For((StatusCode::BAD_GATEWAY, text))
}
