//! The seam of guards: layers of other crates that let requests pass, or answer them themselves.

use std::fmt;
use std::rc::Rc;

use http::header::HeaderName;

use crate::action::Action;
use crate::worker::context::WorkerContext;

/// Lets those requests pass to an action that show what it wants, such as a token; shared by all workers.
///
/// It stands where `basic_auth` does: behind `addresses` and limits, before `request_headers`. What it proves about the
/// sender it notes by [`Request::proves`](crate::Request::proves) and [`Request::sent_by`](crate::Request::sent_by).
pub trait RequestGuard: fmt::Debug + Send + Sync {
    /// `inner` for the requests that pass; made anew on each worker, once for each generation of the configuration.
    fn over(&self, worker: &WorkerContext, inner: Rc<dyn Action>) -> Rc<dyn Action>;

    /// Fields of requests that it sets, removes or trusts: clients cannot send them in another spelling.
    fn own_fields(&self) -> Vec<HeaderName> {
        Vec::new()
    }

    /// Whether it alone is enough where `satisfy` is `"any"`, as addresses are; the other guards are enough together,
    /// with the password.
    fn is_enough(&self) -> bool {
        false
    }
}
