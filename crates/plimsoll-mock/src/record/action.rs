//! Recording as what answers requests.

use std::rc::Rc;
use std::sync::Arc;

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue};
use http_body::Body;
use plimsoll_server::{Action, Answer, Request, Response, ResponseBody};

use super::Recorder;
use crate::action::collected;
use crate::asked::KeptRequest;
use crate::forward::Forwarder;
use crate::plan::BODY_LIMIT;

/// Passes requests on for one worker, and has a recorder keep what came.
#[derive(Debug, Clone)]
pub struct Record(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    recorder: Arc<Recorder>,
    /// What comes before the paths that it is asked for, without a slash at its end.
    prefix: String,
    forwarder: Forwarder,
}

impl Record {
    /// - `prefix`: what the paths begin with that it is asked for; `/` for nothing.
    pub fn new(recorder: Arc<Recorder>, prefix: &str) -> Self {
        let forwarder = Forwarder::new(Arc::clone(&recorder.upstream));
        Self(Rc::new(Inner {
            recorder,
            prefix: prefix.trim_end_matches('/').to_owned(),
            forwarder,
        }))
    }
}

impl Action for Record {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let mut kept = KeptRequest::of(request);
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
        let mut asked = kept.asked();
        asked.strip(&self.prefix);
        let target = asked.own_url().into_owned();
        match self.forwarder.forward(kept, &target).await {
            Ok(answer) => {
                self.recorder.keep(kept, &target, &answer);
                let mut response = Response::new(answer.status);
                for (name, value) in answer.fields {
                    response = response.with_field(name, value);
                }
                response.with_body(ResponseBody::Bytes(answer.content))
            }
            Err(error) => {
                let upstream = self.recorder.upstream.origin();
                let message = format!("{upstream} did not answer: {error}\n");
                text(StatusCode::BAD_GATEWAY, message)
            }
        }
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
