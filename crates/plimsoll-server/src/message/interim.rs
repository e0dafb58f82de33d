//! Interim responses: what an action sends before its answer (RFC 9110, section 15.2; RFC 8297).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Waker;

use http::{HeaderMap, StatusCode};

/// Interim responses that may wait to be sent.
const MOST_WAITING: usize = 16;

/// Sends interim responses to one request, such as `103 Early Hints`; made by
/// [`Request::interims`](crate::Request::interims).
///
/// They leave at once, from within the action or while its answer is waited for. A client of HTTP/1.0 gets none.
#[derive(Debug, Clone)]
pub struct InterimSender(pub(crate) Rc<Interims>);

/// Why an interim response cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InterimError {
    /// The status is not one of 100 and 102 to 199; 101 is the outcome of an upgrade.
    #[error("status {0} is not that of an interim response")]
    Status(u16),
    /// Too many wait for a client that does not take them.
    #[error("{MOST_WAITING} interim responses wait already")]
    TooMany,
    /// The answer has begun.
    #[error("the answer has begun")]
    Late,
}

impl InterimSender {
    /// Sends one; fields that belong to the connection or frame content are left out.
    pub fn send(&self, status: StatusCode, fields: HeaderMap) -> Result<(), InterimError> {
        let is_interim = status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS;
        if !is_interim {
            return Err(InterimError::Status(status.as_u16()));
        }
        self.0.push(Interim { status, fields })
    }
}

/// One that waits to be sent.
#[derive(Debug)]
pub(crate) struct Interim {
    pub(crate) status: StatusCode,
    pub(crate) fields: HeaderMap,
}

impl Interim {
    /// As the crates of HTTP/2 and HTTP/3 take it.
    pub(crate) fn into_response(self) -> http::Response<()> {
        let mut response = http::Response::new(());
        *response.status_mut() = self.status;
        *response.headers_mut() = self.fields;
        response
    }
}

/// Those of one request, on their way from the action to the connection.
#[derive(Debug, Default)]
pub(crate) struct Interims {
    waiting: RefCell<VecDeque<Interim>>,
    is_over: Cell<bool>,
    connection: RefCell<Option<Waker>>,
}

impl Interims {
    fn push(&self, mut interim: Interim) -> Result<(), InterimError> {
        if self.is_over.get() {
            return Err(InterimError::Late);
        }
        let mut waiting = self.waiting.borrow_mut();
        if waiting.len() >= MOST_WAITING {
            return Err(InterimError::TooMany);
        }
        crate::message::response::remove_connection_fields(&mut interim.fields);
        waiting.push_back(interim);
        if let Some(connection) = self.connection.take() {
            connection.wake();
        }
        Ok(())
    }

    /// Has the client send its content.
    pub(crate) fn ask_to_continue(&self) {
        // One that cannot be sent any more is not needed.
        self.push(Interim {
            status: StatusCode::CONTINUE,
            fields: HeaderMap::new(),
        })
        .ok();
    }

    /// Whether there is one to be sent.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.borrow().is_empty()
    }

    /// The next one to be sent.
    pub(crate) fn pop(&self) -> Option<Interim> {
        self.waiting.borrow_mut().pop_front()
    }

    /// Has the task of the connection woken when there is another one.
    pub(crate) fn watch(&self, waker: &Waker) {
        let mut connection = self.connection.borrow_mut();
        match &mut *connection {
            Some(connection) => connection.clone_from(waker),
            None => *connection = Some(waker.clone()),
        }
    }

    /// The answer begins: no more are sent.
    pub(crate) fn end(&self) {
        self.is_over.set(true);
        self.waiting.borrow_mut().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_interim_statuses_a_bounded_number_and_none_after_the_answer() {
        let interims = Rc::<Interims>::default();
        let sender = InterimSender(Rc::clone(&interims));
        let send = |status: u16| {
            let status = StatusCode::from_u16(status).unwrap();
            sender.send(status, HeaderMap::new())
        };
        for status in [101, 200, 404] {
            assert_eq!(send(status), Err(InterimError::Status(status)));
        }
        for _ in 0..MOST_WAITING {
            assert_eq!(send(103), Ok(()));
        }
        assert_eq!(send(103), Err(InterimError::TooMany));
        assert_eq!(interims.pop().unwrap().status, StatusCode::EARLY_HINTS);
        assert_eq!(send(100), Ok(()));
        interims.end();
        assert!(interims.pop().is_none());
        assert_eq!(send(103), Err(InterimError::Late));
    }

    #[test]
    fn fields_of_the_connection_are_left_out() {
        let interims = Rc::<Interims>::default();
        let mut fields = HeaderMap::new();
        for name in ["link", "connection", "content-length", "transfer-encoding"] {
            fields.insert(name, http::HeaderValue::from_static("1"));
        }
        let sender = InterimSender(Rc::clone(&interims));
        sender.send(StatusCode::EARLY_HINTS, fields).unwrap();
        let sent = interims.pop().unwrap().fields;
        assert_eq!(sent.keys().collect::<Vec<_>>(), ["link"]);
    }
}
