//! Guards of which one is enough.

use std::rc::Rc;

use http::StatusCode;
use http::header::WWW_AUTHENTICATE;

use crate::action::{Action, Answer, Outcome};
use crate::message::request::Request;
use crate::message::response::Response;

/// Tries one guard after the other until one lets the request pass. Only a 401 or a 403 leads to the next guard: a redirect to a
/// sign-in page ends it, and so does the failure of a guard.
pub(super) struct AnyOf {
    /// At least one.
    guards: Rc<[Rc<dyn Action>]>,
    inner: Rc<dyn Action>,
}

impl AnyOf {
    /// - `guards`: gives the guards over an action, at least one.
    pub(super) fn over(
        inner: &Rc<dyn Action>,
        guards: impl FnOnce(&Rc<dyn Action>) -> Vec<Rc<dyn Action>>,
    ) -> Rc<dyn Action> {
        let admitted: Rc<dyn Action> = Rc::new(Admitted(Rc::clone(inner)));
        Rc::new(Self {
            guards: guards(&admitted).into(),
            inner: Rc::clone(inner),
        })
    }
}

impl Action for AnyOf {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let guards = Rc::clone(&self.guards);
        let (request, content) = request.with_content_apart();
        Answer::Later(Box::pin(async move {
            let mut refusal = None;
            for guard in &*guards {
                let outcome = match guard.handle(&request.request()) {
                    Answer::Now(outcome) => outcome,
                    Answer::Later(later) => later.await,
                };
                let response = match outcome {
                    Outcome::Respond(response)
                        if !content.is_admitted() && is_refusal(&response) =>
                    {
                        response
                    }
                    other => return other,
                };
                refusal = Some(match refusal {
                    None => response,
                    Some(before) => joined(before, response),
                });
            }
            let forbidden = || Response::text(StatusCode::FORBIDDEN, "forbidden\n");
            Outcome::Respond(refusal.unwrap_or_else(forbidden))
        }))
    }

    fn methods(&self) -> Option<&'static str> {
        self.inner.methods()
    }
}

fn is_refusal(response: &Response) -> bool {
    let status = response.status();
    status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN
}

/// A 401 with the challenges of both responses, so that the client knows every accepted scheme.
fn joined(mut first: Response, mut second: Response) -> Response {
    if first.status() != StatusCode::UNAUTHORIZED {
        return second;
    }
    for challenge in second.fields().get_all(WWW_AUTHENTICATE) {
        let fields = first.fields_mut();
        fields.append(WWW_AUTHENTICATE, challenge.clone());
    }
    first
}

/// What is behind the guards.
struct Admitted(Rc<dyn Action>);

impl Action for Admitted {
    fn handle(&self, request: &Request<'_>) -> Answer {
        self.0.handle(&request.with_content_back().request())
    }

    fn methods(&self) -> Option<&'static str> {
        self.0.methods()
    }
}
