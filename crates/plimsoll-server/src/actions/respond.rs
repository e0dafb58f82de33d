//! The same response to every request.

use std::rc::Rc;

use crate::action::{Action, Answer};
use crate::message::request::Request;
use crate::message::response::{Prepared, Response};

/// Answers with a response that was written once.
#[derive(Debug)]
pub struct Respond(Rc<Prepared>);

impl Respond {
    /// Answers with `response`, whose content must not come in pieces.
    pub fn new(response: Response) -> Self {
        Self(response.prepare())
    }
}

impl Action for Respond {
    fn handle(&self, _request: &Request<'_>) -> Answer {
        Answer::now(Rc::clone(&self.0))
    }
}
