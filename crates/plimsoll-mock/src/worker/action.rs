//! The mock as what answers requests.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body::Body;
use http_body_util::BodyExt;
use plimsoll_server::{Action, Answer, BodyError, Outcome, Request, RequestBody, Response};

use crate::admin::journal::AnsweredBy;
use crate::config::ready::PreparedResponse;
use crate::request::{KeptRequest, RequestView};
use crate::worker::Worker;
use crate::worker::shared::SharedMock;

/// A mock on one worker.
#[derive(Debug, Clone)]
pub struct Mock(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Arc<SharedMock>,
    /// The prefix of the paths that it answers, without a slash at its end.
    prefix: String,
    worker: RefCell<Rc<Worker>>,
}

impl Mock {
    /// Answers by what is shared.
    ///
    /// - `prefix`: of the paths that it answers; `/` for all.
    pub fn new(shared: Arc<SharedMock>, prefix: &str) -> Self {
        let worker = RefCell::new(Rc::new(Worker::new(&shared)));
        Self(Rc::new(Inner {
            shared,
            prefix: prefix.trim_end_matches('/').to_owned(),
            worker,
        }))
    }
}

impl Action for Mock {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let worker = self.0.worker();
        // Bytes behind an extended CONNECT are the WebSocket's frames, not content.
        let is_tunnel = request.upgrade.is_some() && request.method == "CONNECT";
        if !is_tunnel {
            let body = request.take_body();
            if !body.is_end_stream() || worker.has_middlewares(request.method) {
                let inner = Rc::clone(&self.0);
                return inner.later(worker, KeptRequest::from_request(request), body);
            }
        }
        let mut view = RequestView::from_request(request);
        view.strip(&self.0.prefix);
        let (answer, by) = worker.answer(&view, worker.matched(&view));
        match self.0.shared.journal() {
            None => answer,
            Some(journal) => journal.note(
                KeptRequest::from_request(request),
                worker.answered_by(by),
                answer,
            ),
        }
    }
}

impl Inner {
    /// The worker that answers now: a new one once the rules have changed.
    #[inline]
    fn worker(&self) -> Rc<Worker> {
        let mut worker = self.worker.borrow_mut();
        if worker.epoch() != self.shared.epoch() {
            *worker = Rc::new(Worker::new(&self.shared));
        }
        Rc::clone(&worker)
    }

    /// Answers once the content is there.
    fn later(
        self: Rc<Self>,
        worker: Rc<Worker>,
        mut kept: KeptRequest,
        body: RequestBody,
    ) -> Answer {
        let limit = worker.body_limit();
        if body.size_hint().lower() > limit {
            let answer = refused(&worker, &kept, too_long(limit));
            return self.noted(kept, || AnsweredBy::Refusal, answer);
        }
        Answer::Later(Box::pin(async move {
            let collected = match collected(body, limit).await {
                Ok(Some(body)) => Ok(body),
                Ok(None) => Err(too_long(limit)),
                Err(error) => Err((StatusCode::BAD_REQUEST, format!("{error}\n"))),
            };
            let collected = collected.map(|body| kept.body = body);
            let answer = if let Err(refusal) = collected {
                let answer = refused(&worker, &kept, refusal);
                self.noted(kept, || AnsweredBy::Refusal, answer)
            } else if let Some((response, by)) = self.by_middleware(&worker, &kept).await {
                self.noted(kept, || by, Answer::now(response))
            } else {
                let matched = worker.matched_off_worker(&kept, &self.prefix).await;
                if let Some(text) = mistake(&kept)
                    && !worker.takes_broken_json(&matched)
                {
                    let answer = refused(&worker, &kept, (StatusCode::BAD_REQUEST, text));
                    let noted = self.noted(kept, || AnsweredBy::Refusal, answer);
                    return outcome(noted).await;
                }
                let (answer, by) = worker.answer(&kept.below(&self.prefix), matched);
                self.noted(kept, || worker.answered_by(by), answer)
            };
            outcome(answer).await
        }))
    }

    /// The response of a middleware, which sees no content that is not what it claims.
    async fn by_middleware(
        &self,
        worker: &Rc<Worker>,
        kept: &KeptRequest,
    ) -> Option<(Response, AnsweredBy)> {
        if !worker.has_middlewares(&kept.method) || mistake(kept).is_some() {
            return None;
        }
        worker.by_middleware(kept, &self.prefix).await
    }

    /// Notes a request in the journal, if there is one.
    fn noted(&self, kept: KeptRequest, by: impl FnOnce() -> AnsweredBy, answer: Answer) -> Answer {
        match self.shared.journal() {
            None => answer,
            Some(journal) => journal.note(kept, by(), answer),
        }
    }
}

/// Awaits the outcome of an answer.
async fn outcome(answer: Answer) -> Outcome {
    match answer {
        Answer::Now(outcome) => outcome,
        Answer::Later(later) => later.await,
    }
}

fn refused(worker: &Worker, kept: &KeptRequest, (status, text): (StatusCode, String)) -> Answer {
    let sharing = worker.sharing();
    let allowed = sharing.allows(&kept.view());
    Answer::now(PreparedResponse::text(sharing, status, text).response(sharing, &allowed))
}

fn too_long(limit: u64) -> (StatusCode, String) {
    let text = format!("the content is longer than {limit} bytes\n");
    (StatusCode::PAYLOAD_TOO_LARGE, text)
}

/// The whole content; nothing if it is longer than `limit`.
pub(crate) async fn collected(
    mut body: RequestBody,
    limit: u64,
) -> Result<Option<Bytes>, BodyError> {
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame?.into_data() else {
            continue;
        };
        let length = first.len() + all.len() + piece.len();
        if length as u64 > limit {
            return Ok(None);
        }
        // Most content comes in one piece, which need not be copied.
        if first.is_empty() && all.is_empty() {
            first = piece;
        } else {
            if all.is_empty() {
                all.extend_from_slice(&std::mem::take(&mut first));
            }
            all.extend_from_slice(&piece);
        }
    }
    Ok(Some(if all.is_empty() { first } else { all.freeze() }))
}

/// The error in content that claims to be JSON.
fn mistake(kept: &KeptRequest) -> Option<String> {
    let request = kept.view();
    let kind = request.header("content-type")?;
    let claim = b"application/json";
    let claims_json = kind.len() >= claim.len() && kind[..claim.len()].eq_ignore_ascii_case(claim);
    if !claims_json || kept.body.is_empty() {
        return None;
    }
    let error = serde_json::from_slice::<serde::de::IgnoredAny>(&kept.body).err()?;
    Some(format!(
        "the content says that it is JSON, but is not: {error}\n"
    ))
}
