//! OCSP responses, fetched from the responders that certificates name and put in files before the old ones end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use plimsoll_client::fetch::{FetchError, FetchLimits, Fetcher, FetcherError};
use plimsoll_model::Clock;
use plimsoll_model::with_causes;
use plimsoll_server::Notices;
use plimsoll_server::config::OcspPlan;
use plimsoll_wire::SystemClock;
use plimsoll_wire::tls::{MOST_OCSP_BYTES, OcspError, OcspQuestion, OcspResponse};
use tokio::sync::watch;
use url::Url;

use crate::events::CertificateEvent;
use crate::figures::OcspFigures;
use crate::keeper::{KeptPlans, Surroundings, ended, until_due};
use crate::schedule::{pause, refresh};
use crate::store::{StoreError, TemporaryFile};

/// For one response.
const LIMITS: FetchLimits = FetchLimits {
    timeout: Duration::from_secs(15),
    bytes: MOST_OCSP_BYTES,
    redirects: 0,
};

/// The least time between two requests to a responder that has no newer response.
const LEAST: Duration = Duration::from_secs(10);

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
enum ResponseError {
    #[error("the certificate names no OCSP responder")]
    NoResponder,
    #[error("`{0}` is no URL")]
    Url(String, #[source] url::ParseError),
    #[error(transparent)]
    Fetcher(#[from] FetcherError),
    #[error("{0}")]
    Fetch(String, #[source] FetchError),
    #[error("{0} answers {1}")]
    Status(String, u16),
    #[error(transparent)]
    Ocsp(#[from] OcspError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Fetches responses, one after the other.
pub(crate) struct Fetching {
    figures: Arc<OcspFigures>,
    notices: Notices,
    all: Vec<Fetched>,
    attempt: u64,
}

/// One certificate whose response is kept current.
struct Fetched {
    plan: OcspPlan,
    question: OcspQuestion,
    /// Until when that holds which is there.
    until: Option<SystemTime>,
    is_revoked: bool,
    failures: u32,
    due: SystemTime,
}

impl Fetching {
    pub(crate) fn new(surroundings: &Surroundings) -> Self {
        Self {
            figures: surroundings.counters.figures(),
            notices: surroundings.notices.clone(),
            all: Vec::new(),
            attempt: 0,
        }
    }

    pub(crate) async fn run(mut self, mut wanted_changes: watch::Receiver<KeptPlans>) {
        wanted_changes.mark_changed();
        while let Ok(has_changed) = wanted_changes.has_changed() {
            if has_changed {
                let wanted = wanted_changes.borrow_and_update().clone();
                self.adopt(wanted);
            }
            let now = SystemClock.wall();
            match self.all.iter().min_by_key(|it| it.due) {
                Some(next) if next.due <= now => {
                    let (plan, question) = (next.plan.clone(), next.question.clone());
                    let fetched = tokio::select! {
                        fetched = fetch(&plan, &question) => fetched,
                        () = ended(wanted_changes.clone()) => return,
                    };
                    self.note(&plan, fetched);
                }
                next => until_due(next.map(|next| next.due), &mut wanted_changes).await,
            }
        }
    }

    /// Keeps what is wanted; a certificate that has changed needs a new response.
    fn adopt(&mut self, wanted: KeptPlans) {
        let now = SystemClock.wall();
        let at_once = wanted.attempt > self.attempt;
        self.attempt = wanted.attempt;
        let mut before: HashMap<_, _> = std::mem::take(&mut self.all)
            .into_iter()
            .map(|it| (it.plan.file.clone(), it))
            .collect();
        for plan in wanted.ocsp {
            // A certificate that is not there yet has no status.
            if !plan.chain.exists() {
                continue;
            }
            let question = match OcspQuestion::of_file(&plan.chain) {
                Ok(question) => question,
                Err(error) => {
                    self.report(CertificateEvent::NoResponse {
                        chain: &plan.chain,
                        reason: &with_causes(&error),
                        kept_until: None,
                    });
                    continue;
                }
            };
            let known = before.remove(&plan.file);
            let mut fetched = match known.filter(|it| it.question == question) {
                Some(known) => known,
                None => Fetched::new(plan, question, now),
            };
            if at_once && fetched.failures > 0 {
                fetched.due = now;
            }
            let subject = fetched.question.to_string();
            self.figures.holds_until(&subject, fetched.until);
            self.all.push(fetched);
        }
        for gone in before.values() {
            let subject = gone.question.to_string();
            if self.all.iter().all(|it| it.question.to_string() != subject) {
                self.figures.holds_until(&subject, None);
            }
        }
    }

    fn note(&mut self, plan: &OcspPlan, fetched: Result<OcspResponse, ResponseError>) {
        let now = SystemClock.wall();
        let chance = fastrand::f64();
        let Some(known) = self.all.iter_mut().find(|it| it.plan == *plan) else {
            return;
        };
        let subject = known.question.to_string();
        match fetched {
            Ok(response) => {
                known.failures = 0;
                known.until = Some(response.until);
                known.due = refresh(response.since, response.until, chance).max(now + LEAST);
                let is_news = response.is_revoked && !known.is_revoked;
                known.is_revoked = response.is_revoked;
                self.figures.fetched(&subject);
                self.figures.holds_until(&subject, Some(response.until));
                if is_news {
                    let chain = &plan.chain;
                    self.report(CertificateEvent::Revoked { chain });
                }
            }
            Err(error) => {
                known.failures = known.failures.saturating_add(1);
                known.due = now + pause(known.failures, chance);
                let kept_until = known.until.filter(|until| *until > now);
                let is_first = known.failures == 1;
                self.figures.failed(&subject);
                // The same is not reported again and again.
                if is_first {
                    self.report(CertificateEvent::NoResponse {
                        chain: &plan.chain,
                        reason: &with_causes(&error),
                        kept_until,
                    });
                }
            }
        }
    }

    fn report(&self, event: CertificateEvent<'_>) {
        self.notices.report(&event.into());
    }
}

impl Fetched {
    /// With what is in the file, if that fits and holds.
    fn new(plan: OcspPlan, question: OcspQuestion, now: SystemTime) -> Self {
        let found = question.read(&plan.file, now).ok().flatten();
        let due = found
            .as_ref()
            .map_or(now, |it| refresh(it.since, it.until, fastrand::f64()));
        Self {
            plan,
            question,
            until: found.as_ref().map(|it| it.until),
            is_revoked: found.is_some_and(|it| it.is_revoked),
            failures: 0,
            due,
        }
    }
}

/// Requests the response from the certificate's responder, and puts it in its file (RFC 6960, appendix A).
async fn fetch(plan: &OcspPlan, question: &OcspQuestion) -> Result<OcspResponse, ResponseError> {
    let responder = question.responder().ok_or(ResponseError::NoResponder)?;
    let url =
        Url::parse(responder).map_err(|error| ResponseError::Url(responder.to_owned(), error))?;
    let fetcher = Fetcher::new(LIMITS)?;
    let fields = [
        ("content-type", "application/ocsp-request"),
        ("accept", "application/ocsp-response"),
    ];
    let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let request = question.request();
    let answer = fetcher.send("POST", &url, fields.into(), Some(&request));
    let answer = answer
        .await
        .map_err(|error| ResponseError::Fetch(responder.to_owned(), error))?;
    if answer.status != 200 {
        return Err(ResponseError::Status(responder.to_owned(), answer.status));
    }
    let response = question.answer(&answer.content, SystemClock.wall())?;
    TemporaryFile::new(&plan.file, &response.der)?.keep()?;
    Ok(response)
}
