//! `http-01` (RFC 8555, section 8.3): what authorities are answered in the clear.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, PoisonError, RwLock};

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue};

use crate::action::{Action, Answer, Refusal};
use crate::counters::RouteTag;
use crate::message::request::Request;
use crate::message::response::{Response, ResponseBody};

/// The prefix of the paths that authorities request.
const PREFIX: &str = "/.well-known/acme-challenge/";

/// Challenge responses by token, shared between the ACME client and the listeners.
#[derive(Debug, Clone, Default)]
pub struct HttpChallenges(Arc<RwLock<HashMap<String, String>>>);

/// A challenge that is answered as long as this is kept.
#[derive(Debug)]
#[must_use]
pub struct AnsweringHttpChallenge {
    challenges: HttpChallenges,
    token: String,
}

impl HttpChallenges {
    /// Answers for `token`.
    pub fn answer(&self, token: &str, key_authorization: &str) -> AnsweringHttpChallenge {
        let mut answers = self.0.write().unwrap_or_else(PoisonError::into_inner);
        answers.insert(token.to_owned(), key_authorization.to_owned());
        AnsweringHttpChallenge {
            challenges: self.clone(),
            token: token.to_owned(),
        }
    }

    fn response_for(&self, path: &str) -> Option<String> {
        let token = path.strip_prefix(PREFIX)?;
        let answers = self.0.read().unwrap_or_else(PoisonError::into_inner);
        answers.get(token).cloned()
    }
}

impl Drop for AnsweringHttpChallenge {
    fn drop(&mut self) {
        let mut answers = self
            .challenges
            .0
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        answers.remove(&self.token);
    }
}

/// Answers the open challenges before the wrapped action sees the request.
pub(crate) struct WithChallenges {
    pub(crate) challenges: HttpChallenges,
    pub(crate) tag: Rc<RouteTag>,
    pub(crate) inner: Rc<dyn Action>,
}

impl Action for WithChallenges {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let is_get = matches!(request.method, "GET" | "HEAD");
        let Some(answer) = is_get
            .then(|| self.challenges.response_for(request.path))
            .flatten()
        else {
            return self.inner.handle(request);
        };
        request.answered_by(&self.tag);
        let kind = HeaderValue::from_static("application/octet-stream");
        let response = Response::new(StatusCode::OK).with_field(CONTENT_TYPE, kind);
        Answer::now(response.with_body(ResponseBody::Bytes(answer.into())))
    }

    fn refused(&self, refusal: &Refusal) {
        self.inner.refused(refusal);
    }
}
