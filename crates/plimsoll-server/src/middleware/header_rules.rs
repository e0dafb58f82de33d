//! Header fields that are set, added or removed, on the way in or on the way out.

use std::rc::Rc;
use std::sync::Arc;

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

use crate::action::{Action, Answer};
use crate::request::Request;

/// What is done to a set of header fields: first fields are removed, then set, then added.
#[derive(Debug, Clone, Default)]
pub struct HeaderRules {
    /// Fields that are taken away.
    pub remove: Vec<HeaderName>,
    /// Fields that are there once, with this value.
    pub set: Vec<(HeaderName, HeaderValue)>,
    /// Fields that are there beside others of their name.
    pub add: Vec<(HeaderName, HeaderValue)>,
}

impl HeaderRules {
    /// Does it.
    pub fn apply(&self, fields: &mut HeaderMap) {
        for name in &self.remove {
            fields.remove(name);
        }
        for (name, value) in &self.set {
            fields.insert(name.clone(), value.clone());
        }
        for (name, value) in &self.add {
            fields.append(name.clone(), value.clone());
        }
    }
}

/// Applies rules to requests.
pub(super) struct Requests {
    rules: Arc<HeaderRules>,
    inner: Rc<dyn Action>,
}

impl Requests {
    pub(super) fn new(rules: Arc<HeaderRules>, inner: Rc<dyn Action>) -> Self {
        Self { rules, inner }
    }
}

impl Action for Requests {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let mut fields = request.to_fields();
        self.rules.apply(&mut fields);
        self.inner.handle(&request.with_fields(&fields))
    }
}

/// Applies rules to responses.
pub(super) struct Responses {
    rules: Arc<HeaderRules>,
    inner: Rc<dyn Action>,
}

impl Responses {
    pub(super) fn new(rules: Arc<HeaderRules>, inner: Rc<dyn Action>) -> Self {
        Self { rules, inner }
    }
}

impl Action for Responses {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let rules = Arc::clone(&self.rules);
        self.inner.handle(request).map(move |mut response| {
            rules.apply(response.fields_mut());
            response
        })
    }
}
