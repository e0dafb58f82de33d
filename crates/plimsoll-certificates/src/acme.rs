//! One order (RFC 8555, section 7.4): names are proven, a certificate is issued and put in its file.

mod account;

mod proof;

use std::time::Duration;

use instant_acme::{
    AuthorizationStatus, Error, Identifier, NewOrder, Order, OrderStatus, Problem, RetryPolicy,
};
use plimsoll_client::fetch::{FetchLimits, Fetcher, FetcherError};
use plimsoll_model::{Certificate, with_causes};
use plimsoll_server::{AcmePlan, ChallengeKind, Challenges};
use plimsoll_wire::tls::{AwaitedCertificate, ServerTlsError, TlsChallengeError};

use crate::store::{StoreError, TemporaryFile};
use crate::transport::{self, Transport};

/// For one request.
const LIMITS: FetchLimits = FetchLimits {
    timeout: Duration::from_secs(30),
    bytes: 1024 * 1024,
    redirects: 0,
};

/// For all of an order: authorities validate within seconds and issue within minutes.
const TIMEOUT: Duration = Duration::from_mins(10);

/// Polling interval of an order's state.
const POLLING: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(250))
    .backoff(1.5)
    .timeout(Duration::from_mins(3));

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OrderError {
    #[error("cannot reach {0}")]
    Fetcher(String, #[source] FetcherError),
    #[error("{0}")]
    Authority(String),
    #[error("the authority does not offer {} for {name}", challenge.name())]
    NoChallenge {
        name: String,
        challenge: ChallengeKind,
    },
    #[error("{} of {name} was not accepted: {reason}", challenge.name())]
    Refused {
        name: String,
        challenge: ChallengeKind,
        reason: String,
    },
    #[error(transparent)]
    Challenge(#[from] TlsChallengeError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("what the authority has sent cannot be used")]
    Useless(#[from] ServerTlsError),
    #[error("the account in `{0}` cannot be read: {1}; move it away to open another")]
    Account(String, serde_json::Error),
    #[error("it took longer than {} minutes", TIMEOUT.as_secs() / 60)]
    Timeout,
}

impl From<Error> for OrderError {
    fn from(error: Error) -> Self {
        Self::Authority(match &error {
            Error::Api(problem) => problem_text(problem),
            error => with_causes(error),
        })
    }
}

/// The problem document of an authority, with the names that it is about.
fn problem_text(problem: &Problem) -> String {
    let one = |detail: Option<&str>, kind: Option<&str>| {
        let kind = kind.map(|kind| kind.trim_start_matches("urn:ietf:params:acme:error:"));
        match (detail, kind) {
            (Some(detail), Some(kind)) => format!("{detail} ({kind})"),
            (Some(text), None) | (None, Some(text)) => text.to_owned(),
            (None, None) => "no reason is given".to_owned(),
        }
    };
    let mut text = one(problem.detail.as_deref(), problem.r#type.as_deref());
    for part in &problem.subproblems {
        text += "; ";
        text += &one(part.detail.as_deref(), part.r#type.as_deref());
    }
    text
}

/// Orders a certificate, has its names proven by `challenges`, and puts it in its file.
pub(crate) async fn order(
    plan: &AcmePlan,
    challenges: &Challenges,
) -> Result<Certificate, OrderError> {
    let directory = &plan.account.directory;
    let fetcher = Fetcher::believing(plan.account.trust.clone(), LIMITS)
        .map_err(|error| OrderError::Fetcher(directory.clone(), error))?;
    let (transport, requests) = Transport::new();
    let ordering = tokio::time::timeout(TIMEOUT, issue(plan, challenges, transport));
    tokio::select! {
        issued = ordering => issued.unwrap_or(Err(OrderError::Timeout)),
        // It ends only with the order.
        () = transport::serve(&fetcher, requests) => Err(OrderError::Timeout),
    }
}

async fn issue(
    plan: &AcmePlan,
    challenges: &Challenges,
    transport: Transport,
) -> Result<Certificate, OrderError> {
    let identifiers: Vec<_> = plan.names.iter().map(|name| identifier(name)).collect();
    let new = NewOrder::new(&identifiers);
    let account = account::open(&plan.account, transport.clone()).await?;
    let mut order = match account.new_order(&new).await {
        Err(Error::Api(problem)) if is_unknown(&problem) => {
            let account = account::open_anew(&plan.account, transport).await?;
            account.new_order(&new).await?
        }
        order => order?,
    };
    let proofs = prove(plan, challenges, &mut order).await?;
    if order.state().status != OrderStatus::Ready {
        let status = order.poll_ready(&POLLING).await?;
        if status != OrderStatus::Ready {
            return Err(why_refused(plan, &mut order).await);
        }
    }
    drop(proofs);
    let key = order.finalize().await?;
    let chain = order.poll_certificate(&POLLING).await?;
    let written = TemporaryFile::new(&plan.file, format!("{key}{chain}"))?;
    let issued = AwaitedCertificate {
        names: plan.names.clone(),
        file: written.path().to_owned(),
        ocsp: None,
    };
    let certificate = issued.load()?;
    written.keep()?;
    Ok(certificate)
}

/// Whether the authority does not know the account (RFC 8555, section 7.3.6 and 6.7).
fn is_unknown(problem: &Problem) -> bool {
    problem.r#type.as_deref() == Some("urn:ietf:params:acme:error:accountDoesNotExist")
}

fn identifier(name: &str) -> Identifier {
    match name.parse() {
        Ok(address) => Identifier::Ip(address),
        Err(_) => Identifier::Dns(name.to_owned()),
    }
}

/// Answers for every name that is not proven yet.
async fn prove(
    plan: &AcmePlan,
    challenges: &Challenges,
    order: &mut Order,
) -> Result<Vec<proof::Proof>, OrderError> {
    let mut proofs = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        let name = authorization.identifier().to_string();
        match authorization.status {
            AuthorizationStatus::Pending => {}
            AuthorizationStatus::Valid => continue,
            other => {
                let reason = format!("its authorization is {other:?}").to_lowercase();
                return Err(OrderError::Authority(format!("{name}: {reason}")));
            }
        }
        let challenge = authorization.challenge(proof::kind(plan.challenge));
        let mut challenge = challenge.ok_or_else(|| OrderError::NoChallenge {
            name: name.clone(),
            challenge: plan.challenge,
        })?;
        let key = challenge.key_authorization();
        proofs.push(proof::Proof::new(
            plan.challenge,
            challenges,
            &name,
            &challenge.token,
            &key,
        )?);
        challenge.set_ready().await?;
    }
    Ok(proofs)
}

/// The authority's reason against the first name that it did not accept.
async fn why_refused(plan: &AcmePlan, order: &mut Order) -> OrderError {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let Ok(mut authorization) = authorization else {
            continue;
        };
        let name = authorization.identifier().to_string();
        let Ok(state) = authorization.refresh().await else {
            continue;
        };
        let mut problems = state.challenges.iter().filter_map(|it| it.error.as_ref());
        if let Some(problem) = problems.next() {
            return OrderError::Refused {
                name,
                challenge: plan.challenge,
                reason: problem_text(problem),
            };
        }
    }
    OrderError::Authority("the order is invalid, and no reason is given".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_reported_in_words() {
        let problem = |subproblems| Problem {
            r#type: Some("urn:ietf:params:acme:error:rateLimited".to_owned()),
            detail: Some("too many".to_owned()),
            status: Some(429),
            subproblems,
        };
        assert_eq!(problem_text(&problem(Vec::new())), "too many (rateLimited)");
        let part = instant_acme::Subproblem {
            identifier: None,
            r#type: None,
            detail: None,
        };
        assert_eq!(
            problem_text(&problem(vec![part])),
            "too many (rateLimited); no reason is given"
        );
    }
}
