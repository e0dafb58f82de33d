//! The beginning of a request's content, read before an action responds, for the place `{content}`.

use std::rc::Rc;

use crate::action::{Action, Answer};
use crate::message::request::Request;

/// Reads content that is no longer than so, and lets another action answer, which gets all of it.
pub(super) struct Reading {
    most: usize,
    inner: Rc<dyn Action>,
}

impl Reading {
    /// - `most`: bytes of the longest content that is kept.
    pub(super) fn new(most: usize, inner: Rc<dyn Action>) -> Self {
        Self { most, inner }
    }
}

impl Action for Reading {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let length = request.content_length();
        let is_kept = length.is_none_or(|it| it > 0 && it <= self.most as u64);
        if !is_kept || request.upgrade.is_some() {
            return self.inner.handle(request);
        }
        let (most, inner) = (self.most, Rc::clone(&self.inner));
        let request = request.into_owned();
        Answer::Later(Box::pin(async move {
            request.read_ahead(most).await;
            match inner.handle(&request.request()) {
                Answer::Now(outcome) => outcome,
                Answer::Later(later) => later.await,
            }
        }))
    }

    fn methods(&self) -> Option<&'static str> {
        self.inner.methods()
    }
}
