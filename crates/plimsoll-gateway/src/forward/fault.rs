//! Faults that are injected into a share of requests, to see how clients cope.

use std::time::Duration;

use http::StatusCode;
use plimsoll_server::Response;

/// Which requests are delayed or aborted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) delay: Option<Duration>,
    /// Percent of requests that are delayed.
    pub(crate) delay_share: u32,
    pub(crate) abort: Option<StatusCode>,
    /// Percent of requests that get the status instead of being forwarded.
    pub(crate) abort_share: u32,
}

/// The faults of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Dose {
    delay: Option<Duration>,
    abort: Option<StatusCode>,
}

impl Fault {
    /// Waits if the request is to be delayed; returns the response if it is to be aborted.
    pub(super) async fn inject(&self) -> Option<Response> {
        let dose = self.dose(fastrand::u32(..100), fastrand::u32(..100));
        if let Some(delay) = dose.delay {
            tokio::time::sleep(delay).await;
        }
        let status = dose.abort?;
        Some(Response::text(status, "a fault was injected\n"))
    }

    /// - `for_delay`, `for_abort`: random numbers below 100.
    fn dose(&self, for_delay: u32, for_abort: u32) -> Dose {
        Dose {
            delay: self.delay.filter(|_| for_delay < self.delay_share),
            abort: self.abort.filter(|_| for_abort < self.abort_share),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percentages() {
        let fault = Fault {
            delay: Some(Duration::from_secs(1)),
            delay_share: 30,
            abort: Some(StatusCode::BAD_GATEWAY),
            abort_share: 1,
        };
        let doses: Vec<_> = (0..100).map(|number| fault.dose(number, number)).collect();
        assert_eq!(doses.iter().filter(|it| it.delay.is_some()).count(), 30);
        assert_eq!(doses.iter().filter(|it| it.abort.is_some()).count(), 1);
        let none = Fault::default().dose(0, 0);
        assert_eq!((none.delay, none.abort), (None, None));
    }
}
