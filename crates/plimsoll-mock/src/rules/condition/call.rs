//! Tests of calls of gRPC: of which method, and with what message.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use plimsoll_client::grpc::messages;
use plimsoll_formats::grpc::Method;

use super::Condition;
use crate::request::{KeptRequest, RequestView};

/// A test of a call.
#[derive(Debug, Clone)]
pub struct CallTest {
    /// `package.Service/Method`
    pub name: String,
    /// It takes one message.
    pub method: Arc<Method>,
    /// Of a request whose content is the message as JSON.
    pub conditions: Vec<Condition>,
}

impl CallTest {
    /// Whether a request, of the path of the method, meets it; absent if that takes more than its limits.
    pub(super) fn judge(&self, request: &RequestView<'_>) -> Option<bool> {
        let Some(call) = decoded(&self.method, request) else {
            return Some(false);
        };
        let call = call.view();
        super::all(self.conditions.iter().map(|it| it.judge(&call)))
    }

    /// The value in a request that the condition is about, for people.
    pub(super) fn found(&self, request: &RequestView<'_>) -> String {
        let Some(call) = decoded(&self.method, request) else {
            return "no call of it".to_owned();
        };
        let call = call.view();
        let unmet = self.conditions.iter().filter(|it| !it.is_met_by(&call));
        let found: Vec<_> = unmet.map(|it| it.found(&call)).collect();
        if found.is_empty() {
            "a call of it".to_owned()
        } else {
            found.join("; ")
        }
    }
}

/// A call with its message as JSON in place of its content; nothing if it is not a call.
pub(crate) fn decoded(method: &Method, request: &RequestView<'_>) -> Option<KeptRequest> {
    let kind = request.header_text("content-type")?;
    let rest = kind.strip_prefix("application/grpc")?;
    let is_call = rest.is_empty() || rest == "+proto" || rest.starts_with(';');
    if !is_call || request.method != "POST" {
        return None;
    }
    let messages = messages(request.body).ok()?;
    let [message] = messages.as_slice() else {
        return None;
    };
    let json = method.request_to_json(message)?;
    let mut kept = request.keep();
    kept.body = Bytes::from(json);
    Some(kept)
}

impl fmt::Display for CallTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for condition in &self.conditions {
            write!(f, ", {condition}")?;
        }
        Ok(())
    }
}
