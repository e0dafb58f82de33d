//! Recording as what answers requests.

use std::rc::Rc;
use std::sync::Arc;

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue};
use http_body::Body;
use plimsoll_server::{Action, Answer, Request, Response, ResponseBody};

use super::Recorder;
use super::exchange::ExchangeHead;
use super::tap::Tapped;
use crate::config::plan::BODY_LIMIT;
use crate::proxy::{Outgoing, UpstreamPool, not_sent, pass_on};
use crate::request::KeptRequest;
use crate::worker::action::collected;

/// Passes requests on for one worker, and has a recorder keep what came.
#[derive(Debug, Clone)]
pub struct Record(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    recorder: Arc<Recorder>,
    /// The prefix of the paths that it answers, without a slash at its end.
    prefix: String,
    pool: Rc<UpstreamPool>,
}

impl Record {
    /// - `prefix`: of the paths that it answers; `/` for all.
    pub fn new(recorder: Arc<Recorder>, prefix: &str) -> Self {
        let pool = recorder.upstream.pool();
        Self(Rc::new(Inner {
            recorder,
            prefix: prefix.trim_end_matches('/').to_owned(),
            pool,
        }))
    }
}

impl Action for Record {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let mut kept = KeptRequest::from_request(request);
        let body = request.take_body();
        let inner = Rc::clone(&self.0);
        Answer::later(async move {
            if body.size_hint().lower() > BODY_LIMIT {
                return too_long();
            }
            match collected(body, BODY_LIMIT).await {
                Ok(Some(content)) => kept.body = content,
                Ok(None) => return too_long(),
                Err(error) => return text(StatusCode::BAD_REQUEST, format!("{error}\n")),
            }
            inner.answer(&kept).await
        })
    }
}

impl Inner {
    async fn answer(&self, kept: &KeptRequest) -> Response {
        let mut request = kept.view();
        request.strip(&self.prefix);
        let outgoing = match Outgoing::new(&request, &self.recorder.upstream) {
            Ok(outgoing) => outgoing,
            Err((status, message)) => return not_sent(text(status, message)),
        };
        let mut own = request.keep();
        own.body = kept.body.clone();
        drop(request);
        let passed = match pass_on(Rc::clone(&self.pool), outgoing).await {
            Ok(passed) => passed,
            Err((status, message)) => return text(status, message),
        };
        let mut response = Response::new(passed.status);
        for (name, value) in &passed.fields {
            response = response.with_field(name.clone(), value.clone());
        }
        let recorder = Arc::clone(&self.recorder);
        let head = ExchangeHead::new(own, &passed, recorder.upstream.origin());
        let tapped = Tapped::new(passed.content, move |content| recorder.keep(head, content));
        response.with_body(ResponseBody::Stream(Box::pin(tapped)))
    }
}

fn too_long() -> Response {
    let message = format!("the content is longer than {BODY_LIMIT} bytes\n");
    text(StatusCode::PAYLOAD_TOO_LARGE, message)
}

fn text(status: StatusCode, text: String) -> Response {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    Response::new(status)
        .with_field(CONTENT_TYPE, kind)
        .with_body(ResponseBody::Bytes(text.into()))
}
