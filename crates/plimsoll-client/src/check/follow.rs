//! One check over all redirects of its URL.

use std::sync::Arc;
use std::time::SystemTime;

use plimsoll_model::{
    Checked, CheckedRedirect, Clock, Exchange, Failure, FailureKind, Phase, Side, Verdict,
    masked_text,
};

use crate::check::{CheckPlan, Checker, Outcome, Reuse};
use crate::redirect::Redirects;
use crate::{ConnectPlan, Connector, DecodeLimits, Endpoint, ReadBuffer, Request};

/// Steps of a check beyond one exchange; by default none.
#[derive(Debug, Clone, Copy, Default)]
pub struct CheckOptions {
    /// Redirects that are followed at most (RFC 9110, section 15.4); one more fails the check. Absent, the first response
    /// is judged.
    pub redirects: Option<u32>,
    /// Has the content decoded by its `content-encoding` before conditions see it. Content that cannot be decoded within
    /// these limits fails the check.
    pub decode: Option<DecodeLimits>,
}

/// Makes the exchange of `plan` once, on a new connection, and reports all about it.
///
/// With redirects, each request is made on a new connection within what is left of the plan's timeout. The reported exchange
/// is that of the last response; its times and bytes are those of all requests, so that conditions on them judge what
/// a user waits for.
pub async fn check(
    plan: &Arc<CheckPlan>,
    options: CheckOptions,
    connector: &Connector,
    clock: &impl Clock,
) -> Checked {
    let mut plan = Arc::clone(plan);
    let mut redirects = options.redirects.map(Redirects::new);
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
        let next = match &mut redirects {
            Some(redirects) => next(&plan, &checker, &outcome, connector.plan(), redirects),
            None => Ok(None),
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
    connect: &ConnectPlan,
    redirects: &mut Redirects,
) -> Result<Option<(Endpoint, Request, bool)>, Failure> {
    let Ok(status) = outcome.exchange.outcome else {
        return Ok(None);
    };
    let wrong = |cause: String| {
        let failure = Failure::new(Phase::Receive, FailureKind::Protocol);
        failure.on(Side::Theirs).because(cause)
    };
    let url = plan.request.url(&plan.endpoint);
    let url = url.map_err(|error| wrong(error.to_string()))?;
    let location = checker.field("location");
    let redirect = redirects
        .follow(plan.request.method(), &url, status, location)
        .map_err(|error| wrong(error.to_string()))?;
    let Some(redirect) = redirect else {
        return Ok(None);
    };
    let endpoint = Endpoint::try_from(&redirect.url).map_err(|error| wrong(error.to_string()))?;
    let form = connect.request_form(&endpoint);
    let request = plan.request.redirected(&redirect, &endpoint, form);
    let request = request.map_err(|error| wrong(error.to_string()))?;
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
