//! The background task that orders certificates when they are due, one after the other.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use plimsoll_model::with_causes;
use plimsoll_model::{Certificate, Clock};
use plimsoll_server::config::OcspPlan;
use plimsoll_server::{AcmePlan, Challenges, Counters, Notices, OnDemandPlan};
use plimsoll_wire::tls::OnDemandCertificates;
use plimsoll_wire::{Background, BackgroundTask, SystemClock};
use tokio::sync::watch;

use crate::acme::{OrderError, order};
use crate::events::CertificateEvent;
use crate::figures::AcmeFigures;
use crate::kept::CertificateState;
use crate::responses::Fetching;
use crate::schedule::OrderLimit;

/// The parts of a server that a keeper works with.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// Responses to challenges, and the names whose certificates are ordered on demand.
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
    pub(crate) on_demand: Option<OnDemandPlan>,
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
    /// - `on_demand`: how certificates are ordered for names that clients request and services permit.
    /// - `at_once`: what has failed is tried again now.
    pub fn keep(
        &mut self,
        acme: &[AcmePlan],
        on_demand: Option<&OnDemandPlan>,
        ocsp: &[OcspPlan],
        at_once: bool,
    ) -> io::Result<()> {
        let is_nothing = acme.is_empty() && on_demand.is_none() && ocsp.is_empty();
        if self.running.is_none() && is_nothing {
            return Ok(());
        }
        let running = match self.running.take() {
            Some(running) => running,
            None => Running::start(&self.surroundings)?,
        };
        running.wanted.send_modify(|wanted| {
            wanted.acme = acme.to_vec();
            wanted.on_demand = on_demand.cloned();
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
            on_demand: None,
            limit: OrderLimit::default(),
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
    on_demand: Option<OnDemandPlan>,
    limit: OrderLimit,
}

impl Keeping {
    async fn run(mut self, mut wanted_changes: watch::Receiver<KeptPlans>) {
        wanted_changes.mark_changed();
        let mut requests = self.requests().changes();
        while let Ok(has_changed) = wanted_changes.has_changed() {
            if has_changed {
                let wanted = wanted_changes.borrow_and_update().clone();
                self.adopt(wanted);
            }
            requests.mark_unchanged();
            self.follow_requests();
            let now = SystemClock.wall();
            let next = self.kept.iter_mut().min_by_key(|kept| kept.due);
            match next {
                Some(next) if next.due <= now => {
                    let plan = next.plan.clone();
                    if next.is_on_demand {
                        if next.expires.is_none()
                            && next.failures == 0
                            && let Err(at) = self
                                .limit
                                .admit_order(now, most_per_hour(self.on_demand.as_ref()))
                        {
                            next.postpone(at);
                            self.postponed(&plan, at);
                            continue;
                        }
                        self.requests().order(plan.name());
                    }
                    let ordering = order(&plan, &self.surroundings.challenges);
                    let ordered = tokio::select! {
                        ordered = ordering => ordered,
                        () = ended(wanted_changes.clone()) => return,
                    };
                    self.note(&plan, ordered);
                }
                next => {
                    let due = next.map(|next| next.due);
                    tokio::select! {
                        () = until_due(due, &mut wanted_changes) => {}
                        _ = requests.changed() => {}
                    }
                }
            }
        }
    }

    /// Keeps what is wanted; what is known of it is not forgotten.
    fn adopt(&mut self, wanted: KeptPlans) {
        let now = SystemClock.wall();
        let is_same_account = self.on_demand == wanted.on_demand;
        self.on_demand = wanted.on_demand;
        let mut before = std::mem::take(&mut self.kept);
        if is_same_account {
            self.kept = before.extract_if(.., |kept| kept.is_on_demand).collect();
        }
        let at_once = wanted.attempt > self.attempt;
        self.attempt = wanted.attempt;
        if at_once {
            self.kept.iter_mut().for_each(|kept| kept.try_again(now));
        }
        for plan in wanted.acme {
            let is_known = |kept: &CertificateState| kept.plan == plan && !kept.is_on_demand;
            let known = before.iter().position(is_known);
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

    /// Takes up names that clients have requested, and drops those that no service has any more.
    fn follow_requests(&mut self) {
        let requests = self.requests().clone();
        let is_wanted = |kept: &CertificateState| requests.permits(kept.plan.name());
        let gone = |kept: &mut CertificateState| kept.is_on_demand && !is_wanted(kept);
        for gone in self.kept.extract_if(.., gone) {
            requests.forget(gone.plan.name());
            self.figures.expires(gone.plan.name(), None);
        }
        let Some(on_demand) = self.on_demand.clone() else {
            return;
        };
        let now = SystemClock.wall();
        for name in requests.requested() {
            let is_known = |kept: &CertificateState| kept.is_on_demand && kept.plan.name() == name;
            if self.kept.iter().any(is_known) {
                continue;
            }
            if !requests.permits(&name) {
                requests.forget(&name);
                continue;
            }
            let plan = on_demand.certificate(&name);
            let is_shown = |_: &Certificate| requests.show(&name, &plan.file).is_ok();
            let found = self.found(&plan).filter(is_shown);
            let mut kept = CertificateState::new(plan, found.as_ref(), now, fastrand::f64());
            kept.is_on_demand = true;
            self.figures.expires(&name, kept.expires);
            self.kept.push(kept);
        }
    }

    fn requests(&self) -> &OnDemandCertificates {
        &self.surroundings.challenges.on_demand
    }

    /// A requested name has to wait, since too many were ordered.
    fn postponed(&self, plan: &AcmePlan, at: SystemTime) {
        self.requests().fail(plan.name());
        let most = most_per_hour(self.on_demand.as_ref());
        self.report(CertificateEvent::Postponed { plan, most, at });
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
        let requests = self.surroundings.challenges.on_demand.clone();
        let Some(kept) = self.kept.iter_mut().find(|kept| kept.plan == *plan) else {
            return;
        };
        let ordered = match ordered {
            Ok(_) if kept.is_on_demand => {
                requests.show(plan.name(), &plan.file).map_err(Into::into)
            }
            ordered => ordered,
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
                if kept.is_on_demand {
                    requests.fail(plan.name());
                }
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

fn most_per_hour(on_demand: Option<&OnDemandPlan>) -> usize {
    on_demand.map_or(1, |on_demand| on_demand.most_per_hour)
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
