//! What is to be checked.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_wire::h1::Limits;

use crate::check::Expectations;
use crate::{DigestLogin, Endpoint, Request};

/// One request and what its response must be: checked for sense, unchangeable, shared.
#[derive(Debug)]
pub struct CheckPlan {
    /// Where the request goes.
    pub endpoint: Endpoint,
    /// The request.
    pub request: Request,
    /// Who logs in once the server asks for digest authentication; the request is then made again within
    /// the same exchange.
    pub digest: Option<Arc<DigestLogin>>,
    /// What the response must be.
    pub expectations: Expectations,
    /// How long all of it may take, opening a connection included.
    ///
    /// The connector has a limit of its own, for its part; give it one that is no longer.
    pub timeout: Duration,
    /// Limits on the response.
    pub limits: Limits,
}
