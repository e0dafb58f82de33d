//! The redirects of one exchange: which request follows a response.

use plimsoll_client::{Endpoint, Redirects, Request};
use plimsoll_model::{Failure, FailureKind, Phase, Side};

use super::Head;
use crate::driver::WorkerState;

/// The requests of one exchange that redirects led to.
#[derive(Debug)]
pub(super) struct RedirectChain {
    limit: u32,
    redirects: Redirects,
    /// Redirect target of the response, if any.
    location: Option<Vec<u8>>,
    /// The request under way, unless it is the planned one.
    request: Option<Request>,
    /// A redirect led to another origin.
    is_foreign: bool,
}

impl RedirectChain {
    /// - `limit`: redirects that are followed in one exchange; one more fails it.
    pub(super) fn new(limit: u32) -> Self {
        Self {
            limit,
            redirects: Redirects::new(limit),
            location: None,
            request: None,
            is_foreign: false,
        }
    }

    /// Begins an exchange with its planned request.
    pub(super) fn restart(&mut self) {
        self.redirects = Redirects::new(self.limit);
        self.location = None;
        self.request = None;
        self.is_foreign = false;
    }

    /// The request under way, unless it is the planned one.
    pub(super) fn request(&self) -> Option<&Request> {
        self.request.as_ref()
    }

    /// Whether a redirect led to another origin than that of the planned request.
    pub(super) fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    /// Takes the head of a response.
    pub(super) fn head(&mut self, head: &Head<'_>) {
        self.location = match head.status() {
            300..400 => head.field("location").map(<[u8]>::to_vec),
            _ => None,
        };
    }

    /// Goes on to the request that the response demands; returns the position of its endpoint.
    ///
    /// - `planned`: the first request of the exchange.
    /// - `endpoint`: the position of the endpoint that responded.
    pub(super) fn follow(
        &mut self,
        shared: &WorkerState,
        planned: &Request,
        endpoint: usize,
        status: u16,
    ) -> Result<Option<usize>, Failure> {
        let Some(location) = self.location.take() else {
            return Ok(None);
        };
        let wrong = |cause: String| {
            let failure = Failure::new(Phase::Receive, FailureKind::Protocol);
            failure.on(Side::Theirs).because(cause)
        };
        let request = self.request.as_ref().unwrap_or(planned);
        let url = shared
            .with_endpoint(endpoint, |site| request.url(site))
            .map_err(|error| wrong(error.to_string()))?;
        let redirect = self
            .redirects
            .follow(request.method(), &url, status, Some(&location))
            .map_err(|error| wrong(error.to_string()))?;
        let Some(redirect) = redirect else {
            return Ok(None);
        };
        let endpoint =
            Endpoint::try_from(&redirect.url).map_err(|error| wrong(error.to_string()))?;
        let form = shared.plan.connect.request_form(&endpoint);
        let next = request
            .redirected(&redirect, &endpoint, form)
            .map_err(|error| wrong(error.to_string()))?;
        self.is_foreign |= redirect.is_cross_origin;
        self.request = Some(next);
        let found = shared.find(endpoint);
        found
            .map(Some)
            .ok_or_else(|| wrong("redirects lead to too many different servers".to_owned()))
    }
}
