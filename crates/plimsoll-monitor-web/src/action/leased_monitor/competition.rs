//! The competition for the lease: which process leads, and what this one checks meanwhile.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_model::Clock;
use plimsoll_monitor::agent::helper::Helper;
use plimsoll_monitor::config::{Plan, StorePlan};
use plimsoll_monitor::engine::standby::Checks;
use plimsoll_monitor::engine::{LASTS, Leadership};
use plimsoll_monitor::store::shards::{Division, Shards};
use plimsoll_monitor::store::{OrgId, Store, StoreError};
use plimsoll_wire::SystemClock;
use tokio::sync::watch;

use super::{Background, Shared, StandingBy, stand_by};

/// Between two looks at the lease, so that a wake in the past does not spin.
const SHORTEST: Duration = Duration::from_millis(20);

impl Shared {
    /// Runs the monitor while this process has the lease, until this is dropped.
    pub(super) fn compete(self: &Arc<Self>) {
        let Some(store) = self.reach() else { return };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => {
                (self.report)(&format!("cannot compete for the lease: {error}"));
                return;
            }
        };
        let clock = SystemClock;
        let origin = clock.now();
        let elapsed = |now: Instant| now.saturating_duration_since(origin);
        let mut leadership = Leadership::default();
        let mut trouble = None;
        let mut sharing = Sharing::new(&self.state().plan);
        while !self.state().is_over {
            let now = elapsed(clock.now());
            if now >= leadership.due() {
                let hold = self.hold(store, &mut sharing);
                let patience = leadership.patience(now);
                let answer = runtime.block_on(async { tokio::time::timeout(patience, hold).await });
                let (granted, error) = match answer {
                    Ok(Ok(granted)) => (Some(granted), None),
                    Ok(Err(error)) => (None, Some(error.to_string())),
                    Err(_) => (None, Some("the store does not respond".to_owned())),
                };
                if error.is_some() && trouble.is_none() {
                    let why = error.as_deref().unwrap_or_default();
                    (self.report)(&format!("cannot renew the lease of the checks: {why}"));
                }
                trouble = error;
                let answered = elapsed(clock.now());
                leadership.answer(now, answered, granted);
                if sharing.has_others() {
                    leadership.hurry(answered);
                }
            }
            if leadership.leads(elapsed(clock.now())) {
                // It ends before the same monitors are checked by what leads.
                sharing.helper = None;
            }
            let leads = leadership.leads(elapsed(clock.now()));
            self.follow(store, leads, trouble.is_some(), sharing.division.as_ref());
            if leads {
                self.divide(&mut sharing);
            } else {
                let until = leadership.shares_until().map(|until| origin + until);
                self.help(store, &mut sharing, until);
            }
            let pause = leadership
                .next_wake()
                .saturating_sub(elapsed(clock.now()))
                .max(SHORTEST);
            thread::park_timeout(pause);
        }
        self.follow(store, false, false, None);
        // What it found is handed over while the share is still its own.
        sharing.helper = None;
        let end = async {
            if let Some(org) = sharing.org {
                store.end_share(org, &self.holder).await?;
            }
            store.end_lease(&self.organisation, &self.holder).await
        };
        // Another process waits until the lease is over if the store is gone too.
        runtime
            .block_on(async { tokio::time::timeout(LASTS, end).await })
            .ok();
    }

    /// Takes or renews the lease, and the share of this process in the checks; whether it has the lease.
    async fn hold(
        &self,
        store: &Arc<dyn Store>,
        sharing: &mut Sharing,
    ) -> Result<bool, StoreError> {
        let lease = store.hold_lease(&self.organisation, &self.holder, LASTS);
        let granted = lease.await?;
        if sharing.is_wanted {
            let org = match sharing.org {
                Some(org) => org,
                None => *sharing.org.insert(store.org(&self.organisation).await?),
            };
            let share = store.hold_share(org, &self.organisation, &self.holder, LASTS);
            sharing.division = Some(share.await?);
        }
        Ok(granted)
    }

    /// Has the monitor of this process, which leads, divide the checks as the store says.
    fn divide(&self, sharing: &mut Sharing) {
        let state = self.state();
        let Some((running, division)) = state.running.as_ref().zip(sharing.division.as_ref())
        else {
            return;
        };
        let handle = running.monitor.handle();
        let in_force = handle.board.division();
        if in_force.is_none_or(|in_force| in_force.shares != division.shares) {
            // If it is busy, again with the next renewal.
            handle.divide_soon(&self.holder, division);
        }
    }

    /// Checks the share of this process, which does not lead, until it is over.
    fn help(&self, store: &Arc<dyn Store>, sharing: &mut Sharing, until: Option<Instant>) {
        let division = sharing.division.as_ref();
        let share = division
            .filter(|division| division.leader.is_some())
            .map_or(Shards::NONE, |division| division.share_of(&self.holder));
        let state = self.state();
        let checks = state.standing_by.as_ref().map(|it| it.checks.clone());
        drop(state);
        let Some(((checks, org), until)) = checks.zip(sharing.org).zip(until) else {
            return;
        };
        if sharing.helper.is_none() && !share.is_empty() {
            let (store, report) = (Arc::clone(store), Arc::clone(&self.report));
            match Helper::start((org, store), self.holder.clone(), checks, report) {
                Ok(helper) => {
                    (self.report)("this process makes a share of the checks");
                    sharing.helper = Some(helper);
                }
                Err(error) => (self.report)(&format!("cannot make a share of the checks: {error}")),
            }
        }
        if let Some(helper) = &sharing.helper {
            helper.set_share(share, until);
        }
    }

    /// Starts or stops the monitor.
    ///
    /// - `is_away`: whether the store cannot be reached.
    fn follow(
        self: &Arc<Self>,
        store: &Arc<dyn Store>,
        leads: bool,
        is_away: bool,
        division: Option<&Division>,
    ) {
        let mut state = self.state();
        state.is_away = is_away;
        match (&state.running, leads) {
            (None, true) => {
                drop(state);
                match self.start(store, division) {
                    Ok(()) => {
                        // Dropped without the lock: its end waits for what it reads.
                        let standing_by = self.state().standing_by.take();
                        drop(standing_by);
                        (self.report)("this process runs the checks");
                    }
                    Err(error) => (self.report)(&format!("cannot start to monitor: {error}")),
                }
            }
            (Some(_), false) => {
                let running = state.running.take();
                // Its pages stay until those of a standby are there, or another process is.
                state.last = running.as_ref().map(|running| running.router.clone());
                drop(state);
                (self.report)("this process does not run the checks any more");
                drop(running);
            }
            (None, false) if !is_away && state.standing_by.is_none() && !state.is_over => {
                let owner = Arc::downgrade(self);
                let (found, checks) = watch::channel(Checks::default());
                let (organisation, store) = (self.organisation.clone(), Arc::clone(store));
                let reading = stand_by(owner, organisation, store, found);
                state.standing_by = Some(StandingBy {
                    serves: None,
                    checks,
                    _reading: Background::spawn("monitor-standby", reading, |error| {
                        (self.report)(&format!("a standby shows no pages: {error}"));
                    }),
                });
            }
            _ => {}
        }
    }
}

/// The part of a process in the checks.
struct Sharing {
    /// Whether it takes part, as its file says.
    is_wanted: bool,
    /// Once the store was called.
    org: Option<OrgId>,
    /// As of the last renewal.
    division: Option<Division>,
    /// Checks for the process that leads.
    helper: Option<Helper>,
}

impl Sharing {
    fn new(plan: &Plan) -> Self {
        Self {
            is_wanted: matches!(&plan.store, StorePlan::Servers(_, options) if options.shares_checks),
            org: None,
            division: None,
            helper: None,
        }
    }

    /// Whether there are other processes, which makes renewals more frequent. Shards without a process are those of one that ended.
    fn has_others(&self) -> bool {
        let division = self.division.as_ref();
        division.is_some_and(|division| division.shares.len() > 1 || !division.is_even())
    }
}

/// The name of this machine, as far as it may be read.
pub(super) fn machine() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let is_shown = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.');
    let name: String = name.trim().chars().filter(is_shown).collect();
    if name.is_empty() {
        "process".to_owned()
    } else {
        name
    }
}
