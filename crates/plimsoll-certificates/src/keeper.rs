//! The background task that orders certificates when they are due, one after the other.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use plimsoll_model::document::with_causes;
use plimsoll_model::{Certificate, Clock};
use plimsoll_server::config::OcspPlan;
use plimsoll_server::{AcmePlan, Challenges, Counters, Notices};
use plimsoll_wire::{Background, BackgroundTask, SystemClock};
use tokio::sync::watch;

use crate::acme::{OrderError, order};
use crate::events::CertificateEvent;
use crate::figures::AcmeFigures;
use crate::kept::CertificateState;
use crate::responses::Fetching;

/// The parts of a server that a keeper works with.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// Responses to challenges.
    pub challenges: Challenges,
    /// Counters of orders.
    pub counters: Arc<Counters>,
    /// Receives notices.
    pub notices: Notices,
    /// Runs what orders and fetches.
    pub background: Arc<Background>,
}

/// Keeps certificates current until it is dropped.
#[derive(Debug)]
pub struct Keeper {
    surroundings: Surroundings,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    wanted: watch::Sender<KeptPlans>,
    _task: BackgroundTask,
}

/// The certificates and responses to keep.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeptPlans {
    pub(crate) acme: Vec<AcmePlan>,
    pub(crate) ocsp: Vec<OcspPlan>,
    /// Raised each time that what failed is to be tried at once.
    pub(crate) attempt: u64,
}

/// How long it sleeps at a time: the system's date may be set.
const LONGEST_SLEEP: Duration = Duration::from_mins(1);

impl Keeper {
    /// One that has nothing to keep yet, and no task.
    pub fn new(surroundings: Surroundings) -> Self {
        Self {
            surroundings,
            running: None,
        }
    }

    /// Keeps what these ask for from now on, and nothing else; to be called too when certificates have changed.
    ///
    /// - `at_once`: what has failed is tried again now.
    pub fn keep(&mut self, acme: &[AcmePlan], ocsp: &[OcspPlan], at_once: bool) -> io::Result<()> {
        if self.running.is_none() && acme.is_empty() && ocsp.is_empty() {
            return Ok(());
        }
        let running = match self.running.take() {
            Some(running) => running,
            None => Running::start(&self.surroundings)?,
        };
        running.wanted.send_modify(|wanted| {
            wanted.acme = acme.to_vec();
            wanted.ocsp = ocsp.to_vec();
            wanted.attempt += u64::from(at_once);
        });
        self.running = Some(running);
        Ok(())
    }
}

impl Running {
    fn start(surroundings: &Surroundings) -> io::Result<Self> {
        let (wanted, wanted_changes) = watch::channel(KeptPlans::default());
        let keeping = Keeping {
            figures: surroundings.counters.figures(),
            surroundings: surroundings.clone(),
            kept: Vec::new(),
            attempt: 0,
        };
        let fetching = Fetching::new(surroundings);
        let task = surroundings.background.spawn(move || async move {
            tokio::join!(
                keeping.run(wanted_changes.clone()),
                fetching.run(wanted_changes.clone())
            );
        })?;
        Ok(Self {
            wanted,
            _task: task,
        })
    }
}

/// State of the task.
struct Keeping {
    surroundings: Surroundings,
    figures: Arc<AcmeFigures>,
    kept: Vec<CertificateState>,
    attempt: u64,
}

impl Keeping {
    async fn run(mut self, mut wanted_changes: watch::Receiver<KeptPlans>) {
        wanted_changes.mark_changed();
        while let Ok(has_changed) = wanted_changes.has_changed() {
            if has_changed {
                let wanted = wanted_changes.borrow_and_update().clone();
                self.adopt(wanted);
            }
            let now = SystemClock.wall();
            let next = self.kept.iter_mut().min_by_key(|kept| kept.due);
            match next {
                Some(next) if next.due <= now => {
                    let plan = next.plan.clone();
                    let ordering = order(&plan, &self.surroundings.challenges);
                    let ordered = tokio::select! {
                        ordered = ordering => ordered,
                        () = ended(wanted_changes.clone()) => return,
                    };
                    self.note(&plan, ordered);
                }
                next => until_due(next.map(|next| next.due), &mut wanted_changes).await,
            }
        }
    }

    /// Keeps what is wanted; what is known of it is not forgotten.
    fn adopt(&mut self, wanted: KeptPlans) {
        let now = SystemClock.wall();
        let mut before = std::mem::take(&mut self.kept);
        let at_once = wanted.attempt > self.attempt;
        self.attempt = wanted.attempt;
        for plan in wanted.acme {
            let known = before.iter().position(|kept| kept.plan == plan);
            let mut kept = if let Some(known) = known {
                before.swap_remove(known)
            } else {
                let found = self.found(&plan);
                CertificateState::new(plan, found.as_ref(), now, fastrand::f64())
            };
            if at_once {
                kept.try_again(now);
            }
            self.figures.expires(kept.plan.name(), kept.expires);
            self.kept.push(kept);
        }
        let names: Vec<_> = self.kept.iter().map(|kept| kept.plan.name()).collect();
        for gone in before {
            if !names.contains(&gone.plan.name()) {
                self.figures.expires(gone.plan.name(), None);
            }
        }
    }

    /// The certificate that is in its file already.
    fn found(&self, plan: &AcmePlan) -> Option<Certificate> {
        if !plan.file.exists() {
            return None;
        }
        let loaded = plan.awaited().load();
        loaded
            .map_err(|error| {
                let reason = with_causes(&error);
                let reason = &*reason;
                self.report(CertificateEvent::Useless { plan, reason });
            })
            .ok()
    }

    /// Takes down what an order came to.
    fn note(&mut self, plan: &AcmePlan, ordered: Result<Certificate, OrderError>) {
        let now = SystemClock.wall();
        let chance = fastrand::f64();
        let Some(kept) = self.kept.iter_mut().find(|kept| kept.plan == *plan) else {
            return;
        };
        match ordered {
            Ok(certificate) => {
                kept.renewed(&certificate, now, chance);
                self.figures.issued(plan.name());
                self.figures
                    .expires(plan.name(), Some(certificate.not_after));
                let until = certificate.not_after;
                self.report(CertificateEvent::Issued { plan, until });
            }
            Err(error) => {
                let again = kept.failed(now, chance);
                let kept_until = kept.expires;
                self.figures.failed(plan.name());
                self.report(CertificateEvent::OrderFailed {
                    plan,
                    reason: &with_causes(&error),
                    kept_until,
                    again,
                });
            }
        }
    }

    fn report(&self, event: CertificateEvent<'_>) {
        self.surroundings.notices.report(&event.into());
    }
}

/// Until something is due, or until something else or nothing is wanted any more.
pub(crate) async fn until_due(
    due: Option<SystemTime>,
    wanted_changes: &mut watch::Receiver<KeptPlans>,
) {
    let now = SystemClock.wall();
    let until = |due: SystemTime| due.duration_since(now).unwrap_or_default();
    let sleep = due.map_or(LONGEST_SLEEP, until).min(LONGEST_SLEEP);
    tokio::select! {
        () = tokio::time::sleep(sleep) => {}
        changed = wanted_changes.changed() => {
            if changed.is_ok() {
                wanted_changes.mark_changed();
            }
        }
    }
}

/// Until no certificate is wanted any more.
pub(crate) async fn ended(mut wanted_changes: watch::Receiver<KeptPlans>) {
    while wanted_changes.changed().await.is_ok() {}
}
