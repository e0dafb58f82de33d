//! One check over all redirects of its URL.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use plimsoll_model::{
    Checked, CheckedRedirect, Clock, Exchange, Failure, FailureKind, Phase, Side, Verdict,
    masked_text,
};
use url::Url;

use crate::check::{CheckPlan, Checker, Outcome, Reuse};
use crate::redirect::{Redirect, Redirects};
use crate::{Connector, DecodeLimits, Endpoint, ReadBuffer, Request};

/// What a check does beyond one exchange; by default nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct CheckOptions<'a> {
    /// How redirects are followed; absent, the first response is judged.
    pub follow: Option<Follow<'a>>,
    /// Has the content decoded by its `content-encoding` before conditions see it. Content that cannot be decoded within
    /// these limits fails the check.
    pub decode: Option<DecodeLimits>,
}

/// How redirects are followed (RFC 9110, section 15.4).
#[derive(Clone, Copy)]
pub struct Follow<'a> {
    /// Redirects that are followed at most; one more fails the check.
    pub limit: u32,
    /// Encodes the request that a redirect leads to, for its endpoint.
    pub encode: &'a (dyn Fn(&Endpoint, &Redirect) -> Result<Request, String> + Send + Sync),
}

impl fmt::Debug for Follow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, encode: _ } = self;
        f.debug_struct("Follow")
            .field("limit", limit)
            .finish_non_exhaustive()
    }
}

/// Makes the exchange of `plan` once, on a new connection, and reports all about it.
///
/// With redirects, each request is made on a new connection within what is left of the plan's timeout. The reported exchange
/// is that of the last response; its times and bytes are those of all requests, so that conditions on them judge what
/// a user waits for.
pub async fn check(
    plan: &Arc<CheckPlan>,
    options: CheckOptions<'_>,
    connector: &Connector,
    clock: &impl Clock,
) -> Checked {
    let mut plan = Arc::clone(plan);
    let mut redirects = options.follow.map(|follow| Redirects::new(follow.limit));
    let mut passed = Vec::new();
    let mut before: Option<(SystemTime, Exchange)> = None;
    loop {
        let mut checker = Checker::new(Arc::clone(&plan), Reuse::Fresh).with_details();
        if let Some(limits) = options.decode {
            checker = checker.with_decoding(limits);
        }
        let mut outcome = checker.check(connector, &ReadBuffer::new(), clock).await;
        let took = outcome.exchange.latency_from_started();
        if let Some((at, before)) = &before {
            outcome.at = *at;
            add(&mut outcome.exchange, before);
        }
        let next = match (options.follow, &mut redirects) {
            (Some(follow), Some(redirects)) => next(&plan, &checker, &outcome, follow, redirects),
            _ => Ok(None),
        };
        match next {
            Ok(None) => {}
            Ok(Some(next)) => {
                passed.push(CheckedRedirect {
                    url: masked_text(&plan.endpoint.to_string()).into_owned(),
                    status: outcome.exchange.outcome.as_ref().copied().unwrap_or(0),
                    took,
                });
                let left = plan.timeout.saturating_sub(took);
                plan = Arc::new(CheckPlan {
                    endpoint: next.0,
                    request: next.1,
                    digest: plan.digest.clone().filter(|_| next.2),
                    grpc: None,
                    expectations: plan.expectations.clone(),
                    timeout: left,
                    limits: plan.limits,
                });
                before = Some((outcome.at, outcome.exchange));
                continue;
            }
            Err(failure) => {
                outcome.exchange.outcome = Err(failure);
                outcome.verdict = Verdict::Failed;
            }
        }
        return Checked {
            redirects: passed,
            ..checker.explain(&outcome)
        };
    }
}

/// Endpoint and request of the next exchange, and whether credentials go with it; nothing if the response is not a
/// redirect.
fn next(
    plan: &CheckPlan,
    checker: &Checker,
    outcome: &Outcome,
    follow: Follow<'_>,
    redirects: &mut Redirects,
) -> Result<Option<(Endpoint, Request, bool)>, Failure> {
    let Ok(status) = outcome.exchange.outcome else {
        return Ok(None);
    };
    let wrong = |cause: String| {
        let failure = Failure::new(Phase::Receive, FailureKind::Protocol);
        failure.on(Side::Theirs).because(cause)
    };
    let text = plan.endpoint.to_string();
    let url = Url::parse(&text).map_err(|error| wrong(format!("{text}: {error}")))?;
    let location = checker.field("location");
    let redirect = redirects
        .follow(plan.request.method(), &url, status, location)
        .map_err(|error| wrong(error.to_string()))?;
    let Some(redirect) = redirect else {
        return Ok(None);
    };
    let endpoint = Endpoint::try_from(&redirect.url).map_err(|error| wrong(error.to_string()))?;
    let request = (follow.encode)(&endpoint, &redirect).map_err(wrong)?;
    Ok(Some((endpoint, request, !redirect.is_cross_origin)))
}

/// Makes `exchange` one that began with the earlier ones.
fn add(exchange: &mut Exchange, before: &Exchange) {
    exchange.intended = before.intended;
    exchange.started = before.started;
    exchange.bytes_sent += before.bytes_sent;
    exchange.bytes_received += before.bytes_received;
    exchange.phases.add(&before.phases);
}
