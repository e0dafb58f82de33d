//! A name for each request, by which its traces in several places are found.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use http::header::{HeaderName, HeaderValue};

use crate::action::{Action, Answer};
use crate::message::fields::FieldEdits;
use crate::message::request::Request;

/// Settings of request IDs.
#[derive(Debug, Clone)]
pub struct RequestIds {
    /// The field that carries the name, on requests and on responses.
    pub field: HeaderName,
    /// A name that the client has given is kept, if it is plain: up to 128 letters, digits and `-_.:/+=@`.
    pub accept: bool,
}

/// Gives every request an id and sends it to the client.
pub(super) struct RequestId {
    ids: Arc<RequestIds>,
    random: RefCell<fastrand::Rng>,
    inner: Rc<dyn Action>,
}

impl RequestId {
    pub(super) fn new(ids: Arc<RequestIds>, inner: Rc<dyn Action>) -> Self {
        Self {
            ids,
            random: RefCell::new(fastrand::Rng::new()),
            inner,
        }
    }

    fn name(&self, request: &Request<'_>) -> Rc<str> {
        // One of the listener holds for its routes.
        if let Some(id) = request.request_id() {
            return id;
        }
        if self.ids.accept
            && let Some(given) = request.header(self.ids.field.as_str())
            && let Some(given) = plain(given)
        {
            return Rc::from(given);
        }
        Rc::from(format!("{:032x}", self.random.borrow_mut().u128(..)))
    }
}

fn plain(given: &[u8]) -> Option<&str> {
    let is_plain = (1..=128).contains(&given.len())
        && given
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.:/+=@".contains(byte));
    std::str::from_utf8(given).ok().filter(|_| is_plain)
}

impl Action for RequestId {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let id = self.name(request);
        let Ok(value) = HeaderValue::from_str(&id) else {
            return self.inner.handle(request);
        };
        request.called(id);
        let name = self.ids.field.clone();
        let edits = FieldEdits::new().set(name.clone(), value.clone());
        request
            .edited(&edits, |request| self.inner.handle(request))
            .map(move |mut response| {
                response.fields_mut().insert(name, value);
                response
            })
    }
}
